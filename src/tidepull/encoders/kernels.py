"""The compiled loops: everything that is not a matrix product over a whole sequence.

All kernels are built for float32 and, with exact hyperbolic tangents, for float64. They are compiled
on first use and kept in numba's cache on disk. `fastmath` lets sums be reordered and fused, but not
numbers that are not finite be assumed away: a diverged network must still show itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import njit, types
from numba.extending import overload

from tidepull.types import FloatArray

Kernel: TypeAlias = Callable[..., Any]

OPTIONS: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "arcp", "nsz", "afn"},
    "error_model": "numpy",  # a division that may raise would not vectorise
    "cache": True,
}
INSIDE = {name: value for name, value in OPTIONS.items() if name != "cache"}

ONE, HALF = np.float32(1.0), np.float32(0.5)
TURN = 2.0 * math.pi

# tanh(x) = 2 n d / (n^2 + d^2) with n / d ~ tanh(x / 2): errors of n and d fade where tanh saturates.
# Minimax fit on [0, 9.2], then a search over neighbouring float32 values: below 3.1 ulp everywhere.
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
    """Hyperbolic tangent inside a kernel: rational in float32, exact in float64."""
    raise NotImplementedError("only inside a kernel")


def sigmoid(x: Any) -> Any:
    """Logistic function inside a kernel."""
    raise NotImplementedError("only inside a kernel")


@overload(tanh, jit_options=INSIDE)
def _tanh(x: Any) -> Kernel:
    def rational(x: Any) -> Any:
        low = -TANH_LIMIT if x < -TANH_LIMIT else x
        y = TANH_LIMIT if low > TANH_LIMIT else low
        s = y * y
        n = y * ((N5 * s + N3) * s + N1)
        d = ((D6 * s + D4) * s + D2) * s + D0
        m = n * d
        return (m + m) / (n * n + d * d)

    def exact(x: Any) -> Any:
        return math.tanh(x)

    return rational if x == types.float32 else exact


@overload(sigmoid, jit_options=INSIDE)
def _sigmoid(x: Any) -> Kernel:
    def rational(x: Any) -> Any:
        low = -SIGMOID_LIMIT if x < -SIGMOID_LIMIT else x
        y = SIGMOID_LIMIT if low > SIGMOID_LIMIT else low
        s = y * y
        n = y * ((HN5 * s + HN3) * s + HN1)
        d = ((HD6 * s + HD4) * s + HD2) * s + D0
        return HALF + n * d / (n * n + d * d)

    def exact(x: Any) -> Any:
        return HALF + HALF * math.tanh(HALF * x)

    return rational if x == types.float32 else exact


@njit(inline="always", **INSIDE)
def add_product(out: FloatArray, x: FloatArray, W: FloatArray, rows: int, columns: int) -> None:
    """out += x W, eight rows of W in each pass over `out`."""
    whole = rows - rows % 8
    for k in range(0, whole, 8):
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        x4, x5, x6, x7 = x[k + 4], x[k + 5], x[k + 6], x[k + 7]
        w0, w1, w2, w3 = W[k], W[k + 1], W[k + 2], W[k + 3]
        w4, w5, w6, w7 = W[k + 4], W[k + 5], W[k + 6], W[k + 7]
        for j in range(columns):
            out[j] += ((x0 * w0[j] + x1 * w1[j]) + (x2 * w2[j] + x3 * w3[j])) + (
                (x4 * w4[j] + x5 * w5[j]) + (x6 * w6[j] + x7 * w7[j])
            )
    for k in range(whole, rows):
        for j in range(columns):
            out[j] += x[k] * W[k, j]


@functools.cache
def recurrence(hidden: int) -> tuple[Kernel, Kernel]:
    """Forward and backward loops of an LSTM whose size is known to the compiler.

    The four gates lie side by side in a row: input, forget, output, candidate.
    """
    H2, H3, H4 = 2 * hidden, 3 * hidden, 4 * hidden

    @njit(**OPTIONS)
    def forward(G: FloatArray, W: FloatArray, H: FloatArray, C: FloatArray, TC: FloatArray) -> None:
        """G holds x_t Wx + b and becomes the gates; row t + 1 of H and C the state after round t."""
        for t in range(G.shape[0]):
            g, c, c_next, tc, h_next = G[t], C[t], C[t + 1], TC[t], H[t + 1]
            add_product(g, H[t], W, hidden, H4)
            for j in range(H3):
                g[j] = sigmoid(g[j])
            for j in range(H3, H4):
                g[j] = tanh(g[j])
            for j in range(hidden):
                # c_t = f * c_{t-1} + i * candidate;  h_t = o * tanh(c_t)
                value = g[hidden + j] * c[j] + g[j] * g[H3 + j]
                c_next[j] = value
                tc[j] = tanh(value)
                h_next[j] = g[H2 + j] * tc[j]

    @njit(**OPTIONS)
    def backward(
        G: FloatArray, WT: FloatArray, C: FloatArray, TC: FloatArray, DH: FloatArray, window: int
    ) -> None:
        """G holds the gates and becomes the loss's gradient before them; DH is that of the outputs h."""
        last = G.shape[0] - 1
        dc = np.zeros(hidden, G.dtype)
        for t in range(last, -1, -1):
            g, c, tc, dh = G[t], C[t], TC[t], DH[t]
            if (t + 1) % window == 0:
                dc[:] = 0
            elif t < last:
                add_product(dh, G[t + 1], WT, H4, hidden)
            for j in range(hidden):
                i, f, o, a = g[j], g[hidden + j], g[H2 + j], g[H3 + j]
                d = dc[j] + dh[j] * o * (ONE - tc[j] * tc[j])
                dc[j] = d * f
                g[j] = d * a * i * (ONE - i)
                g[hidden + j] = d * c[j] * f * (ONE - f)
                g[H2 + j] = dh[j] * tc[j] * o * (ONE - o)
                g[H3 + j] = d * i * (ONE - a * a)

    return forward, backward


@njit(**OPTIONS)
def tanh_rows(Z: FloatArray, bias: FloatArray) -> None:
    """Z = tanh(Z + bias), in place."""
    for t in range(Z.shape[0]):
        z = Z[t]
        for j in range(bias.size):
            z[j] = tanh(z[j] + bias[j])


@njit(**OPTIONS)
def head(
    U: FloatArray, w: FloatArray, r: FloatArray, DZ: FloatArray, grad_w: FloatArray, grad_b: FloatArray
) -> float:
    """Loss and gradients of the last two layers: prediction u . w, features u = tanh(z + b).

    Writes the gradient before the tanh into DZ, adds up those of w and of the bias, and returns the
    mean squared error.
    """
    n = r.size
    total = 0.0
    grad_w[:] = 0
    grad_b[:] = 0
    scale = U.dtype.type(2.0 / n)
    for t in range(n):
        u, dz, predicted = U[t], DZ[t], U.dtype.type(0)
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
    return total / n


@njit(**OPTIONS)
def add_penalty(gradient: FloatArray, weights: FloatArray, l2: float, n_penalised: int) -> float:
    """Add the gradient of l2 / 2 * sum(w^2) over the first weights; returns that penalty."""
    factor = weights.dtype.type(l2)
    total = weights.dtype.type(0)
    for i in range(n_penalised):
        gradient[i] += factor * weights[i]
        total += weights[i] * weights[i]
    return 0.5 * l2 * float(total)


@njit(**OPTIONS)
def adam_step(
    p: FloatArray, g: FloatArray, m: FloatArray, v: FloatArray, rate: float, fix_m: float, fix_v: float
) -> None:
    """One step of Adam; `fix_m` and `fix_v` are its bias corrections 1 / (1 - beta^t)."""
    real = p.dtype.type
    beta1, rest1, beta2, rest2 = real(0.9), real(1.0 - 0.9), real(0.999), real(1.0 - 0.999)
    step, scale, eps = real(rate * fix_m), real(fix_v), real(1e-8)
    for i in range(p.size):
        m[i] = beta1 * m[i] + rest1 * g[i]
        v[i] = beta2 * v[i] + rest2 * g[i] * g[i]
        p[i] -= step * m[i] / (np.sqrt(scale * v[i]) + eps)


@njit(**OPTIONS)
def gates_of_state(
    out: FloatArray, h: FloatArray, recurrent: FloatArray, bias: FloatArray, reward: float, row: FloatArray
) -> None:
    """out = bias + reward * row + h W: what all arms of the coming round share before their gates."""
    previous = out.dtype.type(reward)
    for j in range(out.size):
        out[j] = bias[j] + previous * row[j]
    add_product(out, h, recurrent, h.size, out.size)


@njit(**OPTIONS)
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
    """One step of the network from one state for several arms: features, and the states that follow.

    `shared` comes from `gates_of_state`, row k of `arms` is the k-th arm's own part of the gates, and
    the observation passes through the linear layers `first` and `second`.
    """
    hidden, width = c.size, shared.size
    common = shared.copy()
    if observation.size > 0:
        linear = np.zeros(first.shape[1], shared.dtype)
        add_product(linear, observation, first, observation.size, linear.size)
        add_product(common, linear, second, linear.size, width)
    g = np.empty(width, shared.dtype)
    for k in range(arms.shape[0]):
        h, c_next, u, arm = H[k], C[k], U[k], arms[k]
        for j in range(3 * hidden):
            g[j] = sigmoid(common[j] + arm[j])
        for j in range(3 * hidden, width):
            g[j] = tanh(common[j] + arm[j])
        for j in range(hidden):
            c_next[j] = g[hidden + j] * c[j] + g[j] * g[3 * hidden + j]
            h[j] = g[2 * hidden + j] * tanh(c_next[j])
        u[:] = bias
        add_product(u, h, third, hidden, u.size)
        for j in range(u.size):
            u[j] = tanh(u[j])


@njit(**OPTIONS)
def tanh_backward(DU: FloatArray, U: FloatArray) -> None:
    """DU = DU (1 - U^2), in place: back through u = tanh(z)."""
    for t in range(DU.shape[0]):
        du, u = DU[t], U[t]
        for j in range(du.size):
            du[j] *= ONE - u[j] * u[j]


@njit(**OPTIONS)
def sinusoids(frequency: FloatArray, phase: FloatArray, start: int, S: FloatArray, C: FloatArray) -> None:
    """S = sin(a t + b) and C = cos(a t + b): a row for each unit, a column for each t from `start`.

    The angle is worked out and reduced in float64, because a t grows far beyond float32's precision.
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


@njit(**OPTIONS)
def sinusoid_gradient(DS: FloatArray, C: FloatArray, grad_a: FloatArray, grad_b: FloatArray) -> None:
    """Gradients of a and b from those of sin(a t + b) and the cosines, summed in float64."""
    for i in range(grad_a.size):
        ds, c, by_time, total = DS[i], C[i], 0.0, 0.0
        for t in range(c.size):
            value = float(ds[t] * c[t])
            by_time += value * t
            total += value
        grad_a[i], grad_b[i] = by_time, total


@njit(**OPTIONS)
def dense_step(
    shared: FloatArray, arms: FloatArray, third: FloatArray, bias: FloatArray, U: FloatArray
) -> None:
    """Features tanh(tanh(shared + arm) W + b) for several arms at once."""
    second = np.empty_like(shared)
    for k in range(arms.shape[0]):
        arm, u = arms[k], U[k]
        for j in range(second.size):
            second[j] = tanh(shared[j] + arm[j])
        u[:] = bias
        add_product(u, second, third, second.size, u.size)
        for j in range(u.size):
            u[j] = tanh(u[j])
