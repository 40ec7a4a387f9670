"""The picture of an agent: intervals of 0/1 rewards, and colours that can be told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tidepull import Agent
from tidepull.reporting.agent_figures import mean_intervals


def test_intervals_of_clicks_stay_within_0_and_1_and_have_a_width_where_all_are_0() -> None:
    values = np.array([0.0] * 20 + [1.0] * 20 + [0.0] * 9 + [1.0])
    key = np.repeat([0, 1, 2], [20, 20, 10])
    mean, low, high = mean_intervals(values, key, 4, binary=True)
    assert mean[:3].tolist() == [0.0, 1.0, 0.1]
    assert (low[:3] >= 0).all()
    assert (high[:3] <= 1).all()
    assert (high[:3] - low[:3] > 0.1).all()
    assert low[2] == pytest.approx(0.0179, abs=1e-4)  # Wilson's, not 0.1 - 0.186
    assert high[2] == pytest.approx(0.4042, abs=1e-4)
    assert np.isnan([mean[3], low[3], high[3]]).all()


def test_intervals_of_money_are_those_of_a_mean() -> None:
    values = np.array([2.0, 4.0] * 10)
    mean, low, high = mean_intervals(values, np.zeros(20, int), 1, binary=False)
    assert (mean[0] - low[0], high[0] - mean[0]) == pytest.approx((1.96 / 20**0.5,) * 2)


def test_picture_of_many_arms_with_a_retired_one_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    agent = Agent.memory(arms=list("abcde"), context={}, policy="bernoulli-ts", seed=1)
    for n in range(200):
        at = 1_782_900_000.0 + 3600 * n
        agent.reward(agent.choose(at=at), float(n % 3 == 0), at=at)
    agent.retire("b")
    agent.plot(tmp_path / "shop.png")
    assert (tmp_path / "shop.png").stat().st_size > 10_000
