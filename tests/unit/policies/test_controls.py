"""Controls against direct computations from the history."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tidepull
from tidepull.errors import ParameterError, RewardError
from tidepull.policies.controls import calendar_waves, cell_of, weekday
from tidepull.types import Context, Event, FloatArray, ProblemShape

MONDAY = 1_767_571_200.0  # 5 January 2026, 00:00 UTC
HOUR, DAY = 3600.0, 86_400.0


def history(n: int, n_arms: int) -> list[tuple[float, int, float]]:
    rng = np.random.default_rng(4)
    times = MONDAY + np.cumsum(rng.exponential(HOUR, n))
    return [(float(t), int(rng.integers(n_arms)), float(rng.normal())) for t in times]


@pytest.mark.parametrize(
    ("id", "key"),
    [
        ("hour-table", lambda t: t % DAY // HOUR),
        ("hour-weekend-table", lambda t: (t % DAY // HOUR, (t - MONDAY) // DAY % 7 >= 5)),
        ("hour-weekday-table", lambda t: (t % DAY // HOUR, (t - MONDAY) // DAY % 7)),
    ],
)
def test_table_plays_the_best_mean_of_its_cell(id: str, key: object) -> None:
    assert callable(key)
    policy = tidepull.build_policy((id, {"epsilon": 0.0}), ProblemShape(n_arms=3), seed=0)
    seen = history(1500, 3)
    for time, arm, reward in seen:
        policy.learn(Event(Context(time=time), arm, reward))
    for time, _, _ in history(200, 3):
        later = time + 70 * DAY
        means = []
        for arm in range(3):
            inside = [r for t, a, r in seen if a == arm and key(t) == key(later)]
            means.append(np.mean(inside or [r for _, a, r in seen if a == arm]))
        assert policy.choose(Context(time=later)) == int(np.argmax(means))


def test_table_plays_random_arms_in_one_round_of_twenty() -> None:
    policy = tidepull.build_policy("hour-table", ProblemShape(n_arms=2), seed=0)
    for arm in (0, 1):
        policy.learn(Event(Context(time=MONDAY), arm, float(arm)))
    worse = sum(policy.choose(Context(time=MONDAY)) == 0 for _ in range(4000))
    assert worse == pytest.approx(100, abs=35)


def test_cells_of_tables_begin_on_monday_at_midnight() -> None:
    assert [weekday(MONDAY + day * DAY) for day in range(8)] == [0, 1, 2, 3, 4, 5, 6, 0]
    assert cell_of(MONDAY - 1, "hour-weekday") == 167
    assert cell_of(None, "hour-weekday") == 0


def test_last_best_plays_the_arm_whose_latest_reward_is_the_highest() -> None:
    policy = tidepull.build_policy(("last-best", {"epsilon": 0.0}), ProblemShape(n_arms=3), seed=0)
    for arm, reward in [(0, 5.0), (1, 2.0), (2, 3.0), (0, 1.0)]:
        policy.learn(Event(Context(), arm, reward))
    assert policy.choose(Context()) == 2


def posterior(rows: FloatArray, values: FloatArray, everything: FloatArray) -> tuple[float, float]:
    """Mean and variance of x . w at the last row, by dense algebra on standardised values."""
    x, y = rows[:-1], (values - everything.mean()) / everything.std()
    precision = np.eye(x.shape[1]) + x.T @ x
    mean = np.linalg.solve(precision, x.T @ y)
    noise = (1 + y @ y - (x.T @ y) @ mean) / (1 + len(y))
    spread = rows[-1] @ np.linalg.solve(precision, rows[-1])
    unit = everything.std()
    return everything.mean() + unit * float(rows[-1] @ mean), unit**2 * noise * float(spread)


def test_hand_ts_draws_from_the_posterior_of_each_arm() -> None:
    rng = np.random.default_rng(2)
    policy = tidepull.build_policy("hand-ts", ProblemShape(n_arms=2, observation_dim=2), seed=0)
    rows: list[list[FloatArray]] = [[], []]
    values: list[list[float]] = [[], []]
    for time, arm, reward in history(120, 2):
        z = rng.normal(size=2)
        policy.learn(Event(Context(observation=z, time=time), arm, 40 + 3 * reward + z[0]))
        rows[arm].append(np.concatenate([[1.0], calendar_waves(time), z]))
        values[arm].append(40 + 3 * reward + z[0])
    asked = Context(observation=np.array([0.3, -1.0]), time=MONDAY + 200 * DAY)
    last = np.concatenate([[1.0], calendar_waves(asked.time), asked.observation])
    everything = np.concatenate([np.array(v) for v in values])
    told = [
        posterior(np.array([*rows[arm], last]), np.array(values[arm]), everything) for arm in (0, 1)
    ]
    gap = (told[1][0] - told[0][0]) / math.sqrt(told[0][1] + told[1][1])
    expected = 0.5 * (1 + math.erf(gap / math.sqrt(2)))
    shares = np.zeros(2)

    def pick(found: FloatArray) -> int:
        shares[:] = found
        return 0

    policy.choose_by(asked, 40_000, pick)
    assert 0.02 < expected < 0.98
    assert shares[1] == pytest.approx(expected, abs=0.015)


def test_hurdle_ts_prefers_rare_large_payments_where_they_bring_more() -> None:
    policy = tidepull.build_policy("hurdle-ts", ProblemShape(n_arms=2), seed=0)
    rng = np.random.default_rng(1)
    for _ in range(2000):
        often = float(rng.random() < 0.2) * math.exp(rng.normal(1.0, 0.3))  # 0.2 x e^1.05
        rarely = float(rng.random() < 0.05) * math.exp(rng.normal(3.0, 0.3))  # 0.05 x e^3.05
        policy.learn(Event(Context(), 0, often))
        policy.learn(Event(Context(), 1, rarely))
    assert np.mean([policy.choose(Context()) for _ in range(200)]) > 0.9


def test_hurdle_ts_refuses_negative_payments() -> None:
    policy = tidepull.build_policy("hurdle-ts", ProblemShape(n_arms=2), seed=0)
    with pytest.raises(RewardError, match="at least 0 for hurdle-ts, got -1; use hand-ts"):
        policy.learn(Event(Context(), 0, -1.0))


def test_fixed_arm_is_the_best_in_hindsight_where_it_is_left_to_the_problem() -> None:
    problem = ("flipping-bernoulli", {"means": [0.3, 0.8], "half_period": 30})
    early = tidepull.run_trial(problem, ("fixed", {"arm": "best"}), horizon=30)
    assert set(early.arms) == {1}
    crossing = ("flipping-gaussian", {"means": [0.3, 0.8, 0.5], "half_period": 10})
    late = tidepull.run_trial(crossing, ("fixed", {"arm": "best"}), horizon=25)  # 1.5, 4, 2.5
    assert set(late.arms) == {1}


def test_best_fixed_arm_needs_a_problem_that_tells_its_totals() -> None:
    with pytest.raises(ParameterError, match="tells its totals"):
        tidepull.run_trial("circular-markov-chain", ("fixed", {"arm": "best"}), horizon=5)
    with pytest.raises(ParameterError, match="filled in where the problem is known"):
        tidepull.build_policy(("fixed", {"arm": "best"}), ProblemShape(n_arms=2), seed=0)
