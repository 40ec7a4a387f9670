"""Agents of earlier releases open, go on and say what became of them; so does one whose policy
behaves differently in this release."""

from __future__ import annotations

import json
import lzma
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.golden.agents.__main__ import BETWEEN, FOLDER, START, VISITS, visit
from tests.postgres import Server, binaries
from tidepull import Agent
from tidepull.policies import policies
from tidepull.registry import Registry

NOW = START + BETWEEN * VISITS
FILES = sorted(FOLDER.glob("*/*.db.xz"))
DUMPS = sorted(FOLDER.glob("*/postgres.sql.xz"))
GONE = {"compacted.db": 50}
"""Decisions that are not in the ledger any more, by intent."""


def unpacked(packed: Path, folder: Path) -> Path:
    path = folder / packed.stem
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """All policies behave differently from now on, and take no snapshot of before."""
    entry = Registry.entry

    def raised(self: Registry[Any], id: str) -> Any:
        found = entry(self, id)
        return replace(found, version=found.version + 1) if self is policies else found

    monkeypatch.setattr(Registry, "entry", raised)


def go_on(place: str, **given: Any) -> Agent:
    """Open an agent, ask for an old decision, pay it late, decide anew."""
    agent = Agent(place, training="inline", now=lambda: NOW, **given)
    assert agent.state().decisions == VISITS
    assert agent.choose(visit(116), id="visit 116").arm in {"blue", "green", "red", "pink"}
    agent.reward(agent.choose(visit(VISITS)), 1.0)
    return agent


def upgrades(agent: Agent) -> list[str]:
    return [line for line in agent.explain().changes if "rebuilt from" in line]


@pytest.mark.parametrize("packed", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_agent_of_an_earlier_release_opens_and_goes_on(packed: Path, tmp_path: Path) -> None:
    with go_on(str(unpacked(packed, tmp_path))) as agent:
        assert agent.check().sound


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize("packed", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_agent_of_another_form_of_its_policy_is_made_anew_from_what_is_left(
    packed: Path, tmp_path: Path
) -> None:
    path = unpacked(packed, tmp_path)
    with go_on(str(path)) as agent:
        (said,) = upgrades(agent)
        gone = GONE.get(path.name, 0)
        assert f"from {VISITS - gone} decisions" in said
        assert ("earlier ones were gone" in said) == bool(gone)
        agent.save()
        made = [agent.choose(visit(n), at=NOW + n).propensity for n in range(200, 210)]
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT count(*) FROM records WHERE kind = 11").fetchone() == (1,)
    with Agent(path, training="inline", now=lambda: NOW) as agent:
        assert agent.upgrading is None
        assert len(upgrades(agent)) == 1
        assert agent.check().sound
        again = agent.history("rows")[-10:]
        assert [row["propensity"] for row in again] == made


@pytest.mark.usefixtures("newer")
def test_check_compares_decisions_since_the_upgrade(tmp_path: Path) -> None:
    packed = next(path for path in FILES if path.name == "lin-ts.db.xz")
    path = unpacked(packed, tmp_path)
    with go_on(str(path)) as agent:
        for n in range(20):
            agent.reward(agent.choose(visit(n), at=NOW + n), float(n % 2), at=NOW + n)
    with closing(sqlite3.connect(path)) as file:
        file.execute("DELETE FROM snapshots")  # everything is made from the records
        file.commit()
    with Agent(path, read_only=True) as agent:
        assert agent.check().differences == 0
    with closing(sqlite3.connect(path)) as file:
        (last,) = file.execute("SELECT max(seq) FROM records WHERE kind = 1").fetchone()
        context = json.dumps({"device": "phone", "age": 99.0}).encode()
        file.execute("UPDATE records SET context = ? WHERE seq = ?", (context, last))
        file.commit()
    with Agent(path, read_only=True) as agent:
        assert agent.check().differences == 1


@pytest.fixture
def restored(postgres: Server, request: pytest.FixtureRequest) -> str:
    """A database that holds a dump."""
    programs, name = binaries(), f"golden_{uuid4().hex[:8]}"
    assert programs is not None
    reach = ["-h", postgres.folder, "-p", str(postgres.port), "-U", "tidepull"]
    subprocess.run([programs / "createdb", *reach, name], check=True)
    dump = lzma.decompress(request.param.read_bytes())
    subprocess.run(
        [programs / "psql", "-q", "-v", "ON_ERROR_STOP=1", *reach, name],
        input=dump, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return name


@pytest.mark.postgres
@pytest.mark.parametrize("restored", DUMPS, indirect=True, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("agent", ["lin-ts", "lin-ts-retention"])
def test_agent_in_a_dump_opens_and_is_made_anew(
    restored: str, agent: str, postgres: Server, request: pytest.FixtureRequest
) -> None:
    place = postgres.url(agent, database=restored)
    release = request.node.callspec.params["restored"].parent.name
    before = release == "0.2.0"  # does not note its policy's version: made anew when it is opened
    with go_on(place) as opened:
        assert opened.check().sound
        assert len(upgrades(opened)) == before
    request.getfixturevalue("newer")
    with Agent(place, training="inline", now=lambda: NOW) as opened:
        assert len(upgrades(opened)) == before + 1
        assert opened.check().sound
