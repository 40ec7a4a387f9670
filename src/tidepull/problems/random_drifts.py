"""Drifts drawn at random, for worlds that nobody designed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidepull.errors import ProblemError
from tidepull.problems.change_points import redrawn, stays
from tidepull.problems.drift import read_only
from tidepull.types import FloatArray, IntArray

LONGEST = 16_384
"""Rounds for which a drawn drift is worked out beforehand."""
STRETCHES = ("few-changes", "many-changes", "returning")


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A vector for each round, one row each."""

    rows: FloatArray
    step: float = 0.0
    """How far each number walks in a round; 0 where they stay, jump or swing."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", read_only(self.rows))

    def __call__(self, t: int) -> FloatArray:
        """Row t."""
        if t >= len(self.rows):
            raise ProblemError(
                f"a random world ends after {len(self.rows)} rounds; shorten the horizon"
            )
        row: FloatArray = self.rows[t]
        return row

    def variation(self, horizon: int) -> float:
        """The sum of ||w(t+1) - w(t)||."""
        moves = np.diff(self.rows[: horizon + 1], axis=0)
        return float(np.linalg.norm(moves, axis=1).sum())


@dataclass(frozen=True, eq=False)
class Swinging(Tabulated):
    """Means that swing: rows = centre + the sum of reach x sine over the `sines`, one column for
    each arm."""

    sines: tuple[FloatArray, ...] = ()

    def waves(self, t: int) -> FloatArray:
        """A level and every sine, a row for each arm."""
        return np.stack([np.ones(self.rows.shape[1]), *(sine[t] for sine in self.sines)], axis=1)


@dataclass(frozen=True, eq=False)
class SwingingStretches(Swinging):
    """Means that swing, and after unannounced rounds swing about other centres; `stretch` numbers
    them."""

    stretch: IntArray | None = None


@dataclass(frozen=True, eq=False)
class Turning(Tabulated):
    """Vectors that turn in a plane: w(t) = cos(angle) u + sin(angle) v."""

    angles: FloatArray | None = None

    def turned(self, features: FloatArray, t: int) -> FloatArray:
        """w(t) . x = (u, v) . (cos(angle) x, sin(angle) x), for every row x."""
        assert self.angles is not None
        angle = float(self.angles[t])
        return np.concatenate([np.cos(angle) * features, np.sin(angle) * features], axis=1)


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def phases_of(kind: str, rng: np.random.Generator) -> IntArray:
    """Which of two regimes holds in each round: taking turns regularly, or for random durations."""
    t = np.arange(LONGEST)
    if kind == "flip":
        half = int(log_uniform(rng, 4, 120))
        return (t + int(rng.integers(2 * half))) // half % 2
    mean = log_uniform(rng, 15, 150)
    return np.cumsum(rng.random(LONGEST) < 1 / mean) % 2


def drifting_means(kind: str, n: int, rng: np.random.Generator) -> Tabulated:
    """Expected rewards of n arms in [0, 1] over the rounds (rows)."""
    t = np.arange(LONGEST)[:, None]
    if kind == "stationary":
        return Tabulated(np.broadcast_to(rng.random(n), (LONGEST, n)))
    if kind in ("flip", "irregular"):
        regimes = rng.random((2, n))
        return Tabulated(regimes[phases_of(kind, rng)])
    if kind == "sine":
        rows, sine = _sine(t, n, rng)
        return Swinging(rows, sines=(sine,))
    if kind == "seasons":
        (first, one), (second, other) = _sine(t, n, rng), _sine(t, n, rng)
        return Swinging((first + second) / 2, sines=(one, other))
    if kind == "mixed":
        return _mixed(t, n, rng)
    if kind in STRETCHES:
        return Tabulated(_stretches(kind, lambda m, alone: redrawn(n, m - 1, not alone, rng), rng))
    if kind == "walk":
        step = log_uniform(rng, 0.005, 0.05)
        start, steps = rng.random(n), rng.standard_normal((LONGEST, n))
        return Tabulated(reflected(start + step * np.cumsum(steps, axis=0)), step)
    raise ProblemError(f"there is no drift '{kind}'")


def drifting_vectors(kind: str, dim: int, rng: np.random.Generator) -> Tabulated:
    """Unit weight vectors over the rounds (rows)."""
    pair = rng.standard_normal((2, dim))
    pair[1] -= pair[1] @ pair[0] / (pair[0] @ pair[0]) * pair[0]
    first, second = pair / np.linalg.norm(pair, axis=1, keepdims=True)
    if kind == "stationary":
        return Tabulated(np.broadcast_to(first, (LONGEST, dim)))
    if kind in ("flip", "irregular"):
        other = -first if rng.random() < 0.5 else second
        return Tabulated(np.stack([first, other])[phases_of(kind, rng)])
    if kind == "sine":
        angle = 2 * np.pi * (np.arange(LONGEST)[:, None] / log_uniform(rng, 8, 1000) + rng.random())
        return Turning(np.cos(angle) * first + np.sin(angle) * second, angles=angle[:, 0])
    if kind in STRETCHES:
        return Tabulated(_stretches(kind, lambda m, _: unit_rows(m, dim, rng), rng))
    if kind == "walk":
        steps = rng.standard_normal((LONGEST, dim)) / np.sqrt(dim)
        step = log_uniform(rng, 0.003, 0.03)
        path = first + step * np.cumsum(steps, axis=0)
        return Tabulated(path / np.linalg.norm(path, axis=1, keepdims=True), step / np.sqrt(dim))
    raise ProblemError(f"there is no drift '{kind}' for vectors")


def _stretches(
    kind: str, values: Callable[[int, bool], FloatArray], rng: np.random.Generator
) -> FloatArray:
    """Few changes (3 to 9 in 5,000 rounds on average), many (20 to 60), or two to five regimes that
    return; `values` makes so many rows, which differ from the row before in one place or in all."""
    if kind == "returning":
        regimes = int(rng.integers(2, 6))
        starts, ruling = stays(regimes, log_uniform(rng, 80, 500), LONGEST, rng)
        rows = values(regimes, False)[ruling]
    else:
        low, high = (3, 9) if kind == "few-changes" else (20, 60)
        starts = np.flatnonzero(rng.random(LONGEST) < rng.integers(low, high + 1) / 5000)
        starts = np.concatenate([[0], starts[starts > 0]])
        rows = values(len(starts), bool(rng.random() < 0.5))
    return np.asarray(np.repeat(rows, np.diff(np.append(starts, LONGEST)), axis=0))


def _mixed(t: IntArray, n: int, rng: np.random.Generator) -> SwingingStretches:
    """A season about centres that are drawn anew once in about 700 rounds."""
    sine = np.sin(2 * np.pi * (t / log_uniform(rng, 8, 200) + rng.random(n)))
    stretch: IntArray = np.cumsum(rng.random(LONGEST) < 1 / 700, dtype=np.int64)
    centre = rng.uniform(0.3, 0.7, (int(stretch[-1]) + 1, n))
    reach = 0.3 * rng.uniform(0.5, 1.0, n)
    return SwingingStretches(centre[stretch] + reach * sine, sines=(sine,), stretch=stretch)


def unit_rows(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Unit vectors in random directions."""
    rows = rng.standard_normal((n, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _sine(t: IntArray, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Means that swing about a centre of their own, and the sine by itself."""
    period = log_uniform(rng, 8, 400)
    centre, phase = rng.uniform(0.3, 0.7, n), rng.random(n)
    reach = np.minimum(centre, 1 - centre) * rng.uniform(0.5, 1.0, n)
    sine = np.sin(2 * np.pi * (t / period + phase))
    return np.asarray(centre + reach * sine), np.asarray(sine)


def reflected(values: FloatArray) -> FloatArray:
    """Fold the line into [0, 1] like a mirror at both ends."""
    return 1 - np.abs(values % 2 - 1)
