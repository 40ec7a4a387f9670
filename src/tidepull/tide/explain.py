"""What `tide` believes about time, in words, now and over the rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidepull.tide.hours import HourSpan
from tidepull.tide.models.family import Told
from tidepull.types import FloatArray, IntArray, Snapshot


@dataclass(frozen=True, slots=True)
class Belief:
    """One hypothesis and how likely it is. `period` is its longest, in rounds or, of the clock's
    families, in the user's time; 0 where nothing repeats."""

    words: str
    family: str
    weight: float
    period: float = 0.0

    def __str__(self) -> str:
        return f"{self.words}: {self.weight:.0%}"


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """The leading beliefs, and the weights of whole families (columns) in past rounds (rows).
    `told` is what families with a hidden state say: when something changed, or which regime rules
    (`family.Told`). Where a season of the user's day leads, `hours` says when which arm is best;
    `week` has the arm that is surely best in every hour of the week, -1 where there is none."""

    beliefs: tuple[Belief, ...]
    rounds: IntArray
    families: tuple[str, ...]
    weights: FloatArray
    told: dict[str, tuple[Told, ...]] = field(default_factory=dict)
    hours: tuple[HourSpan, ...] = ()
    week: IntArray | None = None

    def __str__(self) -> str:
        details = [f"  {told.words}" for family in self.told.values() for told in family]
        hours = [f"  {span}" for span in self.hours]
        return "\n".join([*(str(belief) for belief in self.beliefs), *details, *hours])

    def plain(self, most_rounds: int = 64) -> dict[str, Any]:
        """The same as JSON values, at most so many rounds; small enough to be kept with every
        trial."""
        count = len(self.rounds)
        kept = np.unique(np.linspace(0, count - 1, min(count, most_rounds)).round().astype(int))
        told = {
            family: [{"words": one.words, **one.facts} for one in said]
            for family, said in self.told.items()
        }
        return {
            **({"told": told} if told else {}),
            "leading": [
                {"words": belief.words, "weight": round(belief.weight, 4)}
                for belief in self.beliefs
            ],
            "hours": [str(span) for span in self.hours],
            "rounds": (self.rounds[kept] + 1).tolist(),
            "families": {
                family: self.weights[kept, column].round(4).tolist()
                for column, family in enumerate(self.families)
            },
        }


class WeightHistory:
    """Weights of families over the rounds: at most `capacity` rows, thinned as rounds go by."""

    def __init__(self, n_families: int, capacity: int = 512) -> None:
        self._rows = np.zeros((capacity, n_families))
        self._rounds = np.zeros(capacity, np.int64)
        self._count = 0
        self._every = 1

    def record(self, t: int, weights: FloatArray) -> None:
        """Keep the weights of round t, if it is its turn."""
        if t % self._every:
            return
        if self._count == len(self._rows):
            self._every *= 2
            kept = np.flatnonzero(self._rounds % self._every == 0)
            self._count = len(kept)
            self._rows[: len(kept)], self._rounds[: len(kept)] = (
                self._rows[kept],
                self._rounds[kept],
            )
            if t % self._every:
                return
        self._rows[self._count], self._rounds[self._count] = weights, t
        self._count += 1

    def due(self, t: int) -> bool:
        """Whether round t would be kept."""
        return t % self._every == 0

    def table(self) -> tuple[IntArray, FloatArray]:
        """Rounds and their weights."""
        return self._rounds[: self._count].copy(), self._rows[: self._count].copy()

    def snapshot(self) -> Snapshot:
        """The rows that are kept, and how far apart they are."""
        return {
            "rows": self._rows.copy(),
            "rounds": self._rounds.copy(),
            "count": self._count,
            "every": self._every,
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._rows[...], self._rounds[...] = snapshot["rows"], snapshot["rounds"]
        self._count, self._every = int(snapshot["count"]), int(snapshot["every"])
