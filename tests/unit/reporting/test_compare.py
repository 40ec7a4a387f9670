from __future__ import annotations

import math

import numpy as np
from scipy import stats

from tidepull.experiments.store import Store
from tidepull.reporting.frames import load_frame
from tidepull.reporting.stats import independent, paired, paired_values


def test_paired_interval_covers_the_true_difference_as_often_as_promised() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        world = rng.normal(0, 50, 10)  # shared by both policies, so pairing removes it
        d = paired_values("a", "b", world + rng.normal(3, 1, 10), world + rng.normal(5, 1, 10))
        hits += d.low <= -2 <= d.high
        assert d.high - d.low < 4
    assert 0.92 <= hits / 400 <= 0.98


def test_pairs_are_matched_by_seed_whatever_their_order(store: Store) -> None:
    study = load_frame([store]).studies[0]
    a, b = study.group("ucb"), study.group("random")
    assert a is not None
    assert b is not None
    d = paired(a, b)
    by_seed = {row.seed: row.regret for row in b.rows}
    assert d.pairs == 6
    assert math.isclose(d.mean, float(np.mean([row.regret - by_seed[row.seed] for row in a.rows])))


def test_ties_count_half_in_the_probability_of_improvement() -> None:
    d = paired_values("a", "b", np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 2.0, 2.0, 5.0]))
    assert d.wins == 2.5 / 4
    assert 0 < d.wins_low < d.wins < d.wins_high < 1


def test_wilson_interval_equals_scipys() -> None:
    d = paired_values("a", "b", np.arange(10.0), np.arange(10.0) + np.array([1] * 7 + [-1] * 3))
    expected = stats.binomtest(7, 10).proportion_ci(0.95, method="wilson")
    assert math.isclose(d.wins_low, expected.low)
    assert math.isclose(d.wins_high, expected.high)


def test_independent_interval_equals_welchs_by_scipy() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(5, 1, 8), rng.normal(4, 3, 12)
    d = independent("x", "y", (x.mean(), x.std(ddof=1), 8), (y.mean(), y.std(ddof=1), 12))
    expected = stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    assert math.isclose(d.low, expected.low)
    assert math.isclose(d.high, expected.high)


def test_difference_is_unknown_when_no_seed_is_common() -> None:
    d = paired_values("a", "b", np.empty(0), np.empty(0))
    assert d.pairs == 0
    assert math.isnan(d.mean)
    assert not d.clear
