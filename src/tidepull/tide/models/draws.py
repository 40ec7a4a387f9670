"""Draws under several models, by one call of a kernel.

Random numbers are drawn in the order of draws under one model after the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tidepull._internal.kernels import kernel
from tidepull.tide.models import kernels
from tidepull.tide.models.boxed import PythonBox
from tidepull.tide.models.covariates import RoundState
from tidepull.types import FloatArray, IntArray


def sample_many(
    box: PythonBox,
    draw_scales: FloatArray,
    n_draws: Mapping[int, int],
    state: RoundState,
    X: FloatArray,
    binary: bool,
    rng: PythonBox,
    *,
    about: Mapping[int, int] | None = None,
) -> FloatArray:
    """Sample `n_draws[m]` reward vectors from each model m of a boxed bank, one a row, where arms have blocks of
    their own; `draw_scales` are those of `NoisePrior`. With `about`, a draw is centred on the
    average prediction of those models (of which it is one), weighted by their counts: only its
    error is its own."""
    asked = about or n_draws
    slots = np.array(list(asked))
    counts = np.array([n_draws.get(m, 0) for m in asked])
    averaged = about is not None and len(about) > 1
    weights = np.array([float(asked[m]) if averaged else 0.0 for m in asked])
    drawn = np.empty((sum(n_draws.values()), len(X)))
    sample_boxed(
        box, slots, counts, weights, state.t, state.covariates, state.per_arm, X, binary,
        draw_scales, rng, drawn,
    )  # fmt: skip
    return drawn


def _sample_in_numpy(
    box: PythonBox, slots: IntArray, counts: IntArray, weights: FloatArray, t: int,
    covariates: FloatArray, per_arm: FloatArray, X: FloatArray, binary: bool, draw_scales: FloatArray,
    boxed_rng: PythonBox, drawn: FloatArray,
) -> None:  # fmt: skip
    bank, rng, n_arms, row = box.arrays, boxed_rng.arrays, len(X), 0
    first, second = np.empty((len(slots), n_arms)), np.empty((len(slots), n_arms))
    kernels.predict_many(bank, slots, t, covariates, per_arm, X, binary, draw_scales, first, second)
    counted = (bank.dim[slots] == 1) & binary
    means = np.where(counted[:, None], 2 * first / (first + second) - 1, first)
    average = (weights[:, None] * means).sum(axis=0) / (weights.sum() or 1.0)
    for i, m in enumerate(slots.tolist()):
        rows = drawn[row : row + counts[i]]
        row += int(counts[i])
        if counted[i]:
            rows[:] = 2 * rng.beta(first[i], second[i], rows.shape) - 1
        elif len(rows):
            std = np.sqrt(bank.b[m] / rng.gamma(bank.a[m], size=(len(rows), 1)))
            rows[:] = first[i] + std * second[i] * rng.standard_normal(rows.shape)
        if weights.any():
            rows += average - means[i]


@kernel(until_compiled=_sample_in_numpy, nogil=True)
def sample_boxed(
    box: PythonBox, slots: IntArray, counts: IntArray, weights: FloatArray, t: int,
    covariates: FloatArray, per_arm: FloatArray, X: FloatArray, binary: bool, draw_scales: FloatArray,
    boxed_rng: PythonBox, drawn: FloatArray,
) -> None:  # fmt: skip
    """`sample_many` of a boxed bank: `counts` draws (rows) of each slot, about the average
    of means by `weights` (all 0: each about its own mean)."""
    bank, rng, n_arms, row = box.arrays, boxed_rng.arrays, X.shape[0], 0
    first, second = np.empty((len(slots), n_arms)), np.empty((len(slots), n_arms))
    kernels.predict_many(bank, slots, t, covariates, per_arm, X, binary, draw_scales, first, second)
    average, total = np.zeros(n_arms), 0.0
    for i in range(len(slots)):
        total += weights[i]
        for k in range(n_arms):
            average[k] += weights[i] * _mean(
                bank.dim[slots[i]] == 1 and binary, first[i, k], second[i, k]
            )
    for i in range(len(slots)):
        m, counted, start = slots[i], bank.dim[slots[i]] == 1 and binary, row
        row += counts[i]
        if counted:
            for n in range(start, row):
                for k in range(n_arms):
                    drawn[n, k] = 2 * rng.beta(first[i, k], second[i, k]) - 1
        else:
            for n in range(start, row):
                drawn[n, 0] = math.sqrt(bank.b[m] / rng.gamma(bank.a[m], 1.0))
            for n in range(start, row):
                std = drawn[n, 0]
                for k in range(n_arms):
                    drawn[n, k] = first[i, k] + std * second[i, k] * rng.standard_normal()
        if total > 0.0:
            for n in range(start, row):
                for k in range(n_arms):
                    drawn[n, k] += average[k] / total - _mean(counted, first[i, k], second[i, k])


@kernel(nogil=True, inline=True)
def _mean(counted: bool, first: float, second: float) -> float:
    """The mean of a Beta distribution from -1 to 1, or of a normal one."""
    return 2 * first / (first + second) - 1 if counted else first
