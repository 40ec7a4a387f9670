"""A log that is said to be uniform is checked against its own shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.logs.making import drawn, make_log
from tidepull.errors import DataError
from tidepull.logs.log import ContextColumn, Log
from tidepull.types import IntArray

MEANS = np.array([0.2, 0.5, 0.4])
EVEN = np.full(3, 1 / 3)


def uneven_by(place: IntArray, seed: int = 0) -> Log:
    """Arms whose overall shares are even, and which follow a column of 0, 1 and 2."""
    rng = np.random.default_rng(seed)
    likelier = np.where(rng.random(len(place)) < 0.2, place, rng.integers(3, size=len(place)))
    time = 1.7e9 + 600.0 * np.arange(len(place))
    return make_log(likelier.astype(np.int64), rng.random(len(place)), None, time=time)


def test_a_uniform_log_is_taken_for_one() -> None:
    refused = 0
    for seed in range(200):
        log = drawn(seed, 600, MEANS, EVEN, context=True)
        try:
            chances = log.with_uniform_propensities().propensity
        except DataError:
            refused += 1
        else:
            assert chances is not None
            assert np.allclose(chances, 1 / 3)
    assert refused <= 2


def test_other_shares_are_refused_with_the_figures() -> None:
    log = drawn(0, 9000, MEANS, np.array([0.41, 0.37, 0.22]))
    with pytest.raises(
        DataError, match=r"not equally likely, from 4\d\.\d% \('0'\) to 2\d.*--uniform"
    ):
        log.with_uniform_propensities()


def test_shares_that_depend_on_the_hour_are_refused() -> None:
    log = uneven_by(np.arange(6000) // 6 % 24 // 8)
    assert log.time is not None
    with pytest.raises(DataError, match=r"depend on the hour \(Cramer's V 0\.\d\d, chi-square p"):
        log.with_uniform_propensities()


@pytest.mark.parametrize("labels", [None, ("phone", "tv", "desk")])
def test_shares_that_depend_on_a_context_are_refused(labels: tuple[str, ...] | None) -> None:
    place = np.random.default_rng(1).integers(3, size=6000)
    values = place.astype(np.int32 if labels else float)
    log = replace(uneven_by(place), context={"device": ContextColumn(values, labels)})
    with pytest.raises(DataError, match="depend on the column 'device'"):
        log.with_uniform_propensities()


def test_a_negligible_difference_in_a_long_log_is_no_reason_to_refuse() -> None:
    log = drawn(3, 400_000, MEANS, np.array([0.34, 0.33, 0.33]))
    assert log.with_uniform_propensities().propensity is not None


def test_arms_that_were_not_always_available_are_compared_with_their_chances() -> None:
    rng = np.random.default_rng(4)
    available = np.ones((4000, 3), bool)
    available[:2000, 2] = False
    arm = np.where(available[:, 2], rng.integers(3, size=4000), rng.integers(2, size=4000))
    log = replace(make_log(arm, rng.random(4000), None), available=available)
    assert log.with_uniform_propensities().propensity is not None
    with pytest.raises(DataError, match="not equally likely"):
        replace(log, arm=np.zeros(4000, np.int64)).with_uniform_propensities()
