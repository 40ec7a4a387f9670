"""Everything drifts: what was seen n rounds ago counts g^n."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.hypotheses.spec import Moment, Spec
from tidepull.types import FloatArray


@dataclass(frozen=True)
class Discounted:
    """tau = (1), one cell, and a discount g < 1."""

    discount: float
    contextual: bool = False
    group = "discounted"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        memory = f"drifts, the last {1 / (1 - self.discount):.3g} rounds count"
        return memory + (", the context decides" if self.contextual else "")

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(discount=self.discount, contextual=self.contextual)

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0 and (1), whenever."""
        return 0, np.ones(1)
