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
from typer.testing import CliRunner

from research.benchmarks.image_steps import commands, instructions
from research.benchmarks.regret_rows import ROOT
from tests.integration.service.houses import House
from tests.integration.service.neighbourhood import new_database
from tests.integration.service.running import running
from tests.postgres import Server
from tidepull.cli.app import app
from tidepull.errors import InputError
from tidepull.service import server
from tidepull.service.connections import MAX_CONNECTIONS, MAX_OPEN, Descriptors

DEPLOY = ROOT / "examples" / "deploy"
UNIT = (DEPLOY / "tidepull.service").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SHARDS = {name: service for name, service in COMPOSE["services"].items() if name != "database"}


ALERTS = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())


def options(words: list[str], environment: dict[str, str] | None = None) -> dict[str, object]:
    """What `tidepull serve` understands of a command and its environment; wrong options are
    errors."""
    assert words[1] == "serve"
    with pytest.MonkeyPatch.context() as patched:
        for name, value in (environment or {}).items():
            patched.setenv(name, value)
        return _options(words)


def _options(words: list[str]) -> dict[str, object]:
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
    asked = {one: options(shard["command"], shard["environment"]) for one, shard in SHARDS.items()}
    given = asked.pop(name)
    assert given["here"] == f"http://{name}:{given['port']}"
    assert given["host"] == "0.0.0.0"
    others = list(asked.values())
    assert all(given["audit"] != other["audit"] and given["db"] == other["db"] for other in others)
    assert all(given["tokens"] == other["tokens"] for other in others)
    mounts = {volume.split(":")[0] for volume in SHARDS[name]["volumes"]}
    assert mounts <= set(COMPOSE["volumes"])


def test_examples_bound_memory_processors_and_descriptors() -> None:
    said = dict(
        line.split("=", 1) for line in UNIT.splitlines() if "=" in line and not line.startswith("#")
    )
    assert {"LimitNOFILE", "MemoryMax", "CPUQuota", "TasksMax"} <= set(said)
    enough = Descriptors.within(int(said["LimitNOFILE"]))
    assert (enough.agents, enough.connections) == (MAX_OPEN, MAX_CONNECTIONS)
    for shard in SHARDS.values():
        assert {"mem_limit", "cpus", "pids_limit"} <= set(shard)
        assert shard["ulimits"]["nofile"]["soft"] == int(said["LimitNOFILE"])


def test_alerts_are_about_metrics_that_there_are(house: House, postgres: Server) -> None:
    shared = House(house.root / "shared", db=new_database(postgres))
    try:
        for one in (house, shared):
            one.make()
            made = one.ask("POST", "/v1/agents/shop/choose", {}).json()
            one.ask("POST", "/v1/agents/shop/reward", {"id": made["id"], "reward": 1})
            one.ask("GET", "/v1/agents", token="")
        text = house.ask("GET", "/metrics").text + shared.ask("GET", "/metrics").text
    finally:
        shared.close()
    there = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    there |= {f"{name}_bucket" for name in there} | set(re.findall(r"^([a-z_]+)[ {]", text, re.M))
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    assert len(rules) == len({rule["alert"] for rule in rules}) >= 12
    for rule in rules:
        named = set(re.findall(r"\b(?:tidepull|process)_[a-z_]+", rule["expr"]))
        assert named, rule["alert"]
        assert named <= there, rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")
        labels = re.findall(r"(\w+)=~?\"", rule["expr"])
        assert all(f'{label}="' in text for label in labels), rule["alert"]
    page = (ROOT / "docs" / "operations.md").read_text()
    assert [rule["alert"] for rule in rules if f"`{rule['alert']}`" not in page] == []


def test_every_option_of_serve_has_an_environment_variable() -> None:
    group = typer.main.get_command(app)
    _, command, _ = group.resolve_command(typer.Context(group), ["serve"])  # type: ignore[attr-defined]
    page = (ROOT / "docs" / "operations.md").read_text()
    for option in command.params:
        if option.name != "help":
            assert str(option.envvar).startswith("TIDEPULL_"), option.name
            assert f"`{option.envvar}`" in page
    given = {"TIDEPULL_DB": "elsewhere", "TIDEPULL_PORT": "9000", "TIDEPULL_QUIET": "1"}
    found = options(["tidepull", "serve", "--port", "9001"], given)
    assert (found["db"], found["port"], found["quiet"]) == ("elsewhere", 9001, True)


def test_secrets_can_come_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[server.ServerConfig] = []
    monkeypatch.setattr(server, "prepare", seen.append)
    monkeypatch.setattr(server, "serve", lambda *_: None)
    (tmp_path / "url").write_text("postgresql://me:hush@db/agents\n")
    monkeypatch.setenv("TIDEPULL_DB_FILE", str(tmp_path / "url"))
    monkeypatch.setenv("TIDEPULL_SHARD_SECRET_FILE", str(tmp_path / "secret"))
    assert CliRunner().invoke(app, ["serve"]).exit_code == 0
    assert seen[0].db == "postgresql://me:hush@db/agents"
    assert seen[0].shard_secret == tmp_path / "secret"
    monkeypatch.setenv("TIDEPULL_DB_FILE", str(tmp_path / "nothing"))
    refused = CliRunner().invoke(app, ["serve"])
    assert isinstance(refused.exception, InputError)
    assert "TIDEPULL_DB_FILE" in str(refused.exception)
