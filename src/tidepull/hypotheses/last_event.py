"""The last round decides: which arm was played and what it paid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.hypotheses.spec import LAST_EVENT, Moment, Spec
from tidepull.types import FloatArray


@dataclass(frozen=True)
class LastEvent:
    """A cell for every last arm, and tau = (1, last reward)."""

    contextual: bool = False
    group = "last event"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return "the last arm and reward decide" + (", with the context" if self.contextual else "")

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(memory=LAST_EVENT, contextual=self.contextual)

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0 is for the first round, which has no last arm."""
        return moment.last_arm + 1, np.array([1.0, moment.last_reward])
