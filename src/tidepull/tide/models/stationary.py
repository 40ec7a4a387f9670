"""Nothing moves: the arms are what they always were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.tide.models.family import Family, fixed
from tidepull.tide.models.notes import Moment
from tidepull.tide.models.spec import Spec
from tidepull.types import FloatArray


@dataclass(frozen=True)
class Stationary:
    """tau = (1), one cell, no discount. For rewards of 0 and 1 without context it is
    Beta-Bernoulli."""

    contextual: bool = False
    family = "stationary"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return "nothing changes" + (", the context decides" if self.contextual else "")

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(self.family, contextual=self.contextual)

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0 and (1), whenever."""
        return 0, np.ones(1)


FAMILY = Family(
    name="stationary",
    words="nothing changes",
    prior=0.80,
    colour="#8c8c8c",
    pools=lambda layout, contextual: fixed(layout, Stationary(contextual)),
    named=lambda spec: Stationary(spec.contextual),
)
