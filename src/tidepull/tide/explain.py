"""What `tide` believes about time, in words, now and over the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidepull.state import Stateful
from tidepull.tide.hours import HourSpan
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.families import FAMILIES, describe
from tidepull.tide.models.family import Filter, Finding
from tidepull.tide.scale import Units
from tidepull.types import FloatArray, IntArray

_MIN_WEIGHT = 0.02
"""Least weight of a model with a hidden state whose findings are reported."""
_MOST_MODELS = 200


@dataclass(frozen=True, slots=True)
class Belief:
    """One model and how likely it is. `period` is its longest, in rounds; 0 where nothing
    repeats."""

    words: str
    family: str
    weight: float
    period: float = 0.0

    def __str__(self) -> str:
        return f"{self.words}: {self.weight:.0%}"


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Leading beliefs, and the weights of whole families (columns) in past rounds (rows).
    `findings` are those of families with a hidden state: dates of changes, the present regime
    (`family.Finding`). Where a season of the user's day leads, `hours` says when which arm is best;
    `week` has the arm that is surely best in every hour of the week, -1 where there is none."""

    beliefs: tuple[Belief, ...]
    rounds: IntArray
    families: tuple[str, ...]
    weights: FloatArray
    findings: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    hours: tuple[HourSpan, ...] = ()
    week: IntArray | None = None

    def __str__(self) -> str:
        details = [f"  {one.words}" for family in self.findings.values() for one in family]
        hours = [f"  {span}" for span in self.hours]
        return "\n".join([*(str(belief) for belief in self.beliefs), *details, *hours])

    def plain(self, most_rounds: int = 64) -> dict[str, Any]:
        """JSON values of at most `most_rounds` rounds, stored with every trial."""
        count = len(self.rounds)
        kept = np.unique(np.linspace(0, count - 1, min(count, most_rounds)).round().astype(int))
        findings = {
            family: [{"words": one.words, **one.facts} for one in said]
            for family, said in self.findings.items()
        }
        return {
            **({"told": findings} if findings else {}),
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


class WeightHistory(Stateful):
    """Weights of families over the rounds: at most `capacity` rows, thinned as rounds go by."""

    state = ("rows", "rounds", "count", "every")

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


def leading_beliefs(
    bank: ModelBank, filters: Sequence[Filter], weights: FloatArray, most: int
) -> tuple[Belief, ...]:
    """Heaviest models of the bank, the filters and the network, in this order in `weights`; models
    with equal words are added up."""
    totals: dict[tuple[str, str], float] = {}
    periods: dict[tuple[str, str], float] = {}
    for m in np.argsort(-weights, kind="stable")[:_MOST_MODELS].tolist():
        i = m - bank.size
        if i < 0 and not bank.arrays.active[m]:
            continue
        key = FAMILIES["network"].words, "network"
        if i < 0:
            key = describe(bank.spec(m)), bank.spec(m).family
        elif i < len(filters):
            key = filters[i].words, filters[i].family
        periods.setdefault(key, bank.spec(m).longest_period if i < 0 else 0.0)
        totals[key] = totals.get(key, 0.0) + float(weights[m])
    ranked = sorted(totals.items(), key=lambda item: -item[1])[:most]
    return tuple(Belief(*key, weight, periods[key]) for key, weight in ranked)


def findings_of(
    filters: Sequence[Filter], weights: FloatArray, units: Units
) -> dict[str, tuple[Finding, ...]]:
    """Findings of the heaviest filter of each family, if its weight is at least 0.02."""
    findings: dict[str, tuple[Finding, ...]] = {}
    for i in np.argsort(-weights, kind="stable"):
        filter = filters[i]
        if filter.family not in findings and weights[i] >= _MIN_WEIGHT:
            findings[filter.family] = tuple(filter.findings(units.centre, units.spread))
    return findings
