"""Arms that are described by free-form objects: numbers that stay, and new arms known by what they
are like."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidepull.agent.agent import Agent
from tidepull.agent.arms import Arm, Arms
from tidepull.agent.personalizer import settings
from tidepull.agent.schema import COLUMNS, FREE, NAMES, FreeFormFeatures
from tidepull.errors import ArmError
from tidepull.state import difference

DISHES: dict[str, dict[str, Any]] = {
    "pasta": {"taste": "salty", "price": 9},
    "cake": {"taste": "sweet", "price": 5, "diet": {"vegan": True}},
    "soup": {"taste": "salty", "price": 4},
}


def menu(path: str | Path = ":memory:", **given: Any) -> Agent:
    chosen = {
        "seed": 1,
        "control": 0.0,
        "training": "manual",
        "time_features": False,
        "capacity": 8,
        **given,
    }
    return Agent(path, **settings(DISHES, **chosen))


def described(**dishes: Any) -> Arms:
    return Arms([Arm(label, {FREE: like}) for label, like in dishes.items()], 8)


def test_row_is_what_an_arm_is_like_times_the_context_computed_by_hand() -> None:
    arms = described(a={"taste": "salty"}, b={"taste": "sweet", "new": True}, c={"taste": "salty"})
    x = np.array([2.0, -1.0])
    rows = arms.rows(x)
    assert rows is not None
    assert rows.shape == (8, arms.row_width(2)) == (8, NAMES + COLUMNS * 3)
    like = rows[:, NAMES:].reshape(8, COLUMNS, 3)
    salty, new, sweet = 0, 1, 2  # columns, in the order in which features came
    expected = np.zeros((8, COLUMNS, 3))
    for place, columns in enumerate([[salty], [new, sweet], [salty]]):
        expected[place, columns] = [1.0, 2.0, -1.0]
    np.testing.assert_array_equal(like, expected)
    assert (rows[:3, :NAMES].sum(axis=1) == 1).all()
    assert not rows[3:].any()
    among = np.array([False, True, *[False] * 6])
    np.testing.assert_array_equal(arms.rows(x, among), np.where(among[:, None], rows, 0.0))


def test_arms_keep_their_numbers_when_others_come_go_or_are_described_anew() -> None:
    arms = described(**DISHES)
    before = arms.rows(np.ones(1))
    assert before is not None
    arms = arms.apply(
        {"op": "add", "label": "tea", "features": {FREE: {"price": 900, "hot": True}}}
    )
    arms = arms.apply({"op": "retire", "label": "soup"})
    arms = arms.apply({"op": "rename", "label": "pasta", "to": "noodles"})
    arms = arms.apply({"op": "describe", "label": "cake", "features": {FREE: {"taste": "stale"}}})
    after = Arms.restored(arms.plain()).rows(np.ones(1))
    assert after is not None
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    assert (after[1] != before[1]).any()
    assert after[3].any()


def test_numbers_of_the_first_arms_are_standardised_by_all_of_them() -> None:
    rows = described(**DISHES).rows(np.empty(0))
    assert rows is not None
    prices = rows[:3, NAMES:][
        :,
        FreeFormFeatures.founded([(k, {FREE: v}) for k, v in DISHES.items()])
        ._state[0]
        .index("price"),
    ]
    assert prices[0] > prices[1] > prices[2]
    assert abs(prices.mean()) < 0.5


def test_arm_without_a_description_is_refused_where_others_have_one() -> None:
    agent = menu()
    for features in (None, {"taste": "salty"}):
        with pytest.raises(ArmError, match="arm 'tea'"):
            agent.add("tea", features)
    with pytest.raises(ArmError, match="nested"):
        agent.add("tea", {FREE: {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}}})
    with pytest.raises(ArmError, match="not described freely"):
        Agent.memory(arms=["a", "b"], policy="bernoulli-ts").describe("a", {FREE: {"b": 1}})


def test_new_arm_is_known_by_what_it_is_like() -> None:
    tastes = {"cake": "sweet", "tart": "sweet", "soup": "salty", "ham": "salty"}
    given: dict[str, Any] = {
        "seed": 1,
        "control": 0.0,
        "training": "manual",
        "time_features": False,
        "capacity": 8,
    }
    agent = Agent.memory(
        **settings({dish: {"taste": taste} for dish, taste in tastes.items()}, **given)
    )
    rng = random.Random(0)
    for n in range(200):
        wants = ("sweet", "salty")[n % 2]
        decision = agent.choose({"features": {"wants": wants}}, at=1.7e9 + 60 * n)
        right = tastes[decision.arm] == wants
        agent.reward(decision, float(rng.random() < (0.9 if right else 0.1)), at=1.7e9 + 60 * n)
    agent.add("fudge", {FREE: {"taste": "sweet"}})
    agent.add("chips", {FREE: {"taste": "salty"}})
    for wants, best in (("sweet", "fudge"), ("salty", "chips")):
        asked = {"features": {"wants": wants}}
        now = 1.7e9 + 60 * 200
        shown = [agent.choose(asked, arms=["fudge", "chips"], at=now).arm for _ in range(20)]
        assert shown.count(best) >= 16, (wants, shown)


def test_restarted_agent_decides_as_one_that_was_not(tmp_path: Path) -> None:
    def live(agent: Agent, first: int, last: int) -> list[str]:
        made = []
        for n in range(first, last):
            decision = agent.choose({"features": {"n": n % 3}}, at=1.7e9 + n)
            agent.reward(decision.id, float(decision.arm == "cake"), at=1.7e9 + n)
            made.append(decision.arm)
            if n == 12:
                agent.add("tea", {FREE: {"hot": True}}, at=1.7e9 + n)
            if n == 14:
                agent.describe("soup", {FREE: {"hot": True, "price": 3}}, at=1.7e9 + n)
            if n == 16:
                agent.save()
        return made

    twin = menu(now=lambda: 1.7e9)
    expected = live(twin, 0, 40)
    with menu(tmp_path / "menu.db", now=lambda: 1.7e9) as agent:
        made = live(agent, 0, 25)
    with Agent(tmp_path / "menu.db", training="manual", now=lambda: 1.7e9) as agent:
        made += live(agent, 25, 40)
        assert made == expected
        states = [one._commands.state.take()() for one in (agent, twin)]
        for state in states:
            del state["due"]  # a record's number, and closing has made one more
        assert difference(states[0], states[1]) is None
        assert agent.check().sound
