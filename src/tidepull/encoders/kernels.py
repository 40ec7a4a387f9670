"""The kernels of both networks: everything that is not a matrix product over a whole sequence.

All kernels work in float32 and float64. Hyperbolic tangent and logistic function are rational in
float32, so that they vectorise, and within 4 units in the last place; they are exact in float64.
Kernels of training let sums be reordered and fused, but not numbers that are not finite be assumed
away: a diverged network must still show itself. Those of one step are exact (`kernel`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidepull._internal.kernels import kernel
from tidepull.types import FloatArray

if TYPE_CHECKING:  # so that the stamp of kernels covers it, which are compiled with it
    from tidepull.encoders import simd as simd

Kernel: TypeAlias = Callable[..., Any]

STRICT: dict[str, Any] = {"error_model": "numpy"}
"""A division that may raise would not vectorise."""
OPTIONS: dict[str, Any] = STRICT | {"fastmath": {"reassoc", "contract", "arcp", "nsz", "afn"}}
_COMPILED_WITH = "tidepull.encoders.simd"
compiled = kernel(exact=False, needs=_COMPILED_WITH, **OPTIONS)
_step = kernel(needs=_COMPILED_WITH, **STRICT)

HALF = np.float32(0.5)

# tanh(x) = 2 n d / (n^2 + d^2) with n / d ~ tanh(x / 2): errors of n and d fade where tanh
# saturates. Minimax fit on [0, 9.2], then a search over neighbouring float32 values: below 4 ulp
# over all of float32.
TANH_LIMIT = np.float32(9.2)
N5, N3 = np.float32(9.663548553362489e-05), np.float32(0.025247810408473015)
N1, D6 = np.float32(0.848471462726593), np.float32(2.072878714898252e-06)
D4, D2 = np.float32(0.002044444205239415), np.float32(0.19190743565559387)
D0 = np.float32(1.696942925453186)

# The same fit in x / 2, exact in binary: sigmoid(x) = 1/2 + tanh(x / 2) / 2.
SIGMOID_LIMIT = np.float32(2.0) * TANH_LIMIT
HN5, HN3, HN1 = N5 / np.float32(32.0), N3 / np.float32(8.0), N1 / np.float32(2.0)
HD6, HD4, HD2 = D6 / np.float32(64.0), D4 / np.float32(16.0), D2 / np.float32(4.0)


def tanh(x: Any) -> Any:
    """Hyperbolic tangent inside a kernel of training: rational in float32, exact in float64."""
    raise NotImplementedError("only inside a compiled kernel")


def sigmoid(x: Any) -> Any:
    """Logistic function inside a kernel of training."""
    raise NotImplementedError("only inside a compiled kernel")


def clamp(x: Any, limit: Any) -> Any:
    """x within ±limit; what is not a number stays so."""
    low = -limit if x < -limit else x
    return limit if low > limit else low


def step_tanh(x: Any) -> Any:
    """Hyperbolic tangent inside a kernel of one step; compiled as in `simd.py`."""
    if x.dtype != np.float32:
        return math.tanh(x)
    y = clamp(x, TANH_LIMIT)
    s = y * y
    n = y * ((N5 * s + N3) * s + N1)
    d = ((D6 * s + D4) * s + D2) * s + D0
    m = n * d
    return (m + m) / (n * n + d * d)


def step_sigmoid(x: Any) -> Any:
    """Logistic function inside a kernel of one step."""
    if x.dtype != np.float32:
        return 0.5 + 0.5 * math.tanh(0.5 * x)
    y = clamp(x, SIGMOID_LIMIT)
    s = y * y
    n = y * ((HN5 * s + HN3) * s + HN1)
    d = ((HD6 * s + HD4) * s + HD2) * s + D0
    return HALF + n * d / (n * n + d * d)


@_step
def accumulate(out: FloatArray, x: FloatArray, W: FloatArray) -> None:
    """out += x W, for the few rows of one round."""
    for k in range(x.size):
        factor, row = x[k], W[k]
        for j in range(out.size):
            out[j] += factor * row[j]


@_step
def gates_of_state(
    out: FloatArray,
    h: FloatArray,
    recurrent: FloatArray,
    bias: FloatArray,
    reward: float,
    row: FloatArray,
) -> None:
    """out = bias + reward * row + h W: what all arms of the coming round share before their
    gates."""
    previous = out.dtype.type(reward)
    for j in range(out.size):
        out[j] = bias[j] + previous * row[j]
    accumulate(out, h, recurrent)


@_step
def cell_step(
    shared: FloatArray,
    observation: FloatArray,
    first: FloatArray,
    second: FloatArray,
    arms: FloatArray,
    c: FloatArray,
    third: FloatArray,
    bias: FloatArray,
    U: FloatArray,
    H: FloatArray,
    C: FloatArray,
) -> None:
    """One step of the network from one state for several arms: features, and the states that
    follow.

    `shared` comes from `gates_of_state`, row k of `arms` is the k-th arm's own part of the gates,
    and the observation passes through the linear layers `first` and `second`.
    """
    hidden, width = c.size, shared.size
    common, linear = np.empty(width, shared.dtype), np.empty(second.shape[0], shared.dtype)
    for j in range(width):
        common[j] = shared[j]
    if observation.size > 0:
        for j in range(linear.size):
            linear[j] = 0
        accumulate(linear, observation, first)
        accumulate(common, linear, second)
    g = np.empty(width, shared.dtype)
    for k in range(arms.shape[0]):
        h, c_next, u, arm = H[k], C[k], U[k], arms[k]
        for j in range(3 * hidden):
            g[j] = step_sigmoid(common[j] + arm[j])
        for j in range(3 * hidden, width):
            g[j] = step_tanh(common[j] + arm[j])
        for j in range(hidden):
            c_next[j] = g[hidden + j] * c[j] + g[j] * g[3 * hidden + j]
            h[j] = g[2 * hidden + j] * step_tanh(c_next[j])
        for j in range(u.size):
            u[j] = bias[j]
        accumulate(u, h, third)
        for j in range(u.size):
            u[j] = step_tanh(u[j])


@_step
def dense_step(
    shared: FloatArray, arms: FloatArray, third: FloatArray, bias: FloatArray, U: FloatArray
) -> None:
    """Features step_tanh(step_tanh(shared + arm) W + b) for several arms at once."""
    second = np.empty_like(shared)
    for k in range(arms.shape[0]):
        arm, u = arms[k], U[k]
        for j in range(second.size):
            second[j] = step_tanh(shared[j] + arm[j])
        for j in range(u.size):
            u[j] = bias[j]
        accumulate(u, second, third)
        for j in range(u.size):
            u[j] = step_tanh(u[j])


ONE = np.float32(1.0)
TURN = 2.0 * math.pi


def lanes_of(hidden: int) -> int:
    """Width of the vectors in which an LSTM of that size is computed."""
    return math.gcd(hidden, 8)


@compiled
def tanh_rows(Z: FloatArray, bias: FloatArray) -> None:
    """Z = tanh(Z + bias), in place."""
    for t in range(Z.shape[0]):
        z = Z[t]
        for j in range(bias.size):
            z[j] = tanh(z[j] + bias[j])


@compiled
def head(
    U: FloatArray,
    w: FloatArray,
    r: FloatArray,
    DZ: FloatArray,
    grad_w: FloatArray,
    grad_b: FloatArray,
) -> float:
    """Loss and gradients of the last two layers: prediction u . w, features u = tanh(z + b).

    Writes the gradient before the tanh into DZ, adds up those of w and of the bias, and returns the
    mean squared error. Rows whose reward is NaN have no part in it: the mean is over the others.
    """
    total, known = 0.0, 0
    for j in range(w.size):
        grad_w[j] = grad_b[j] = 0
    for t in range(r.size):
        if not np.isnan(r[t]):
            known += 1
    scale = U.dtype.type(2.0 / known)
    for t in range(r.size):
        u, dz, predicted = U[t], DZ[t], U.dtype.type(0)
        if np.isnan(r[t]):
            for j in range(w.size):
                dz[j] = 0
            continue
        for j in range(w.size):
            predicted += u[j] * w[j]
        error = predicted - r[t]
        total += error * error
        error *= scale
        for j in range(w.size):
            value = error * w[j] * (ONE - u[j] * u[j])
            dz[j] = value
            grad_b[j] += value
            grad_w[j] += error * u[j]
    return total / known


@compiled
def add_penalty(gradient: FloatArray, weights: FloatArray, l2: float, n_penalised: int) -> float:
    """Add the gradient of l2 / 2 * sum(w^2) over the first weights; returns that penalty."""
    factor = weights.dtype.type(l2)
    total = weights.dtype.type(0)
    for i in range(n_penalised):
        gradient[i] += factor * weights[i]
        total += weights[i] * weights[i]
    return 0.5 * l2 * float(total)


@compiled
def adam_step(
    p: FloatArray,
    g: FloatArray,
    m: FloatArray,
    v: FloatArray,
    rate: float,
    fix_m: float,
    fix_v: float,
) -> None:
    """One step of Adam; `fix_m` and `fix_v` are its bias corrections 1 / (1 - beta^t)."""
    real = p.dtype.type
    beta1, rest1, beta2, rest2 = real(0.9), real(1.0 - 0.9), real(0.999), real(1.0 - 0.999)
    step, scale, eps = real(rate * fix_m), real(fix_v), real(1e-8)
    for i in range(p.size):
        m[i] = beta1 * m[i] + rest1 * g[i]
        v[i] = beta2 * v[i] + rest2 * g[i] * g[i]
        p[i] -= step * m[i] / (np.sqrt(scale * v[i]) + eps)


@compiled
def tanh_backward(DU: FloatArray, U: FloatArray) -> None:
    """DU = DU (1 - U^2), in place: back through u = tanh(z)."""
    for t in range(DU.shape[0]):
        du, u = DU[t], U[t]
        for j in range(du.size):
            du[j] *= ONE - u[j] * u[j]


@_step
def sinusoids(
    frequency: FloatArray, phase: FloatArray, start: int, S: FloatArray, C: FloatArray
) -> None:
    """S = sin(a t + b) and C = cos(a t + b): a row for each unit, a column for each t from `start`.

    The angle is worked out and reduced in float64, because a t grows far beyond float32's
    precision.
    """
    for i in range(frequency.size):
        s, c, a, b = S[i], C[i], float(frequency[i]), float(phase[i])
        for t in range(s.size):
            angle = a * (start + t) + b
            y = 0.5 * (angle - TURN * np.floor(angle / TURN + 0.5))
            q = y * y
            # Taylor series of sin(y) and cos(y) for |y| <= pi / 2: below 1e-13 off
            tail = 1 - q / 72 * (1 - q / 110 * (1 - q / 156 * (1 - q / 210 * (1 - q / 272))))
            sine = y * (1 - q / 6 * (1 - q / 20 * (1 - q / 42 * tail)))
            tail = 1 - q / 90 * (1 - q / 132 * (1 - q / 182 * (1 - q / 240 * (1 - q / 306))))
            cosine = 1 - q / 2 * (1 - q / 12 * (1 - q / 30 * (1 - q / 56 * tail)))
            s[t] = 2 * sine * cosine
            c[t] = 1 - 2 * sine * sine


@compiled
def sinusoid_gradient(
    DS: FloatArray, C: FloatArray, start: int, grad_a: FloatArray, grad_b: FloatArray
) -> None:
    """Gradients of a and b from those of sin(a t + b) and the cosines, t from `start`, summed in
    float64."""
    for i in range(grad_a.size):
        ds, c, by_time, total = DS[i], C[i], 0.0, 0.0
        for t in range(c.size):
            value = float(ds[t] * c[t])
            by_time += value * (start + t)
            total += value
        grad_a[i], grad_b[i] = by_time, total
