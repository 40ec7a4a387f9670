"""An epoch uses the room that the one before it used."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tidepull.encoders.feedforward import FeedforwardNetwork, FeedforwardSettings
from tidepull.encoders.recurrent import RecurrentNetwork, RecurrentSettings
from tidepull.encoders.training import Adam, Network

ROUNDS, UNITS = 12_000, (8, 8, 8)
ONE_COLUMN = 4 * ROUNDS
"""Bytes of one number for each round. Numpy's own loops take up to 36,000, whatever the length of
the history."""


@pytest.mark.parametrize("n_inputs", [5, 150])
@pytest.mark.parametrize("recurrent", [True, False])
def test_epoch_allocates_nothing_as_long_as_the_history(recurrent: bool, n_inputs: int) -> None:
    rng = np.random.default_rng(0)
    network: Network
    if recurrent:
        network = RecurrentNetwork(
            n_inputs, RecurrentSettings(units=UNITS, learning_rate=0.01), rng, np.float32
        )
    else:
        settings = FeedforwardSettings(units=UNITS, learning_rate=0.01, sinusoids=2)
        network = FeedforwardNetwork(n_inputs, settings, rng, np.float32)
    inputs = np.ones((ROUNDS, n_inputs + (0 if recurrent else 2) + 1), np.float32)
    rewards = np.where(np.arange(ROUNDS) % 3, 1.0, np.nan).astype(np.float32)
    adam = Adam(network.weights.flat, 0.01)

    def epoch() -> None:
        network.loss(inputs, rewards)
        adam.step(network.gradient.flat)

    epoch()
    tracemalloc.start()
    epoch()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    epoch()
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak < ONE_COLUMN
