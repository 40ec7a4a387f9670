"""Draws under several hypotheses, as a decision by shares needs them: one call of a kernel for all of them.

The generator is asked in the order in which hypotheses would be asked one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidepull.hypotheses import kernels
from tidepull.hypotheses.held import Ready
from tidepull.hypotheses.kernels import Bank
from tidepull.hypotheses.notes import Moment
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
) -> FloatArray:
    """So many draws of every arm's expected reward under each slot, one a row, where arms have blocks of their own;
    `widths` are those of `NoisePrior`."""
    slots, n_arms = np.array(list(found)), len(X)
    first, second = np.empty((len(slots), n_arms)), np.empty((len(slots), n_arms))
    kernels.prospects_held(
        ready(bank), slots, moment.t, moment.notes, moment.each, X, binary, widths, first, second
    )
    drawn = []
    for i, (m, count) in enumerate(found.items()):
        if binary and bank.dim[m] == 1:
            drawn.append(2 * rng.beta(first[i], second[i], (count, n_arms)) - 1)
        else:
            std = np.sqrt(bank.b[m] / rng.gamma(bank.a[m], size=(count, 1)))
            drawn.append(first[i] + std * second[i] * rng.standard_normal((count, n_arms)))
    return drawn[0] if len(drawn) == 1 else np.concatenate(drawn)
