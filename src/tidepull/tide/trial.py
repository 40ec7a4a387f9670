"""A hypothesis on trial: it decides as often as its predictions deserve, and only while its own
decisions earn as much.

Where arms have weights of their own on an observation, a hidden state may predict well and choose
badly: it foresees that what *others* chose well will pay, or that it will itself go on failing. So
it stays outside the mixture of all others, which goes on as if it were not there, and is weighed
against that mixture as a whole,

    v ~ w p(r), 1 - v ~ (1 - w) p_mixture(r);   w <- (1 - alpha) v + alpha prior

where its chances of rewards of 0 and 1 are put right by what came of earlier ones, as those of all
others are (`tide/models/calibration.py`). A round is offered to it with the chance w. It decides if
a draw of what its decisions earn beats a draw of what those of the others earn (`earnings.py`).
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.earnings import Earnings
from tidepull.tide.models.calibration import BINS, KEPT, put_right
from tidepull.tide.models.family import Filter
from tidepull.tide.models.noise import NoisePrior
from tidepull.types import FloatArray, Snapshot

OTHERS, ITSELF = 0, 1
_MOST = 60.0
"""Of log odds, before something is given back."""
_MEMORY = NoisePrior().memory


class GatedModel:
    """One filter, its log odds against all others together, and what both earned when they
    decided."""

    def __init__(self, filter: Filter, prior: float, share: float) -> None:
        self.filter = filter
        self._prior, self._alpha = prior, share
        self._bins, self._bin_odds = np.zeros((BINS, KEPT)), np.zeros(1)
        self._odds = math.log(prior / (1 - prior))
        self._earnings = Earnings(2)

    @property
    def weight(self) -> float:
        """w."""
        return 1 / (1 + math.exp(-self._odds))

    @property
    def share(self) -> float:
        """The share of rounds that it decides."""
        return self.weight * self._earnings.chance(ITSELF, OTHERS)

    def decides(self, rng: np.random.Generator) -> bool:
        """Whether a round is its own."""
        return bool(rng.random() < self.weight) and self._earnings.asks(ITSELF, rng)

    def votes(self, count: int, rng: np.random.Generator) -> int:
        """How many of so many draws are its own."""
        offered = int(rng.binomial(count, self.weight))
        return sum(self._earnings.asks(ITSELF, rng) for _ in range(offered))

    def decided(self, t: int, who: int) -> None:
        """Round t was decided by it, or by the others."""
        self._earnings.decided(t, who)

    def learn(
        self, t: int, arm: int, x: FloatArray, y: float, binary: bool, *, others: float, count: int
    ) -> None:
        """The reward of round t, of which the mixture's log likelihood was `others`, after `count`
        rewards."""
        score = self.filter.observe(t, arm, x, y, binary)
        self.weigh(self.put_right(score, y, binary), others, count)
        self._earnings.add(t, y)

    def put_right(self, score: float, y: float, binary: bool) -> float:
        """The log likelihood that counts; what came of the prediction is noted."""
        if not binary or math.isnan(score):
            return score
        chance = math.exp(score) if y > 0 else 1 - math.exp(score)
        bins, odds = self._bins, self._bin_odds
        return float(put_right(bins, odds, 2 * chance - 1, 0.0, y, score, 0.0, True, _MEMORY))

    def weigh(self, score: float, others: float, count: int) -> None:
        """Bayes' rule with a little given back, no more than 1 / count; who cannot say (NaN) is not
        weighed."""
        if math.isnan(score):
            return
        odds = min(max(self._odds + score - others, -_MOST), _MOST)
        share = min(self._alpha, 1 / max(count, 1))
        weight = (1 - share) / (1 + math.exp(-odds)) + share * self._prior
        against = (1 - share) / (1 + math.exp(odds)) + share * (1 - self._prior)
        self._odds = math.log(weight / against)

    def fresh(self, units: float | None) -> GatedModel:
        """The same before it has seen anything, to live through the past again; what was earned
        stays."""
        made = GatedModel(self.filter.fresh(units), self._prior, self._alpha)
        made._earnings = self._earnings
        return made

    def snapshot(self) -> Snapshot:
        """All that it learnt, its odds, and what was earned."""
        return {
            "filter": self.filter.snapshot(),
            "odds": self._odds,
            "earnings": self._earnings.snapshot(),
            "bins": self._bins.copy(),
            "bin_odds": self._bin_odds.copy(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        odds = float(snapshot["odds"])
        if not math.isfinite(odds):
            raise ValueError("the odds of a hypothesis on trial must be finite")
        bins, bin_odds = np.array(snapshot["bins"], float), np.array(snapshot["bin_odds"], float)
        if bins.shape != self._bins.shape or bin_odds.shape != self._bin_odds.shape:
            raise ValueError("bins of a hypothesis on trial that do not fit")
        self._bins, self._bin_odds = bins, bin_odds
        self.filter.restore(snapshot["filter"])
        self._earnings.restore(snapshot["earnings"])
        self._odds = odds
