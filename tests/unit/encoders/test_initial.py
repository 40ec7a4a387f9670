"""Initial weights."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest

from tidepull.encoders import FeedforwardEncoder, RecurrentEncoder, layers
from tidepull.encoders.layers import Init
from tidepull.policies.presets import RnlpsParameters
from tidepull.types import ProblemShape

CUT = 0.8796  # standard deviation of a standard normal cut at 2


def test_truncated_normal_has_the_moments_of_its_distribution() -> None:
    values = layers.truncated_normal(np.random.default_rng(0), (200_000,))
    # variance of a standard normal cut at 2: 1 - 4 pdf(2) / (2 cdf(2) - 1)
    variance = 1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2))
    assert np.abs(values).max() <= 2.0
    assert np.abs(values).max() > 1.99
    assert values.mean() == pytest.approx(0.0, abs=0.01)
    assert values.var() == pytest.approx(variance, rel=0.01)


def test_glorot_uniform_fills_its_range() -> None:
    values = layers.glorot_uniform(np.random.default_rng(0), (64, 128))
    limit = math.sqrt(6 / (64 + 128))
    assert np.abs(values).max() <= limit
    assert values.var() == pytest.approx(limit**2 / 3, rel=0.05)


def recurrent(init: Init) -> RecurrentEncoder:
    rng = np.random.default_rng(0)
    return RecurrentEncoder(
        ProblemShape(80), units=(96, 32, 48), learning_rate=0.01, init=init, rng=rng
    )


@pytest.mark.parametrize("init", get_args(Init))
def test_dense_layers_of_the_recurrent_network_begin_normal_and_cut(init: Init) -> None:
    w = recurrent(init)._network.weights
    for name, fan_in in (("first", 81), ("third", 32), ("output", 48)):
        scale = 1 / math.sqrt(fan_in) if init == "scaled" else 1.0
        assert w[name].std() == pytest.approx(CUT * scale, rel=0.25), name
        assert np.abs(w[name]).max() <= 2.0 * scale + 1e-6
    assert not w.flat[w.n_penalised :].any()


@pytest.mark.parametrize("init", ["authors-code", "scaled"])
def test_lstm_begins_as_in_the_authors_code_unless_the_text_is_asked_for(init: Init) -> None:
    network = recurrent(init)._network
    limit = math.sqrt(6 / (96 + 32 + 4 * 32))
    for name in ("gates", "recurrent"):
        assert np.abs(network.weights[name]).max() <= limit
        assert network.weights[name].std() == pytest.approx(limit / math.sqrt(3), rel=0.05)
    gates = network.combined_input_weights()[-1].reshape(4, 32)
    np.testing.assert_array_equal(gates, np.outer([0, 1, 0, 0], np.ones(32)))


def test_lstm_begins_as_in_the_papers_text_when_asked_for() -> None:
    network = recurrent("paper-text")._network
    for name in ("gates", "recurrent"):
        assert 1.99 < np.abs(network.weights[name]).max() <= 2.0
        assert network.weights[name].std() == pytest.approx(CUT, rel=0.05)
    assert not network.combined_input_weights()[-1].any()


def test_feedforward_network_begins_alike_by_text_and_code() -> None:
    both = [
        feedforward(init)._network.weights.flat.tobytes() for init in ("authors-code", "paper-text")
    ]
    assert both[0] == both[1]


def test_initialisation_keeps_its_stored_name_when_renamed() -> None:
    old, new = (RnlpsParameters.from_mapping({"init": name}) for name in ("paper", "authors-code"))
    assert old == new == RnlpsParameters()
    assert new.init == "authors-code"
    assert new.to_mapping()["init"] == "paper"


def feedforward(init: Init) -> FeedforwardEncoder:
    return FeedforwardEncoder(
        ProblemShape(40),
        units=(96, 32, 48),
        order=1,
        sinusoids=50,
        learning_rate=0.01,
        init=init,
        rng=np.random.default_rng(0),
    )


@pytest.mark.parametrize("init", get_args(Init))
def test_feedforward_network_begins_as_the_paper_says(init: Init) -> None:
    w = feedforward(init)._network.weights
    for name, fan_in in (
        ("frequency", 1),
        ("first", 131),
        ("second", 96),
        ("third", 32),
        ("output", 48),
    ):
        scale = 1 / math.sqrt(fan_in) if init == "scaled" else 1.0
        assert w[name].std() == pytest.approx(CUT * scale, rel=0.25), name
    assert not w.flat[w.n_penalised :].any()


def test_same_seed_gives_the_same_network() -> None:
    one, two = (
        RecurrentEncoder(
            ProblemShape(4), units=(8, 8, 8), learning_rate=0.01, rng=np.random.default_rng(5)
        )
        for _ in range(2)
    )
    assert one._network.weights.flat.tobytes() == two._network.weights.flat.tobytes()
