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
        self._unfinished = set(unfinished)

    def begin(self) -> None:
        """One more round."""
        self._unfinished.add(self.begun)
        self._unfinished.discard(self.begun - TRAIL)
        self.begun += 1

    def decided(self, named: int | None) -> int:
        """The round that an event finishes. Without a name: the latest one or, where that is finished or there is
        none, a new one, whose number is `begun`."""
        if named is None:
            latest = self.begun - 1
            return latest if latest in self._unfinished else self.begun
        if not 0 <= named < self.begun:
            known = f"rounds 0 to {self.begun - 1} have begun" if self.begun else "no round has begun"
            raise EventError(f"decided must be the number of a round that has begun, got {named}; {known}")
        if named >= self.begun - TRAIL and named not in self._unfinished:
            raise EventError(f"decided is {named}, but the reward of round {named} has been learnt already")
        return named

    def finish(self, decided: int) -> None:
        """The reward of that round has been learnt."""
        if decided == self.begun:
            self.begin()
        self._unfinished.discard(decided)

    @property
    def unfinished(self) -> IntArray:
        """The unfinished rounds, in order."""
        return np.array(sorted(self._unfinished), np.int64)

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
