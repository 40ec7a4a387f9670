"""Pairs of sines by dense linear algebra, and the climb to the top."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.tide.models.test_scan import N_ARMS, dense, given
from tidepull.tide.jobs import finish_counted
from tidepull.tide.models.family import Rounds
from tidepull.tide.models.pairs import climb_pair, pair_evidence
from tidepull.types import FloatArray


def features(t: FloatArray, pair: FloatArray) -> FloatArray:
    waves = [wave(2 * np.pi * f * t) for f in pair for wave in (np.cos, np.sin)]
    return np.column_stack([np.ones(len(t)), *waves])


@pytest.mark.parametrize("t0", [0, 17])
def test_evidence_of_pairs_is_that_of_the_rounds_whose_reward_came(t0: int) -> None:
    rounds, pairs = given(t0, 3, 40), np.array([[0.05, 0.21], [0.3, 0.11], [0.2, 0.2]])
    told = rounds.arm >= 0
    t = t0 + np.arange(len(rounds.y))[told].astype(float)
    expected = [
        dense(features(t, pair), rounds.arm[told], rounds.y[told], len(t)) for pair in pairs
    ]
    np.testing.assert_allclose(pair_evidence(pairs, rounds, N_ARMS), expected)


def test_evidence_of_pairs_passes_over_arms_that_were_never_played() -> None:
    rounds, pairs = given(0, 4, 40), np.array([[0.05, 0.21]])
    np.testing.assert_allclose(
        pair_evidence(pairs, rounds, N_ARMS), pair_evidence(pairs, rounds, N_ARMS + 5)
    )


def test_climb_finds_both_periods_from_beside_them() -> None:
    rng, n = np.random.default_rng(5), 600
    arm, t = rng.integers(2, size=n), np.arange(n)
    y = np.where(arm == 0, 1, -1) * (np.sin(2 * np.pi * t / 53.7) + np.sin(2 * np.pi * t / 91.3))
    rounds = Rounds(0, arm, y + 0.1 * rng.normal(size=n))
    (one, two, evidence), steps = finish_counted(climb_pair((52.0, 95.0), rounds, 2))
    assert (one, two) == pytest.approx((53.7, 91.3), rel=2e-3)
    assert evidence == pytest.approx(
        float(pair_evidence(np.array([[1 / one, 1 / two]]), rounds, 2)[0])
    )
    assert steps > 0


def test_climb_stays_where_no_move_is_slow_enough_for_the_window() -> None:
    rounds = given(0, 6, 12)
    (one, two, _), _ = finish_counted(climb_pair((40.0, 40.0), rounds, N_ARMS))
    assert max(one, two) <= 4 * 12 + 1e-9
