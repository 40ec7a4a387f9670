"""A smooth season: rewards go up and down as a sine of real period."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull.hypotheses.spec import SINE, Moment, Spec
from tidepull.types import FloatArray


@dataclass(frozen=True)
class Fourier:
    """tau = (1, cos 2 pi t / P, sin 2 pi t / P), one cell."""

    period: float
    discount: float = 1.0
    contextual: bool = False
    group = "fourier"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        drifting = "" if self.discount == 1 else ", drifting"
        context = ", with the context" if self.contextual else ""
        return f"swings smoothly every {self.period:.1f} rounds{drifting}{context}"

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(
            shapes=(SINE, 0),
            periods=(self.period, 1.0),
            discount=self.discount,
            contextual=self.contextual,
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0; the angle turns once in a period."""
        angle = 2 * math.pi * (moment.t / self.period % 1.0)
        return 0, np.array([1.0, math.cos(angle), math.sin(angle)])
