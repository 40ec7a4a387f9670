from __future__ import annotations

import numpy as np
import pytest

from tidepull.reporting.stats import mean_interval


@pytest.mark.parametrize("trials", [4, 10, 30])
def test_interval_contains_the_true_mean_as_often_as_promised(trials: int) -> None:
    # Each column is one repetition of an experiment with true mean 5, so one call is 1,000
    # repetitions.
    samples = np.random.default_rng(trials).normal(5, 2, size=(trials, 1000))
    low, high = mean_interval(samples)
    assert 0.93 <= np.mean((low <= 5) & (high >= 5)) <= 0.97


def test_interval_is_the_same_when_computed_again() -> None:
    samples = np.random.default_rng(0).random((10, 3))
    assert np.array_equal(mean_interval(samples), mean_interval(samples))


def test_interval_is_unknown_when_there_is_one_trial() -> None:
    low, high = mean_interval(np.ones((1, 4)))
    assert np.isnan(low).all()
    assert np.isnan(high).all()
