"""Weights of all models: Bayes' rule with fixed share (Herbster and Warmuth, 1998), and draws by weight.

v_m ~ w_m p_m(r);   w_m <- (1 - alpha) v_m + alpha prior_m
"""

from __future__ import annotations

import copy

import numpy as np

from tidepull.state import Stateful
from tidepull.tide.models import weights
from tidepull.types import FloatArray, IntArray, Snapshot


class Mixture(Stateful):
    """Weight and prior of every slot. `evidence` is the log evidence of all present models, as if
    each had been there from the start."""

    state = ("prior", "log_weights", "evidence", "reward_gain")

    def __init__(
        self, prior: FloatArray, family_of: IntArray, families: tuple[str, ...], share: float
    ) -> None:
        self.families = families
        self.prior = prior
        self.log_weights = _log(prior)
        self.evidence = 0.0
        self.reward_gain = 0.0  # log evidence from rewards, without that of candidates
        self._family_of = family_of
        self._share = share

    def reweigh(self, scores: FloatArray, count: int = 0) -> float:
        """Update the weights with the models' log likelihoods of a reward, after `count` others;
        the mixture's log likelihood of it. NaN entries are replaced by the mixture's. The share is
        at most 1 / count, so that its cost decreases, and that of a change of model grows like log
        count."""
        share = 1.0 / count if self._share * count > 1.0 else self._share
        gain = float(weights.reweigh(self.log_weights, scores, self.prior, share))
        self.evidence += gain
        self.reward_gain += gain
        return gain

    def pause(self, m: int) -> None:
        """Set the prior of slot m to 0 while its model is inactive, so that its weight stays."""
        self.prior[m] = 0.0
        self.prior /= self.prior.sum()

    def resume(self, m: int, prior: float) -> None:
        """Restore the prior of slot m."""
        self.prior *= (1.0 - prior) / self.prior.sum()
        self.prior[m] = prior

    def copy(self) -> Mixture:
        """Copy, for a job that works while this mixture decides."""
        other = copy.copy(self)
        other.prior, other.log_weights = self.prior.copy(), self.log_weights.copy()
        return other

    def replace_with(self, other: Mixture) -> None:
        """Take the weights of another mixture."""
        self.prior, self.log_weights, self.evidence = other.prior, other.log_weights, other.evidence

    def reset(self) -> None:
        """Reset weights to the prior before past predictions are replayed."""
        self.log_weights = _log(self.prior)
        self.evidence = 0.0

    def picks(
        self,
        rng: np.random.Generator,
        explore: float,
        inactive: IntArray,
        count: int,
        more: int = 0,
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Counts of models in `count` draws by weight; with probability `explore` a draw is by
        weight within a family drawn uniformly. Also counts in `more` draws by weight alone. Slots
        in `inactive` are not drawn."""
        explored = int(rng.binomial(count, explore))
        chances = np.exp(self.log_weights)
        if len(inactive):
            chances[inactive] = 0.0
        found = [self._of_a_random_family(rng, inactive, chances) for _ in range(explored)]
        sums = chances.cumsum()
        places = rng.random(count - explored + more) * sums[-1]
        drawn = sums.searchsorted(places, side="right").tolist()
        if drawn and max(drawn) == len(chances):  # the sum itself, by rounding
            last = int(np.flatnonzero(chances)[-1])
            drawn = [min(m, last) for m in drawn]
        found += drawn[: count - explored]
        return _counts(found), _counts(drawn[count - explored :])

    def family_weights(self) -> FloatArray:
        """The weight of each family."""
        weights = np.exp(self.log_weights)
        totals = np.bincount(self._family_of, weights=weights, minlength=len(self.families))
        return totals.astype(float)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        for name, shares in (
            ("prior", np.asarray(snapshot["prior"])),
            ("log_weights", np.exp(snapshot["log_weights"])),
        ):
            if not np.all(shares >= 0) or abs(float(np.sum(shares)) - 1) > 1e-6:
                raise ValueError(f"weights that do not add up to 1 in '{name}'")
        super().restore(snapshot)

    def _of_a_random_family(
        self, rng: np.random.Generator, inactive: IntArray, chances: FloatArray
    ) -> int:
        family = int(rng.integers(len(self.families)))
        log_weights = np.where(self._family_of == family, self.log_weights, -np.inf)
        log_weights[inactive] = -np.inf
        top = log_weights.max()
        if top > -np.inf:
            chances = np.exp(log_weights - top)
        m = int(np.searchsorted(np.cumsum(chances), rng.random() * chances.sum(), side="right"))
        return min(m, int(np.flatnonzero(chances)[-1]))


def _counts(drawn: list[int]) -> dict[int, int]:
    return {m: drawn.count(m) for m in sorted(set(drawn))}


def _log(weights: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(weights)
