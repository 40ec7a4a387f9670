"""The bank of conjugate models as compiled kernels over a structure of arrays.

Hypothesis m believes that rewards are theta . phi plus noise of variance s2, with weights theta of their
own in every block: one block for each cell (regime) and, unless arms are known by their vectors, each arm.

    Lam <- g Lam + (1-g) lam0 I + phi phi'        that is, Lam = lam0 I + A with A <- g A + phi phi'
    eta <- g eta + phi r        mu = Lam^-1 eta
    a   <- h a + (1-h) a0 + 1/2
    b   <- h b + (1-h) b0 + (r - phi.mu)^2 / (1 + phi' Lam^-1 phi) / 2

With h = 1 the line for b is the conjugate update b0 + (S - eta'mu)/2 written as a sum of one-step errors: no
cancellation, so b > 0 for ever. h is the same for all hypotheses: whoever forgot old errors faster would
seem to predict better wherever the noise shrinks as choices improve. A block at rest for n rounds decays
by g^n when it is next touched.

A block is kept in one of two forms. *Moments* (A, eta): the factor is made afresh whenever it is needed,
so that discounts are exact; for small blocks and for g < 1. *Root* (U, z) with U'U = Lam and U'z = eta: a
Givens rotation adds a row; rounding cannot make U'U indefinite; for large blocks with g = 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidepull.hypotheses.algebra import (
    TWO_PI,
    add_row,
    compiled,
    factor,
    inlined,
    log_binary,
    log_student,
    whiten,
    whiten_flat,
)
from tidepull.hypotheses.spec import ADDED_SINE, BELIEF_SCALE, LAST_EVENT, LAST_SUCCESS, SINE, SQUARE, TURNS
from tidepull.types import BoolArray, FloatArray, IntArray

MAX_WIDTH = 18


class Bank(NamedTuple):
    """Every array of the bank; the first axis of each is the slot m unless said otherwise."""

    active: BoolArray
    shapes: IntArray  # (m, 2) the two clocks
    periods: FloatArray  # (m, 2)
    offsets: FloatArray  # (m, 2)
    memory: IntArray
    discount: FloatArray  # g
    contextual: BoolArray  # x whole, or its leading 1 alone
    dim: IntArray  # length of phi
    root: BoolArray  # form of the blocks
    block_at: IntArray  # index of the slot's first block in `stamp`
    vec_at: IntArray  # ... of its first number in `vec`
    mat_at: IntArray  # ... and in `mat`
    ridge: FloatArray  # lam0
    a: FloatArray
    b: FloatArray
    stamp: IntArray  # (blocks) the round to which a block's discount has been applied
    vec: FloatArray  # eta or z of every block
    mat: FloatArray  # A or U of every block, by rows
    settings: FloatArray  # (a0, b0, h, arms, blocks per cell)


class Window(NamedTuple):
    """Past rounds, oldest first: what a hypothesis needs to live through them again."""

    t: IntArray
    recent: FloatArray  # (n, 4) last arm, last reward, last success and belief in the arm before the round
    arm: IntArray
    x: FloatArray  # (n, q) the chosen arm's context vector
    y: FloatArray  # standardised reward


@inlined
def locate(bank: Bank, m: int, t: int, recent: FloatArray, tau: FloatArray) -> tuple[int, int]:
    """Cell and width of hypothesis m in round t; fills tau. The reference is `Hypothesis.locate`."""
    n_arms = int(bank.settings[3])
    cell, width = 0, 1
    tau[0] = 1.0
    for j in range(2):
        period = bank.periods[m, j]
        if bank.shapes[m, j] == SQUARE:
            cell = 2 * cell + math.floor((t + bank.offsets[m, j]) / period) % 2
        elif bank.shapes[m, j] == SINE:
            angle = TWO_PI * ((t / period) % 1.0)
            c, s = math.cos(angle), math.sin(angle)
            for i in range(width - 1, -1, -1):
                tau[3 * i + 2] = tau[i] * s
                tau[3 * i + 1] = tau[i] * c
                tau[3 * i] = tau[i]
            width *= 3
        elif bank.shapes[m, j] == ADDED_SINE:
            angle = TWO_PI * ((t / period) % 1.0)
            tau[width], tau[width + 1] = math.cos(angle), math.sin(angle)
            width += 2
    if bank.memory[m] == LAST_EVENT:
        cell = (n_arms + 1) * cell + int(recent[0]) + 1
        for i in range(width - 1, -1, -1):
            tau[2 * i + 1] = tau[i] * recent[1]
            tau[2 * i] = tau[i]
        width *= 2
    elif bank.memory[m] == LAST_SUCCESS:
        cell = (n_arms + 1) * cell + int(recent[2]) + 1
    return cell, width


@inlined
def _spread(tau: FloatArray, width: int, x: FloatArray, whole: bool, phi: FloatArray) -> None:
    """phi = tau (x) x, or tau alone."""
    if not whole:
        for i in range(width):
            phi[i] = tau[i]
        return
    q = x.shape[0]
    for i in range(width):
        for j in range(q):
            phi[i * q + j] = tau[i] * x[j]


@inlined
def _open(
    bank: Bank, m: int, block: int, t: int, U: FloatArray, z: FloatArray, v: FloatArray
) -> tuple[float, float]:
    """v <- U'^-1 phi and z = U'^-1 eta of a block in round t: the mean v.z and the leverage v.v of phi."""
    d = bank.dim[m]
    vec = bank.vec[bank.vec_at[m] + block * d : bank.vec_at[m] + (block + 1) * d]
    mat = bank.mat[bank.mat_at[m] + block * d * d : bank.mat_at[m] + (block + 1) * d * d]
    if bank.root[m]:
        whiten_flat(mat, v, d)
        for i in range(d):
            z[i] = vec[i]
    else:
        rest = t - bank.stamp[bank.block_at[m] + block]
        decay = bank.discount[m] ** rest if bank.discount[m] < 1.0 else 1.0
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
def observe_one(
    bank: Bank,
    m: int,
    t: int,
    recent: FloatArray,
    arm: int,
    x: FloatArray,
    y: float,
    binary: bool,
    tau: FloatArray,
    phi: FloatArray,
    v: FloatArray,
    z: FloatArray,
    U: FloatArray,
) -> float:
    """Log likelihood of the reward under hypothesis m before it learns from it; then it learns."""
    score: float
    d = bank.dim[m]
    cell, width = locate(bank, m, t, recent, tau)
    per_cell = int(bank.settings[4])
    block = cell * per_cell + (arm if per_cell > 1 else 0)
    _spread(tau, width, x, bank.contextual[m], phi)
    if bank.memory[m] == TURNS:
        phi[d - 1] = BELIEF_SCALE * recent[3]
    for i in range(d):
        v[i] = phi[i]
    mean, leverage = _open(bank, m, block, t, U, z, v)
    e = y - mean
    at, vat = bank.mat_at[m] + block * d * d, bank.vec_at[m] + block * d
    if not binary:
        score = log_student(e, bank.a[m], bank.b[m] / bank.a[m] * (1 + leverage))
    elif d == 1:
        rest = t - bank.stamp[bank.block_at[m] + block]
        decay = bank.discount[m] ** rest if bank.discount[m] < 1.0 else 1.0
        n, s = decay * bank.mat[at], decay * bank.vec[vat]
        chance = (1 + 0.5 * (n + s)) / (2 + n)  # Beta-Bernoulli: successes are (n + s) / 2
        score = math.log(chance) if y > 0 else math.log(1 - chance)
    else:
        score = log_binary(y, 0.5 * (1 + mean), leverage)
    if bank.root[m]:
        add_row(bank.mat[at : at + d * d], bank.vec[vat : vat + d], phi, y, d)
    else:
        _add_moments(bank, m, block, t, phi, y)
    h = bank.settings[2]
    bank.a[m] = h * bank.a[m] + (1 - h) * bank.settings[0] + 0.5
    bank.b[m] = h * bank.b[m] + (1 - h) * bank.settings[1] + 0.5 * e * e / (1 + leverage)
    return score


@inlined
def _add_moments(bank: Bank, m: int, block: int, t: int, phi: FloatArray, y: float) -> None:
    """A <- g^n A + phi phi' and eta <- g^n eta + phi y after n rounds at rest."""
    d = bank.dim[m]
    at, vat, stamp = bank.mat_at[m] + block * d * d, bank.vec_at[m] + block * d, bank.block_at[m] + block
    decay = bank.discount[m] ** (t - bank.stamp[stamp]) if bank.discount[m] < 1.0 else 1.0
    bank.stamp[stamp] = t
    for i in range(d):
        bank.vec[vat + i] = decay * bank.vec[vat + i] + y * phi[i]
        for j in range(i, d):
            bank.mat[at + i * d + j] = decay * bank.mat[at + i * d + j] + phi[i] * phi[j]


@compiled
def observe(
    bank: Bank,
    t: int,
    recent: FloatArray,
    arm: int,
    x: FloatArray,
    y: float,
    binary: bool,
    scores: FloatArray,
) -> None:
    """One finished round for every active hypothesis; `scores` receives their log likelihoods."""
    most = 1
    for m in range(bank.dim.shape[0]):
        most = max(most, bank.dim[m])
    tau, phi, v, z, U = (
        np.empty(MAX_WIDTH),
        np.empty(most),
        np.empty(most),
        np.empty(most),
        np.empty((most, most)),
    )
    for m in range(bank.dim.shape[0]):
        if bank.active[m]:
            scores[m] = observe_one(bank, m, t, recent, arm, x, y, binary, tau, phi, v, z, U)
        else:
            scores[m] = -np.inf


@compiled
def replay(bank: Bank, m: int, window: Window, binary: bool, scores: FloatArray) -> float:
    """Hypothesis m lives through a window of past rounds; returns its total log likelihood."""
    d = bank.dim[m]
    tau, phi, v, z, U = np.empty(MAX_WIDTH), np.empty(d), np.empty(d), np.empty(d), np.empty((d, d))
    total = 0.0
    for i in range(window.t.shape[0]):
        scores[i] = observe_one(
            bank, m, window.t[i], window.recent[i], window.arm[i], window.x[i], window.y[i], binary,
            tau, phi, v, z, U,
        )  # fmt: skip
        total += scores[i]
    return total


@compiled
def outlook(
    bank: Bank,
    m: int,
    t: int,
    recent: FloatArray,
    beliefs: FloatArray,
    X: FloatArray,
    means: FloatArray,
    leverages: FloatArray,
) -> None:
    """Mean and leverage of every arm under hypothesis m, where arms have blocks of their own."""
    d = bank.dim[m]
    tau, phi, z, U = np.empty(MAX_WIDTH), np.empty(d), np.empty(d), np.empty((d, d))
    cell, width = locate(bank, m, t, recent, tau)
    n_arms = means.shape[0]
    for k in range(n_arms):
        _spread(tau, width, X[k], bank.contextual[m], phi)
        if bank.memory[m] == TURNS:
            phi[d - 1] = BELIEF_SCALE * beliefs[k]
        means[k], leverages[k] = _open(bank, m, cell * n_arms + k, t, U, z, phi)


@compiled
def counts(
    bank: Bank, m: int, t: int, recent: FloatArray, successes: FloatArray, failures: FloatArray
) -> None:
    """Discounted successes and failures of every arm under a hypothesis of one feature (binary rewards)."""
    tau = np.empty(MAX_WIDTH)
    cell, _ = locate(bank, m, t, recent, tau)
    n_arms = successes.shape[0]
    for k in range(n_arms):
        block = cell * n_arms + k
        rest = t - bank.stamp[bank.block_at[m] + block]
        decay = bank.discount[m] ** rest if bank.discount[m] < 1.0 else 1.0
        n, s = decay * bank.mat[bank.mat_at[m] + block], decay * bank.vec[bank.vec_at[m] + block]
        successes[k], failures[k] = 0.5 * (n + s), 0.5 * (n - s)


@compiled
def shared_draw(
    bank: Bank, m: int, t: int, recent: FloatArray, X: FloatArray, noise: FloatArray, draws: FloatArray
) -> None:
    """phi_k . theta of every arm for one draw theta = U^-1 (z + noise), where arms share a block."""
    d = bank.dim[m]
    tau, phi, z, U = np.empty(MAX_WIDTH), np.empty(d), np.empty(d), np.empty((d, d))
    cell, width = locate(bank, m, t, recent, tau)
    for k in range(draws.shape[0]):
        _spread(tau, width, X[k], bank.contextual[m], phi)
        if k == 0 or bank.root[m]:
            _open(bank, m, cell, t, U, z, phi)
        else:
            whiten(U, phi, d)
        total = 0.0
        for i in range(d):
            total += phi[i] * (z[i] + noise[i])
        draws[k] = total


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
