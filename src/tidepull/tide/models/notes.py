"""What models may look at besides the round and the context: named columns of numbers, noted
when a round is decided, so that a reward that comes late is still explained by what was known
then."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from tidepull.tide.jobs import Job
from tidepull.types import BoolArray, FloatArray, IntArray, Snapshot


@dataclass(frozen=True)
class Column:
    """One number of a note. `cells`: it names one of so many regimes (given the number of arms);
    `each_arm`: it is another number for each arm; `reward`: it is a reward as it was paid, to be
    standardised when read."""

    name: str
    index: int
    cells: Callable[[int], int] | None = None
    each_arm: bool = False
    reward: bool = False


_columns: list[Column] = []
_rewards: list[int] = []
_of_each_arm: list[int] = []


def column(
    name: str,
    *,
    cells: Callable[[int], int] | None = None,
    each_arm: bool = False,
    reward: bool = False,
) -> Column:
    """A new column; a family declares its own in its own file."""
    if any(other.name == name for other in _columns):
        raise ValueError(f"there is already a column '{name}'")
    made = Column(name, len(_columns), cells, each_arm, reward)
    _columns.append(made)
    _rewards.extend([made.index] * reward)
    _of_each_arm.extend([made.index] * each_arm)
    return made


def columns() -> tuple[Column, ...]:
    """All columns that families declared, in order."""
    return tuple(_columns)


class Moment(NamedTuple):
    """All that a model may look at besides the context: the round, and what was noted when it
    was decided; `each` has a row for each column and a number for each arm."""

    t: int
    notes: FloatArray
    each: FloatArray

    def row(self, arm: int) -> FloatArray:
        """The notes as they concern one arm."""
        row: FloatArray = self.notes.copy()
        for i in _of_each_arm:
            row[i] = self.each[i, arm]
        return row

    def standardised(self, centre: float, spread: float) -> Moment:
        """The same with rewards in the units that kernels read (as `standardised` does for
        many)."""
        return Moment(self.t, in_units(self.notes, centre, spread), self.each)


def blank(t: int, n_arms: int) -> Moment:
    """Round t with nothing noted yet."""
    return Moment(t, np.zeros(len(_columns)), np.zeros((len(_columns), n_arms)))


def in_units(row: FloatArray, centre: float, spread: float) -> FloatArray:
    """One row of notes in the units that kernels read, as `standardised` does for many."""
    made: FloatArray = row.copy()
    for i in _rewards:
        y = (float(made[i]) - centre) / spread
        made[i] = 0.0 if math.isnan(y) else min(max(y, -3.0), 3.0)
    return made


def standardised(notes: FloatArray, centre: float, spread: float) -> FloatArray:
    """Rows of notes in the units that kernels read: rewards standardised, not beyond 3, and 0 where
    there was none (NaN)."""
    made: FloatArray = np.array(notes)
    for i in _rewards:
        made[..., i] = np.nan_to_num(np.clip((made[..., i] - centre) / spread, -3.0, 3.0))
    return made


class Past(NamedTuple):
    """Finished rounds in the order in which their rewards came."""

    t: IntArray  # the round of the decision
    arm: IntArray
    success: BoolArray
    # how many of these rewards had come when the round was decided (below 0: fewer than none)
    known: IntArray
    whole: bool  # whether nothing came before them


class Memory(Protocol):
    """What a family remembers of the past, apart from what its models learnt."""

    def look(self, moment: Moment) -> None:
        """Note what is known now, when the round `moment.t` is decided."""

    def add(self, t: int, arm: int, reward: float, success: bool) -> None:
        """The reward of round t has come."""

    def rewrite(self, past: Past, notes: FloatArray) -> Job[None]:
        """Successes are judged anew: live through the past again in slices, and correct its notes
        (a row each)."""

    def snapshot(self) -> Snapshot:
        """All that it remembers."""

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
