"""An agent keeps the version of its policy that was the default when it was made."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tidepull import Agent
from tidepull.agent.ledger.base import MemoryLedger
from tidepull.agent.settings import AgentSettings, load_settings, new_settings
from tidepull.errors import ParameterError
from tidepull.policies.tide import TideParameters

NOW = TideParameters().version


def test_settings_have_the_version_of_tide_when_none_was_given() -> None:
    assert new_settings({"arms": ["a", "b"]}, "here").parameters == {"version": NOW}
    assert new_settings({"arms": ["a", "b"], "policy": ("tide", {"version": 4})}, "here").parameters == {
        "version": 4
    }
    assert new_settings({"arms": ["a", "b"], "policy": "ucb"}, "here").parameters == {}


def test_settings_from_before_versions_were_kept_are_read_as_version_4() -> None:
    text = json.loads(new_settings({"arms": ["a", "b"]}, "here").text())
    old = json.dumps({**text, "parameters": {"window": 512}})
    assert AgentSettings.read(old).parameters == {"version": 4, "window": 512}


@pytest.mark.parametrize("again", ["tide", ("tide", {}), ("tide", {"version": 4}), None])
def test_agent_of_an_earlier_default_opens_again_when_no_other_version_is_asked_for(again: object) -> None:
    ledger = MemoryLedger()
    load_settings(ledger, {"arms": ["a", "b"], "policy": ("tide", {"version": 4})}, "here")
    settings, _ = load_settings(ledger, {"policy": again}, "here")
    assert settings.parameters == {"version": 4}


def test_agent_refuses_another_version_when_it_is_asked_for() -> None:
    ledger = MemoryLedger()
    load_settings(ledger, {"arms": ["a", "b"], "policy": ("tide", {"version": 4})}, "here")
    with pytest.raises(ParameterError, match="was made with other parameters"):
        load_settings(ledger, {"policy": ("tide", {"version": 5})}, "here")


def test_agent_of_version_4_decides_by_it_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with Agent(
        path, arms=["a", "b"], policy=("tide", {"version": 4, "without": ["network"]}), seed=1
    ) as agent:
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
        file.commit()
    with Agent(path, timezone="Europe/Berlin", capacity=8) as agent:
        assert agent.settings == settings
