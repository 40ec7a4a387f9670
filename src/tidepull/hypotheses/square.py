"""An abrupt season: two regimes that take turns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull.hypotheses.spec import SQUARE, Moment, Spec
from tidepull.types import FloatArray


@dataclass(frozen=True)
class Square:
    """tau = (1); the cell is floor((t + offset) / half_period) mod 2."""

    half_period: float
    offset: float = 0.0
    discount: float = 1.0
    contextual: bool = False
    group = "square"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        drifting = "" if self.discount == 1 else ", drifting"
        context = ", with the context" if self.contextual else ""
        return f"repeats every {2 * self.half_period:.1f} rounds, in two phases{drifting}{context}"

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(
            shapes=(SQUARE, 0),
            periods=(self.half_period, 1.0),
            offsets=(self.offset, 0.0),
            discount=self.discount,
            contextual=self.contextual,
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0 in one phase, cell 1 in the other."""
        return math.floor((moment.t + self.offset) / self.half_period) % 2, np.ones(1)
