"""Worlds drawn at random: the development suite of `tide`, and a fair field for any other policy.

`world` decides the kind of drift, periods, phases, means, noise, dimensions and arms; the trial's
seed decides only the noise and the contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from tidepull.errors import ProblemError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.arms import DriftingArms, WallClockArms, WallClockParameters
from tidepull.problems.drift import Constant, read_only
from tidepull.problems.linear import LinearProblem, PoolSampler, unit_vectors
from tidepull.problems.markov import ParityMachine, RottingArms, TwoStepChain
from tidepull.problems.random_drifts import (
    LONGEST,
    drifting_means,
    drifting_vectors,
    log_uniform,
    phases_of,
    reflected,
)
from tidepull.problems.rewards import (
    BernoulliReward,
    GaussianReward,
    HeavyReward,
    Reward,
    SimulatedProblem,
    levels,
    noise_of,
)
from tidepull.protocols import Problem
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, IntArray, Structure


class Landscape(NamedTuple):
    """What sensors and labels make of a point: sensor j shows tanh(gain_j . point + shift_j), noise
    added; the label is that of the nearest landmark, so that regions are no half spaces."""

    gain: FloatArray  # (dim, sensors)
    shift: FloatArray
    landmarks: FloatArray  # (landmarks, dim)
    labels: IntArray
    speed: float
    noise: float

    def walk(self, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Readings and labels of a walk of `LONGEST` rounds within the unit cube."""
        dim, sensors = self.gain.shape
        steps = self.speed * rng.standard_normal((LONGEST, dim))
        points = reflected(rng.random(dim) + np.cumsum(steps, axis=0))
        seen = np.tanh((points - 0.5) @ self.gain + self.shift)
        readings = seen + self.noise * rng.standard_normal((LONGEST, sensors))
        away = np.sum((points[:, None, :] - self.landmarks) ** 2, axis=2)
        return readings, self.labels[np.argmin(away, axis=1)]


def random_landscape(n_labels: int, rng: np.random.Generator) -> Landscape:
    """Two to four hidden dimensions, 10 to 40 sensors, three landmarks for each label."""
    dim, sensors = int(rng.integers(2, 5)), int(rng.integers(10, 41))
    return Landscape(
        gain=rng.standard_normal((dim, sensors)) * log_uniform(rng, 1.0, 6.0),
        shift=rng.standard_normal(sensors),
        landmarks=rng.random((3 * n_labels, dim)),
        labels=np.repeat(np.arange(n_labels), 3),
        speed=log_uniform(rng, 0.01, 0.1),
        noise=log_uniform(rng, 0.02, 0.3),
    )


class LabelledPath(SimulatedProblem):
    """One arm pays for each label; which one, takes turns between two rules."""

    def __init__(
        self,
        readings: FloatArray,
        labels: IntArray,
        rules: IntArray,
        phases: IntArray,
        reward: Reward,
    ) -> None:
        self.n_arms = rules.shape[1]
        self._readings, self._best = read_only(readings), rules[phases, labels]
        self._rows = [read_only(row) for row in np.eye(self.n_arms)]
        self.reward, self._labels, self._phases = reward, labels, phases
        self._t = 0

    def context(self) -> Context:
        """What the sensors read."""
        self._check_round()
        return Context(observation=self._readings[self._t])

    def means(self) -> FloatArray:
        """1 for the arm of the label, 0 for all others."""
        self._check_round()
        return self._rows[int(self._best[self._t])]

    def _advance(self, arm: int) -> None:
        self._t += 1

    def structure(self) -> Structure:
        """Which label it is, and which of the two rules holds; what each arm pays then is to be
        learnt."""
        state = int(self._labels[self._t]) + self.n_arms * int(self._phases[self._t])
        return levels(np.arange(self.n_arms) + self.n_arms * state, noise_of(self.reward))

    def _check_round(self) -> None:
        if self._t >= len(self._best):
            raise ProblemError(f"a path ends after {len(self._best)} rounds; shorten the horizon")


Kind = Literal[
    "any", "arms-stationary", "arms-flip", "arms-irregular", "arms-sine", "arms-seasons", "arms-walk", "arms-chain",
    "vectors-stationary", "vectors-flip", "vectors-irregular", "vectors-sine", "vectors-walk",
    "labels-stationary", "labels-flip", "labels-irregular", "labels-slow",
    "outside-parity", "outside-two-step",
    "paths-stationary", "paths-flip", "paths-irregular",
    "arms-few-changes", "arms-many-changes", "arms-returning",
    "vectors-few-changes", "vectors-many-changes", "vectors-returning",
    "arms-mixed", "arms-rotting", "arms-heavy", "arms-many", "arms-clock", "vectors-wide", "labels-wide",
    "clicks-stationary", "clicks-flip", "clicks-sine", "clicks-walk",
    "clicks-few-changes", "clicks-many-changes", "clicks-returning",
]  # fmt: skip
KINDS = tuple(kind for kind in get_args(Kind) if kind != "any")
DRAWN = tuple(
    kind for kind in KINDS[: KINDS.index("arms-few-changes")] if not kind.startswith("outside")
)
"""Those that take turns when any is asked for; kinds that came later must not renumber the
worlds."""


@dataclass(frozen=True, kw_only=True)
class RandomWorldParameters(Parameters):
    """Parameters of `random-world`."""

    world: int = parameter(0, "number of the world", ge=0)
    kind: Kind = parameter("any", "kind of world (any: by turns of the world's number)")
    by_seed: bool = parameter(
        False, "every trial has a world of its own: its number is the seed", added=True
    )


def random_world(parameters: RandomWorldParameters, streams: Streams) -> Problem:
    """The world of that number, with noise and contexts from the streams."""
    world = streams.seed if parameters.by_seed else parameters.world
    kind = DRAWN[world % len(DRAWN)] if parameters.kind == "any" else parameters.kind
    shape, drift = kind.split("-", 1)
    rng = Streams(world).child("world").generator(kind)
    return _BUILDERS[shape](drift, rng, streams)


def _arms(drift: str, rng: np.random.Generator, streams: Streams) -> Problem:
    n_arms = int(rng.integers(2, 11))
    if drift == "chain":
        reward: Reward = GaussianReward(log_uniform(rng, 0.03, 0.3), streams.generator("noise"))
        order = rng.permutation(n_arms)
        successor = np.empty(n_arms, np.int64)
        successor[order] = np.roll(order, -1)
        return TwoStepChain(np.tile(successor, (n_arms, 1)), reward)
    noise = streams.generator("noise")
    if drift in _PECULIAR:
        return _PECULIAR[drift](rng, streams)
    reward = (
        BernoulliReward(noise)
        if rng.random() < 0.5
        else GaussianReward(log_uniform(rng, 0.03, 0.5), noise)
    )
    return DriftingArms(drifting_means(drift, n_arms, rng), reward)


def _clicks(drift: str, rng: np.random.Generator, streams: Streams) -> Problem:
    """Rewards of 0 and 1 alone, which many published policies are made for."""
    means = drifting_means(drift, int(rng.integers(2, 11)), rng)
    return DriftingArms(means, BernoulliReward(streams.generator("noise")))


def _heavy(rng: np.random.Generator, streams: Streams) -> Problem:
    reward = HeavyReward(log_uniform(rng, 0.03, 0.3), 0.02, streams.generator("noise"))
    return DriftingArms(drifting_means("flip", int(rng.integers(2, 11)), rng), reward)


def _many(rng: np.random.Generator, streams: Streams) -> Problem:
    n_arms = int(rng.integers(200, 1001))
    reward = GaussianReward(0.1, streams.generator("noise"))
    return DriftingArms(Constant(0.9 * rng.random(n_arms)), reward)


def _rotting(rng: np.random.Generator, streams: Streams) -> Problem:
    n_arms = int(rng.integers(3, 9))
    fresh, depth = rng.uniform(0.3, 1.0, n_arms), rng.uniform(0.3, 0.9, n_arms)
    reward = GaussianReward(log_uniform(rng, 0.03, 0.3), streams.generator("noise"))
    return RottingArms(fresh, depth, log_uniform(rng, 5, 60), reward)


def _clock(rng: np.random.Generator, streams: Streams) -> Problem:
    drawn = WallClockParameters(
        n_arms=int(rng.integers(2, 9)),
        per_day=log_uniform(rng, 50, 300),
        daily=float(rng.uniform(0.1, 0.3)),
        weekly=float(rng.uniform(0.0, 0.15)),
    )
    return WallClockArms(drawn, streams, rng)


_PECULIAR: dict[str, Callable[[np.random.Generator, Streams], Problem]] = {
    "heavy": _heavy,
    "many": _many,
    "rotting": _rotting,
    "clock": _clock,
}


def _vectors(drift: str, rng: np.random.Generator, streams: Streams) -> Problem:
    dim = int(log_uniform(rng, 2, 60)) if drift != "wide" else int(rng.integers(100, 201))
    drift = "stationary" if drift == "wide" else drift
    pool = unit_vectors(1000, dim, rng)
    return LinearProblem(
        sampler=PoolSampler([(pool, int(rng.integers(3, 25)))]),
        drift=drifting_vectors(drift, dim, rng),
        noise_std=log_uniform(rng, 0.02, 0.3),
        streams=streams,
    )


def _labels(drift: str, rng: np.random.Generator, streams: Streams) -> Problem:
    wide = drift == "wide"
    n_arms = int(rng.integers(2, 7))
    dim = int(rng.integers(100, 201) if wide else log_uniform(rng, 3, 60))
    drift = "stationary" if wide else drift
    stays = 0.95 if drift == "slow" else 0.0
    steady = drift in ("stationary", "slow")
    phases = np.zeros(LONGEST, np.int64) if steady else phases_of(drift, rng)
    return NoisyLabels(
        centres=rng.standard_normal((n_arms, dim)) * 2.5 / np.sqrt(dim),
        rules=np.stack([rng.permutation(n_arms), rng.permutation(n_arms)]),
        phases=phases,
        stays=stays,
        streams=streams,
    )


def _paths(drift: str, rng: np.random.Generator, streams: Streams) -> Problem:
    n_arms = int(rng.integers(2, 7))
    readings, labels = random_landscape(n_arms, rng).walk(streams.generator("contexts"))
    noise = streams.generator("noise")
    reward: Reward = BernoulliReward(noise) if rng.random() < 0.5 else GaussianReward(0.1, noise)
    rules = np.stack([rng.permutation(n_arms), rng.permutation(n_arms)])
    phases = np.zeros(LONGEST, np.int64) if drift == "stationary" else phases_of(drift, rng)
    return LabelledPath(readings, labels, rules, phases, reward)


def _outside(drift: str, rng: np.random.Generator, streams: Streams) -> Problem:
    reward = GaussianReward(0.1, streams.generator("noise"))
    if drift == "parity":
        n_arms = int(rng.integers(3, 7))
        orders = np.stack([rng.permutation(n_arms), rng.permutation(n_arms)])
        return ParityMachine(orders / (n_arms - 1), reward)
    n_arms = 4
    return TwoStepChain(np.stack([rng.permutation(n_arms) for _ in range(n_arms)]), reward)


_BUILDERS: dict[str, Callable[[str, np.random.Generator, Streams], Problem]] = {
    "arms": _arms,
    "clicks": _clicks,
    "vectors": _vectors,
    "labels": _labels,
    "paths": _paths,
    "outside": _outside,
}


class NoisyLabels(SimulatedProblem):
    """A hidden label shows itself as a noisy point about its centre; one arm pays for each
    label."""

    def __init__(
        self,
        *,
        centres: FloatArray,
        rules: IntArray,
        phases: IntArray,
        stays: float,
        streams: Streams,
    ) -> None:
        self.n_arms = len(centres)
        self._centres, self._rules, self._phases, self._stays = centres, rules, phases, stays
        self._rows = [read_only(row) for row in np.eye(self.n_arms)]
        self._contexts = streams.generator("contexts")
        self.reward = GaussianReward(0.1, streams.generator("noise"))
        self._label = int(self._contexts.integers(self.n_arms))
        self._begin(0)

    def context(self) -> Context:
        """The point."""
        return Context(observation=self._point)

    def means(self) -> FloatArray:
        """1 for the arm of the label, 0 for all others."""
        return self._rows[int(self._rules[self._phases[self._t], self._label])]

    def structure(self) -> Structure:
        """Which label it is, and which of the two rules holds; what each arm pays then is to be
        learnt."""
        state = self._label + self.n_arms * int(self._phases[self._t])
        return levels(np.arange(self.n_arms) + self.n_arms * state, noise_of(self.reward))

    def _begin(self, t: int) -> None:
        self._t = t
        change, label = self._contexts.random(), int(self._contexts.integers(self.n_arms))
        self._label = self._label if change < self._stays else label
        dim = self._centres.shape[1]
        spread = self._contexts.standard_normal(dim) / np.sqrt(dim)
        self._point = read_only(self._centres[self._label] + spread)
