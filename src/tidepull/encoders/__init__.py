"""Networks that turn a history into features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidepull._internal.kernels import compiling
from tidepull.encoders.feedforward import FeedforwardEncoder
from tidepull.encoders.recurrent import RecurrentEncoder
from tidepull.types import Context, Event, ProblemShape

__all__ = ["FeedforwardEncoder", "RecurrentEncoder", "compiling", "warm_up"]


def warm_up(
    units: tuple[int, int, int] = (32, 32, 32), announce: Callable[[], None] = lambda: None
) -> bool:
    """Compile the kernels of both networks, or load them from disk; returns whether any was
    compiled.

    `announce` is called once before the first compilation. Only the number of LSTM units,
    `units[1]`, has kernels of its own.
    """
    with compiling(announce) as listener:
        shape, rng = ProblemShape(2), np.random.default_rng(0)
        recurrent = RecurrentEncoder(shape, units=units, learning_rate=0.01, rng=rng)
        feedforward = FeedforwardEncoder(
            shape, units=units, order=1, sinusoids=1, learning_rate=0.01, rng=rng
        )
        for encoder in (recurrent, feedforward):
            encoder.features(Context())
            encoder.append(Event(Context(), 0, 0.0))
            encoder.refit(1)
    return listener.seen
