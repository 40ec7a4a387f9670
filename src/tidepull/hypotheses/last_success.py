"""The last success decides: which arm paid well most recently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.hypotheses.spec import LAST_SUCCESS, Moment, Spec
from tidepull.types import FloatArray


@dataclass(frozen=True)
class LastSuccess:
    """A cell for every arm that may have succeeded last, and tau = (1)."""

    contextual: bool = False
    group = "last success"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return "the arm that paid last decides" + (", with the context" if self.contextual else "")

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(memory=LAST_SUCCESS, contextual=self.contextual)

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0 is for the rounds before any success."""
        return moment.last_success + 1, np.ones(1)
