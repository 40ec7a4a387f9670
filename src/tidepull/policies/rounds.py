"""Which rounds have begun, and which of them still wait for their reward."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.errors import EventError, SnapshotError
from tidepull.types import IntArray

TRAIL = 8192
"""Rounds back for which it is remembered whether their reward has come; an older event is taken on trust."""


class Rounds:
    """A count of rounds, and the unfinished ones among the last `TRAIL`.

    >>> rounds = Rounds()
    >>> rounds.begin()
    >>> rounds.decided(None), rounds.begun
    (0, 1)
    """

    def __init__(self, begun: int = 0, unfinished: tuple[int, ...] = ()) -> None:
        self.begun = begun
        self._waiting = (
            begun - 1 in unfinished
        )  # the latest round; apart from the others, as most finish at once
        self._late = set(unfinished) - {begun - 1}

    def begin(self) -> None:
        """One more round."""
        if self._waiting:
            self._late.add(self.begun - 1)
        if self._late:
            self._late.discard(self.begun - TRAIL)
        self._waiting = True
        self.begun += 1

    def decided(self, named: int | None) -> int:
        """The round that an event finishes. Without a name: the latest one or, where that is finished or there is
        none, a new one, whose number is `begun`."""
        latest = self.begun - 1
        if named is None:
            return latest if self._waiting else self.begun
        if named == latest and self._waiting:
            return named
        if not 0 <= named < self.begun:
            known = f"rounds 0 to {latest} have begun" if self.begun else "no round has begun"
            raise EventError(f"decided must be the number of a round that has begun, got {named}; {known}")
        if named >= self.begun - TRAIL and named not in self._late:
            raise EventError(f"decided is {named}, but the reward of round {named} has been learnt already")
        return named

    def finish(self, decided: int) -> None:
        """The reward of that round has been learnt."""
        if decided == self.begun:
            self.begin()
        if decided == self.begun - 1:
            self._waiting = False
        else:
            self._late.discard(decided)

    @property
    def unfinished(self) -> IntArray:
        """The unfinished rounds, in order."""
        latest = [self.begun - 1] if self._waiting else []
        return np.array([*sorted(self._late), *latest], np.int64)

    @classmethod
    def restored(cls, begun: Any, unfinished: Any) -> Rounds:
        """Rounds as a snapshot has them, checked."""
        if type(begun) is not int or begun < 0:
            raise SnapshotError("the snapshot's 'rounds' must be a whole number that is not negative")
        if not isinstance(unfinished, np.ndarray) or unfinished.dtype != np.int64 or unfinished.ndim != 1:
            raise SnapshotError("the snapshot's 'unfinished' must be a list of rounds")
        in_order = (np.diff(unfinished) > 0).all()
        if len(unfinished) and not (
            in_order and max(0, begun - TRAIL) <= unfinished[0] and unfinished[-1] < begun
        ):
            raise SnapshotError("the snapshot's 'unfinished' must be rounds that have begun, in order")
        return cls(begun, tuple(unfinished.tolist()))
