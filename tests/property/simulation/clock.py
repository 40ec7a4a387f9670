"""Time as the simulation has it: a monotonic clock that only goes on, and one on the wall that
jumps both ways."""

from __future__ import annotations

import random
import time
from typing import Any

from tidepull.agent.clock import HELD

START = 1_782_907_200.0  # 1 July 2026
JUMPS = (
    -86_400.0,
    -3_600.0,
    -400.0,
    -90.0,
    -1.0,
    1.0,
    90.0,
    400.0,
    3_600.0,
    86_400.0,
    31_536_000.0,
)
"""Seconds by which the wall clock may be set; 300 is where the agent stops to follow it."""


class Clocks:
    """Both clocks. `elapsed` is the truth, which only the audit may look at; `followed` is by how
    much agents may have followed the wall clock ahead: small jumps, and what two large ones have
    left together."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.elapsed = 0.0
        self._set = 0.0
        self.jumps = 0
        self.followed = 0.0

    def pass_by(self, seconds: float) -> None:
        """Time passes."""
        self.elapsed += max(0.0, seconds)

    def jump(self) -> float:
        """Somebody sets the wall clock."""
        by = self._rng.choice(JUMPS)
        self._set += by
        self.jumps += 1
        self.followed += max(0.0, by) if abs(by) <= HELD else HELD
        return by

    def wall(self) -> float:
        """Seconds since 1970, as the machine believes."""
        return START + self.elapsed + self._set

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return 1000.0 + self.elapsed

    def measured(self) -> float:
        """The same, for measuring how long something took: work takes time, sometimes much."""
        self.elapsed += self._rng.choice((0.0, 0.0, 0.0, 0.0001, 0.0005, 0.003))
        return self.monotonic()


class Time:
    """The module `time` as simulated code sees it: the one seam through which the clocks enter."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self.time = clocks.wall
        self.monotonic = clocks.monotonic
        self.perf_counter = clocks.measured
        self.sleep = clocks.pass_by

    def clock_gettime(self, _: int) -> float:
        """Of all clocks that the system has, only those that do not jump are asked for."""
        return self._clocks.monotonic()

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)
