"""Agents of earlier releases: what their settings are now, and which are made anew."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidepull import Agent
from tidepull.agent.ledger.base import MemoryLedger
from tidepull.agent.settings import _sealed, load_settings
from tidepull.errors import SnapshotError
from tidepull.policies import policies
from tidepull.policies.guard import Seal
from tidepull.tide import TideParameters
from tidepull.types import ProblemShape

BEFORE = {
    "without": [],
    "also": [],
    "uniform_weights": False,
    "births": True,
    "share": 1e-5,
    "exploration": 0.5,
    "boldest": 0.5,
    "earnings": False,
    "wild": 0.0,
    "window": 2048,
}
"""What a snapshot says of parameters that were not set; `version` beside them, unless it was 4."""


def made_before(parameters: dict[str, Any], policy: str = "tide") -> MemoryLedger:
    """A ledger as it was written when its release was not noted, and no seal."""
    ledger = MemoryLedger()
    settings, _ = load_settings(ledger, {"arms": ["a", "b"], "policy": policy}, "here")
    ledger.write(
        {"settings": json.dumps({**json.loads(settings.text()), "parameters": parameters})}
    )
    del ledger._texts["release"], ledger._texts["seal"]
    return ledger


@pytest.mark.parametrize("given", [None, "tide", ("tide", {})])
def test_agent_of_the_last_version_opens_again(given: object) -> None:
    settings, _ = load_settings(made_before({"version": 13}), {"policy": given}, "here")
    assert settings.parameters == {}


def test_parameters_of_the_last_version_keep_what_was_in_force() -> None:
    stored = {"version": 13, "wild": 0.0, "boldest": 1.0, "window": 512, "earnings": False}
    settings, _ = load_settings(made_before(stored), {}, "here")
    assert settings.parameters == {"wild": 0.01, "window": 512}


@pytest.mark.parametrize(
    ("stored", "version"), [({}, 4), ({"version": 4}, 4), ({"version": 12}, 12)]
)
def test_agent_of_another_version_is_to_be_made_anew(
    stored: dict[str, Any], version: int, caplog: pytest.LogCaptureFixture
) -> None:
    settings, _ = load_settings(made_before(stored), {}, "here")
    assert not settings.is_current
    assert settings.parameters == {}
    assert f"made with tide version {version}, which is gone" in caplog.text


@pytest.mark.parametrize(
    "stored", [{"earnings": True}, {"uniform_weights": True}, {"boldest": 3.0}]
)
def test_agent_with_an_option_that_is_gone_is_to_be_made_anew_without_it(
    stored: dict[str, Any],
) -> None:
    given = {"version": 13, "window": 512, **stored}
    settings, _ = load_settings(made_before(given), {}, "here")
    assert not settings.is_current
    assert settings.parameters == {"window": 512}


@pytest.mark.parametrize("noted", [False, True])
def test_agent_of_an_earlier_release_is_made_anew_unless_it_noted_the_form_of_its_policy(
    tmp_path: Path, noted: bool
) -> None:
    path = tmp_path / "shop.db"
    with Agent(path, arms=["a", "b"], context={}, policy="ucb", seed=1) as agent:
        agent.reward(agent.choose(), 1.0)
        ledger = agent._commands.ledger
        stored = json.loads(ledger.read("settings") or "")
        if not noted:
            del stored["policy_version"]
        ledger.write(_sealed(json.dumps(stored), ledger.read("salt") or ""))
        ledger.write({"release": "0.1.0"})
    for _ in range(2):  # the second opening finds what the first one left, decided or not
        with Agent(path, training="manual") as agent:
            assert (agent.upgrading is None) == noted
    with Agent(path) as agent:
        agent.choose()
        assert agent.upgrading is None
    with Agent(path) as agent:
        assert agent.upgrading is None
        assert agent.state().decisions == 2


def test_agent_of_another_policy_opens_whenever_it_was_made() -> None:
    settings, _ = load_settings(made_before({"discount": 0.9}, "d-ucb"), {}, "here")
    assert settings.parameters == {"discount": 0.9}


def test_new_agent_opens_again_without_any_version() -> None:
    ledger = MemoryLedger()
    first, _ = load_settings(
        ledger, {"arms": ["a", "b"], "policy": ("tide", {"outlier_share": 0.0})}, "here"
    )
    assert first.parameters == {"wild": 0.0}
    assert load_settings(ledger, {}, "here")[0] == first


def test_snapshot_of_the_last_version_fits_and_those_of_others_are_refused() -> None:
    shape, entry = ProblemShape(2), policies.entry("tide")
    seal = Seal("tide", entry.version, TideParameters(), shape)
    seal._compare("parameters", seal._as_now({**BEFORE, "version": 13}))
    for version, parameters in ((4, BEFORE), (8, {**BEFORE, "version": 8})):
        with pytest.raises(SnapshotError, match=f"made with tide version {version}, which is gone"):
            seal._as_now(parameters)


def test_agent_whose_parameters_are_gone_decides_and_keeps_them_off(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with Agent(path, arms=["a", "b"], context={}, policy="ucb", seed=1) as agent:
        agent.reward(agent.choose(), 1.0)
        stored = json.loads(agent.settings.text()) | {"parameters": {"gone": 3}}
        ledger = agent._commands.ledger
        ledger.write(_sealed(json.dumps(stored), ledger.read("salt") or ""))
    for n in range(2):
        with Agent(path) as agent:
            assert (agent.upgrading is None) == bool(n)
            agent.choose()
            assert agent.settings.parameters == {}
            assert sum("ucb rebuilt" in line for line in agent.explain().changes) == 1


def test_agent_of_tide_decides_after_a_restart(tmp_path: Any) -> None:
    path = tmp_path / "shop.db"
    with Agent(path, arms=["a", "b"], policy=("tide", {"without": ["network"]}), seed=1) as agent:
        agent.reward(agent.choose().id, 1.0)
    with Agent(path) as agent:
        agent.reward(agent.choose().id, 0.0)


def test_ledgers_with_the_old_names_of_settings_are_read(tmp_path: Path) -> None:
    """The names of version 0.2 stand for those of today."""
    path = tmp_path / "shop.db"
    chosen = {"timezone": "Europe/Berlin", "min_share": 0.1, "capacity": 8, "reward_within": 60.0}
    with Agent(path, arms=["a", "b"], policy="ucb", on_duplicate="add", **chosen) as agent:  # type: ignore[arg-type]
        settings = agent.settings
    old = {
        "timezone": "zone",
        "time_features": "calendar",
        "capacity": "room",
        "propensity_draws": "draws",
        "min_share": "floor",
        "share_bounds": "shares",
        "on_duplicate": "again",
        "retention": "retain",
    }
    with closing(sqlite3.connect(path)) as file:
        stored = json.loads(settings.text())
        text = json.dumps({old.get(name, name): value for name, value in stored.items()})
        assert all(f'"{name}"' in text for name in old.values())
        file.execute("UPDATE texts SET value = ? WHERE key = 'settings'", (text,))
        file.execute("DELETE FROM texts WHERE key = 'seal'")
        file.commit()
    with Agent(path, timezone="Europe/Berlin", capacity=8) as agent:
        assert agent.settings == settings
