"""The bank of conjugate models as compiled kernels over a structure of arrays.

Model m believes that rewards are theta . phi plus noise of variance s2, with weights theta of
their own in every block: one block for each regime and, unless arms are known by their
vectors, each arm.

    Lam <- g Lam + (1-g) lam0 I + phi phi'        that is, Lam = lam0 I + A with A <- g A + phi phi'
    eta <- g eta + phi r        mu = Lam^-1 eta
    a   <- h a + (1-h) a0 + 1/2
    b   <- h b + (1-h) b0 + (r - phi.mu)^2 / (1 + phi' Lam^-1 phi) / 2

With h = 1 the line for b is the conjugate update b0 + (S - eta'mu)/2 written as a sum of one-step
errors: no cancellation, so b > 0 for ever. h is the same for all models: a model
with a smaller h would seem to predict better wherever the noise shrinks as choices improve. A block at
rest for n rounds decays by g^n when it is next touched; a reward that comes late counts from the
round of its decision.

A block is kept in one of two forms. *Moments* (A, eta): the factor is made afresh whenever it is
needed, so that discounts are exact; for small blocks (`small.py`) and for g < 1. *Inverse* (P, mu)
with P = Lam^-1 and mu = P eta, for large blocks with g = 1: adding a row takes a product and an
outer product, P <- P - v v' / (1 + phi.v), v = P phi, which run at the width of the processor.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidepull.tide.models.algebra import (
    TWO_PI,
    compiled,
    factor,
    inlined,
    log_binary,
    log_student,
    log_two_point,
    whiten,
)
from tidepull.tide.models.boxed import PythonBox
from tidepull.tide.models.calibration import recalibrate
from tidepull.tide.models.family import Window
from tidepull.tide.models.inverse import draw_inverse, learn_inverse, weigh_inverse
from tidepull.tide.models.small import LARGEST, learn_small, weigh_small
from tidepull.tide.models.spec import ADDED_SINE, SINE, SQUARE
from tidepull.types import BoolArray, FloatArray, IntArray

MAX_WIDTH = 18
A0, B0, MEMORY, BLOCKS, BY_DENSITY, NARROW, WIDE = range(7)
"""Places in the bank's `settings`: the prior of the noise (a0, b0), h, blocks of a regime, whether
chances of 0 and 1 come from densities, and the numbers of a context in both widths."""


class Bank(NamedTuple):
    """Every array of the bank; the first axis of each is the slot m unless said otherwise."""

    active: BoolArray
    shapes: IntArray  # (m, 2) the two clocks
    periods: FloatArray  # (m, 2)
    offsets: FloatArray  # (m, 2)
    regime_by: IntArray  # the covariate that names the regime, or -1
    n_regimes: IntArray  # ... and how many regimes it can name
    phases: IntArray  # of a square clock
    interaction: IntArray  # the covariate that multiplies the basis, or -1
    appended: IntArray  # the covariate that is appended to phi, or -1
    discount: FloatArray  # g
    contextual: BoolArray  # x whole, or its leading 1 alone
    dim: IntArray  # length of phi
    inverse: BoolArray  # form of the blocks: inverse, or moments
    block_at: IntArray  # index of the slot's first block in `stamp`
    vec_at: IntArray  # ... of its first number in `vec`
    mat_at: IntArray  # ... and in `mat`
    ridge: FloatArray  # lam0
    a: FloatArray
    b: FloatArray
    stamp: IntArray  # (blocks) the round to which a block's discount has been applied
    vec: FloatArray  # eta or mu of every block
    mat: FloatArray  # A or P of every block, by rows
    bins: (
        FloatArray  # (m, bins, 3) calibration counts (`calibration.py`); empty without calibration
    )
    odds: FloatArray  # (m, 1)
    settings: FloatArray  # see `A0` and its neighbours


@inlined
def fill_basis(
    bank: Bank, m: int, t: int, covariates: FloatArray, basis: FloatArray
) -> tuple[int, int]:
    """Regime and width of model m in round t; fills the basis. The reference is
    `Spec.basis`."""
    regime, width = 0, 1
    basis[0] = 1.0
    now = float(t)
    for j in range(2):
        period = bank.periods[m, j]
        if bank.shapes[m, j] == SQUARE:
            phases = bank.phases[m]
            regime = phases * regime + math.floor((now + bank.offsets[m, j]) / period) % phases
        elif bank.shapes[m, j] == SINE:
            angle = TWO_PI * ((now / period) % 1.0)
            c, s = math.cos(angle), math.sin(angle)
            for i in range(width - 1, -1, -1):
                basis[3 * i + 2] = basis[i] * s
                basis[3 * i + 1] = basis[i] * c
                basis[3 * i] = basis[i]
            width *= 3
        elif bank.shapes[m, j] == ADDED_SINE:
            angle = TWO_PI * ((now / period) % 1.0)
            basis[width], basis[width + 1] = math.cos(angle), math.sin(angle)
            width += 2
    if bank.regime_by[m] >= 0:
        regime = bank.n_regimes[m] * regime + int(covariates[bank.regime_by[m]])
    if bank.interaction[m] >= 0:
        covariate = covariates[bank.interaction[m]]
        for i in range(width - 1, -1, -1):
            basis[2 * i + 1] = basis[i] * covariate
            basis[2 * i] = basis[i]
        width *= 2
    return regime, width


@inlined
def forgotten(bank: Bank, m: int, covariates: FloatArray) -> bool:
    """Whether model m needs a covariate that is forgotten."""
    lost = False
    for column in (bank.regime_by[m], bank.interaction[m], bank.appended[m]):
        lost |= column >= 0 and math.isnan(covariates[column])
    return lost


@inlined
def _spread(
    bank: Bank, m: int, basis: FloatArray, width: int, x: FloatArray, phi: FloatArray
) -> None:
    """phi = basis (x) x, or the basis alone; of a context in two widths the narrow one comes first."""
    if not bank.contextual[m]:
        for i in range(width):
            phi[i] = basis[i]
        return
    q = int(bank.settings[NARROW])
    d = bank.dim[m]
    if width == 1 and bank.appended[m] < 0 and d == bank.settings[WIDE]:
        for j in range(d):
            phi[j] = x[q + j]
        return
    for i in range(width):
        for j in range(q):
            phi[i * q + j] = basis[i] * x[j]


@inlined
def _decay(bank: Bank, m: int, block: int, t: int) -> float:
    """g^n for a block at rest for n rounds; a round from before its last one finds it as it is."""
    if bank.discount[m] == 1.0:
        return 1.0
    rest = max(t - bank.stamp[bank.block_at[m] + block], 0)
    decay: float = math.pow(bank.discount[m], float(rest))
    return decay


@inlined
def _open(
    bank: Bank, m: int, block: int, t: int, U: FloatArray, z: FloatArray, v: FloatArray
) -> tuple[float, float]:
    """v <- U'^-1 phi and z = U'^-1 eta, U'U = Lam, of a block of moments in round t: the mean v.z
    and the leverage v.v of phi."""
    d = bank.dim[m]
    vec = bank.vec[bank.vec_at[m] + block * d : bank.vec_at[m] + (block + 1) * d]
    mat = bank.mat[bank.mat_at[m] + block * d * d : bank.mat_at[m] + (block + 1) * d * d]
    decay = _decay(bank, m, block, t)
    factor(mat, bank.ridge[m], decay, d, U)
    for i in range(d):
        z[i] = decay * vec[i]
    whiten(U, v, d)
    whiten(U, z, d)
    mean, leverage = 0.0, 0.0
    for i in range(d):
        mean += v[i] * z[i]
        leverage += v[i] * v[i]
    return mean, leverage


@inlined
def _weigh(bank: Bank, m: int, block: int, phi: FloatArray, v: FloatArray) -> tuple[float, float]:
    """v <- P phi of a block that is kept as an inverse: the mean phi.mu and the leverage phi.v."""
    d = bank.dim[m]
    at, vat = bank.mat_at[m] + block * d * d, bank.vec_at[m] + block * d
    mean, leverage = weigh_inverse(bank.mat[at : at + d * d], bank.vec[vat : vat + d], phi, d, v)
    return mean, leverage


@inlined
def _weigh_small(
    bank: Bank, m: int, block: int, decay: float, phi: FloatArray
) -> tuple[float, float]:
    """Mean and leverage of phi of a small block that is kept as moments."""
    d = bank.dim[m]
    at, vat = bank.mat_at[m] + block * d * d, bank.vec_at[m] + block * d
    mean, leverage = weigh_small(
        bank.mat[at : at + d * d], bank.vec[vat : vat + d], bank.ridge[m], decay, phi, d
    )
    return mean, leverage


@inlined
def _learn_inverse(
    bank: Bank, m: int, block: int, v: FloatArray, e: float, leverage: float
) -> None:
    """The block has seen phi; v = P phi is used up."""
    d = bank.dim[m]
    at, vat = bank.mat_at[m] + block * d * d, bank.vec_at[m] + block * d
    learn_inverse(bank.mat[at : at + d * d], bank.vec[vat : vat + d], v, e, leverage, d)


@inlined
def _draw_weights(
    bank: Bank, m: int, block: int, noise: FloatArray, U: FloatArray, errors: FloatArray
) -> None:
    """`draw_inverse` of a block."""
    d = bank.dim[m]
    at = bank.mat_at[m] + block * d * d
    draw_inverse(bank.mat[at : at + d * d], noise, d, U, errors)


@inlined
def observe_one(
    bank: Bank,
    m: int,
    t: int,
    covariates: FloatArray,
    arm: int,
    x: FloatArray,
    y: float,
    binary: bool,
    basis: FloatArray,
    phi: FloatArray,
    v: FloatArray,
    z: FloatArray,
    U: FloatArray,
) -> float:
    """Log likelihood of the reward under model m before it learns from it; then it learns."""
    score: float
    d = bank.dim[m]
    if forgotten(bank, m, covariates):
        return math.nan
    regime, width = fill_basis(bank, m, t, covariates, basis)
    per_regime = int(bank.settings[BLOCKS])
    block = regime * per_regime + (arm if per_regime > 1 else 0)
    _spread(bank, m, basis, width, x, phi)
    if bank.appended[m] >= 0:
        phi[d - 1] = covariates[bank.appended[m]]
    decay = _decay(bank, m, block, t)
    if bank.inverse[m]:
        mean, leverage = _weigh(bank, m, block, phi, v)
    elif d <= LARGEST:
        mean, leverage = _weigh_small(bank, m, block, decay, phi)
    else:
        for i in range(d):
            v[i] = phi[i]
        mean, leverage = _open(bank, m, block, t, U, z, v)
    e = y - mean
    at, vat = bank.mat_at[m] + block * d * d, bank.vec_at[m] + block * d
    if not binary:
        score = log_student(e, bank.a[m], bank.b[m] / bank.a[m] * (1 + leverage))
    elif d == 1:
        n, s = decay * bank.mat[at], decay * bank.vec[vat]
        chance = (1 + 0.5 * (n + s)) / (2 + n)  # Beta-Bernoulli: successes are (n + s) / 2
        # A reward that is neither -1 nor 1 may have come, and is still to be worked in.
        if bank.settings[BY_DENSITY] > 0.0:
            chance = min(max(chance, 1 / (2 + n)), (1 + n) / (2 + n))
        score = math.log(chance) if y > 0 else math.log(1 - chance)
    elif bank.settings[BY_DENSITY] > 0.0:
        score = log_two_point(y, mean, bank.a[m], bank.b[m] / bank.a[m] * (1 + leverage))
    else:
        score = log_binary(y, 0.5 * (1 + mean), leverage)
    h = bank.settings[MEMORY]
    if bank.odds.shape[0] > 0:
        noise = bank.b[m] / bank.a[m]
        score = recalibrate(bank.bins[m], bank.odds[m], mean, leverage, y, score, noise, binary, h)
    if bank.inverse[m]:
        _learn_inverse(bank, m, block, v, e, leverage)
    else:
        _add_moments(bank, m, block, t, decay, phi, y)
    bank.a[m] = h * bank.a[m] + (1 - h) * bank.settings[A0] + 0.5
    bank.b[m] = h * bank.b[m] + (1 - h) * bank.settings[B0] + 0.5 * e * e / (1 + leverage)
    return score


@inlined
def _add_moments(
    bank: Bank, m: int, block: int, t: int, decay: float, phi: FloatArray, y: float
) -> None:
    """A <- g^n A + phi phi' and eta <- g^n eta + phi y after n rounds at rest, g^n = `decay`; a
    round from n rounds before the block's last one counts g^n itself. phi may be used up."""
    d = bank.dim[m]
    at, vat, stamp = (
        bank.mat_at[m] + block * d * d,
        bank.vec_at[m] + block * d,
        bank.block_at[m] + block,
    )
    if t >= bank.stamp[stamp]:
        bank.stamp[stamp] = t
    elif bank.discount[m] < 1.0:
        root = math.sqrt(math.pow(bank.discount[m], float(bank.stamp[stamp] - t)))
        y *= root
        for i in range(d):
            phi[i] *= root
    if d <= LARGEST:
        learn_small(bank.mat[at : at + d * d], bank.vec[vat : vat + d], decay, phi, y, d)
        return
    for i in range(d):
        bank.vec[vat + i] = decay * bank.vec[vat + i] + y * phi[i]
        for j in range(i, d):
            bank.mat[at + i * d + j] = decay * bank.mat[at + i * d + j] + phi[i] * phi[j]


@compiled
def observe(
    bank: Bank,
    t: int,
    covariates: FloatArray,
    arm: int,
    x: FloatArray,
    y: float,
    binary: bool,
    scores: FloatArray,
) -> None:
    """One finished round for every active model; `scores` receives their log likelihoods (NaN
    where a model needs a covariate that is forgotten, and then does not learn)."""
    most = 1
    for m in range(bank.dim.shape[0]):
        most = max(most, bank.dim[m])
    basis, phi, v, z, U = (
        np.empty(MAX_WIDTH),
        np.empty(most),
        np.empty(most),
        np.empty(most),
        np.empty((most, most)),
    )
    for m in range(bank.dim.shape[0]):
        if bank.active[m]:
            scores[m] = observe_one(bank, m, t, covariates, arm, x, y, binary, basis, phi, v, z, U)
        else:
            scores[m] = -np.inf


@compiled
def observe_boxed(
    box: PythonBox,
    t: int,
    covariates: FloatArray,
    arm: int,
    x: FloatArray,
    y: float,
    binary: bool,
    scores: FloatArray,
) -> None:
    """`observe` of a boxed bank."""
    observe(box.arrays, t, covariates, arm, x, y, binary, scores)


@compiled
def replay(
    bank: Bank, m: int, window: Window, start: int, stop: int, binary: bool, scores: FloatArray
) -> None:
    """Replay rows `start` to `stop` of a window of past rounds in model m; `scores` gets log
    likelihoods."""
    d = bank.dim[m]
    basis, phi, v, z, U = (
        np.empty(MAX_WIDTH),
        np.empty(d),
        np.empty(d),
        np.empty(d),
        np.empty((d, d)),
    )
    for i in range(start, stop):
        scores[i] = observe_one(
            bank, m, window.t[i], window.covariates[i], window.arm[i], window.x[i], window.y[i], binary,
            basis, phi, v, z, U,
        )  # fmt: skip


@inlined
def _predict(
    bank: Bank,
    m: int,
    t: int,
    covariates: FloatArray,
    per_arm: FloatArray,
    X: FloatArray,
    means: FloatArray,
    leverages: FloatArray,
    basis: FloatArray,
    phi: FloatArray,
    z: FloatArray,
    U: FloatArray,
) -> None:
    """Mean and leverage of every arm under model m, where arms have blocks of their own."""
    d = bank.dim[m]
    regime, width = fill_basis(bank, m, t, covariates, basis)
    n_arms = means.shape[0]
    for k in range(n_arms):
        _spread(bank, m, basis, width, X[k], phi)
        if bank.appended[m] >= 0:
            phi[d - 1] = per_arm[bank.appended[m], k]
        block = regime * n_arms + k
        if bank.inverse[m]:
            means[k], leverages[k] = _weigh(bank, m, block, phi, z)
        elif d <= LARGEST:
            means[k], leverages[k] = _weigh_small(bank, m, block, _decay(bank, m, block, t), phi)
        else:
            means[k], leverages[k] = _open(bank, m, block, t, U, z, phi)


@inlined
def _counts(
    bank: Bank,
    m: int,
    t: int,
    covariates: FloatArray,
    successes: FloatArray,
    failures: FloatArray,
    basis: FloatArray,
) -> None:
    """Discounted successes and failures of every arm under a model of one feature (binary
    rewards)."""
    regime, _ = fill_basis(bank, m, t, covariates, basis)
    n_arms = successes.shape[0]
    for k in range(n_arms):
        block = regime * n_arms + k
        decay = _decay(bank, m, block, t)
        n, s = decay * bank.mat[bank.mat_at[m] + block], decay * bank.vec[bank.vec_at[m] + block]
        successes[k], failures[k] = 0.5 * (n + s), 0.5 * (n - s)


@compiled
def predict(
    bank: Bank,
    m: int,
    t: int,
    covariates: FloatArray,
    per_arm: FloatArray,
    X: FloatArray,
    means: FloatArray,
    leverages: FloatArray,
) -> None:
    """`_predict` of one model."""
    d = bank.dim[m]
    basis, phi, z, U = np.empty(MAX_WIDTH), np.empty(d), np.empty(d), np.empty((d, d))
    _predict(bank, m, t, covariates, per_arm, X, means, leverages, basis, phi, z, U)


@inlined
def _draw_scale(
    leverages: FloatArray, min_scale: float, max_scale: float, scale_c: float, factors: FloatArray
) -> None:
    """`draw_scale`; factors may lie where leverages do."""
    if min_scale >= max_scale:
        factors[:] = min_scale
        return
    known = 0.0
    for k in range(leverages.shape[0]):
        known += 1 / leverages[k]
    scale = scale_c * math.log1p(known / leverages.shape[0] / 4)
    for k in range(leverages.shape[0]):
        factors[k] = min(max(math.sqrt(scale * leverages[k]), min_scale), max_scale)


@inlined
def _plain_scale(
    leverages: FloatArray, min_scale: float, forgets: bool, factors: FloatArray
) -> None:
    """`NoisePrior.plain_scale`; factors may lie where leverages do."""
    if forgets or min_scale == 1.0:
        _draw_scale(leverages, min_scale, 1.0, 1.0, factors)
        return
    best = leverages[0]
    for k in range(1, leverages.shape[0]):
        best = min(best, leverages[k])
    for k in range(leverages.shape[0]):
        factors[k] = min(min_scale * math.sqrt(leverages[k] / best), 1.0)


@inlined
def _beta_parameters(
    won: FloatArray, lost: FloatArray, min_scale: float, forgets: bool, factors: FloatArray
) -> None:
    """`NoisePrior.beta`: counts become the parameters of Beta distributions."""
    for k in range(won.shape[0]):
        won[k], lost[k] = max(won[k], 0.0), max(lost[k], 0.0)
        factors[k] = 1 / (1 + won[k] + lost[k])
    _plain_scale(factors, min_scale, forgets, factors)
    for k in range(won.shape[0]):
        square = factors[k] * factors[k]
        won[k], lost[k] = 1 + won[k] / square, 1 + lost[k] / square


@compiled
def predict_many(
    bank: Bank,
    slots: IntArray,
    t: int,
    covariates: FloatArray,
    per_arm: FloatArray,
    X: FloatArray,
    binary: bool,
    draw_scales: FloatArray,
    first: FloatArray,
    second: FloatArray,
) -> None:
    """Parameters of draws of every arm, a row for each of some models: both parameters of a Beta
    distribution where there is one feature and rewards are binary, else the mean and the standard
    deviation for s2 = 1.

    `draw_scales` are those of `NoisePrior`.
    """
    most = 1
    for m in slots:
        most = max(most, bank.dim[m])
    basis, phi, z, U = np.empty(MAX_WIDTH), np.empty(most), np.empty(most), np.empty((most, most))
    factors = np.empty(first.shape[1])
    for i in range(slots.shape[0]):
        m = slots[i]
        forgets = bank.discount[m] < 1
        if binary and bank.dim[m] == 1:
            _counts(bank, m, t, covariates, first[i], second[i], basis)
            _beta_parameters(first[i], second[i], draw_scales[3], forgets, factors)
            continue
        _predict(bank, m, t, covariates, per_arm, X, first[i], second[i], basis, phi, z, U)
        if not bank.contextual[m]:
            _plain_scale(second[i], draw_scales[3], forgets, factors)
        else:
            _draw_scale(
                second[i],
                draw_scales[0],
                max(draw_scales[0], draw_scales[1]),
                draw_scales[2],
                factors,
            )
        for k in range(factors.shape[0]):
            second[i, k] = factors[k] * math.sqrt(second[i, k])


@compiled
def shared_draw(
    bank: Bank,
    m: int,
    t: int,
    covariates: FloatArray,
    X: FloatArray,
    noise: FloatArray,
    draws: FloatArray,
) -> None:
    """phi_k . theta of every arm for one draw theta = U^-1 (z + noise), where arms share a
    block."""
    d = bank.dim[m]
    basis, phi, z, U = np.empty(MAX_WIDTH), np.empty(d), np.empty(d), np.empty((d, d))
    regime, width = fill_basis(bank, m, t, covariates, basis)
    if bank.inverse[m]:
        _draw_weights(bank, m, regime, noise, U, z)
        for i in range(d):
            z[i] += bank.vec[bank.vec_at[m] + regime * d + i]
        for k in range(draws.shape[0]):
            _spread(bank, m, basis, width, X[k], phi)
            total = 0.0
            for i in range(d):
                total += phi[i] * z[i]
            draws[k] = total
        return
    for k in range(draws.shape[0]):
        _spread(bank, m, basis, width, X[k], phi)
        if k == 0:
            _open(bank, m, regime, t, U, z, phi)
        else:
            whiten(U, phi, d)
        total = 0.0
        for i in range(d):
            total += phi[i] * (z[i] + noise[i])
        draws[k] = total


@compiled
def predict_shared(
    bank: Bank,
    m: int,
    t: int,
    covariates: FloatArray,
    X: FloatArray,
    noise: FloatArray,
    means: FloatArray,
    errors: FloatArray,
    leverages: FloatArray,
) -> None:
    """Parts of a shared draw: means phi_k . mu, errors phi_k . U^-1 noise, and leverages."""
    d = bank.dim[m]
    basis, phi, z, U = np.empty(MAX_WIDTH), np.empty(d), np.empty(d), np.empty((d, d))
    regime, width = fill_basis(bank, m, t, covariates, basis)
    if bank.inverse[m]:
        v = np.empty(d)
        _draw_weights(bank, m, regime, noise, U, z)
        for k in range(means.shape[0]):
            _spread(bank, m, basis, width, X[k], phi)
            means[k], leverages[k] = _weigh(bank, m, regime, phi, v)
            error = 0.0
            for i in range(d):
                error += phi[i] * z[i]
            errors[k] = error
        return
    for k in range(means.shape[0]):
        _spread(bank, m, basis, width, X[k], phi)
        if k == 0:
            _open(bank, m, regime, t, U, z, phi)
        else:
            whiten(U, phi, d)
        mean, error, leverage = 0.0, 0.0, 0.0
        for i in range(d):
            mean += phi[i] * z[i]
            error += phi[i] * noise[i]
            leverage += phi[i] * phi[i]
        means[k], errors[k], leverages[k] = mean, error, leverage
