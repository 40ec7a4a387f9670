"""The arithmetic of the mixture's weights as compiled kernels: Bayes' rule with fixed share, and
who is asked."""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.models.algebra import compiled
from tidepull.types import FloatArray, IntArray


@compiled
def fill_in(log_weights: FloatArray, scores: FloatArray) -> None:
    """Who said nothing (NaN) is taken to have predicted as the others did together."""
    top, silent = -np.inf, False
    for m in range(scores.shape[0]):
        if math.isnan(scores[m]):
            silent = True
        else:
            top = max(top, log_weights[m] + scores[m])
    if not silent:
        return
    after, before = 0.0, 0.0
    for m in range(scores.shape[0]):
        if not math.isnan(scores[m]) and log_weights[m] > -np.inf:
            after += math.exp(log_weights[m] + scores[m] - top)
            before += math.exp(log_weights[m])
    together = top + math.log(after / before)
    for m in range(scores.shape[0]):
        if math.isnan(scores[m]):
            scores[m] = together


@compiled
def pick(log_weights: FloatArray, resting: IntArray, place: float) -> int:
    """The first model up to which more than a share `place` (from 0 to 1) of the weight of all
    that do not rest lies."""
    weights = np.empty_like(log_weights)
    for m in range(weights.shape[0]):
        weights[m] = math.exp(log_weights[m])
    weights[resting] = 0.0
    total, last = 0.0, 0
    for m in range(weights.shape[0]):
        total += weights[m]
        if weights[m] > 0.0:
            last = m
    below = 0.0
    for m in range(last):
        below += weights[m]
        if below > place * total:
            return m
    return last


@compiled
def reweigh(log_weights: FloatArray, scores: FloatArray, prior: FloatArray, share: float) -> float:
    """Bayes' rule, then fixed share; returns the mixture's log likelihood of the round.

    v_m ~ w_m p_m(r);  w_m <- (1 - alpha) v_m + alpha prior_m
    """
    n = log_weights.shape[0]
    top = -np.inf
    for m in range(n):
        if log_weights[m] + scores[m] > top:
            top = log_weights[m] + scores[m]
    total = 0.0
    for m in range(n):
        total += math.exp(log_weights[m] + scores[m] - top)
    mixture = top + math.log(total)
    for m in range(n):
        v = math.exp(log_weights[m] + scores[m] - mixture)
        w = (1 - share) * v + share * prior[m]
        log_weights[m] = math.log(w) if w > 0 else -np.inf
    return mixture
