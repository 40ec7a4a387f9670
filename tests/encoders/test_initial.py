"""Initial weights."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest

from tidepull.encoders import FeedforwardEncoder, RecurrentEncoder, initial
from tidepull.types import ProblemShape


def test_truncated_normal_has_the_moments_of_its_distribution() -> None:
    values = initial.truncated_normal(np.random.default_rng(0), (200_000,))
    # variance of a standard normal cut at 2: 1 - 4 pdf(2) / (2 cdf(2) - 1)
    variance = 1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2))
    assert np.abs(values).max() <= 2.0
    assert np.abs(values).max() > 1.99
    assert values.mean() == pytest.approx(0.0, abs=0.01)
    assert values.var() == pytest.approx(variance, rel=0.01)


def test_glorot_uniform_fills_its_range() -> None:
    values = initial.glorot_uniform(np.random.default_rng(0), (64, 128))
    limit = math.sqrt(6 / (64 + 128))
    assert np.abs(values).max() <= limit
    assert values.var() == pytest.approx(limit**2 / 3, rel=0.05)


@pytest.mark.parametrize("init", ["paper", "scaled"])
def test_recurrent_network_begins_as_the_paper_says(init: Literal["paper", "scaled"]) -> None:
    rng = np.random.default_rng(0)
    encoder = RecurrentEncoder(
        ProblemShape(80),
        units=(96, 32, 48),
        learning_rate=0.01,
        init=init,
        rng=rng,
    )
    w = encoder._network.weights
    spread = 0.8796  # standard deviation of the truncated normal
    for name, fan_in in (("first", 81), ("third", 32), ("output", 48)):
        scale = 1 / math.sqrt(fan_in) if init == "scaled" else 1.0
        assert w[name].std() == pytest.approx(spread * scale, rel=0.25), name
        assert np.abs(w[name]).max() <= 2.0 * scale + 1e-6
    limit = math.sqrt(6 / (96 + 32 + 4 * 32))
    for name in ("gates", "recurrent"):
        assert np.abs(w[name]).max() <= limit
        assert w[name].std() == pytest.approx(limit / math.sqrt(3), rel=0.05)
    assert not w.flat[w.n_penalised :].any()


@pytest.mark.parametrize("init", ["paper", "scaled"])
def test_feedforward_network_begins_as_the_paper_says(init: Literal["paper", "scaled"]) -> None:
    rng = np.random.default_rng(0)
    encoder = FeedforwardEncoder(
        ProblemShape(40),
        units=(96, 32, 48),
        order=1,
        sinusoids=50,
        learning_rate=0.01,
        init=init,
        rng=rng,
    )
    w = encoder._network.weights
    for name, fan_in in (("frequency", 1), ("first", 131), ("second", 96), ("third", 32), ("output", 48)):
        scale = 1 / math.sqrt(fan_in) if init == "scaled" else 1.0
        assert w[name].std() == pytest.approx(0.8796 * scale, rel=0.25), name
    assert not w.flat[w.n_penalised :].any()


def test_same_seed_gives_the_same_network() -> None:
    one, two = (
        RecurrentEncoder(ProblemShape(4), units=(8, 8, 8), learning_rate=0.01, rng=np.random.default_rng(5))
        for _ in range(2)
    )
    assert one._network.weights.flat.tobytes() == two._network.weights.flat.tobytes()
