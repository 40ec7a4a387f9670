"""How the weights of a network begin."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from tidepull.types import FloatArray

Init: TypeAlias = Literal["authors-code", "paper-text", "scaled"]
"""Where the paper's text and its authors' code differ, both are to be had.

- `authors-code`: dense weights from a normal distribution cut at 2; the LSTM's from Glorot's uniform one, and 1 is
  added inside its forget gate. The paper's figures come from this.
- `paper-text`: every weight, the LSTM's too, from the normal distribution cut at 2, and nothing is added.
- `scaled`: as `authors-code`, with dense weights divided by the root of their fan-in.

All biases begin at 0. The feedforward network has no LSTM: for it the first two are the same.
"""

STORED_AS = {"authors-code": "paper"}
"""What stored trials and snapshots call it."""


def truncated_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Standard normal numbers; those farther than 2 from zero are drawn again."""
    values = rng.standard_normal(shape)
    while (far := np.abs(values) > 2.0).any():
        values[far] = rng.standard_normal(int(far.sum()))
    return values


def glorot_uniform(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Uniform numbers within ±sqrt(6 / (rows + columns))."""
    limit = math.sqrt(6.0 / (shape[0] + shape[1]))
    return rng.uniform(-limit, limit, shape)


def dense(rng: np.random.Generator, shape: tuple[int, ...], *, scaled: bool) -> FloatArray:
    """Weights of a dense layer with `shape[0]` inputs; scaled: divided by the root of that number."""
    values = truncated_normal(rng, shape)
    return values / math.sqrt(shape[0]) if scaled else values
