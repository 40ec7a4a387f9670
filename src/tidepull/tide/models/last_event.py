"""The last round decides: which arm was played and what it paid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull.tide.models.family import Family, Layout, Pool, fixed
from tidepull.tide.models.notes import Moment, Past, column
from tidepull.tide.models.slices import Pieces
from tidepull.tide.models.spec import Spec
from tidepull.types import FloatArray, Snapshot

LAST_ARM = column("last arm", cells=lambda n_arms: n_arms + 1)  # 0: none yet, else 1 + the arm
LAST_REWARD = column("last reward", reward=True)


@dataclass(frozen=True)
class LastEvent:
    """A cell for every last arm, and tau = (1, last reward)."""

    contextual: bool = False
    family = "last event"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return "the last arm and reward decide" + (", with the context" if self.contextual else "")

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(
            self.family, cell_by=LAST_ARM.index, times=LAST_REWARD.index, contextual=self.contextual
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0 is for rounds before any reward has come."""
        return int(moment.notes[LAST_ARM.index]), np.array([1.0, moment.notes[LAST_REWARD.index]])


class LastEventMemory:
    """The round whose reward came last."""

    def __init__(self, n_arms: int) -> None:
        self._arm, self._reward = -1, math.nan

    def look(self, moment: Moment) -> None:
        """Note its arm and its reward as it was paid."""
        moment.notes[LAST_ARM.index], moment.notes[LAST_REWARD.index] = self._arm + 1, self._reward

    def add(self, t: int, arm: int, reward: float, success: bool) -> None:
        """This one came last now."""
        self._arm, self._reward = arm, reward

    def rewrite(self, past: Past, notes: FloatArray) -> Pieces[None]:
        """Rewards are noted as they were paid: nothing to correct."""
        yield from ()

    def snapshot(self) -> Snapshot:
        """Arm and reward."""
        return {"arm": self._arm, "reward": self._reward}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._arm, self._reward = int(snapshot["arm"]), float(snapshot["reward"])


def _pools(layout: Layout, contextual: bool) -> list[Pool]:
    """Arms that are known by vectors alone have no last arm to speak of."""
    return [] if layout.shared else fixed(layout, LastEvent(contextual))


FAMILY = Family(
    name="last event",
    words="the last arm and reward decide",
    prior=0.015,
    colour="#cc79a7",
    pools=_pools,
    named=lambda spec: LastEvent(spec.contextual),
    memory=LastEventMemory,
)
