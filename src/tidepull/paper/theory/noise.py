"""Reward noise that is sigma-sub-Gaussian with exactly the stated sigma, and bounded measurement error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np

from tidepull.paper.theory.bound import Floats

Noise: TypeAlias = Literal["gaussian", "rademacher", "uniform"]
ErrorKind: TypeAlias = Literal["sphere", "aligned"]
Schedule: TypeAlias = Literal["constant", "shrinking", "bursts"]
NOISES: tuple[Noise, ...] = get_args(Noise)
ERRORS: tuple[ErrorKind, ...] = get_args(ErrorKind)
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)

_BURST, _PAUSE = 16, 48


def _gaussian(rng: np.random.Generator, n: int) -> Floats:
    """E exp(a Z) = exp(a^2 / 2)."""
    return rng.standard_normal(n)


def _rademacher(rng: np.random.Generator, n: int) -> Floats:
    """A fair sign: E exp(a Z) = cosh(a) <= exp(a^2 / 2)."""
    return np.asarray(2.0 * rng.integers(0, 2, n) - 1.0, np.float64)


def _uniform(rng: np.random.Generator, n: int) -> Floats:
    """Uniform on [-sqrt(3), sqrt(3)]: E exp(a Z) = sinh(sqrt(3) a) / (sqrt(3) a) <= exp(a^2 / 2)."""
    return rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), n)


_DRAWS: dict[Noise, Callable[[np.random.Generator, int], Floats]] = {
    "gaussian": _gaussian,
    "rademacher": _rademacher,
    "uniform": _uniform,
}


def draw_noise(kind: Noise, rng: np.random.Generator, n: int) -> Floats:
    """`n` draws of mean 0, variance 1 and sub-Gaussian scale 1."""
    return _DRAWS[kind](rng, n)


def size(schedule: Schedule, t: int) -> float:
    """epsilon_t / epsilon: 1 always; 1 / sqrt(t); or 1 for 16 rounds and 0 for 48, in turn."""
    if schedule == "shrinking":
        return 1.0 / math.sqrt(t)
    return 1.0 if schedule == "constant" or (t - 1) % (_BURST + _PAUSE) < _BURST else 0.0


def observe(truth: Floats, w: Floats, normals: Floats, epsilon: float, kind: ErrorKind) -> Floats:
    """Observed contexts: the truth plus an error of length epsilon, brought back into the unit ball.

    'sphere': in a uniformly random direction. 'aligned': along w with a random sign, the direction in which an
    error of that length moves the reward most. The error is drawn afresh whatever happened before; bringing
    back is a projection onto a convex set that holds the truth, so it never lengthens the error.
    """
    if epsilon == 0:
        return truth
    along_w = kind == "aligned"
    direction = np.sign(normals[..., :1]) * unit(w)[..., None, :] if along_w else unit(normals)
    shifted = truth + epsilon * direction
    norm = np.sqrt(np.sum(shifted * shifted, axis=-1, keepdims=True))
    return np.asarray(shifted / np.maximum(norm, 1.0))


def unit(vectors: Floats) -> Floats:
    """Vectors of length 1 in the same directions."""
    return np.asarray(vectors / np.sqrt(np.sum(vectors * vectors, axis=-1, keepdims=True)))
