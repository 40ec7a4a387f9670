"""The evidence of a scan by dense linear algebra, from any first round and with rewards that have
not come."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidepull.tide.jobs import finish
from tidepull.tide.models import period_search
from tidepull.tide.models.family import Layout, Rounds, Window
from tidepull.tide.models.moments import Moments
from tidepull.tide.models.scan import sine_evidence, square_evidence
from tidepull.tide.models.spectrum import left_over, sine_spectrum, square_table
from tidepull.types import FloatArray, IntArray

N_ARMS = 3


def given(t0: int, seed: int, n: int = 25) -> Rounds:
    rng = np.random.default_rng(seed)
    arm = rng.integers(-1, N_ARMS, size=n)
    y = np.where(arm >= 0, rng.normal(size=n), 0.0)
    return Rounds(t0, arm, y)


def dense(Phi: FloatArray, block: IntArray, y: FloatArray, n_rewards: int) -> float:
    explained, volume, d = 0.0, 0.0, Phi.shape[1]
    for b in np.unique(block):
        rows, target = Phi[block == b], y[block == b]
        lam = 0.1 * np.eye(d) + rows.T @ rows
        explained += float((rows.T @ target) @ np.linalg.solve(lam, rows.T @ target))
        volume += float(np.linalg.slogdet(lam)[1]) - d * math.log(0.1)
    return -(1 + n_rewards / 2) * math.log(0.1 + 0.5 * (float(y @ y) - explained)) - 0.5 * volume


def phases(t: IntArray, half: float, offset: float) -> IntArray:
    return np.asarray(np.floor((t + offset) / half), np.int64) % 2


@pytest.mark.parametrize("t0", [0, 17])
def test_evidence_of_sines_is_that_of_the_rounds_whose_reward_came(t0: int) -> None:
    rounds, frequencies = given(t0, 1), np.array([0.05, 0.21, 1 / 3])
    told = rounds.arm >= 0
    t = t0 + np.arange(len(rounds.y))[told]
    expected = [
        dense(
            np.column_stack([np.ones(len(t)), np.cos(2 * np.pi * f * t), np.sin(2 * np.pi * f * t)]),
            rounds.arm[told], rounds.y[told], len(t),
        )
        for f in frequencies
    ]  # fmt: skip
    np.testing.assert_allclose(sine_evidence(frequencies, rounds, N_ARMS), expected)


@pytest.mark.parametrize("t0", [0, 17])
def test_evidence_of_two_phases_is_that_of_the_rounds_whose_reward_came(t0: int) -> None:
    rounds = given(t0, 2)
    halves, offsets = np.array([4.0, 2.5, 1.0, 30.0, 0.6]), np.array([0.0, 1.5, 0.0, 7.0, 0.2])
    told = rounds.arm >= 0
    t = t0 + np.arange(len(rounds.y))[told]
    expected = [
        dense(
            np.ones((len(t), 1)),
            2 * rounds.arm[told] + np.floor((t + o) / h).astype(int) % 2,
            rounds.y[told],
            len(t),
        )
        for h, o in zip(halves, offsets, strict=True)
    ]
    np.testing.assert_allclose(square_evidence(halves, offsets, rounds, N_ARMS), expected)


def test_evidence_is_finite_where_a_season_explains_everything() -> None:
    t = np.arange(40)
    perfect = Rounds(0, np.zeros(40, np.int64), np.where(t // 5 % 2 == 0, 1.0, -1.0))
    halves = np.array([5.0, 4.0])
    evidence = square_evidence(halves, np.zeros(2), perfect, 1)
    assert np.isfinite(evidence).all()
    assert evidence[0] > evidence[1] + 10
    silent = Rounds(0, np.full(5, -1), np.zeros(5))
    assert sine_evidence(np.array([0.1]), silent, 2)[0] == pytest.approx(-math.log(0.1))
    assert square_evidence(np.array([2.0]), np.zeros(1), silent, 2)[0] == pytest.approx(
        -math.log(0.1)
    )


@pytest.mark.parametrize(("t0", "n"), [(0, 25), (17, 26)])
def test_spectrum_has_the_evidence_of_every_sine(t0: int, n: int) -> None:
    rounds = given(t0, 3, n)
    frequencies, evidence = finish(sine_spectrum(rounds, 3))
    np.testing.assert_allclose(
        frequencies[:-1], period_search.frequencies(n)[: len(frequencies) - 1]
    )
    np.testing.assert_allclose(evidence, sine_evidence(frequencies, rounds, N_ARMS))


@pytest.mark.parametrize("t0", [0, 17])
def test_table_has_the_evidence_of_every_square_wave(t0: int) -> None:
    rounds = given(t0, 4, 60)
    halves, offsets = (
        np.append(a, b)
        for a, b in zip(period_search.squares(60), ([2.5, 0.6, 90], [1.5, 0.2, 7]), strict=True)
    )
    np.testing.assert_allclose(
        finish(square_table(halves, offsets, rounds)),
        square_evidence(halves, offsets, rounds, N_ARMS),
    )


def test_evidence_that_nothing_changes_is_that_of_the_rounds_whose_reward_came() -> None:
    rounds = given(5, 5)
    told = rounds.arm >= 0
    expected = dense(
        np.ones((int(told.sum()), 1)), rounds.arm[told], rounds.y[told], int(told.sum())
    )
    assert period_search.plain_evidence(rounds) == pytest.approx(expected)


@pytest.mark.parametrize("shared", [False, True])
def test_moments_have_the_evidence_of_seasons_with_contexts(shared: bool) -> None:
    rng = np.random.default_rng(6)
    n, arm, t = 40, rng.integers(N_ARMS, size=40), 9 + np.arange(40)
    x, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    moments = Moments(Window(t, np.zeros((n, 1)), arm, x, y), Layout(N_ARMS, 3, shared), 0.1)
    block = np.zeros(n, np.int64) if shared else arm
    assert finish(moments.plain()) == pytest.approx(dense(x, block, y, n))
    halves, offsets = np.array([4.0, 7.3]), np.array([1.5, 0.2])
    expected = [
        dense(x, 2 * block + phases(t, h, o), y, n) for h, o in zip(halves, offsets, strict=True)
    ]
    np.testing.assert_allclose(finish(moments.squares(halves, offsets)), expected)
    periods = np.array([5.5, 21.0])
    turns = [2 * np.pi * t / period for period in periods]
    tau = [np.column_stack([np.ones(n), np.cos(turn), np.sin(turn)]) for turn in turns]
    rows = [np.einsum("ni,nj->nij", each, x).reshape(n, -1) for each in tau]
    np.testing.assert_allclose(
        finish(moments.sines(periods)), [dense(phi, block, y, n) for phi in rows]
    )


@pytest.mark.parametrize("d", [1, 3])
def test_left_over_is_what_ridge_regression_leaves_in_every_block(d: int) -> None:
    rounds, rng = given(0, 7, 40), np.random.default_rng(8)
    tau = np.column_stack([np.ones(40), rng.normal(size=(40, d - 1))])
    expected = rounds.y.copy()
    for arm in range(N_ARMS):
        rows = tau[rounds.arm == arm]
        lam, eta = rows.T @ rows + 0.1 * np.eye(d), rows.T @ rounds.y[rounds.arm == arm]
        expected[rounds.arm == arm] -= rows @ np.linalg.solve(lam, eta)
    np.testing.assert_allclose(
        left_over(tau, rounds.arm, rounds.arm, rounds.y, N_ARMS), expected, atol=1e-12
    )
