"""Periods are found to within one per cent, on the grid or off it."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.tide.jobs import finish
from tidepull.tide.models import period_search
from tidepull.tide.models.family import Rounds
from tidepull.tide.models.scan import sine_evidence, square_evidence
from tidepull.types import FloatArray, IntArray

N_ARMS = 5


def play(n: int, seed: int) -> tuple[np.random.Generator, IntArray, IntArray]:
    rng = np.random.default_rng(seed)
    return rng, np.arange(n), rng.integers(N_ARMS, size=n)


def log_evidence(Phi: FloatArray, block: IntArray, y: FloatArray) -> float:
    """The same closed form by dense linear algebra."""
    explained, volume, d = 0.0, 0.0, Phi.shape[1]
    for b in np.unique(block):
        rows = Phi[block == b]
        lam, eta = 0.1 * np.eye(d) + rows.T @ rows, rows.T @ y[block == b]
        explained += eta @ np.linalg.solve(lam, eta)
        volume += np.linalg.slogdet(lam)[1] - d * np.log(0.1)
    return float(-(1 + len(y) / 2) * np.log(0.1 + (y @ y - explained) / 2) - volume / 2)


def test_evidence_of_sines_equals_dense_linear_algebra() -> None:
    rng, t, arm = play(200, 0)
    y = rng.normal(size=200)
    for frequency in (0.31, 0.01, 0.12345):
        angle = 2 * np.pi * frequency * (t + 40)
        Phi = np.stack([np.ones(200), np.cos(angle), np.sin(angle)], axis=1)
        found = sine_evidence(np.array([frequency]), Rounds(40, arm, y), N_ARMS)[0]
        assert found == pytest.approx(log_evidence(Phi, arm, y), abs=1e-7)


def test_evidence_of_squares_equals_dense_linear_algebra() -> None:
    rng, t, arm = play(200, 1)
    y = rng.normal(size=200)
    for half, offset in ((5.0, 2.0), (7.3, 11.1), (60.0, 0.0)):
        phase = np.floor((t + 33 + offset) / half).astype(int) % 2
        found = square_evidence(np.array([half]), np.array([offset]), Rounds(33, arm, y), N_ARMS)[0]
        assert found == pytest.approx(log_evidence(np.ones((200, 1)), 2 * arm + phase, y), abs=1e-7)


@pytest.mark.parametrize("period", [61.3, 23.7, 8.45, 150.2])
def test_a_real_period_is_found_to_within_one_per_cent(period: float) -> None:
    for seed in range(5):
        n = max(600, int(10 * period))
        rng, t, arm = play(n, seed)
        phase = rng.uniform(0, 2 * np.pi, N_ARMS)
        y = np.sin(2 * np.pi * t / period + phase[arm]) + rng.normal(size=n)
        best = finish(period_search.best_sines(Rounds(0, arm, y), N_ARMS, 1))[0]
        assert best == pytest.approx(period, rel=0.01)


@pytest.mark.parametrize(("half", "offset"), [(10, 3), (23, 7), (61, 50), (5, 0)])
def test_two_phases_are_found_with_their_offset(half: int, offset: int) -> None:
    for seed in range(5):
        rng, t, arm = play(600, seed)
        regimes = np.stack([np.linspace(-1, 1, N_ARMS), np.linspace(1, -1, N_ARMS)])
        phase = (t + offset) // half % 2
        y = regimes[phase, arm] + 0.5 * rng.normal(size=600)
        found_half, found_offset = finish(period_search.best_squares(Rounds(0, arm, y), N_ARMS, 1))[
            0
        ]
        found = np.floor((t + found_offset) / found_half).astype(int) % 2
        agreement = np.mean(found == phase)
        assert max(agreement, 1 - agreement) > 0.97
        assert found_half == pytest.approx(half, rel=0.01)


@pytest.mark.parametrize(("half", "offset", "dim"), [(23, 7, 20), (11, 5, 5), (64, 37, 10)])
def test_rhythm_of_weights_is_seen_through_contexts(half: int, offset: int, dim: int) -> None:
    rng = np.random.default_rng(half)
    t = np.arange(12 * half) + 100
    w, x = rng.normal(size=dim), rng.normal(size=(len(t), dim))
    phase = (t + offset) // half % 2
    y = np.where(phase == 0, 1, -1) * (x @ w) + 0.1 * rng.normal(size=len(t))
    period, found_offset = finish(period_search.spectral(y[:, None] * x, 100, 1))[0]
    assert period == pytest.approx(2 * half, rel=0.03)
    found = np.floor((t + found_offset) / (0.5 * period)).astype(int) % 2
    agreement = np.mean(found == phase)
    assert max(agreement, 1 - agreement) > 0.85
