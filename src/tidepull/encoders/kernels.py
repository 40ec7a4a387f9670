"""The compiled loops of training: everything that is not a matrix product over a whole sequence.

All kernels are built for float32 and, with exact hyperbolic tangents, for float64. They are compiled
on first use and kept in numba's cache on disk. `fastmath` lets sums be reordered and fused, but not
numbers that are not finite be assumed away: a diverged network must still show itself.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numba import njit

from tidepull.encoders import simd
from tidepull.encoders.activations import OPTIONS, Kernel, sigmoid, tanh
from tidepull.types import FloatArray

ONE = np.float32(1.0)
TURN = 2.0 * math.pi


def lanes_of(hidden: int) -> int:
    """Width of the vectors in which an LSTM of that size is computed."""
    return math.gcd(hidden, 8)


@functools.cache
def recurrence(hidden: int) -> tuple[Kernel, Kernel]:
    """Forward and backward loops of an LSTM whose size is known to the compiler.

    The four gates lie side by side in a row: input, forget, output, candidate. The recurrent matrix W and its
    transpose WT are packed (`simd.pack`).
    """
    H2, H3, H4 = 2 * hidden, 3 * hidden, 4 * hidden
    lanes = lanes_of(hidden)

    @njit(**OPTIONS)
    def forward(G: FloatArray, W: FloatArray, H: FloatArray, C: FloatArray, TC: FloatArray) -> None:
        """G holds x_t Wx + b and becomes the gates; row t + 1 of H and C the state after round t."""
        for t in range(G.shape[0]):
            row, now, after = t * H4, t * hidden, (t + 1) * hidden
            simd.add_product(G, row, H, now, W, hidden, H4, lanes, t % 2 == 1)
            for j in range(0, hidden, lanes):
                i = sigmoid(simd.load(G, row + j, lanes))
                f = sigmoid(simd.load(G, row + hidden + j, lanes))
                o = sigmoid(simd.load(G, row + H2 + j, lanes))
                a = tanh(simd.load(G, row + H3 + j, lanes))
                # c_t = f c_{t-1} + i a and h_t = o tanh(c_t)
                c = f * simd.load(C, now + j, lanes) + i * a
                tc = tanh(c)
                simd.store(G, row + j, i)
                simd.store(G, row + hidden + j, f)
                simd.store(G, row + H2 + j, o)
                simd.store(G, row + H3 + j, a)
                simd.store(C, after + j, c)
                simd.store(TC, now + j, tc)
                simd.store(H, after + j, o * tc)

    @njit(**OPTIONS)
    def backward(
        G: FloatArray, WT: FloatArray, C: FloatArray, TC: FloatArray, DH: FloatArray, window: int
    ) -> None:
        """G holds the gates and becomes the loss's gradient before them; DH is that of the outputs h.

        No gradient passes from one window of rounds to the one before it.
        """
        last = G.shape[0] - 1
        one = G.dtype.type(1)
        DC = np.zeros(hidden, G.dtype)
        for t in range(last, -1, -1):
            row, now = t * H4, t * hidden
            if (t + 1) % window == 0:
                for j in range(hidden):
                    DC[j] = 0
            elif t < last:
                simd.add_product(DH, now, G, row + H4, WT, H4, hidden, lanes, t % 2 == 1)
            for j in range(0, hidden, lanes):
                i, f = simd.load(G, row + j, lanes), simd.load(G, row + hidden + j, lanes)
                o, a = simd.load(G, row + H2 + j, lanes), simd.load(G, row + H3 + j, lanes)
                tc, dh = simd.load(TC, now + j, lanes), simd.load(DH, now + j, lanes)
                dc = simd.load(DC, j, lanes) + dh * o * (one - tc * tc)
                df = dc * f
                simd.store(DC, j, df)
                simd.store(G, row + j, dc * a * i * (one - i))
                simd.store(G, row + hidden + j, df * simd.load(C, now + j, lanes) * (one - f))
                simd.store(G, row + H2 + j, dh * tc * o * (one - o))
                simd.store(G, row + H3 + j, dc * i * (one - a * a))

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
def sinusoid_gradient(
    DS: FloatArray, C: FloatArray, start: int, grad_a: FloatArray, grad_b: FloatArray
) -> None:
    """Gradients of a and b from those of sin(a t + b) and the cosines, t from `start`, summed in float64."""
    for i in range(grad_a.size):
        ds, c, by_time, total = DS[i], C[i], 0.0, 0.0
        for t in range(c.size):
            value = float(ds[t] * c[t])
            by_time += value * (start + t)
            total += value
        grad_a[i], grad_b[i] = by_time, total
