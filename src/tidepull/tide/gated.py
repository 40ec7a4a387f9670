"""A gated model: it decides as often as its predictions deserve, and only while its own decisions
earn as much as those of the mixture.

Where arms have weights of their own on an observation, a hidden state may predict well and choose
badly: it foresees that what *others* chose well will pay, or that it will itself go on failing. So
the model stays outside the mixture, which does not depend on it, and is weighed against the mixture
as a whole,

    v ~ w p(r), 1 - v ~ (1 - w) p_mixture(r);   w <- (1 - alpha) v + alpha prior

where its probabilities of rewards of 0 and 1 are recalibrated as those of all models are
(`tide/models/calibration.py`). A round is offered to the model with probability w. The model decides
if a draw of the value of its decisions beats a draw of the value of the mixture's.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.random import Streams
from tidepull.state import Stateful
from tidepull.tide.models.calibration import BINS, KEPT, recalibrate
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Filter, Layout
from tidepull.tide.models.noise import NoisePrior
from tidepull.types import FloatArray

MIXTURE, GATED = 0, 1
_MOST = 60.0
"""Largest log odds before the fixed share."""
_MEMORY = NoisePrior().memory
_EARNINGS_MEMORY = 0.998
_LONGEST_WAIT = 8192
"""Rounds for which the party that decided is kept."""


class Earnings(Stateful):
    """Value of the decisions of each of `n` parties: the posterior of the mean standardised reward,
    from which Thompson sampling picks a party. Old rewards are discounted, because models learn."""

    state = ("count", "sum", "squares", "rounds", "decisions")

    def __init__(self, n: int) -> None:
        self._count, self._sum = np.zeros(n), np.zeros(n)
        self._squares, self._rounds = 1.0, 1.0
        self._decisions: dict[str, int] = {}

    def asks(self, party: int, rng: np.random.Generator) -> bool:
        """Whether a party is best in a draw of the values."""
        return int(np.argmax(self._draws(rng))) == party

    def chance(self, party: int, other: int) -> float:
        """Probability that one party's value is larger than another's."""
        means = self._sum / (self._count + 1)
        spread = self._squares / self._rounds / (self._count + 1)
        gap = (means[party] - means[other]) / math.sqrt(2 * (spread[party] + spread[other]))
        return 0.5 * math.erfc(-float(gap))

    def _draws(self, rng: np.random.Generator) -> FloatArray:
        spread = np.sqrt(self._squares / self._rounds / (self._count + 1))
        return np.asarray(self._sum / (self._count + 1) + spread * rng.standard_normal(len(spread)))

    def decided(self, t: int, party: int) -> None:
        """Round t was decided by a party."""
        self._decisions[str(t)] = party
        oldest = next(iter(self._decisions))
        if int(oldest) <= t - _LONGEST_WAIT:
            del self._decisions[oldest]

    def add(self, t: int, y: float) -> None:
        """Update the value of the party that decided round t."""
        party = self._decisions.pop(str(t), None)
        if party is None:
            return
        y = min(max(y, -3.0), 3.0)
        error = y - float(self._sum[party]) / (float(self._count[party]) + 1)
        for total in (self._count, self._sum):
            total *= _EARNINGS_MEMORY
        self._count[party] += 1.0
        self._sum[party] += y
        self._squares = _EARNINGS_MEMORY * self._squares + error**2
        self._rounds = _EARNINGS_MEMORY * self._rounds + 1.0


class GatedModel(Stateful):
    """One filter, its log odds against the mixture, and the values of both."""

    state = ("filter", "odds", "earnings", "bins", "bin_odds")

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
        return self.weight * self._earnings.chance(GATED, MIXTURE)

    def decides(self, rng: np.random.Generator) -> bool:
        """Draw whether the model decides a round."""
        return bool(rng.random() < self.weight) and self._earnings.asks(GATED, rng)

    def votes(self, count: int, rng: np.random.Generator) -> int:
        """Number of `count` draws that the model decides."""
        offered = int(rng.binomial(count, self.weight))
        return sum(self._earnings.asks(GATED, rng) for _ in range(offered))

    def decided(self, t: int, party: int) -> None:
        """Record that the model or the mixture decided round t."""
        self._earnings.decided(t, party)

    def learn(
        self, t: int, arm: int, x: FloatArray, y: float, binary: bool, *, others: float, count: int
    ) -> None:
        """Score and learn the reward of round t. `others` is the mixture's log likelihood of it,
        `count` the number of earlier rewards."""
        score = self.filter.observe(t, arm, x, y, binary)
        self.weigh(self.recalibrate(score, y, binary), others, count)
        self._earnings.add(t, y)

    def recalibrate(self, score: float, y: float, binary: bool) -> float:
        """Recalibrated log likelihood; the calibration counts are updated."""
        if not binary or math.isnan(score):
            return score
        chance = math.exp(score) if y > 0 else 1 - math.exp(score)
        bins, odds = self._bins, self._bin_odds
        return float(recalibrate(bins, odds, 2 * chance - 1, 0.0, y, score, 0.0, True, _MEMORY))

    def weigh(self, score: float, others: float, count: int) -> None:
        """Bayes' rule with fixed share, at most 1 / count. A forgotten round (NaN) does not change
        the weight."""
        if math.isnan(score):
            return
        odds = min(max(self._odds + score - others, -_MOST), _MOST)
        share = min(self._alpha, 1 / max(count, 1))
        weight = (1 - share) / (1 + math.exp(-odds)) + share * self._prior
        against = (1 - share) / (1 + math.exp(odds)) + share * (1 - self._prior)
        self._odds = math.log(weight / against)

    def reset_copy(self, units: float | None) -> GatedModel:
        """An untrained copy, to replay the past; the values of decisions are kept."""
        made = GatedModel(self.filter.reset_copy(units), self._prior, self._alpha)
        made._earnings = self._earnings
        return made


def gated_model(
    layout: Layout, families: list[str], alpha: float, prior: NoisePrior, streams: Streams
) -> GatedModel | None:
    """The gated model of this layout, if there is one; `alpha` is the fixed share."""
    for name in families:
        build, share = FAMILIES[name].gated, FAMILIES[name].prior
        seed = int(streams.generator(name).integers(2**62)) if build else 0
        for filter in build(layout, prior, seed) if build else ():
            return GatedModel(filter, share / (1 + share), alpha)
    return None
