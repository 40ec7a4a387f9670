"""Particle filter of returning regimes, as a compiled kernel: a particle is one sequence of regimes.

A particle has the rewards of its regimes (a conjugate block for each arm), and counts of transitions
and durations along its own sequence. From one round to the next, in regime i, it

    leaves i with the chance       (1 + times left) / (stay0 + rounds in i)
    and then goes to a new one     newness / (newness + visits of all)
    or else to j != i              ~ moves from i to j + visits of j / visits of all

Every transition is a candidate, weighed by its likelihood of the reward. As many candidates are kept
as there are particles (Fearnhead and Clifford 2003): those heavier than a threshold c with
their weight, of the others a systematic sample, each with the weight c, so that the sum of weights
above any set is right on average and no sequence is kept twice. The only random input is one uniform
number for each round, made from the seed and the round.

A reward that comes late, after that of a later round, is learnt by the particles whose present regime
had begun by its round; the weights of the others do not change.
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
STAY, NEWNESS, BY_DENSITY = range(3)
"""Places in `settings`: stay0, newness, and whether chances of 0 and 1 come from densities."""


class Particles(NamedTuple):
    """All arrays of the particles: particle p, regime i, block k (an arm, or all that share
    weights)."""

    latest: IntArray  # (1) the latest round taken in, or -1
    weight: FloatArray  # (p) 0 where the place is free
    now: IntArray  # (p) the present regime
    since: IntArray  # (p) ... and the round in which it began
    known: IntArray  # (p) how many regimes are known
    rounds: FloatArray  # (p, i) rounds in a regime
    visits: FloatArray  # (p, i) how often it was entered
    moves: FloatArray  # (p, i, j) how often j followed i
    n: FloatArray  # (p, i, k) rewards
    s: FloatArray  # (p, i, k) ... and their sum
    vec: FloatArray  # (p, i, k, d) mu and P of a block, P = Lam^-1, where there is a context
    mat: FloatArray  # (p, i, k, d * d)
    noise: FloatArray  # (a, b, a0, b0, what is kept of them in a round, lam0)
    settings: FloatArray  # see `STAY` and its neighbours
    seed: IntArray  # (1)


@inlined
def _uniform(seed: int, t: int) -> float:
    """A number in [0, 1) from the seed and the round (splitmix64)."""
    z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(t + 1)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    number: float = (z >> np.uint64(11)) / 9007199254740992.0
    return number


@inlined
def _leaves(ps: Particles, p: int, moves: int) -> float:
    """Probability to have left the present regime after `moves` rounds."""
    i = ps.now[p]
    left = 0.0
    for j in range(ps.known[p]):
        left += ps.moves[p, i, j]
    stays = 1 - (1 + left) / (ps.settings[STAY] + ps.rounds[p, i])
    chance: float = 1 - math.pow(stays, float(moves))
    return chance


@inlined
def transition_chances(ps: Particles, p: int, moves: int, chances: FloatArray) -> None:
    """Transition probabilities to every regime (the last one: a new one) after `moves` rounds."""
    i, count, most = ps.now[p], ps.known[p], ps.rounds.shape[1]
    leaves = _leaves(ps, p, moves)
    visits, known = 0.0, 0.0
    for j in range(count):
        visits += ps.visits[p, j]
    for j in range(count):
        chances[j] = 0.0 if j == i else ps.moves[p, i, j] + ps.visits[p, j] / visits
        known += chances[j]
    new = ps.settings[NEWNESS] / (ps.settings[NEWNESS] + visits) if count < most else 0.0
    if count == 1:
        new = 1.0
    for j in range(count):
        chances[j] *= leaves * (1 - new) / max(known, 1e-300)
    for j in range(count, most + 1):
        chances[j] = 0.0
    chances[i] = 1 - leaves
    if count < most:
        chances[count] = leaves * new


@inlined
def _score(
    ps: Particles, p: int, i: int, k: int, x: FloatArray, y: float, binary: bool, v: FloatArray
) -> tuple[float, float]:
    """Likelihood of a reward in a regime (its logarithm unless rewards are 0 or 1), and its squared
    error in units of its own spread."""
    mean, leverage = predict_block(ps, p, i, k, x, v)
    by_density = ps.settings[BY_DENSITY] > 0.0
    score = likelihood(ps, p, i, k, y, binary, by_density, mean, leverage, x.shape[0])
    return score, (y - mean) * (y - mean) / (1 + leverage)


@inlined
def _learn(ps: Particles, p: int, k: int, x: FloatArray, y: float, v: FloatArray) -> None:
    mean, leverage = predict_block(ps, p, ps.now[p], k, x, v)
    learn(ps, p, ps.now[p], k, y, mean, leverage, v)


@inlined
def _copy(ps: Particles, p: int, q: int) -> None:
    """Copy particle p to q."""
    ps.now[q], ps.since[q], ps.known[q] = ps.now[p], ps.since[p], ps.known[p]
    d = ps.vec.shape[3]
    for i in range(ps.known[p]):
        ps.rounds[q, i], ps.visits[q, i] = ps.rounds[p, i], ps.visits[p, i]
        for j in range(ps.known[p]):
            ps.moves[q, i, j] = ps.moves[p, i, j]
        for k in range(ps.n.shape[2]):
            ps.n[q, i, k], ps.s[q, i, k] = ps.n[p, i, k], ps.s[p, i, k]
            if d > 1 and ps.n[p, i, k] > 0.0:
                mine, other = ps.mat[q, i, k], ps.mat[p, i, k]
                for j in range(d):
                    ps.vec[q, i, k, j] = ps.vec[p, i, k, j]
                for j in range(d * d):
                    mine[j] = other[j]


@inlined
def _move(ps: Particles, p: int, to: int, t: int, moves: int) -> None:
    """Move particle p to regime `to` from round t on."""
    i = ps.now[p]
    if to != i:
        if to == ps.known[p]:
            for j in range(to + 1):
                ps.moves[p, to, j], ps.moves[p, j, to] = 0.0, 0.0
            ps.rounds[p, to], ps.visits[p, to] = 0.0, 0.0
            for k in range(ps.n.shape[2]):
                ps.n[p, to, k], ps.s[p, to, k] = 0.0, 0.0
            ps.known[p] += 1
        ps.moves[p, i, to] += 1.0
        ps.visits[p, to] += 1.0
        ps.now[p], ps.since[p] = to, t
    ps.rounds[p, to] += moves


@inlined
def _threshold(weights: FloatArray, most: int) -> float:
    """c with sum_i min(1, w_i / c) = most; 0 when there are no more candidates than that."""
    c, kept = 0.0, -1
    total, count = 0.0, 0
    for i in range(weights.shape[0]):
        total += weights[i]
        count += weights[i] > 0.0
    if count <= most:
        return 0.0
    c = total / most
    while True:
        heavy, light = 0, 0.0
        for i in range(weights.shape[0]):
            if weights[i] >= c:
                heavy += 1
            else:
                light += weights[i]
        if heavy <= kept or heavy >= most:  # by rounding, where weights equal the threshold
            return c
        kept, c = heavy, light / (most - heavy)


@inlined
def _resample(weights: FloatArray, most: int, u: float, chosen: IntArray) -> int:
    """Resample the candidates: indices into `chosen`, unbiased weights, and their number."""
    c = _threshold(weights, most)
    count, place = 0, u * c
    for i in range(weights.shape[0]):
        if weights[i] <= 0.0:
            continue
        if c > 0.0 and weights[i] < c:
            place -= weights[i]
            if place >= 0.0:
                continue
            place += c
            weights[i] = c
        if count < most:
            chosen[count] = i
            count += 1
    return count


@inlined
def _weigh(
    ps: Particles,
    moves: int,
    k: int,
    x: FloatArray,
    y: float,
    binary: bool,
    weights: FloatArray,
    scores: FloatArray,
    errors: FloatArray,
    chances: FloatArray,
    v: FloatArray,
) -> tuple[float, float]:
    """The weight of every candidate; log likelihood of the reward, and its squared error on
    average."""
    n_proposals = chances.shape[0]
    top = 0.0 if binary else -np.inf
    for p in range(ps.weight.shape[0]):
        for i in range(n_proposals):
            weights[p * n_proposals + i] = 0.0
        if ps.weight[p] <= 0.0:
            continue
        transition_chances(ps, p, moves, chances)
        for i in range(n_proposals):
            if chances[i] > 0.0:
                c = p * n_proposals + i
                weights[c] = ps.weight[p] * chances[i]
                scores[c], errors[c] = _score(
                    ps, p, i if i < ps.known[p] else NONE, k, x, y, binary, v
                )
                top = top if binary else max(top, scores[c])
    total, error = 0.0, 0.0
    for c in range(weights.shape[0]):
        if weights[c] > 0.0:
            weights[c] *= scores[c] if binary else math.exp(scores[c] - top)
            total += weights[c]
            error += weights[c] * errors[c]
    return top + math.log(total), error / total


@inlined
def observe_one(
    ps: Particles,
    t: int,
    k: int,
    x: FloatArray,
    y: float,
    binary: bool,
    weights: FloatArray,
    scores: FloatArray,
    errors: FloatArray,
    chances: FloatArray,
    chosen: IntArray,
    n_offspring: IntArray,
    v: FloatArray,
) -> float:
    """Log likelihood of the reward of round t before the particles move and learn it; NaN if no
    present regime had begun by then."""
    most, regimes = ps.weight.shape[0], ps.rounds.shape[1]
    n_proposals = regimes + 1
    if ps.latest[0] == NONE:
        ps.latest[0], ps.weight[0], ps.now[0], ps.since[0], ps.known[0] = t, 1.0, 0, t, 1
        ps.rounds[0, 0], ps.visits[0, 0], ps.moves[0, 0, 0] = 0.0, 1.0, 0.0
        for b in range(ps.n.shape[2]):
            ps.n[0, 0, b], ps.s[0, 0, b] = 0.0, 0.0
    moves = max(t - ps.latest[0], 0)
    a, b = ps.noise[0], ps.noise[1]
    score: float
    error: float
    if moves == 0:
        score, error = _learn_late(ps, t, k, x, y, binary, weights, errors, v)
        if math.isnan(score):
            return score
    else:
        ps.latest[0] = t
        score, error = _weigh(ps, moves, k, x, y, binary, weights, scores, errors, chances, v)
        count = _resample(weights, most, _uniform(ps.seed[0], t), chosen)
        _replace_particles(ps, t, moves, weights, n_proposals, chosen, count, n_offspring)
        for p in range(most):
            if ps.weight[p] > 0.0:
                _learn(ps, p, k, x, y, v)
    kept = ps.noise[4]
    ps.noise[0] = kept * a + (1 - kept) * ps.noise[2] + 0.5
    ps.noise[1] = kept * b + (1 - kept) * ps.noise[3] + 0.5 * error
    return score


@inlined
def _learn_late(
    ps: Particles,
    t: int,
    k: int,
    x: FloatArray,
    y: float,
    binary: bool,
    weights: FloatArray,
    errors: FloatArray,
    v: FloatArray,
) -> tuple[float, float]:
    """A reward of an earlier round (or the first): particles keep their regime; those whose regime
    began after round t are not updated."""
    top, active = 0.0 if binary else -np.inf, 0.0
    for p in range(ps.weight.shape[0]):
        if ps.weight[p] > 0.0 and ps.since[p] <= t:
            weights[p], errors[p] = _score(ps, p, ps.now[p], k, x, y, binary, v)
            top = top if binary else max(top, weights[p])
            active += ps.weight[p]
    if active == 0.0:
        return math.nan, 0.0
    total, error = 0.0, 0.0
    for p in range(ps.weight.shape[0]):
        if ps.weight[p] > 0.0 and ps.since[p] <= t:
            weights[p] = weights[p] if binary else math.exp(weights[p] - top)
            total += ps.weight[p] * weights[p]
            error += ps.weight[p] * weights[p] * errors[p]
    for p in range(ps.weight.shape[0]):
        if ps.weight[p] > 0.0 and ps.since[p] <= t:
            ps.weight[p] *= weights[p] * active / total
            _learn(ps, p, k, x, y, v)
    return top + math.log(total / active), error / total


@inlined
def _replace_particles(
    ps: Particles,
    t: int,
    moves: int,
    weights: FloatArray,
    n_proposals: int,
    chosen: IntArray,
    count: int,
    n_offspring: IntArray,
) -> None:
    """Replace the particles by the chosen candidates: the last offspring of a particle takes its
    place, others take free places."""
    most = ps.weight.shape[0]
    for p in range(most):
        n_offspring[p] = 0
    total = 0.0
    for c in range(count):
        n_offspring[chosen[c] // n_proposals] += 1
        total += weights[chosen[c]]
    for p in range(most):
        if n_offspring[p] == 0:
            ps.weight[p] = 0.0
    free = 0
    for c in range(count):
        p = chosen[c] // n_proposals
        n_offspring[p] -= 1
        if n_offspring[p] > 0:  # the last offspring takes its parent's place
            while ps.weight[free] > 0.0:
                free += 1
            _copy(ps, p, free)
            q = free
        else:
            q = p
        ps.weight[q] = weights[chosen[c]] / total
        _move(ps, q, chosen[c] % n_proposals, t, moves)


@compiled
def observe(ps: Particles, t: int, k: int, x: FloatArray, y: float, binary: bool) -> float:
    """One finished round."""
    most, n_proposals = ps.weight.shape[0], ps.rounds.shape[1] + 1
    weights, scores, errors = (
        np.empty(most * n_proposals),
        np.empty(most * n_proposals),
        np.empty(most * n_proposals),
    )
    chances = np.empty(n_proposals)
    chosen, n_offspring, v = (
        np.empty(most * n_proposals, np.int64),
        np.empty(most, np.int64),
        np.empty(x.shape[0]),
    )
    score: float = observe_one(
        ps, t, k, x, y, binary, weights, scores, errors, chances, chosen, n_offspring, v
    )
    return score


@compiled
def observe_boxed(box: PythonBox, t: int, k: int, x: FloatArray, y: float, binary: bool) -> float:
    """`observe` of boxed particles."""
    score: float = observe(box.arrays, t, k, x, y, binary)
    return score


@compiled
def replay(
    ps: Particles,
    t: IntArray,
    blocks: IntArray,
    x: FloatArray,
    y: FloatArray,
    binary: bool,
    likelihoods: FloatArray,
) -> None:
    """Many finished rounds, one after the other; their log likelihoods."""
    most, n_proposals = ps.weight.shape[0], ps.rounds.shape[1] + 1
    weights, scores, errors = (
        np.empty(most * n_proposals),
        np.empty(most * n_proposals),
        np.empty(most * n_proposals),
    )
    chances = np.empty(n_proposals)
    chosen, n_offspring, v = (
        np.empty(most * n_proposals, np.int64),
        np.empty(most, np.int64),
        np.empty(x.shape[1]),
    )
    for i in range(len(t)):
        likelihoods[i] = observe_one(
            ps, t[i], blocks[i], x[i], y[i], binary, weights, scores, errors, chances, chosen, n_offspring, v
        )  # fmt: skip


@compiled
def pick(ps: Particles, t: int, u: float) -> tuple[int, int]:
    """A particle by its weight, and the regime of round t in it; -1 for a new regime."""
    chances = np.empty(ps.rounds.shape[1] + 1)
    particle = 0
    for p in range(ps.weight.shape[0]):
        if ps.weight[p] > 0.0:
            particle = p
            if u < ps.weight[p]:
                u /= ps.weight[p]
                break
            u -= ps.weight[p]
    if ps.latest[0] == NONE:
        return 0, NONE
    transition_chances(ps, particle, max(t - ps.latest[0], 0), chances)
    for i in range(ps.known[particle]):
        if u < chances[i]:
            return particle, i
        u -= chances[i]
    return particle, NONE
