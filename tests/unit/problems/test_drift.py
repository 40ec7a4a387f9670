from __future__ import annotations

import math

import numpy as np
import pytest

from tidepull.problems.drift import Constant, Drift, Flip, PartialFlip, Rotation, Sine

W = np.array([0.6, -0.8, 0.3])
MASK = np.array([True, False, True])
DRIFTS: list[Drift] = [
    Constant(W),
    Flip(W, -W, 7),
    PartialFlip(W, MASK, 11),
    Sine(n_arms=5, period=32),
    Rotation(period=9.5),
]


@pytest.mark.parametrize("drift", DRIFTS, ids=lambda drift: type(drift).__name__)
@pytest.mark.parametrize("horizon", [1, 7, 10, 11, 50])
def test_variation_equals_the_sum_of_all_moves(drift: Drift, horizon: int) -> None:
    moves = sum(float(np.linalg.norm(drift(t + 1) - drift(t))) for t in range(horizon))
    assert drift.variation(horizon) == pytest.approx(moves, abs=1e-12)


@pytest.mark.parametrize("drift", DRIFTS, ids=lambda drift: type(drift).__name__)
def test_values_cannot_be_written_to(drift: Drift) -> None:
    for t in (0, 7, 11):
        with pytest.raises(ValueError, match="read-only"):
            drift(t)[0] = 5.0


def test_drift_keeps_its_value_when_the_given_array_changes() -> None:
    given = W.copy()
    drift = Flip(given, -given, 2)
    given[:] = 99.0
    np.testing.assert_array_equal(drift(0), W)
    np.testing.assert_array_equal(drift(2), -W)


def test_flip_changes_after_every_half_period() -> None:
    drift = Flip(W, 1 - W, 3)
    flipped = [not np.array_equal(drift(t), W) for t in range(12)]
    assert flipped == [False] * 3 + [True] * 3 + [False] * 3 + [True] * 3
    np.testing.assert_array_equal(drift(3), 1 - W)


def test_partial_flip_switches_only_the_masked_signs_for_good() -> None:
    drift = PartialFlip(W, MASK, 4000)
    np.testing.assert_array_equal(drift(3999), W)
    np.testing.assert_array_equal(drift(4000), [-0.6, -0.8, -0.3])
    np.testing.assert_array_equal(drift(9999), [-0.6, -0.8, -0.3])


def test_sine_follows_the_papers_formula_written_out() -> None:
    drift = Sine(n_arms=5, period=32)
    for t in (0, 1, 17, 4095):
        expected = [
            0.5 + math.sin(2 * math.pi * t / 32 + 2 * math.pi * k / 5) / 2 for k in range(5)
        ]
        np.testing.assert_allclose(drift(t), expected, atol=1e-12)


def test_rotation_is_exactly_periodic_far_from_the_start() -> None:
    drift = Rotation(period=32)
    np.testing.assert_array_equal(drift(5), drift(5 + 32 * 1_000_000))
    np.testing.assert_allclose(drift(8), [0.0, 1.0], atol=1e-15)
    np.testing.assert_allclose(drift(4), [math.sqrt(0.5), math.sqrt(0.5)])


def test_arc_of_a_rotation_is_two_pi_a_turn() -> None:
    drift = Rotation(period=32)
    assert drift.arc_length(32) == pytest.approx(2 * math.pi)
    assert drift.arc_length(4096) > drift.variation(4096)
