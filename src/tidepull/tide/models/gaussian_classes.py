"""Gaussian class model, as a compiled kernel: one arm is right in each round, and the context has a
Gaussian distribution about the centre of its class (linear discriminant analysis with drifting
priors).

The class c of a round is the arm that is right in it. In coordinates in which contexts are white
(mean 0, covariance I), the share rho of their variance is between classes and 1 - rho within them:

    centre m_c ~ N(0, rho I),   x | c ~ N(m_c, (1 - rho) I)
    m_c | n rows of the class with the sum s ~ N(v s, (1 - rho) v I),   v = 1 / ((1 - rho) / rho + n)
    x | c ~ N(v s, (1 - rho)(1 + v) I)

    P(c | x) ~ P(c) p(x | c),   P(c) ~ 1 / (5 K) + sum of gamma^age P(c_i | x_i, r_i) over rounds i

An arm pays with probability `p_right` if it is right, and `p_wrong` if it is not; both are learnt
from counts. A reward gives P(c | x, r): after a success nearly all of it is the chosen arm's, after a
failure it is shared by all others, so that failures of known arms are evidence for arms that were
never tried.

Only successes move centres. Failures would draw all unknown centres to the mean.

Several shares rho and memories gamma compete: each pair has a weight by predictive likelihood, with a
fixed share of 1/100, because class frequencies may change faster or slower.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidepull.tide.models.algebra import compiled, inlined
from tidepull.tide.models.boxed import PythonBox
from tidepull.tide.models.calibration import recalibrate
from tidepull.tide.models.noise import NoisePrior
from tidepull.types import FloatArray, IntArray

_FEW = 0.2
"""Prior rounds, in each memory, in which all classes are equally likely."""
_ALPHA = 0.01
_GROWTH = 1.05
"""Growth of the number of rows after which the whitening is fitted again."""
_FLAT = 1e-3
"""Least variance in any direction, relative to the mean of all."""
_FARTHEST = 1e6
"""Largest number of a context, for a spread of about 1: an outlier blurs all others until the
window is replayed, but everything stays finite."""
_SMALLEST = 1e-12
"""Variance below which all rows are equal but for rounding."""
_MEMORY = NoisePrior().memory
RIGHT, WRONG = range(2)
PAID, NOT = range(2)


class GaussianClasses(NamedTuple):
    """All arrays: class k, number i of a context, share r, memory g."""

    latest: IntArray  # (1) the latest round taken in, or -1
    rows: FloatArray  # (2) their number, and the number at which the whitening is due again
    mean: FloatArray  # (i) of all rows
    scatter: FloatArray  # (i, i) squares about it
    white: FloatArray  # (i, i) lower triangle: z = white (x - origin)
    origin: FloatArray  # (i)
    n_rows: FloatArray  # (k) rows of the class that succeeded
    sums: FloatArray  # (k, i) ... and their sum
    white_sums: FloatArray  # (k, i) sums in white coordinates
    frequency: FloatArray  # (g, k) fading numbers of rounds of a class
    weight: FloatArray  # (r, g)
    bins: FloatArray  # calibration counts (`calibration.recalibrate`)
    odds: FloatArray  # (1)
    payoffs: FloatArray  # (2, 2) of right and wrong arms, how many were paid and not
    between_shares: FloatArray  # (r) rho
    decays: FloatArray  # (g) gamma
    z: FloatArray  # (i) room to work: a row in white coordinates,
    factor: FloatArray  # (i, i) of the covariance,
    # (4, k) of every class how likely it is, its product with z, its length, its share,
    work: FloatArray
    chances: FloatArray  # (r, g, k) and P(c | x)


@inlined
def _fit_whitening(classes: GaussianClasses) -> None:
    """Fit the whitening: the inverse factor of the covariance, shrunk to a multiple of I as if by i
    rows."""
    mean, scatter, white, n = classes.mean, classes.scatter, classes.white, classes.rows[0]
    d = len(mean)
    for i in range(d):
        classes.origin[i] = mean[i]
    if n < 2:  # the covariance is unknown
        return
    total = 0.0
    for i in range(d):
        total += scatter[i, i]
    ball = max(total / (n * d), _SMALLEST)
    L = classes.factor
    for i in range(d):
        for j in range(i + 1):
            value = scatter[i, j] / (n + d)
            if i == j:
                value += (d / (n + d) + _FLAT) * ball
            for k in range(j):
                value -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(max(value, _FLAT * _FLAT * ball)) if i == j else value / L[j, j]
    for j in range(d):
        white[j, j] = 1 / L[j, j]
        for i in range(j + 1, d):
            value = 0.0
            for k in range(j, i):
                value -= L[i, k] * white[k, j]
            white[i, j] = value / L[i, i]
    for k in range(len(classes.n_rows)):
        for i in range(d):
            value = 0.0
            for j in range(i + 1):
                value += white[i, j] * (classes.sums[k, j] - classes.n_rows[k] * mean[j])
            classes.white_sums[k, i] = value


@inlined
def _clipped(value: float) -> float:
    return min(max(value, -_FARTHEST), _FARTHEST)


@inlined
def _whitened(classes: GaussianClasses, x: FloatArray) -> None:
    z = classes.z
    for i in range(len(z)):
        value = 0.0
        for j in range(i + 1):
            value += classes.white[i, j] * (_clipped(x[j]) - classes.origin[j])
        z[i] = value


@inlined
def _chances(
    classes: GaussianClasses, ahead: int, width: float, along: FloatArray, across: FloatArray
) -> None:
    """P(c | x) for every share, memory and class, `ahead` rounds after the latest. A draw of the
    centres has `width` times the posterior's standard deviation: of each, how far it lies `along`
    the way to x (a normal number), and the squares of all that lies `across`."""
    K, d, z, chances = len(classes.n_rows), len(classes.z), classes.z, classes.chances
    squares = 0.0
    for i in range(d):
        squares += z[i] * z[i]
    likely, products, lengths = classes.work[0], classes.work[1], classes.work[2]
    for k in range(K):
        product, length = 0.0, 0.0
        for i in range(d):
            product += z[i] * classes.white_sums[k, i]
            length += classes.white_sums[k, i] * classes.white_sums[k, i]
        products[k], lengths[k] = product, length
    for r in range(len(classes.between_shares)):
        rho = classes.between_shares[r]
        top = -np.inf
        for k in range(K):
            v = 1 / ((1 - rho) / rho + classes.n_rows[k])
            # |z - v s|^2 / (1 - rho)
            far = max(squares - 2 * v * products[k] + v * v * lengths[k], 0.0) / (1 - rho)
            if width > 0:
                shift = width * math.sqrt(v)
                near = math.sqrt(far) - shift * along[k]
                far = near * near + shift * shift * across[k]
            likely[k] = -0.5 * (far / (1 + v) + d * math.log1p(v))
            top = max(top, likely[k])
        for k in range(K):
            likely[k] = math.exp(likely[k] - top)
        for g in range(len(classes.decays)):
            fade, total = math.pow(classes.decays[g], float(ahead)), 0.0
            for k in range(K):
                chances[r, g, k] = (_FEW / K + fade * classes.frequency[g, k]) * likely[k]
                total += chances[r, g, k]
            for k in range(K):
                chances[r, g, k] /= total


@inlined
def _learn(classes: GaussianClasses, t: int, arm: int, x: FloatArray, y: float) -> float:
    K, d, n, z, chances = (
        len(classes.n_rows),
        len(x),
        classes.rows[0] + 1,
        classes.z,
        classes.chances,
    )
    classes.rows[0] = n
    for i in range(d):
        z[i] = _clipped(x[i]) - classes.mean[i]
        classes.mean[i] += z[i] / n
    for i in range(d):
        for j in range(i + 1):
            classes.scatter[i, j] += z[i] * (_clipped(x[j]) - classes.mean[j])
    if n >= classes.rows[1]:
        _fit_whitening(classes)
        classes.rows[1] = math.floor(_GROWTH * n) + 1
    _whitened(classes, x)
    ahead = max(t - classes.latest[0], 0) if classes.latest[0] >= 0 else 0
    _chances(classes, ahead, 0.0, z, z)
    # A reward that comes after that of a later round counts as much as its own round does now.
    age = max(classes.latest[0] - t, 0)
    classes.latest[0] = max(classes.latest[0], t)
    paid = PAID if y > 0 else NOT
    p_right = classes.payoffs[RIGHT, paid] / (
        classes.payoffs[RIGHT, PAID] + classes.payoffs[RIGHT, NOT]
    )
    p_wrong = classes.payoffs[WRONG, paid] / (
        classes.payoffs[WRONG, PAID] + classes.payoffs[WRONG, NOT]
    )
    shared, likelihood = classes.work[3], 0.0
    for k in range(K):
        shared[k] = 0.0
    for r in range(len(classes.between_shares)):
        for g in range(len(classes.decays)):
            for k in range(K):
                shared[k] += classes.weight[r, g] * chances[r, g, k]
            classes.weight[r, g] *= p_wrong + (p_right - p_wrong) * chances[r, g, arm]
            likelihood += classes.weight[r, g]
    pairs = len(classes.between_shares) * len(classes.decays)
    for r in range(len(classes.between_shares)):
        for g in range(len(classes.decays)):
            classes.weight[r, g] = (1 - _ALPHA) * classes.weight[r, g] / likelihood + _ALPHA / pairs
    # P(c | x, r)
    for k in range(K):
        shared[k] *= (p_right if k == arm else p_wrong) / likelihood
    own = shared[arm]
    classes.payoffs[RIGHT, paid] += own
    classes.payoffs[WRONG, paid] += 1 - own
    for g in range(len(classes.decays)):
        fade = math.pow(classes.decays[g], float(ahead))
        late = math.pow(classes.decays[g], float(age))
        for k in range(K):
            classes.frequency[g, k] = fade * classes.frequency[g, k] + late * shared[k]
    if y > 0:
        classes.n_rows[arm] += own
        for i in range(d):
            classes.sums[arm, i] += own * _clipped(x[i])
            classes.white_sums[arm, i] += own * z[i]
    chance = likelihood if y > 0 else 1 - likelihood
    score: float = recalibrate(
        classes.bins, classes.odds, 2 * chance - 1, 0.0, y, math.log(likelihood), 0.0, True, _MEMORY
    )
    return score


@compiled
def observe(box: PythonBox, t: int, arm: int, x: FloatArray, y: float) -> float:
    """Log likelihood of a success (y > 0) or failure, which is then learnt."""
    score: float = _learn(box.arrays, t, arm, x, y)
    return score


@compiled
def replay(
    classes: GaussianClasses,
    t: IntArray,
    arm: IntArray,
    x: FloatArray,
    y: FloatArray,
    scores: FloatArray,
) -> None:
    """Score and learn many rounds."""
    for i in range(len(t)):
        scores[i] = _learn(classes, t[i], arm[i], x[i], y[i])


@compiled
def predict(
    box: PythonBox, t: int, x: FloatArray, width: float, along: FloatArray, across: FloatArray, chances: FloatArray
) -> None:  # fmt: skip
    """Probability of every class in round t, in one draw of the centres."""
    classes: GaussianClasses = box.arrays
    _whitened(classes, x)
    ahead = max(t - classes.latest[0], 0) if classes.latest[0] >= 0 else 0
    _chances(classes, ahead, width, along, across)
    chances[:] = 0.0
    for r in range(len(classes.between_shares)):
        for g in range(len(classes.decays)):
            for k in range(len(chances)):
                chances[k] += classes.weight[r, g] * classes.chances[r, g, k]
