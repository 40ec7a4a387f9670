"""Machines of a Ray cluster for tests, all of them on loopback, and each to be killed by itself."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

START = "import sys; from ray.scripts.scripts import main; sys.exit(main())"
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(sys.path),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # Ray's default is 15
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # A machine that refuses five connections is dead; asked every 3 seconds, that takes 15.
    "RAY_health_check_period_ms": "500",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Machine:
    """One `ray start`, with all its processes in a group of their own."""

    def __init__(self, folder: Path, name: str, *options: str) -> None:
        self._log = (folder / f"{name}.log").open("w")
        common = ["--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=100000000"]
        ports = [
            f"--dashboard-agent-listen-port={free_port()}",
            "--min-worker-port=0",
            "--max-worker-port=0",
        ]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                START,
                "start",
                *options,
                *common,
                *ports,
                "--disable-usage-stats",
                "--block",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            start_new_session=True,
        )

    def wait_until_it_listens(self, port: int, seconds: float = 200) -> None:
        """The head answers others before it is up itself."""
        deadline = time.monotonic() + seconds
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            assert self.process.poll() is None, Path(self._log.name).read_text()
            assert time.monotonic() < deadline, Path(self._log.name).read_text()
            time.sleep(0.1)

    def wait_until_up(self, seconds: float = 200) -> None:
        deadline = time.monotonic() + seconds
        while "Ray runtime started" not in (text := Path(self._log.name).read_text()):
            assert self.process.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.1)

    def kill(self) -> None:
        """As if its plug was pulled: every process at once, workers too."""
        for process in [*_below(self.process.pid), self.process.pid]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        self._log.close()


@contextmanager
def two_machines() -> Iterator[tuple[str, Machine]]:
    """The address of the cluster, and its second machine."""
    folder = Path(
        tempfile.mkdtemp(prefix="tidepull-ray-", dir="/tmp")
    )  # Ray's sockets need a short path.
    address = f"127.0.0.1:{free_port()}"
    machines: list[Machine] = []
    try:
        port = address.rpartition(":")[2]
        head = ["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}"]
        machines.append(Machine(folder, "head", *head))
        machines[0].wait_until_it_listens(int(port))
        machines.append(Machine(folder, "second", f"--address={address}"))
        for machine in machines:
            machine.wait_until_up()
        yield address, machines[1]
    finally:
        for machine in machines:
            machine.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _below(process: int) -> list[int]:
    """All processes that one has started, directly or not."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(
                int(stat.parent.name)
            )
    found, left = [], [process]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found
