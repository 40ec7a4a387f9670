"""A trend: rewards of every arm rise or fall steadily from round to round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.hypotheses.family import Family, fixed
from tidepull.hypotheses.notes import Moment, Past, column
from tidepull.hypotheses.slices import Pieces
from tidepull.hypotheses.spec import Spec
from tidepull.types import FloatArray, Snapshot

PASSED = column("rounds passed, in thousands")
_UNIT = 1000.0


@dataclass(frozen=True)
class Trend:
    """tau = (1, t / 1000), one cell: a line for every arm, whose slope has the prior width of its level."""

    contextual: bool = False
    family = "trend"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return "rises or falls steadily" + (", with the context" if self.contextual else "")

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(self.family, times=PASSED.index, contextual=self.contextual)

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0; the second feature grows with the rounds."""
        return 0, np.array([1.0, moment.notes[PASSED.index]])


class TrendMemory:
    """There is nothing to remember but the round itself."""

    def __init__(self, n_arms: int) -> None:
        pass

    def look(self, moment: Moment) -> None:
        """Note the round."""
        moment.notes[PASSED.index] = moment.t / _UNIT

    def add(self, t: int, arm: int, reward: float, success: bool) -> None:
        """No reward changes the round."""

    def rewrite(self, past: Past, notes: FloatArray) -> Pieces[None]:
        """Nor does a success."""
        yield from ()

    def snapshot(self) -> Snapshot:
        """Nothing."""
        return {}

    def restore(self, snapshot: Snapshot) -> None:
        """Nothing."""


FAMILY = Family(
    name="trend",
    words="rises or falls steadily",
    prior=0.02,
    colour="#a6761d",
    optional=True,
    pools=lambda layout, contextual: fixed(layout, Trend(contextual)),
    named=lambda spec: Trend(spec.contextual),
    memory=TrendMemory,
)
