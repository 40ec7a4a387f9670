from __future__ import annotations

import math

import numpy as np
from scipy import stats

from tidepull.reporting.figures import colour
from tidepull.reporting.stats import summarise


def test_summary_interval_equals_students_when_computed_by_scipy() -> None:
    values = np.random.default_rng(0).normal(3, 2, size=7)
    low, high = stats.t.interval(0.95, 6, loc=values.mean(), scale=stats.sem(values))
    summary = summarise(values)
    assert math.isclose(summary.mean - summary.half_width, low)
    assert math.isclose(summary.mean + summary.half_width, high)


def test_summary_says_unknown_spread_when_there_is_one_trial() -> None:
    assert math.isnan(summarise(np.array([4.0])).half_width)


def test_colour_belongs_to_the_policy_when_a_setting_is_appended() -> None:
    assert colour("rnlps-best") == colour("rnlps") != colour("nlps-best")
    assert colour("sw-ucb-50") == colour("sw-ucb")
