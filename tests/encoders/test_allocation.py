"""An epoch uses the room that the one before it used."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tidepull.encoders import FeedforwardEncoder, RecurrentEncoder
from tidepull.types import Context, Event, ProblemShape

ROUNDS = 12_000
ONE_COLUMN = 4 * ROUNDS
"""Bytes of one number for each round. Numpy's own loops take up to 36,000, whatever the length of the history."""


@pytest.mark.parametrize("observation_dim", [0, 300])
@pytest.mark.parametrize("recurrent", [True, False])
def test_epoch_allocates_nothing_as_long_as_the_history(recurrent: bool, observation_dim: int) -> None:
    shape, rng = ProblemShape(4, observation_dim=observation_dim), np.random.default_rng(0)
    encoder: RecurrentEncoder | FeedforwardEncoder
    if recurrent:
        encoder = RecurrentEncoder(shape, units=(16, 16, 16), learning_rate=0.01, rng=rng)
    else:
        encoder = FeedforwardEncoder(
            shape, units=(16, 16, 16), order=1, sinusoids=2, learning_rate=0.01, rng=rng
        )
    seen = Context(observation=np.ones(observation_dim) if observation_dim else None)
    for t in range(ROUNDS):
        encoder.append(Event(seen, t % 4, 1.0))
    slices = encoder.refitting(6)
    for _ in range(3):
        next(slices)
    tracemalloc.start()
    next(slices)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    next(slices)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak < ONE_COLUMN
