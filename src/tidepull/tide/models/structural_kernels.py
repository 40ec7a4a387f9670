"""The arithmetic of structural models as compiled kernels: the filter, draws, and their weights.

Each kernel has a NumPy version, which runs until the kernel is compiled and gives the same bits.
Powers and logarithms are computed by NumPy, outside of kernels.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull._internal.kernels import kernel
from tidepull.tide.models.algebra import inlined
from tidepull.tide.models.boxed import PythonBox
from tidepull.types import BoolArray, FloatArray, IntArray

NOISE_A, NOISE_B, NOISE_MEMORY = 1.0, 0.5, 0.995
"""a0, b0 and h of the noise, in units of standardised rewards."""
_LARGEST_SQUARE = 25.0
"""An error beyond five standard deviations counts as one of five in the variance of the noise."""
_LEAST_CHANCE = 1e-3
"""A linear chance is kept this far from 0 and 1."""
_LEAST_NOISE = 1.0
"""Least variance of a reward of 0 or 1, standardised: that of an average arm. With p (1 - p) of its
own, an arm without a success so far would be known as well as if it had hundreds of failures, and
would not be tried again."""
_LEAST_VARIANCE = 1e-12
LEAST_KNOWN = 1e-3
"""Rewards by which an arm is known at least; what its prior says is not counted among them."""
_KEPT_A, _KEPT_B = (1 - NOISE_MEMORY) * NOISE_A, (1 - NOISE_MEMORY) * NOISE_B
TWO_PI, LOG_2 = 2 * math.pi, math.log(2.0)


@inlined
def _dot(a: FloatArray, b: FloatArray) -> float:
    """a.b in the order in which NumPy's `einsum` adds: even and odd places apart, and of every eight
    the last ones first."""
    even, odd, n = 0.0, 0.0, a.shape[0]
    whole = n - n % 8
    for i in range(0, whole, 8):
        even += a[i + 6] * b[i + 6]
        odd += a[i + 7] * b[i + 7]
        even += a[i + 4] * b[i + 4]
        odd += a[i + 5] * b[i + 5]
        even += a[i + 2] * b[i + 2]
        odd += a[i + 3] * b[i + 3]
        even += a[i] * b[i]
        odd += a[i + 1] * b[i + 1]
    for i in range(whole, n - 1, 2):
        even += a[i] * b[i]
        odd += a[i + 1] * b[i + 1]
    if n % 2:
        even += a[n - 1] * b[n - 1]
    return even + odd


def _learn_in_numpy(
    mean: FloatArray, cov: FloatArray, v: FloatArray, places: IntArray, sizes: IntArray,
    block: int, x: FloatArray, decay: FloatArray, ago: FloatArray, y: float, zero: float,
    one: float, square: float, a: FloatArray, b: FloatArray, terms: FloatArray,
) -> None:  # fmt: skip
    start, corner = 0, 0
    for m, d in enumerate(sizes.tolist()):
        own = slice(start, start + d)
        w, C = mean[block, own], cov[block, corner : corner + d * d].reshape(d, d)
        start, corner = start + d, corner + d * d
        f, last = decay[m], v[own][-1]
        w[-1] *= f
        C[-1, :] *= f
        C[:, -1] *= f
        C[-1, -1] += last * (1 - f * f)
        row = x[places[own]]
        row[-1] *= ago[m]
        gain = np.zeros(d)
        for i in range(d):
            gain += row[i] * C[i]
        end = x[-1]
        q = np.einsum("d,d->", gain, row) + end * end * last * (1 - ago[m] * ago[m])
        error = y - np.einsum("d,d->", w, row)
        if square > 0.0:
            chance = (y - error - zero) / (one - zero)
            chance = min(max(chance, _LEAST_CHANCE), 1 - _LEAST_CHANCE)
            terms[0, m] = chance if y == one else 1 - chance
            noise = max(chance * (1 - chance) * square, _LEAST_NOISE)
        else:
            noise = b[m] / a[m]
            scale = q + noise
            terms[0, m], terms[1, m] = a[m], TWO_PI * a[m] * scale
            terms[2, m] = error * error / (2 * a[m] * scale)
            squared = min(error * error, _LARGEST_SQUARE * scale)
            a[m] = NOISE_MEMORY * a[m] + _KEPT_A + 0.5
            b[m] = NOISE_MEMORY * b[m] + _KEPT_B + 0.5 * squared * noise / scale
        over = gain / (q + noise)
        w += over * error
        C -= over[:, None] * gain


@kernel(until_compiled=_learn_in_numpy, nogil=True)
def learn_reward(
    mean: FloatArray, cov: FloatArray, v: FloatArray, places: IntArray, sizes: IntArray,
    block: int, x: FloatArray, decay: FloatArray, ago: FloatArray, y: float, zero: float,
    one: float, square: float, a: FloatArray, b: FloatArray, terms: FloatArray,
) -> None:  # fmt: skip
    """A step of the filter of every model, as `structural.py` has it: what is to come, R; its
    features and its error; the reward is learnt.

    Coefficients of models stand one after the other: `sizes` of each, the last its deviation, and
    `places` in x. `decay` is f of the time that has passed since the block's latest reward, `ago` of
    the time from this one to that, if it was decided earlier: an Ornstein-Uhlenbeck process is the
    same backwards in time. `zero` and `one` are the values of the rewards 0 and 1, `square` their
    squared distance (0: any reward). `terms` gets what likelihoods are made of: the chance of the
    reward, or (a, 2 pi a (q + s2), e^2 / (2 a (q + s2)))."""
    most, end = sizes.max(), x[x.shape[0] - 1]
    all_gains, all_rows = np.empty(most), np.empty(most)
    start, corner = 0, 0
    for m in range(sizes.shape[0]):
        d = sizes[m]
        w, C = mean[block, start : start + d], cov[block, corner : corner + d * d]
        gain, row, last = all_gains[:d], all_rows[:d], d - 1
        f, variance = decay[m], v[start + last]
        if f != 1.0:  # the deviation is the only one that moves
            w[last] *= f
            for j in range(d):
                C[last * d + j] *= f
            for i in range(d):
                C[i * d + last] *= f
            C[last * d + last] += variance * (1 - f * f)
        for j in range(d):
            row[j] = x[places[start + j]]
            gain[j] = 0.0
        row[last] *= ago[m]
        for i in range(d):
            part, line = row[i], C[i * d : i * d + d]
            for j in range(d):
                gain[j] += part * line[j]
        q = _dot(gain, row) + end * end * variance * (1 - ago[m] * ago[m])
        error = y - _dot(w, row)
        if square > 0.0:
            chance = (y - error - zero) / (one - zero)
            chance = min(max(chance, _LEAST_CHANCE), 1 - _LEAST_CHANCE)
            terms[0, m] = chance if y == one else 1 - chance
            noise = max(chance * (1 - chance) * square, _LEAST_NOISE)
        else:
            noise = b[m] / a[m]
            scale = q + noise
            terms[0, m], terms[1, m] = a[m], TWO_PI * a[m] * scale
            terms[2, m] = error * error / (2 * a[m] * scale)
            squared = min(error * error, _LARGEST_SQUARE * scale)
            a[m] = NOISE_MEMORY * a[m] + _KEPT_A + 0.5
            b[m] = NOISE_MEMORY * b[m] + _KEPT_B + 0.5 * squared * noise / scale
        for i in range(d):
            over, line = gain[i] / (q + noise), C[i * d : i * d + d]
            w[i] += over * error
            for j in range(d):
                line[j] -= over * gain[j]
        start, corner = start + d, corner + d * d


def _reweigh_in_numpy(
    log_weights: FloatArray, scores: FloatArray, log_prior: FloatArray, kept: float, given: float
) -> float:
    joint = log_weights + scores
    likelihood = float(np.logaddexp.reduce(joint))
    log_weights[:] = np.logaddexp(joint - likelihood + kept, log_prior + given)
    return likelihood


@inlined
def _log_add(x: float, y: float) -> float:
    """log(exp(x) + exp(y)), as NumPy has it."""
    if x == y:
        return x + LOG_2
    gap = x - y
    return x + math.log1p(math.exp(-gap)) if gap > 0 else y + math.log1p(math.exp(gap))


@kernel(until_compiled=_reweigh_in_numpy, nogil=True)
def reweigh(
    log_weights: FloatArray, scores: FloatArray, log_prior: FloatArray, kept: float, given: float
) -> float:
    """Bayes' rule with fixed share: `kept` and `given` are log(1 - alpha) and log(alpha). The log
    likelihood of the reward under all models."""
    likelihood: float = log_weights[0] + scores[0]
    for m in range(1, log_weights.shape[0]):
        likelihood = _log_add(likelihood, log_weights[m] + scores[m])
    for m in range(log_weights.shape[0]):
        posterior = log_weights[m] + scores[m] - likelihood + kept
        log_weights[m] = _log_add(posterior, log_prior[m] + given)
    return likelihood


def _draw_in_numpy(
    boxed_rng: PythonBox, weights: FloatArray, counts: IntArray, ms: IntArray, z: FloatArray
) -> None:
    rng, sums, last = boxed_rng.arrays, np.cumsum(weights, axis=1), weights.shape[1] - 1
    for i in range(ms.shape[1] - 1):
        for part in range(ms.shape[0]):
            place = rng.random() * sums[part, last]
            m = min(int(sums[part].searchsorted(place, side="right")), last)
            ms[part, i], z[part, i, : counts[m]] = m, rng.standard_normal(int(counts[m]))


@kernel(until_compiled=_draw_in_numpy, nogil=True)
def draw_models(
    boxed_rng: PythonBox, weights: FloatArray, counts: IntArray, ms: IntArray, z: FloatArray
) -> None:
    """Draws (columns but the last) of a model from each of some mixtures (rows) by its weight, and of
    as many standard normal numbers as it needs."""
    rng, last = boxed_rng.arrays, weights.shape[1] - 1
    sums = np.empty_like(weights)
    for part in range(ms.shape[0]):
        total = 0.0
        for m in range(last + 1):
            total += weights[part, m]
            sums[part, m] = total
    for i in range(ms.shape[1] - 1):
        for part in range(ms.shape[0]):
            place = rng.random() * sums[part, last]
            m = 0
            while m < last and sums[part, m] <= place:
                m += 1
            ms[part, i] = m
            for k in range(counts[m]):
                z[part, i, k] = rng.standard_normal()


def _values_in_numpy(
    mean: FloatArray, cov: FloatArray, v: FloatArray, places: IntArray, starts: IntArray,
    squares: IntArray, is_met: BoolArray, a: FloatArray, b: FloatArray, x: FloatArray,
    decays: FloatArray, persistence: IntArray, lasting: FloatArray, ms: IntArray, z: FloatArray,
    draw_scales: FloatArray, centre: float, spread: float, values: FloatArray,
) -> None:  # fmt: skip
    n_arms, end = len(is_met), x[-1]
    for m in np.unique(ms).tolist():
        own, lasts, f = slice(starts[m], starts[m + 1]), lasting[m], decays[persistence[m]]
        d = own.stop - own.start
        C = cov[:, squares[m] : squares[m + 1]].reshape(n_arms, d, d)
        rows = np.tile(x[places[own]], (n_arms, 1))
        rows[:, -1] *= f
        means = np.einsum("kd,kd->k", rows, mean[:, own])
        rows[:, -1] *= lasts
        products, forms, prior = np.zeros((n_arms, d)), np.zeros(n_arms), 0.0
        for i in range(d):
            products += rows[:, i, None] * C[:, i]
        for i in range(d):
            unmet = rows[:, i] * rows[:, i] * v[own][i]
            forms += np.where(is_met, rows[:, i] * products[:, i], unmet)
        for i in range(d - 1):
            prior += rows[0, i] * rows[0, i] * v[own][i]
        prior += end * end * (v[own][-1] * (lasts * lasts))
        reach = lasts * end
        variances = forms + reach * reach * v[own][-1] * (1 - f * f)
        n_known = 1 / np.maximum(variances, _LEAST_VARIANCE) - 1 / prior
        n_known = np.maximum(b[m] / a[m] * n_known, LEAST_KNOWN)
        known = 0.0
        for k in range(n_arms):
            known += n_known[k]
        scale = draw_scales[2] * math.log1p(known / n_arms / 4)
        scale = max(scale, draw_scales[0] * draw_scales[0] * n_known.max())
        kappa = np.minimum(np.sqrt(scale / n_known), draw_scales[1])
        errors = kappa * np.sqrt(np.maximum(variances, 0.0))
        drawn = ms == m
        values[drawn] = centre + spread * (means + errors * z[drawn])


@kernel(until_compiled=_values_in_numpy, nogil=True)
def draw_values(
    mean: FloatArray, cov: FloatArray, v: FloatArray, places: IntArray, starts: IntArray,
    squares: IntArray, is_met: BoolArray, a: FloatArray, b: FloatArray, x: FloatArray,
    decays: FloatArray, persistence: IntArray, lasting: FloatArray, ms: IntArray, z: FloatArray,
    draw_scales: FloatArray, centre: float, spread: float, values: FloatArray,
) -> None:  # fmt: skip
    """The value of every arm (columns) in each draw of a model (rows), where arms have weights of
    their own: x'F m + kappa sqrt(x'C x) z. What a model believes is computed once for all of its
    draws. With n_k, the number of rewards by which arm k is known here, n their mean and n_max the
    largest,

        kappa_k = sqrt(max(c log(1 + n / 4), kappa_min^2 n_max) / n_k), at most kappa_max

    `starts` and `squares` say where the coefficients of models and their covariances begin.
    `decays` is f of every `persistence` and arm, `lasting` the part of a deviation's error that
    outlasts a day; `draw_scales` are the minimum and maximum of kappa, and c; `centre` and
    `spread` are units."""
    n_models, n_arms, end = lasting.shape[0], is_met.shape[0], x[x.shape[0] - 1]
    is_done = np.zeros(n_models, np.bool_)
    means, errors = np.empty((n_models, n_arms)), np.empty((n_models, n_arms))
    all_rows, all_products, n_known = np.empty_like(x), np.empty_like(x), np.empty(n_arms)
    for n in range(ms.shape[0]):
        m = ms[n]
        if not is_done[m]:
            is_done[m] = True
            start, d, corner = starts[m], starts[m + 1] - starts[m], squares[m]
            last, lasts = d - 1, lasting[m]
            row, products = all_rows[:d], all_products[:d]
            variance_of, prior, known = v[start : start + d], 0.0, 0.0
            for j in range(d):
                row[j] = x[places[start + j]]
            for i in range(last):
                prior += row[i] * row[i] * variance_of[i]
            prior += end * end * (variance_of[last] * (lasts * lasts))
            for k in range(n_arms):
                f = decays[persistence[m], k]
                row[last] = end * f
                means[m, k] = _dot(row, mean[k, start : start + d])
                row[last] *= lasts
                variance = 0.0
                if is_met[k]:
                    for j in range(d):
                        products[j] = 0.0
                    for i in range(d):
                        part, line = row[i], cov[k, corner + i * d : corner + i * d + d]
                        for j in range(d):
                            products[j] += part * line[j]
                    for i in range(d):
                        variance += row[i] * products[i]
                else:
                    for i in range(d):
                        variance += row[i] * row[i] * variance_of[i]
                reach = lasts * end
                variance += reach * reach * variance_of[last] * (1 - f * f)
                known_by = b[m] / a[m] * (1 / max(variance, _LEAST_VARIANCE) - 1 / prior)
                n_known[k] = max(known_by, LEAST_KNOWN)
                known += n_known[k]
                errors[m, k] = math.sqrt(max(variance, 0.0))
            scale = draw_scales[2] * math.log1p(known / n_arms / 4)
            scale = max(scale, draw_scales[0] * draw_scales[0] * n_known.max())
            for k in range(n_arms):
                errors[m, k] *= min(math.sqrt(scale / n_known[k]), draw_scales[1])
        for k in range(n_arms):
            values[n, k] = centre + spread * (means[m, k] + errors[m, k] * z[n, k])
