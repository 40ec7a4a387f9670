"""Parameters that know when their world changes (`protocols.HasRegimes`), each with the field that it reads."""

from __future__ import annotations

import numpy as np

from tidepull.types import IntArray


class FlipsRegularly:
    """Two regimes take turns, each for `half_period` rounds."""

    half_period: int

    def changes(self, horizon: int) -> IntArray:
        """Rounds h, 2 h, 3 h and so on."""
        return np.arange(self.half_period, horizon, self.half_period)

    def returns_after(self) -> float:
        """Once both regimes have had their turn."""
        return 2.0 * self.half_period


class ChangesOnce:
    """One change for good, in round `change_at`."""

    change_at: int

    def changes(self, horizon: int) -> IntArray:
        """That round, if the trial reaches it."""
        return np.array([self.change_at] if self.change_at < horizon else [], np.int64)

    def returns_after(self) -> None:
        """It never returns."""


class Oscillates:
    """A smooth oscillation of `period` rounds: it has phases, but nothing changes abruptly."""

    period: float

    def changes(self, horizon: int) -> IntArray:
        """None at all."""
        return np.empty(0, np.int64)

    def returns_after(self) -> float:
        """After a whole period."""
        return float(self.period)
