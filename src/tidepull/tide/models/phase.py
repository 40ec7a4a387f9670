"""Correction of the period of an old season by the drift of its phase.

A sine's period is found in a window of some thousand rounds, and is a little wrong. In an old model
the phase is right in the middle of the learnt rounds and has drifted since. With w = (w_0, w_c,
w_s) of arm k, shifting the phase by p gives

    c_k(t) + cos(p) u + sin(p) v,    u = w_c cos + w_s sin,  v = w_s cos - w_c sin  (of 2 pi t / P)

so that the window says p = sum v (y - w_0 - u) / sum v^2, with the standard error s / sqrt(sum v^2)
(one step of Newton's, for small p). If the phase was right at the centre of the learnt rounds, the
frequency 1 / P is wrong by p / (2 pi (window's centre - that centre)). The corrected model has the
same posterior, turned so that both agree at that centre: w' = R w, A' = R A R', eta' =
R eta.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.family import Window
from tidepull.tide.models.spec import NO_CLOCK, NO_COVARIATE, SINE, Spec
from tidepull.types import FloatArray

_WINDOWS, _SURE = 4, 3.0
"""Windows that the model must have learnt, and standard errors of the phase drift."""


class Correction(NamedTuple):
    """A model with a corrected period, and the round in which it agrees with the incumbent."""

    spec: Spec
    centre: float


def is_plain_sine(spec: Spec) -> bool:
    """Whether a model is one sine of the rounds, without discount and context."""
    covariates = (spec.regime_by, spec.interaction, spec.appended)
    plain = not spec.contextual and spec.discount == 1 and set(covariates) == {NO_COVARIATE}
    return plain and spec.shapes == (SINE, NO_CLOCK)


def corrected(bank: ModelBank, m: int, window: Window) -> Correction | None:
    """The correction of slot m, if it is old and its phase has drifted significantly."""
    spec = bank.spec(m)
    if not is_plain_sine(spec):
        return None
    A, eta = _moments(bank, m)
    rounds = float(A[:, 0, 0].sum())
    if rounds < _WINDOWS * len(window.t):
        return None
    p, error = phase_drift(_weights(bank, m, A, eta), spec.periods[0], window, float(bank.noise(m)))
    if abs(p) < _SURE * error:
        return None
    now, seen = float(window.t[-1]), float(window.t.mean())
    centre = now - rounds / 2
    frequency = 1 / spec.periods[0] + p / (2 * math.pi * (seen - centre))
    return Correction(spec._replace(periods=(1 / frequency, spec.periods[1])), centre)


def phase_drift(
    weights: FloatArray, period: float, window: Window, noise: float
) -> tuple[float, float]:
    """Phase lag of a sine in a window, and its standard error; `weights` has a row for each arm,
    `noise` is s^2."""
    angle = 2 * math.pi * (window.t / period % 1.0)
    w = weights[window.arm]
    u = w[:, 1] * np.cos(angle) + w[:, 2] * np.sin(angle)
    v = w[:, 2] * np.cos(angle) - w[:, 1] * np.sin(angle)
    information = max(float(v @ v), 1e-12)
    return float(v @ (window.y - w[:, 0] - u)) / information, math.sqrt(noise / information)


def copy_turned(bank: ModelBank, incumbent: int, successor: int, correction: Correction) -> None:
    """Put the corrected model into slot `successor` with all that the incumbent learnt, turned about the centre."""
    arrays, before = bank.arrays, bank.spec(incumbent).periods[0]
    turned = (
        2
        * math.pi
        * ((correction.centre / correction.spec.periods[0] - correction.centre / before) % 1.0)
    )
    c, s = math.cos(turned), math.sin(turned)
    R = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    A, eta = _moments(bank, incumbent)
    bank.assign(successor, correction.spec)
    for name in ("ridge", "a", "b"):
        getattr(arrays, name)[successor] = getattr(arrays, name)[incumbent]
    n = len(A)
    arrays.stamp[arrays.block_at[successor] :][:n] = arrays.stamp[arrays.block_at[incumbent] :][:n]
    arrays.vec[arrays.vec_at[successor] :][: eta.size] = (eta @ R.T).ravel()
    arrays.mat[arrays.mat_at[successor] :][: A.size] = (R @ A @ R.T).ravel()


def _moments(bank: ModelBank, m: int) -> tuple[FloatArray, FloatArray]:
    """A and eta of every arm; kernels keep A on the diagonal and above it."""
    arrays, n = bank.arrays, bank.layout.n_arms
    A = np.triu(arrays.mat[arrays.mat_at[m] :][: 9 * n].reshape(n, 3, 3))
    eta = arrays.vec[arrays.vec_at[m] :][: 3 * n].reshape(n, 3)
    return A + np.triu(A, 1).transpose(0, 2, 1), eta.copy()


def _weights(bank: ModelBank, m: int, A: FloatArray, eta: FloatArray) -> FloatArray:
    precision = A + float(bank.arrays.ridge[m]) * np.eye(3)
    return np.asarray(np.linalg.solve(precision, eta[:, :, None])[:, :, 0])
