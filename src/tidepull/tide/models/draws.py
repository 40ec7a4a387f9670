"""Draws under several models, as a decision by shares needs them: one call of a kernel for all
of them.

The generator is asked in the order in which models would be asked one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidepull.tide.models import kernels
from tidepull.tide.models.held import Ready
from tidepull.tide.models.kernels import Bank
from tidepull.tide.models.notes import Moment
from tidepull.types import FloatArray


def together(
    ready: Ready,
    bank: Bank,
    widths: FloatArray,
    found: Mapping[int, int],
    moment: Moment,
    X: FloatArray,
    binary: bool,
    rng: np.random.Generator,
    *,
    about: Mapping[int, int] | None = None,
) -> FloatArray:
    """So many draws of every arm's expected reward under each slot, one a row, where arms have
    blocks of their own; `widths` are those of `NoisePrior`. With `about`, a draw leaves the mean of
    its own slot for the average of means of those slots (of which it is one), each counted so many
    times: what it adds is its uncertainty alone."""
    asked, n_arms = about or found, len(X)
    slots = np.array(list(asked))
    first, second = np.empty((len(slots), n_arms)), np.empty((len(slots), n_arms))
    kernels.prospects_held(
        ready(bank), slots, moment.t, moment.notes, moment.each, X, binary, widths, first, second
    )
    counted = (bank.dim[slots] == 1) & binary
    drawn = {}
    for i, m in enumerate(asked):
        count = found.get(m, 0)
        if count and counted[i]:
            drawn[i] = 2 * rng.beta(first[i], second[i], (count, n_arms)) - 1
        elif count:
            std = np.sqrt(bank.b[m] / rng.gamma(bank.a[m], size=(count, 1)))
            drawn[i] = first[i] + std * second[i] * rng.standard_normal((count, n_arms))
    if about is not None and len(about) > 1:
        means = np.where(counted[:, None], 2 * first / (first + second) - 1, first)
        average = np.average(means, axis=0, weights=list(about.values()))
        drawn = {i: rows + (average - means[i]) for i, rows in drawn.items()}
    rows = list(drawn.values())
    return rows[0] if len(rows) == 1 else np.concatenate(rows)
