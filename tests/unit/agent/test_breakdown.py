"""Rewards of each arm by the values of a field, against plain counting."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from tidepull.agent.agent import Agent
from tidepull.agent.fields import Category
from tidepull.agent.table import MISSING, OTHERS, arm_rates, interval
from tidepull.errors import InputError

START = 1_782_900_000.0


@pytest.fixture
def agent() -> Agent:
    fields = {
        "device": ["phone", "desktop"],
        "age": float,
        "city": str,
        "name": Category(private=True),
    }
    made = Agent.memory(
        arms=["a", "b"], context=fields, policy="random", seed=1, control=0.0, training="inline"
    )
    for n in range(200):
        context = {"age": n / 2, "city": f"c{n % 12}", "name": "x"}
        context |= {"device": "phone" if n % 2 else "desktop"} if n % 5 else {}
        decision = made.choose(context, at=START + n)
        if n % 4:
            made.reward(decision, float(n % 3 == 0), at=START + n)
    return made


def test_rows_are_what_counting_gives(agent: Agent) -> None:
    rows = {(row.value, row.arm): row for row in agent._look(lambda i: arm_rates(i, "device"))}
    history = agent.history("rows")
    for (value, arm), row in rows.items():
        device = None if value == MISSING else value
        mine = [r for r in history if r["arm"] == arm and r.get("context.device") == device]
        rewards = [r["reward"] for r in mine if r["reward"] is not None]
        assert (row.decisions, row.rewarded) == (len(mine), len(rewards))
        assert row.mean == pytest.approx(np.mean(rewards))
    assert sum(row.decisions for row in rows.values()) == 200
    alone = agent._look(lambda i: arm_rates(i, None))
    assert [(row.value, row.arm) for row in alone] == [(None, "a"), (None, "b")]
    late = agent._look(lambda i: arm_rates(i, None, START + 150))
    assert sum(row.decisions for row in late) == 50


def test_numbers_are_cut_into_quarters_and_rare_texts_are_put_together(agent: Agent) -> None:
    ages = {row.value for row in agent._look(lambda i: arm_rates(i, "age"))}
    assert ages == {"under 24.9", "24.9 to 49.8", "49.8 to 74.6", "74.6 and more"}
    cities = {row.value for row in agent._look(lambda i: arm_rates(i, "city"))}
    assert len(cities) == 9
    assert OTHERS in cities


def test_private_and_unknown_fields_are_refused(agent: Agent) -> None:
    with pytest.raises(InputError, match="'name' is private"):
        agent._look(lambda i: arm_rates(i, "name"))
    with pytest.raises(
        InputError, match="there is no field 'color'; fields: device, age, city, name"
    ):
        agent._look(lambda i: arm_rates(i, "color"))


def test_intervals_of_clicks_are_wilson_s_and_stay_within_bounds() -> None:
    for clicks, n in ((0, 10), (3, 20), (20, 20)):
        reward = np.array([1.0] * clicks + [0.0] * (n - clicks))
        mean, low, high = interval(reward)
        wanted = binomtest(clicks, n).proportion_ci(0.95, "wilson")
        assert mean == clicks / n
        assert low == pytest.approx(wanted.low, abs=1e-4)
        assert high == pytest.approx(wanted.high, abs=1e-4)
    money = np.array([1.0, 5.0, 2.0, 0.0])
    mean, low, high = interval(money)
    assert high - mean == pytest.approx(1.96 * money.std(ddof=1) / 2)
    assert np.isnan(interval(np.array([3.5]))[1])
    assert np.isnan(interval(np.empty(0))[0])
