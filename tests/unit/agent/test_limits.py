"""How large an agent may be: what would stop a machine is refused in a sentence, before it is made."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tidepull import Agent
from tidepull.agent import limits
from tidepull.errors import ArmError, InputError, ParameterError, UnknownIdError


def made(n_arms: int, n_fields: int, **given: Any) -> Agent:
    return Agent.memory(
        arms=[f"arm {n}" for n in range(n_arms)],
        context={f"field {n}": float for n in range(n_fields)},
        training="manual",
        **given,
    )


@pytest.mark.parametrize(
    ("n_arms", "n_fields", "given", "message"),
    [
        (400, 50, {"propensity_draws": 10_000}, "propensity_draws: 10,000 draws for 512 arms"),
        (4000, 12, {}, "tide would take about .* GB of memory"),
        (200, 250, {"policy": "lin-ts", "capacity": 2048, "propensity_draws": 8}, "lin-ts would"),
        (2, 0, {"policy": ("sw-ucb", {"window": 10**15})}, "a smaller window"),
        (2, 0, {"policy": ("sw-lin-ucb", {"window": 10**9})}, "a smaller window"),
    ],
)
def test_agent_that_is_too_large_is_refused_at_once(
    n_arms: int, n_fields: int, given: Any, message: str
) -> None:
    started = time.process_time()
    with pytest.raises(ParameterError, match=message):
        made(n_arms, n_fields, **given)
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    ("n_arms", "n_fields", "given"),
    [
        (500, 0, {}),
        (60, 50, {}),
        (400, 50, {}),
        (4000, 10, {"policy": "bernoulli-ts"}),
        (5, 5, {"propensity_draws": 10_000}),
        (2, 0, {"policy": ("sw-ucb", {"window": 100_000})}),
    ],
)
def test_agents_of_usual_size_are_made(n_arms: int, n_fields: int, given: Any) -> None:
    assert len(made(n_arms, n_fields, **given).arms) == n_arms


@pytest.mark.parametrize("contexts", [1, 2])
def test_too_many_numbers_are_refused_while_the_schema_is_guessed(contexts: int) -> None:
    agent = Agent.memory(arms=["a", "b"], policy="lin-ts", propensity_draws=4_000)
    agent.choose({"x": 1.0})
    names = [f"field {n}" for n in range(250)]
    batch = [dict.fromkeys(names[k::contexts], "some text") for k in range(contexts)]
    with pytest.raises(ParameterError, match="4,000 draws for . arms and 2,... columns"):
        agent.choose_many(batch)
    assert len(agent.history("rows")) == 1
    assert agent.choose({"x": 2.0}).arm in ("a", "b")


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"context: 25,6\d\d columns are more than 2,048"):
        Agent.memory(
            arms=["a", "b"],
            context={f"field {n}": [f"value {k}" for k in range(100)] for n in range(256)},
            policy="lin-ts",
        )


def test_agent_does_not_grow_beyond_the_limit_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    agent = Agent(path, arms=["a", "b", "c"], context={"x": float}, policy="lin-ts", capacity=4)
    agent.choose({"x": 1.0}, id="first")
    agent.add("d")
    monkeypatch.setattr(limits, "DRAWN", 32 * 4 * 9 + 1)
    with pytest.raises(InputError, match="32 draws for 8 arms"):
        agent.add("e")
    assert agent.arms == ["a", "b", "c", "d"]
    assert agent.reward("first", 1.0)
    with pytest.raises(ArmError, match="no arm 'e'"):
        agent.choose({"x": 1.0}, arms=["e"])
    agent.close()
    monkeypatch.setattr(limits, "DRAWN", 1)
    with Agent(path) as again:  # what was made before a limit opens
        assert again.choose({"x": 2.0}).arm in agent.arms


def test_refused_agent_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="propensity_draws"):
        Agent(tmp_path / "a.db", arms=[f"arm {n}" for n in range(4000)], propensity_draws=10_000)
    with pytest.raises(UnknownIdError):
        Agent(tmp_path / "a.db", arms=["a", "b"], policy="typo")
    assert not list(tmp_path.iterdir())
