"""Controls: what an engineer writes in an afternoon for rewards that follow the hour.

A clever policy that loses to one of them has a fault. Times are seconds since 1970, UTC; without a
time there is one cell, and the waves are zero.

    hour-table, hour-weekend-table,   the mean reward of each arm in the cell of the time (24, 48 or
    hour-weekday-table                168 cells), a random arm in 5% of the rounds
    last-best                         the arm whose latest reward is the highest, 5% random
    hand-ts                           Bayesian linear Thompson sampling for each arm on
                                      x = [1, two waves of the day, weekend, weekend x one wave,
                                      context], one setting for every problem
    hurdle-ts                         two such models for money: the chance of a reward above 0, and
                                      the logarithm of its size, of variance v;
                                      chance x exp(log size + v / 2)

The best fixed arm in hindsight is `fixed` with the arm "best" (`baselines.py`).

The linear model of an arm has rewards in units of their running mean and deviation over all arms:

    w ~ N(P b, s^2 P),   P^-1 = I + sum x x',   b = sum x y,
    s^2 = (1 + sum y^2 - b' P b) / (1 + n)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tidepull.errors import RewardError
from tidepull.parameters import NoParameters, Parameters, parameter
from tidepull.policies.exploration import DrawnScores, any_arm, best_arm, best_shares, equal_shares
from tidepull.protocols import Pick
from tidepull.random import Streams
from tidepull.state import Stateful
from tidepull.types import Context, Event, FloatArray, ProblemShape

HOUR_SECONDS, DAY_SECONDS = 3600, 86_400
_FIRST_MONDAY_DAY = 4
"""Days from 1 January 1970, a Thursday, to the first Monday."""
_CELLS = {"hour": 24, "hour-weekend": 48, "hour-weekday": 168}
_LARGEST_LOG = 300.0
"""Sizes are compared up to e^300: beyond, floats end."""
_LEAST_CHANCE = 1e-6
"""A drawn chance is at least this, so that a size decides between arms that never paid."""


def weekday(time: float) -> int:
    """The day of the week of a time, Monday is 0.

    >>> weekday(1_767_571_200.0)  # 5 January 2026
    0
    """
    return int(time // DAY_SECONDS - _FIRST_MONDAY_DAY) % 7


def cell_of(time: float | None, cells: str) -> int:
    """The cell of a time among those of a table; 0 where there is no time.

    >>> cell_of(1_767_571_200.0 + 5 * 86_400 + 7_200, "hour-weekend")  # Saturday, 02:00
    26
    """
    if time is None:
        return 0
    hour, day = int(time % DAY_SECONDS // HOUR_SECONDS), weekday(time)
    block = {"hour": 0, "hour-weekend": int(day >= 5), "hour-weekday": day}[cells]
    return 24 * block + hour


@dataclass(frozen=True, kw_only=True)
class GreedyParameters(Parameters):
    """Parameters of `last-best`."""

    epsilon: float = parameter(0.05, "probability of a random arm", ge=0, le=1)


@dataclass(frozen=True, kw_only=True)
class TableParameters(GreedyParameters):
    """Parameters of `hour-table`, `hour-weekend-table` and `hour-weekday-table`."""

    cells: Literal["hour", "hour-weekend", "hour-weekday"] = parameter("hour", "cells of the table")


class _EpsilonGreedy(Stateful):
    """The arm of the highest value, or a random one."""

    _rng: np.random.Generator
    _epsilon: float
    _n_arms: int

    def _values(self, context: Context) -> FloatArray:
        raise NotImplementedError

    def choose(self, context: Context) -> int:
        """An available arm."""
        values = self._values(context)
        if self._rng.random() < self._epsilon:
            return any_arm(self._n_arms, context.available, self._rng)
        return best_arm(values, context.available, self._rng)

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """The exact chance of every arm."""
        best = best_shares(self._values(context)[None], context.available)
        any_ = equal_shares(self._n_arms, context.available)
        return pick((1 - self._epsilon) * best + self._epsilon * any_)


class CounterTable(_EpsilonGreedy):
    """Counters for each cell of the calendar; an arm that is new in a cell has its mean over all
    cells."""

    kind, reads_time = "hour-table", True
    state = ("counts", "sums", "generator")

    def __init__(self, parameters: TableParameters, shape: ProblemShape, streams: Streams) -> None:
        self._cells, self._epsilon = parameters.cells, parameters.epsilon
        self._n_arms = shape.n_arms
        size = (_CELLS[parameters.cells], shape.n_arms)
        self._counts, self._sums = np.zeros(size), np.zeros(size)
        self._rng = streams.generator("arms")

    def _values(self, context: Context) -> FloatArray:
        cell = cell_of(context.time, self._cells)
        overall = np.full(self._n_arms, np.inf)  # an arm that was never played comes first
        counts = self._counts.sum(axis=0)
        np.divide(self._sums.sum(axis=0), counts, out=overall, where=counts > 0)
        np.divide(self._sums[cell], self._counts[cell], out=overall, where=self._counts[cell] > 0)
        return overall

    def learn(self, event: Event) -> None:
        """One more reward in the cell of its decision."""
        cell = cell_of(event.context.time, self._cells)
        self._counts[cell, event.arm] += 1
        self._sums[cell, event.arm] += event.reward


class LastBest(_EpsilonGreedy):
    """The latest reward of each arm is its value."""

    kind = "last-best"
    state = ("seen", "latest", "generator")

    def __init__(self, parameters: GreedyParameters, shape: ProblemShape, streams: Streams) -> None:
        self._epsilon, self._n_arms = parameters.epsilon, shape.n_arms
        self._seen, self._latest = np.zeros(shape.n_arms), np.zeros(shape.n_arms)
        self._rng = streams.generator("arms")

    def _values(self, context: Context) -> FloatArray:
        return np.where(self._seen > 0, self._latest, np.inf)

    def learn(self, event: Event) -> None:
        """Remember the reward."""
        self._seen[event.arm] = 1.0
        self._latest[event.arm] = event.reward


class _ArmModels(Stateful):
    """A Bayesian linear model of each arm, of values in units of their own mean and deviation."""

    state = ("covariance", "inputs", "products", "sums", "squares", "counts")

    def __init__(self, n_arms: int, dim: int) -> None:
        self._covariance = np.tile(np.eye(dim), (n_arms, 1, 1))
        self._inputs = np.zeros((n_arms, dim))  # sum x
        self._products = np.zeros((n_arms, dim))  # sum x value
        self._sums, self._squares, self._counts = np.zeros((3, n_arms))

    def learn(self, arm: int, x: FloatArray, value: float) -> None:
        """Take in one value."""
        seen = self._covariance[arm] @ x
        self._covariance[arm] -= np.outer(seen, seen / (1 + x @ seen))
        self._inputs[arm] += x
        self._products[arm] += value * x
        self._sums[arm] += value
        self._squares[arm] += value**2
        self._counts[arm] += 1

    def draw(self, X: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
        """Drawn means of every arm at its row of X, as rows; the noise of values is
        `noise_variance`."""
        centre, unit = self._units()
        means, variances = self._predict(X, centre, unit)
        noise = rng.standard_normal((draws, len(means)))
        return np.asarray(centre + unit * (means + np.sqrt(variances) * noise))

    def noise_variance(self) -> FloatArray:
        """Of each arm's values about their model."""
        centre, unit = self._units()
        return unit**2 * self._noise(*self._standard(centre, unit))

    def _units(self) -> tuple[float, float]:
        count = max(1.0, self._counts.sum())
        centre = self._sums.sum() / count
        variance = self._squares.sum() / count - centre**2
        return float(centre), math.sqrt(variance) if variance > 1e-12 * (1 + centre**2) else 1.0

    def _standard(self, centre: float, unit: float) -> tuple[FloatArray, FloatArray]:
        """b and sum y^2."""
        b = (self._products - centre * self._inputs) / unit
        squares = self._squares - 2 * centre * self._sums + self._counts * centre**2
        return b, squares / unit**2

    def _noise(self, b: FloatArray, squares: FloatArray) -> FloatArray:
        explained = np.einsum("ki,kij,kj->k", b, self._covariance, b)
        return np.asarray((1 + np.maximum(0.0, squares - explained)) / (1 + self._counts))

    def _predict(self, X: FloatArray, centre: float, unit: float) -> tuple[FloatArray, FloatArray]:
        b, squares = self._standard(centre, unit)
        seen = np.einsum("kij,kj->ki", self._covariance, X)
        widths = np.maximum(0.0, np.einsum("ki,ki->k", X, seen))
        return np.einsum("ki,ki->k", seen, b), self._noise(b, squares) * widths


def calendar_waves(time: float | None) -> FloatArray:
    """Two waves of the day, the weekend, and one wave apart on it.

    >>> calendar_waves(0.0)  # midnight of a Thursday
    array([1., 0., 1., 0., 0., 0., 0.])
    """
    if time is None:
        return np.zeros(7)
    angle = 2 * math.pi * (time % DAY_SECONDS) / DAY_SECONDS
    weekend = 1.0 if weekday(time) >= 5 else 0.0
    wave = (math.cos(angle), math.sin(angle))
    double = (math.cos(2 * angle), math.sin(2 * angle))
    return np.array([*wave, *double, weekend, weekend * wave[0], weekend * wave[1]])


class _CalendarInputs:
    """x of every arm: [1, waves, observation, its own vector]."""

    def __init__(self, shape: ProblemShape) -> None:
        self._shape = shape
        self.dim = 8 + shape.observation_dim + shape.arm_dim

    def __call__(self, context: Context) -> FloatArray:
        rows = np.empty((self._shape.n_arms, self.dim))
        rows[:, 0] = 1.0
        rows[:, 1:8] = calendar_waves(context.time)
        if context.observation is not None:
            rows[:, 8 : 8 + self._shape.observation_dim] = context.observation
        if context.arm_features is not None:
            rows[:, 8 + self._shape.observation_dim :] = context.arm_features
        return rows


class HandThompson(DrawnScores):
    """Linear Thompson sampling for each arm on calendar and context."""

    kind, reads_time = "hand-ts", True
    state = ("models", "generator")

    def __init__(self, parameters: NoParameters, shape: ProblemShape, streams: Streams) -> None:
        self._inputs = _CalendarInputs(shape)
        self._models = _ArmModels(shape.n_arms, self._inputs.dim)
        self._rng = streams.generator("posterior")

    def learn(self, event: Event) -> None:
        """Teach the arm's model."""
        self._models.learn(event.arm, self._inputs(event.context)[event.arm], event.reward)

    def _draw(self, context: Context, draws: int) -> FloatArray:
        return self._models.draw(self._inputs(context), draws, self._rng)


class HurdleThompson(DrawnScores):
    """Thompson sampling for money: chance of a payment, times its size."""

    kind, reads_time = "hurdle-ts", True
    state = ("chances", "sizes", "generator")

    def __init__(self, parameters: NoParameters, shape: ProblemShape, streams: Streams) -> None:
        self._inputs = _CalendarInputs(shape)
        self._chances = _ArmModels(shape.n_arms, self._inputs.dim)
        self._sizes = _ArmModels(shape.n_arms, self._inputs.dim)
        self._rng = streams.generator("posterior")

    def learn(self, event: Event) -> None:
        """Teach the chance, and the size where there was a payment."""
        self.require_reward(event.reward)
        x = self._inputs(event.context)[event.arm]
        self._chances.learn(event.arm, x, float(event.reward > 0))
        if event.reward > 0:
            self._sizes.learn(event.arm, x, math.log(event.reward))

    def require_reward(self, reward: float) -> None:
        """Payments are not negative."""
        if reward < 0:
            raise RewardError(
                f"reward must be at least 0 for hurdle-ts, got {reward:g}; use hand-ts instead"
            )

    def _draw(self, context: Context, draws: int) -> FloatArray:
        X = self._inputs(context)
        chances = np.clip(self._chances.draw(X, draws, self._rng), _LEAST_CHANCE, 1.0)
        logs = self._sizes.draw(X, draws, self._rng) + self._sizes.noise_variance() / 2
        return np.asarray(chances * np.exp(np.clip(logs, -_LARGEST_LOG, _LARGEST_LOG)))
