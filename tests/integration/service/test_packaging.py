"""The image, the systemd unit and the Compose file: what they say must be what the service
takes."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml  # type: ignore[import-untyped]

from research.benchmarks.image_steps import commands, instructions
from research.benchmarks.regret_rows import ROOT
from tests.integration.service.running import running
from tidepull.cli.app import app

DEPLOY = ROOT / "examples" / "deploy"
UNIT = (DEPLOY / "tidepull.service").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SHARDS = {name: service for name, service in COMPOSE["services"].items() if name != "database"}


def options(words: list[str]) -> dict[str, object]:
    """What `tidepull serve` understands of a command; wrong options are errors."""
    assert words[1] == "serve"
    group = typer.main.get_command(app)
    name, command, rest = group.resolve_command(typer.Context(group), words[1:])  # type: ignore[attr-defined]
    return command.make_context(name, rest).params  # type: ignore[no-any-return]


def test_image_copies_files_that_are_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            for source in shlex.split(rest)[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source.removeprefix('./')}" in ignored


def test_image_runs_as_another_user_who_may_write_where_agents_are() -> None:
    made = list(instructions())
    assert ("USER", "tidepull") in made
    assert made.index(("USER", "tidepull")) > max(
        n for n, (word, _) in enumerate(made) if word == "RUN"
    )
    assert options(commands()["CMD"])["db"] == "/data"


def test_health_check_of_the_image_tells_a_service_that_runs_from_one_that_does_not(
    tmp_path: Path,
) -> None:
    def check() -> int:
        words = [word.replace("8000", str(port)) for word in commands()["HEALTHCHECK"][1:]]
        return subprocess.run([sys.executable, *words], capture_output=True).returncode

    with running(tmp_path) as service:
        port = service.port
        assert check() == 0
    assert check() != 0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not there")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "tidepull.service"
    unit.write_text(re.sub(r"/opt/tidepull/bin/tidepull", sys.executable, UNIT))
    said = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")


def test_unit_serves_from_the_directory_that_systemd_makes_for_it() -> None:
    said = dict(
        line.split("=", 1) for line in UNIT.splitlines() if "=" in line and not line.startswith("#")
    )
    assert options(shlex.split(said["ExecStart"]))["db"] == f"/var/lib/{said['StateDirectory']}"


@pytest.mark.parametrize("name", SHARDS)
def test_shards_of_the_compose_file_share_all_but_their_address_and_trail(name: str) -> None:
    given = options(SHARDS[name]["command"])
    assert given["here"] == f"http://{name}:{given['port']}"
    others = [options(service["command"]) for other, service in SHARDS.items() if other != name]
    assert all(given["audit"] != other["audit"] and given["db"] == other["db"] for other in others)
    assert all(given["tokens"] == other["tokens"] for other in others)
    mounts = {volume.split(":")[0] for volume in SHARDS[name]["volumes"]}
    assert mounts <= set(COMPOSE["volumes"])
