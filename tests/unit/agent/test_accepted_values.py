"""What people write is taken: numbers, missing values, ids and time zones of other libraries."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

from tidepull import Agent
from tidepull.agent.requests import agent_body, choice_body, reward_body
from tidepull.errors import DecisionError, InputError, ParameterError

NAME = UUID("8c3a6c1e-0000-4000-8000-000000000001")
CONTEXT = {"age": float, "device": str, "seen": datetime}


def shop(**given: Any) -> Agent:
    chosen = {
        "arms": ["a", "b"],
        "context": CONTEXT,
        "policy": "lin-ts",
        "seed": 1,
        "training": "manual",
    }
    return Agent.memory(**{**chosen, **given})


@pytest.mark.parametrize(
    "missing", [None, np.nan, float("nan"), Decimal("NaN"), pd.NA, pd.NaT, np.datetime64("NaT")]
)
@pytest.mark.parametrize("context", [CONTEXT, None])
def test_missing_values_of_any_library_are_missing(missing: Any, context: Any) -> None:
    twins = [shop(context=context) for _ in range(2)]
    with_missing = twins[0].choose({"age": 3, "device": missing, "seen": missing}, at=0)
    without = twins[1].choose({"age": 3}, at=0)
    assert with_missing == without
    rows = [agent.history("rows")[0] for agent in twins]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("context", [CONTEXT, None])
def test_decimals_are_numbers(context: Any) -> None:
    agent = shop(context=context)
    decision = agent.choose({"age": Decimal("31.5"), "device": NAME}, at=Decimal(100))  # type: ignore[arg-type]
    assert decision.timestamp == 100.0
    assert agent.reward(decision.id, Decimal("0.5"), at=np.int64(101))  # type: ignore[arg-type]
    row = agent.history("rows")[0]
    assert (row["context.age"], row["context.device"], row["reward"]) == (31.5, str(NAME), 0.5)


@pytest.mark.parametrize("id", [NAME, 17, np.int64(17), "17"])
def test_ids_are_texts_whole_numbers_or_uuids(id: Any) -> None:
    agent = shop()
    first = agent.choose(id=id, subject=id)
    assert agent.choose(id=id) == first
    assert agent.reward(id, 1.0)
    assert not agent.reward(str(id), 1.0)
    assert agent.forget(id) == 1


@pytest.mark.parametrize("id", [True, 1.5, None, ["a"]])
def test_other_things_are_no_ids(id: Any) -> None:
    with pytest.raises(
        DecisionError, match="a decision id is text, a whole number, a UUID or a decision"
    ):
        shop().reward(id, 1.0)


def test_decision_stands_for_its_id() -> None:
    agent = shop()
    first, second = agent.choose(), agent.choose()
    assert agent.reward(first, 1.0)
    assert agent.chances(second) == agent.chances(second.id)
    agent.rollback(first)
    assert "rolled back" in str(agent.explain())


def test_decision_says_when_in_the_zone_of_the_agent() -> None:
    agent = shop(timezone=ZoneInfo("Europe/Berlin"))
    decision = agent.choose(at=datetime(2026, 7, 1, 12, tzinfo=UTC))
    assert str(decision.at) == "2026-07-01 14:00:00+02:00"
    assert decision.timestamp == decision.at.timestamp()
    assert agent.settings.timezone == "Europe/Berlin"


def test_moment_that_is_missing_is_an_error() -> None:
    with pytest.raises(InputError, match="at must be seconds"):
        shop().choose(at=pd.NaT)


def test_clients_send_what_agents_take() -> None:
    body = choice_body({"age": Decimal(3), "device": NAME, "seen": pd.NaT}, None, 5, None, NAME)
    assert body == {
        "context": {"age": 3.0, "device": str(NAME), "seen": None},
        "subject": "5",
        "id": str(NAME),
    }
    assert reward_body(shop().choose(id="x"), Decimal(1), None, "k")["id"] == "x"
    assert (
        agent_body("shop", {"timezone": ZoneInfo("Europe/Berlin")})["timezone"] == "Europe/Berlin"
    )


@pytest.mark.parametrize("policy", [object(), 3, ("tide",), ("tide", {}, 1)])
def test_policy_that_is_neither_an_id_nor_a_pair_is_refused_in_a_sentence(policy: Any) -> None:
    with pytest.raises(ParameterError, match=r"a policy is an id or an \(id, {parameters}\) pair"):
        shop(policy=policy)


def test_reward_dated_before_its_decision_is_refused() -> None:
    agent = shop()
    decision = agent.choose(id="order 17", at=10_000.0)
    with pytest.raises(InputError, match="at is 5,000 seconds before decision order 17 was made"):
        agent.reward(decision, 1.0, at=5_000.0)
    assert agent.reward(decision, 1.0, at=9_900.0)  # two clocks differ a little


def test_lift_without_a_control_group_says_so() -> None:
    agent = shop(control=0.0)
    for n in range(30):
        agent.reward(agent.choose(), float(n % 2))
    assert "control=0, so there is no control group" in str(agent.lift())
    assert "control=0, so there is no control group" in str(agent.explain())
    assert "made with" not in str(shop(control=0.1).lift())
