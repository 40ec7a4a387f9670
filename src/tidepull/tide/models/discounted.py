"""Everything drifts: what was seen n rounds ago counts g^n."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.tide.models.family import Family, fixed
from tidepull.tide.models.notes import Moment
from tidepull.tide.models.spec import Spec
from tidepull.types import FloatArray

DISCOUNTS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)


@dataclass(frozen=True)
class Discounted:
    """tau = (1), one cell, and a discount g < 1."""

    discount: float
    contextual: bool = False
    family = "discounted"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        memory = f"drifts, the last {1 / (1 - self.discount):.3g} rounds count"
        return memory + (", the context decides" if self.contextual else "")

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(self.family, discount=self.discount, contextual=self.contextual)

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0 and (1), whenever."""
        return 0, np.ones(1)


FAMILY = Family(
    name="discounted",
    words="drifts, the last n rounds count",
    # Where hypotheses predict alike, those that forget must not win by default: they never stop
    # asking after others.
    prior=0.006,
    colour="#e69f00",
    pools=lambda layout, contextual: fixed(layout, *(Discounted(g, contextual) for g in DISCOUNTS)),
    named=lambda spec: Discounted(spec.discount, spec.contextual),
)
