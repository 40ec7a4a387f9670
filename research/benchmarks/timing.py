"""The shortest processor time of several calls, taken in turns so that all meet the same
disturbances."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

IN_A_ROW = 5
"""Calls of one kind before the next kind has its turn: the first of them find a cache full of other
things."""


def best_of(calls: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Seconds of processor time of the fastest call of each kind, over so many turns.

    Processor time, not time on the clock: on a busy machine a longer call is interrupted more
    often, which would make slower rivals look slower than they are.
    """
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(turns):
        for name, call in calls.items():
            for _ in range(IN_A_ROW):
                started = time.process_time()
                call()
                best[name] = min(best[name], time.process_time() - started)
    return best
