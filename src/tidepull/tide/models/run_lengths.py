"""Bayesian online change-point detection (Adams and MacKay, 2007), as a compiled kernel: the posterior
over run lengths.

A *run* is a hypothesis about the round of the latest change: it has learnt later rewards alone. In
every round a change has the probability g (the hazard), so that with rewards y

    w_r  <-  (1 - g)^n w_r p_r(y)             runs that go on, n rounds after the last one that was taken in
    w_t  <-  (1 - (1 - g)^n) p_0(y)           the run that begins now, with the prior
    P(g) <-  P(g) sum_r w_r                   a few hazards compete; they share the runs and differ in weights

and all w of one hazard are divided by their sum. That is exact, with two exceptions: the number
of runs is limited, and the lightest is removed; and all runs share the noise (a, b), whose errors are
weighed by the runs' weights.

A *series* has its own runs: there is one for all arms together, or one for each arm. A reward that
comes late, after that of a later round of its series, belongs to runs that had begun by its round.
Those learn it and are weighed by it; the weights of runs that began later do not change.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidepull.tide.models.algebra import compiled, inlined
from tidepull.tide.models.boxed import PythonBox
from tidepull.tide.models.filters import learn, likelihood, predict_block
from tidepull.types import FloatArray, IntArray

NONE = -1


class RunLengths(NamedTuple):
    """All arrays of the runs: series c, hazard g, run r, block k (an arm, or all that share
    weights)."""

    latest: IntArray  # (c) the latest round taken in, or -1
    start: IntArray  # (c, r) the round in which a run began, or -1 where the place is free
    parent: IntArray  # (c, r) ... and in which the heaviest run began that it ended
    weight: FloatArray  # (c, g, r)
    hazards: FloatArray  # (g)
    belief: FloatArray  # (g) P(g)
    n: FloatArray  # (c, r, k) rewards
    s: FloatArray  # (c, r, k) ... and their sum
    before_n: FloatArray  # (c, r, k) the same of the run that it ended
    before_s: FloatArray
    vec: FloatArray  # (c, r, k, d) mu and P of a block, P = Lam^-1, where there is a context
    mat: FloatArray  # (c, r, k, d * d)
    noise: FloatArray  # (a, b, a0, b0, what is kept of them in a round, lam0)
    lead: IntArray  # (c) the heaviest run, or -1
    # (c) how likely it is that something changed about when it began, or since
    recent_chance: FloatArray
    before_chance: FloatArray  # (c, r) the same when a run began
    # (c, i) rounds of the latest recorded changes, oldest first
    change_round: IntArray
    chance: FloatArray  # (c, i) ... how likely each was when the next one was recorded
    change_n: FloatArray  # (c, i, k) ... and the rewards between it and the one before it
    change_s: FloatArray
    n_changes: IntArray  # (c) how many there are


@inlined
def _weight_of(runs: RunLengths, c: int, r: int) -> float:
    total = 0.0
    for g in range(runs.hazards.shape[0]):
        total += runs.belief[g] * runs.weight[c, g, r]
    return total


@inlined
def _free_place(runs: RunLengths, c: int) -> int:
    """Index of a free place; the lightest run is removed if there is none."""
    least, found = np.inf, 0
    for r in range(runs.start.shape[1]):
        if runs.start[c, r] == NONE:
            return r
        weight = _weight_of(runs, c, r)
        if weight < least:
            least, found = weight, r
    for g in range(runs.hazards.shape[0]):
        runs.weight[c, g, found] = 0.0
        total = 0.0
        for r in range(runs.start.shape[1]):
            total += runs.weight[c, g, r]
        for r in range(runs.start.shape[1]):
            runs.weight[c, g, r] /= max(total, 1e-300)
    return found


@inlined
def _begin(runs: RunLengths, c: int, t: int, moves: int) -> None:
    """Add a run that begins in round t, for all changes since the latest round of the series."""
    previous = runs.lead[c]
    new = _free_place(runs, c)
    runs.start[c, new] = t
    runs.parent[c, new] = runs.start[c, previous]
    runs.before_chance[c, new] = runs.recent_chance[c]
    for k in range(runs.n.shape[2]):
        runs.before_n[c, new, k], runs.before_s[c, new, k] = (
            runs.n[c, previous, k],
            runs.s[c, previous, k],
        )
        runs.n[c, new, k], runs.s[c, new, k] = 0.0, 0.0
    for g in range(runs.hazards.shape[0]):
        stays = math.pow(1 - runs.hazards[g], float(moves))
        for r in range(runs.start.shape[1]):
            runs.weight[c, g, r] *= stays
        runs.weight[c, g, new] = 1 - stays


@inlined
def _weigh(runs: RunLengths, c: int, t: int, scores: FloatArray, top: float) -> float:
    """Bayes' rule for runs and hazards from the runs' log likelihoods, `top` the largest of
    them."""
    total = 0.0
    for g in range(runs.hazards.shape[0]):
        active, average = 0.0, 0.0
        for r in range(runs.start.shape[1]):
            if runs.start[c, r] != NONE and runs.start[c, r] <= t:
                active += runs.weight[c, g, r]
                average += runs.weight[c, g, r] * scores[r]
        average = max(average, 1e-300) / max(active, 1e-300)
        for r in range(runs.start.shape[1]):
            if runs.start[c, r] != NONE and runs.start[c, r] <= t:
                runs.weight[c, g, r] *= scores[r] / average
        runs.belief[g] *= average
        total += runs.belief[g]
    for g in range(runs.hazards.shape[0]):
        runs.belief[g] = max(runs.belief[g] / total, 1e-100)
    return top + math.log(total)


@inlined
def observe_one(
    runs: RunLengths,
    t: int,
    c: int,
    k: int,
    x: FloatArray,
    y: float,
    binary: bool,
    scores: FloatArray,
    errors: FloatArray,
    v: FloatArray,
) -> float:
    """Log likelihood of the reward of round t before the runs of series c learn it; NaN when none of
    them had begun."""
    d = x.shape[0]
    if runs.latest[c] == NONE:
        runs.start[c, 0], runs.parent[c, 0], runs.latest[c], runs.lead[c] = t, NONE, t, 0
        for g in range(runs.hazards.shape[0]):
            runs.weight[c, g, 0] = 1.0
    elif t > runs.latest[c]:
        _begin(runs, c, t, t - runs.latest[c])
        runs.latest[c] = t
    top, active = 0.0 if binary else -np.inf, False
    for r in range(runs.start.shape[1]):
        if runs.start[c, r] != NONE and runs.start[c, r] <= t:
            mean, leverage = predict_block(runs, c, r, k, x, v)
            scores[r] = likelihood(runs, c, r, k, y, binary, False, mean, leverage, d)
            errors[r] = (y - mean) * (y - mean) / (1 + leverage)
            top, active = top if binary else max(top, scores[r]), True
            learn(runs, c, r, k, y, mean, leverage, v)
    if not active:
        return math.nan
    if not binary:
        for r in range(runs.start.shape[1]):
            if runs.start[c, r] != NONE and runs.start[c, r] <= t:
                scores[r] = math.exp(scores[r] - top)
    score: float = _weigh(runs, c, t, scores, top)
    _update_noise_and_lead(runs, c, t, errors, scores)
    return score


@inlined
def _update_noise_and_lead(
    runs: RunLengths, c: int, t: int, errors: FloatArray, weights: FloatArray
) -> None:
    """Update the noise, and the heaviest run."""
    error, total, best, lead = 0.0, 0.0, -1.0, 0
    for r in range(runs.start.shape[1]):
        if runs.start[c, r] != NONE:
            weight = _weight_of(runs, c, r)
            weights[r] = weight
            if weight > best:
                best, lead = weight, r
            if runs.start[c, r] <= t:
                total += weight
                error += weight * errors[r]
    a, b, a0, b0, kept = runs.noise[0], runs.noise[1], runs.noise[2], runs.noise[3], runs.noise[4]
    runs.noise[0] = kept * a + (1 - kept) * a0 + 0.5
    runs.noise[1] = kept * b + (1 - kept) * b0 + 0.5 * error / max(total, 1e-300)
    within = nearness(t - runs.start[c, lead])
    runs.recent_chance[c] = 0.0
    for r in range(runs.start.shape[1]):
        if runs.start[c, r] != NONE and runs.start[c, r] >= runs.start[c, lead] - within:
            runs.recent_chance[c] += weights[r]
    if lead != runs.lead[c]:
        runs.lead[c] = lead
        _record_change(runs, c, lead)


@inlined
def _record_change(runs: RunLengths, c: int, r: int) -> None:
    """Record the change at which run r began as the latest, after those of its parent."""
    start, parent, most = runs.start[c, r], runs.parent[c, r], runs.change_round.shape[1]
    i = runs.n_changes[c]
    while i > 0 and runs.change_round[c, i - 1] > parent + nearness(start - parent):
        i -= 1
    if parent == NONE:
        runs.n_changes[c] = 0
        return
    if i > 0:
        runs.chance[c, i - 1] = runs.before_chance[c, r]
    if i == most:
        for j in range(most - 1):
            runs.change_round[c, j], runs.chance[c, j] = (
                runs.change_round[c, j + 1],
                runs.chance[c, j + 1],
            )
            for k in range(runs.n.shape[2]):
                runs.change_n[c, j, k] = runs.change_n[c, j + 1, k]
                runs.change_s[c, j, k] = runs.change_s[c, j + 1, k]
        i -= 1
    runs.change_round[c, i], runs.chance[c, i] = start, 0.0
    for k in range(runs.n.shape[2]):
        runs.change_n[c, i, k], runs.change_s[c, i, k] = (
            runs.before_n[c, r, k],
            runs.before_s[c, r, k],
        )
    runs.n_changes[c] = i + 1


@inlined
def nearness(length: int) -> int:
    """Largest distance of two estimates of one change: a twentieth of the rounds since, at least
    10."""
    return max(10, length // 20)


@compiled
def observe(
    runs: RunLengths, t: int, c: int, k: int, x: FloatArray, y: float, binary: bool
) -> float:
    """One finished round."""
    most = runs.start.shape[1]
    scores, errors, v = np.empty(most), np.empty(most), np.empty(x.shape[0])
    score: float = observe_one(runs, t, c, k, x, y, binary, scores, errors, v)
    return score


@compiled
def observe_boxed(
    box: PythonBox, t: int, c: int, k: int, x: FloatArray, y: float, binary: bool
) -> float:
    """`observe` of boxed runs."""
    score: float = observe(box.arrays, t, c, k, x, y, binary)
    return score


@compiled
def replay(
    runs: RunLengths,
    t: IntArray,
    series: IntArray,
    blocks: IntArray,
    x: FloatArray,
    y: FloatArray,
    binary: bool,
    likelihoods: FloatArray,
) -> None:
    """Many finished rounds, one after the other; their log likelihoods."""
    most = runs.start.shape[1]
    scores, errors, v = np.empty(most), np.empty(most), np.empty(x.shape[1])
    for i in range(len(t)):
        likelihoods[i] = observe_one(
            runs, t[i], series[i], blocks[i], x[i], y[i], binary, scores, errors, v
        )  # fmt: skip


@compiled
def pick(runs: RunLengths, t: int, curiosity: float, uniform: FloatArray, picked: IntArray) -> None:
    """A run for every series in round t by its weight, all under one hazard; -1 for one that begins
    now."""
    g, left = 0, uniform[0]
    while g < runs.hazards.shape[0] - 1 and left >= runs.belief[g]:
        left -= runs.belief[g]
        g += 1
    for c in range(runs.latest.shape[0]):
        picked[c] = NONE
        if runs.latest[c] == NONE:
            continue
        rest = float(max(t - runs.latest[c], 0))
        stays = 1 - curiosity * (1 - math.pow(1 - runs.hazards[g], rest))
        left = uniform[1 + c]
        if left >= stays:
            continue
        left /= stays
        for r in range(runs.start.shape[1]):
            if runs.weight[c, g, r] > 0.0:
                picked[c] = r
                left -= runs.weight[c, g, r]
                if left < 0.0:
                    break
