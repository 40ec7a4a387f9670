"""Compile every kernel ahead of time, or load it from numba's cache on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core import event

from tidepull.encoders.feedforward import FeedforwardEncoder
from tidepull.encoders.recurrent import RecurrentEncoder
from tidepull.types import Context, Event, ProblemShape


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    """Calls back when numba begins to compile something that its cache does not hold."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self.seen = False

    def on_start(self, event: Any) -> None:
        if not self.seen:
            self.seen = True
            self._announce()

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def compiling(announce: Callable[[], None]) -> Iterator[_FirstCompilation]:
    """Calls `announce` once if numba compiles anything inside the block."""
    listener = _FirstCompilation(announce)
    with event.install_listener("numba:compile", listener):
        yield listener


def warm_up(units: tuple[int, int, int] = (32, 32, 32), announce: Callable[[], None] = lambda: None) -> bool:
    """Make both networks ready; calls `announce` once if that needs compiling, and returns whether it did.

    Only the number of LSTM units, `units[1]`, has kernels of its own.
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
