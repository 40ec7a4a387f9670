"""What all hypotheses say now, in words: whose weight leads, what they know of changes, regimes and
hours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidepull.tide.explain import Belief
from tidepull.tide.hours import HourSpan, best_arms, is_daily, spans
from tidepull.tide.models.bank import HypothesisBank
from tidepull.tide.models.families import FAMILIES, hypothesis_of
from tidepull.tide.models.family import Filter, Told
from tidepull.tide.scale import Units
from tidepull.types import FloatArray

_WORTH_TELLING = 0.02
"""Weight of a hypothesis with a hidden state from which on it tells what it knows."""
_ASKED = 200


class Sayings:
    """The weights of the slots of the bank, then of the filters, then of the network. `seconds`:
    the user's clock runs in them."""

    def __init__(
        self, bank: HypothesisBank, weights: FloatArray, filters: Sequence[Filter], *, seconds: bool
    ) -> None:
        self._bank, self._filters, self._seconds = bank, filters, seconds
        self._weights = weights

    def beliefs(self, most: int) -> tuple[Belief, ...]:
        """The heaviest, those that say the same together."""
        totals: dict[tuple[str, str], float] = {}
        periods: dict[tuple[str, str], float] = {}
        for m in np.argsort(-self._weights, kind="stable")[:_ASKED]:
            if m < self._bank.size and not self._bank.arrays.active[m]:
                continue
            key = self._words(int(m))
            periods.setdefault(key, self._period(int(m)))
            totals[key] = totals.get(key, 0.0) + float(self._weights[m])
        ranked = sorted(totals.items(), key=lambda item: -item[1])[:most]
        return tuple(Belief(*key, weight, periods[key]) for key, weight in ranked)

    def hours(self, latest: float) -> tuple[HourSpan, ...]:
        """When which arm is best, where a hypothesis of the user's day leads."""
        m = int(np.argmax(self._weights))
        if m >= self._bank.size or self._bank.layout.shared or not is_daily(self._bank.spec(m)):
            return ()
        return spans(best_arms(self._bank, m, latest))

    def told(self, units: Units) -> dict[str, tuple[Told, ...]]:
        """What the heaviest of each family with a hidden state says, unless hardly anything speaks
        for it."""
        told: dict[str, tuple[Told, ...]] = {}
        beside = self._weights[self._bank.size : self._bank.size + len(self._filters)]
        for i in np.argsort(-beside, kind="stable"):
            filter = self._filters[i]
            if filter.family not in told and beside[i] >= _WORTH_TELLING:
                told[filter.family] = tuple(filter.told(units.centre, units.spread))
        return told

    def _words(self, m: int) -> tuple[str, str]:
        beside = m - self._bank.size
        if beside >= len(self._filters):
            return FAMILIES["network"].words, "network"
        if beside >= 0:
            return self._filters[beside].words, self._filters[beside].family
        hypothesis = hypothesis_of(self._bank.spec(m))
        # Without the calendar nobody says that the clock runs in seconds.
        words = (
            getattr(hypothesis, "spoken", hypothesis.words) if self._seconds else hypothesis.words
        )
        return words, hypothesis.family

    def _period(self, m: int) -> float:
        return self._bank.spec(m).longest_period if m < self._bank.size else 0.0
