"""The last success decides: which arm paid well most recently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.tide.models.family import Family, Layout, Pool, fixed
from tidepull.tide.models.notes import Moment, Past, column
from tidepull.tide.models.slices import Pieces
from tidepull.tide.models.spec import Spec
from tidepull.types import FloatArray, Snapshot

LAST_SUCCESS = column(
    "last success", cells=lambda n_arms: n_arms + 1
)  # 0: none yet, else 1 + the arm


@dataclass(frozen=True)
class LastSuccess:
    """A cell for every arm that may have succeeded last, and tau = (1)."""

    contextual: bool = False
    family = "last success"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return "the arm that paid last decides" + (", with the context" if self.contextual else "")

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(self.family, cell_by=LAST_SUCCESS.index, contextual=self.contextual)

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0 is for the rounds before any success."""
        return int(moment.notes[LAST_SUCCESS.index]), np.ones(1)


class LastSuccessMemory:
    """The arm whose success came last."""

    def __init__(self, n_arms: int) -> None:
        self._arm = -1

    def look(self, moment: Moment) -> None:
        """Note the arm."""
        moment.notes[LAST_SUCCESS.index] = self._arm + 1

    def add(self, t: int, arm: int, reward: float, success: bool) -> None:
        """A success is remembered until the next."""
        if success:
            self._arm = arm

    def rewrite(self, past: Past, notes: FloatArray) -> Pieces[None]:
        """Find again which arm had succeeded last, before each reward came."""
        noted = notes[:, LAST_SUCCESS.index]
        self._arm = -1 if past.whole or np.isnan(noted[0]) else int(noted[0]) - 1
        after = np.empty(len(past.t) + 1)
        after[0] = self._arm + 1
        for i, (arm, success) in enumerate(zip(past.arm, past.success, strict=True)):
            self.add(int(past.t[i]), int(arm), 0.0, bool(success))
            after[i + 1] = self._arm + 1
        told = ~np.isnan(noted)
        noted[told] = after[np.clip(past.known, 0, None)][told]
        yield 200 * len(past.t)

    def snapshot(self) -> Snapshot:
        """The arm."""
        return {"arm": self._arm}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._arm = int(snapshot["arm"])


def _pools(layout: Layout, contextual: bool) -> list[Pool]:
    """Arms that are known by vectors alone have no last arm to speak of."""
    return [] if layout.shared else fixed(layout, LastSuccess(contextual))


FAMILY = Family(
    name="last success",
    words="the arm that paid last decides",
    prior=0.015,
    colour="#997700",
    pools=_pools,
    named=lambda spec: LastSuccess(spec.contextual),
    memory=LastSuccessMemory,
)
