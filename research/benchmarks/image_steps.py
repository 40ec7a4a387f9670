"""The steps of the Dockerfile as a script, for machines without docker: is what it would build a
service that works?

    python -m research.benchmarks.image_steps [--keep FOLDER]

Every instruction is carried out in a folder instead of an image (`/venv` is FOLDER/venv and so on),
and what runs in the image as another user where this one is root and others reach Python: copies,
installation, compiled kernels, the command that serves, the health check before, while and after it
runs, a decision, and the stop. Takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from research.benchmarks.regret_rows import ROOT

USER = 10001
_PLACES = re.compile(r"(?<![\w.])/(venv|data|src)\b")


def instructions(path: Path = ROOT / "Dockerfile") -> Iterator[tuple[str, str]]:
    """Words and what follows them, in order."""
    for line in path.read_text().replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, " ".join(rest.split())


def commands(path: Path = ROOT / "Dockerfile") -> dict[str, list[str]]:
    """The command that serves, and the one that asks whether it is well."""
    found = {}
    for word, rest in instructions(path):
        if word == "CMD":
            found["CMD"] = json.loads(rest)
        elif word == "HEALTHCHECK":
            found["HEALTHCHECK"] = json.loads(rest.partition("CMD ")[2])
    return found


class Steps:
    """An image that is a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        self.env |= {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))
        }
        for place in ("src", "data"):
            (folder / place).mkdir()
        self.another = os.getuid() == 0 and _others_reach(Path(sys.base_prefix))
        if not self.another:
            print(
                "what runs in the image runs as this user: another one could not be, or not reach "
                "Python"
            )

    def here(self, text: str) -> str:
        """A path of the image as one of the folder."""
        return _PLACES.sub(lambda found: f"{self.folder}/{found[1]}", text)

    def build(self) -> None:
        """All steps but those that run when the image does."""
        for word, rest in instructions():
            print(word, rest, flush=True)
            if word == "COPY" and not rest.startswith("--from"):
                *sources, target = shlex.split(rest)
                for source in sources:
                    self._copy(ROOT / source, self.folder / "src" / target)
            elif word == "ENV":
                self.env |= {k: v.replace("$PATH", self.env["PATH"]) for k, v in self._pairs(rest)}
            elif word == "RUN" and not rest.startswith("useradd"):
                said = self.here(rest).replace("chown -R tidepull", f"chown -R {USER}")
                subprocess.run(said, shell=True, check=True, cwd=self.folder / "src", env=self.env)

    def _pairs(self, rest: str) -> Iterator[tuple[str, str]]:
        for pair in shlex.split(rest):
            name, _, value = pair.partition("=")
            yield name, self.here(value)

    def _copy(self, source: Path, target: Path) -> None:
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)

    def run(self, *words: str) -> subprocess.Popen[str]:
        """A command as it runs in the image: not as root."""
        given: dict[str, Any] = {"user": USER, "group": USER} if self.another else {}
        made = [self.here(word) for word in words]
        return subprocess.Popen(
            made, env=self.env, cwd=self.folder / "data", stdout=subprocess.PIPE, text=True, **given
        )

    def check(self) -> None:
        """Serve, be well, decide, stop."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        serve = [word.replace("8000", port) for word in commands()["CMD"]]
        ask = [word.replace("8000", port) for word in commands()["HEALTHCHECK"]]
        assert self.run(*ask).wait() != 0, "the health check says that it is well before it runs"
        token = self.run("tidepull", *_TOKEN).communicate()[0].strip()
        server = self.run(*serve)
        try:
            deadline = time.monotonic() + 60
            while self.run(*ask).wait() != 0:
                assert time.monotonic() < deadline, "it did not become well in a minute"
                assert server.poll() is None, "it ended by itself"
            decide(f"http://127.0.0.1:{port}/v1/agents", token)
        finally:
            server.terminate()
            code = server.wait(60)
        assert code == 0, f"the stop ended with {code}"
        assert self.run(*ask).wait() != 0, "the health check says that it is well after it stopped"


def _others_reach(path: Path) -> bool:
    """Whether any user may enter all folders that lead somewhere."""
    return all(
        folder.stat().st_mode & 0o001 for folder in (path.resolve(), *path.resolve().parents)
    )


def decide(url: str, token: str) -> None:
    """An agent with the default policy, whose kernels are compiled already, makes a decision."""
    head = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    begun = time.monotonic()
    for path, body in (
        ("", {"name": "shop", "arms": ["a", "b"], "context": {}}),
        ("/shop/choose", {}),
    ):
        request = urllib.request.Request(url + path, json.dumps(body).encode(), head)
        with urllib.request.urlopen(request, timeout=120) as answer:
            print(json.load(answer), flush=True)
    print(f"made and decided within {time.monotonic() - begun:.1f} s")


_TOKEN = ("token", "new", "--tokens", "/data/tokens.json", "--agent", "*", "--scope", "admin")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--keep", type=Path, help="an empty folder that stays")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = given.keep or Path(folder)
        place.chmod(0o755)
        steps = Steps(place)
        steps.build()
        steps.check()
    print("every step works", file=sys.stderr)


if __name__ == "__main__":
    main()
