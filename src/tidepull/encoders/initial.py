"""How the weights of a network begin."""

from __future__ import annotations

import math

import numpy as np

from tidepull.types import FloatArray


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
