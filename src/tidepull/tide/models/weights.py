"""Weights of the mixture as compiled kernels: Bayes' rule with fixed share (Herbster and Warmuth,
1998), and the share of draws in which each arm is best."""

from __future__ import annotations

import math

import numpy as np

from tidepull._internal.kernels import kernel
from tidepull.policies.exploration import best_shares
from tidepull.tide.models.algebra import compiled, inlined
from tidepull.types import BoolArray, FloatArray, IntArray


@inlined
def _fill_in(log_weights: FloatArray, scores: FloatArray) -> None:
    """Replace NaN entries by the mixture's log likelihood."""
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
def reweigh(log_weights: FloatArray, scores: FloatArray, prior: FloatArray, share: float) -> float:
    """Bayes' rule, then fixed share; returns the mixture's log likelihood of the round. Scores that
    are NaN are replaced by it.

    v_m ~ w_m p_m(r);  w_m <- (1 - alpha) v_m + alpha prior_m
    """
    _fill_in(log_weights, scores)
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


def _best_in_numpy(
    scores: FloatArray, available: BoolArray, best: IntArray, shares: FloatArray
) -> None:
    scores = np.where(available, scores, -np.inf)
    best[:], shares[:] = np.argmax(scores, axis=1), best_shares(scores, None)


@kernel(until_compiled=_best_in_numpy, nogil=True)
def best_arms(scores: FloatArray, available: BoolArray, best: IntArray, shares: FloatArray) -> None:
    """The first best arm of every draw (row), and how often each arm is best; arms that are equally
    good share a draw."""
    draws, n_arms = scores.shape
    for k in range(n_arms):
        shares[k] = 0.0
    for i in range(draws):
        top, ties = -np.inf, 0
        best[i] = 0
        for k in range(n_arms):
            score = scores[i, k] if available[k] else -np.inf
            if score > top:
                top, ties, best[i] = score, 1, k
            elif score == top:
                ties += 1
        for k in range(n_arms):
            score = scores[i, k] if available[k] else -np.inf
            if score == top:
                shares[k] += 1 / ties
    for k in range(n_arms):
        shares[k] /= draws
