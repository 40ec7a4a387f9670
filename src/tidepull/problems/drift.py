"""How a world's constants move: frozen functions of the round t, and how far they move in all.

The first round is t = 0. Every value is a read-only array, so it may be handed out as it is. The
classes at the end are for parameters that know when their world changes (`protocols.HasRegimes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tidepull.types import BoolArray, FloatArray, IntArray


class Drift(Protocol):
    """A vector for every round."""

    def __call__(self, t: int) -> FloatArray:
        """The vector in round t."""

    def variation(self, horizon: int) -> float:
        """How far it moves: the sum of ||w(t+1) - w(t)|| over the rounds t = 0 ... horizon - 1."""


def read_only(values: Any) -> FloatArray:
    """A copy as floats that nobody can write to."""
    array = np.array(values, dtype=float)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Constant:
    """No drift at all."""

    value: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", read_only(self.value))

    def __call__(self, t: int) -> FloatArray:
        """The same vector in every round."""
        return self.value

    def variation(self, horizon: int) -> float:
        """Zero."""
        return 0.0


@dataclass(frozen=True, eq=False)
class Flip:
    """`first` for `half_period` rounds, `second` for as many, `first` again, and so on."""

    first: FloatArray
    second: FloatArray
    half_period: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", read_only(self.first))
        object.__setattr__(self, "second", read_only(self.second))

    def __call__(self, t: int) -> FloatArray:
        """The vector of the phase that round t belongs to."""
        return self.second if is_flipped(t, self.half_period) else self.first

    def variation(self, horizon: int) -> float:
        """One jump at the end of every phase: 2 ||w|| each where `second` is -w."""
        return horizon // self.half_period * float(np.linalg.norm(self.second - self.first))


@dataclass(frozen=True, eq=False)
class PartialFlip:
    """`first` for `change_at` rounds, then for good the same vector with the signs in `mask`
    switched."""

    first: FloatArray
    mask: BoolArray
    change_at: int
    second: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", read_only(self.first))
        object.__setattr__(self, "second", read_only(np.where(self.mask, -self.first, self.first)))

    def __call__(self, t: int) -> FloatArray:
        """The vector before or after the change."""
        return self.first if t < self.change_at else self.second

    def variation(self, horizon: int) -> float:
        """One jump of 2 ||masked part of w||, once the horizon reaches it."""
        return float(np.linalg.norm(self.second - self.first)) if horizon >= self.change_at else 0.0


@dataclass(frozen=True)
class Sine:
    """Arms on one sine with equally spaced phases: 1/2 + sin(2 pi t / period + 2 pi k / K) / 2."""

    n_arms: int
    period: float

    def __call__(self, t: int) -> FloatArray:
        """The value of every arm k = 0 ... K - 1 in round t."""
        phase = math.fmod(t, self.period) / self.period + np.arange(self.n_arms) / self.n_arms
        angle = 2 * math.pi * phase
        return _locked(0.5 + np.sin(angle) / 2)

    def waves(self, t: int) -> FloatArray:
        """A level and the one sine, for every arm with its own phase."""
        return np.stack([np.ones(self.n_arms), 2 * self(t) - 1], axis=1)

    def variation(self, horizon: int) -> float:
        """Summed round by round."""
        values = np.array([self(t) for t in range(horizon + 1)])
        return float(np.linalg.norm(np.diff(values, axis=0), axis=1).sum())


@dataclass(frozen=True)
class Rotation:
    """A unit vector in the plane that turns: (cos 2 pi f t, sin 2 pi f t) with f = 1 / period."""

    period: float

    def __call__(self, t: int) -> FloatArray:
        """The unit vector in round t."""
        angle = 2 * math.pi * math.fmod(t, self.period) / self.period
        return _locked(np.array([math.cos(angle), math.sin(angle)]))

    def variation(self, horizon: int) -> float:
        """The chord 2 |sin(pi f)| in every round."""
        return horizon * 2 * abs(math.sin(math.pi / self.period))

    def turned(self, features: FloatArray, t: int) -> FloatArray:
        """w(t) . x = w(0) . (x turned back by the same angle), for every row x."""
        c, s = self(t)
        return np.asarray(features @ np.array([[c, -s], [s, c]]))

    def arc_length(self, horizon: int) -> float:
        """The same along the circle, 2 pi f in every round; never shorter than the chords."""
        return horizon * 2 * math.pi / self.period


def is_flipped(t: int, half_period: int) -> bool:
    """Whether round t lies in the second, fourth, ... phase of `half_period` rounds."""
    return t // half_period % 2 == 1


def _locked(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


class FlipsRegularly:
    """Two regimes take turns, each for `half_period` rounds."""

    half_period: int

    def changes(self, horizon: int) -> IntArray:
        """Rounds h, 2 h, 3 h and so on."""
        return np.arange(self.half_period, horizon, self.half_period)

    def returns_after(self) -> float:
        """Once both regimes have had their turn."""
        return 2.0 * self.half_period


class ChangesOnce:
    """One change for good, in round `change_at`."""

    change_at: int

    def changes(self, horizon: int) -> IntArray:
        """That round, if the trial reaches it."""
        return np.array([self.change_at] if self.change_at < horizon else [], np.int64)

    def returns_after(self) -> None:
        """It never returns."""


class Oscillates:
    """A smooth oscillation of `period` rounds: it has phases, but nothing changes abruptly."""

    period: float

    def changes(self, horizon: int) -> IntArray:
        """None at all."""
        return np.empty(0, np.int64)

    def returns_after(self) -> float:
        """After a whole period."""
        return float(self.period)
