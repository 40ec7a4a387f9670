"""The environments of the paper's authors, draw by draw: seed 0 is the world of the paper's table.

The authors drew everything of an environment from one legacy `numpy.random.RandomState`, seeded
with 0 in all their trials. What is drawn, in order, r being one reward a pull:

    flipping-gaussian, wall-following, flipping-digits    r: normal(mean of the arm, noise)
    flipping-bernoulli, sinusoidal-bernoulli              r: binomial(1, mean of the arm)
    circular-markov-chain    choice(8) for the start; r: after a hit choice(8, p), then normal
    flipping-vector          w, the pool, the first arms; r: normal, then choice(2000, 25)
    rotating-vector-*        the pool, the first arms; r: normal, then choice(2000, 25)

w and the pool are uniform in the cube [-1, 1]^d, then scaled to length 1. `RandomState` is frozen
by numpy's policy (NEP 19), so the worlds are the authors' on every machine.

The digits are those of the authors too: the first 4,096 images of MNIST's training set in order,
paid by the published rule (`classification.published_arm`). Their regret is 1 in rounds in which no
arm pays.

Ramesh, Rauber, Conserva and Schmidhuber, "Recurrent Neural-Linear Posterior Sampling for
Nonstationary Contextual Bandits" (2022).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, cast

import numpy as np

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems import classification, datasets
from tidepull.problems.arms import DriftingArms, OneBestArm
from tidepull.problems.drift import Drift, Flip, Rotation, Sine, is_flipped, read_only
from tidepull.problems.linear import LinearProblem, PoolSampler, unit_vectors
from tidepull.problems.markov import CircularMarkovChain, CircularMarkovChainParameters
from tidepull.problems.rewards import BernoulliReward, GaussianReward, check_arm
from tidepull.protocols import Problem
from tidepull.random import Streams
from tidepull.types import FloatArray

Row: TypeAlias = Literal[
    "flipping-gaussian",
    "flipping-bernoulli",
    "sinusoidal-bernoulli",
    "circular-markov-chain",
    "flipping-digits",
    "wall-following",
    "flipping-vector",
    "rotating-vector-32",
    "rotating-vector-2048",
]

MEANS = (0.1, 0.9, 0.8, 0.2, 0.3, 0.7, 0.6, 0.4)
ARM_NOISE_STD = 0.1
NOISE_STD = 0.05
POOL_SIZE, N_VECTORS, FLIPPING_DIM = 2000, 25, 50
ARM_HALF_PERIOD, HALF_PERIOD = 10, 64
N_WAVES, WAVE_PERIOD = 5, 32.0
ROBOT_ARMS = ("Slight-Right-Turn", "Sharp-Right-Turn", "Move-Forward", "Slight-Left-Turn")
"""The movements in the authors' order of arms."""
_LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True, kw_only=True)
class AuthorsWorldParameters(Parameters):
    """Parameters of `authors-world`."""

    row: Row = parameter("flipping-gaussian", "row of the paper's table")


@dataclass(frozen=True, slots=True)
class OneState(Streams):
    """Streams that are all one `RandomState`: what is drawn depends on the order of the calls."""

    state: np.random.RandomState = field(default_factory=np.random.RandomState)

    def generator(self, name: str) -> np.random.Generator:
        """Return the state, whose `uniform`, `normal` and `choice` are called like a generator's.

        Parameters
        ----------
        name : str
            Ignored.

        Returns
        -------
        numpy.random.RandomState
            The one state.
        """
        return cast(np.random.Generator, self.state)


class OneDrawGaussian(GaussianReward):
    """N(mean, noise_std^2) with one draw a pull, whichever arm is played."""

    def __call__(self, means: FloatArray, arm: int) -> float:
        """The next normal number of the state."""
        check_arm(arm, len(means))
        return float(self._rng.normal(means[arm], self.noise_std))


class OneDrawBernoulli(BernoulliReward):
    """1 with the probability `mean`, else 0, with one binomial draw a pull."""

    def __call__(self, means: FloatArray, arm: int) -> float:
        """The next binomial number of the state."""
        check_arm(arm, len(means))
        return float(self._rng.binomial(1, means[arm]))


class AccumulatedSine(Sine):
    """The arms of `Sine` at a position that grows by 2 pi / period a round, with its rounding.

    Binomial draws switch their method at 1/2, which arms cross in every half period, so that the
    last bit of a mean decides some rewards.
    """

    def __call__(self, t: int) -> FloatArray:
        """The value of every arm in round t."""
        position = _positions(self.period)[t % _N_POSITIONS]
        offsets = 2 * np.pi * np.arange(self.n_arms) / self.n_arms
        return read_only((1.0 + np.sin(position + offsets)) / 2.0)


_N_POSITIONS = 2**16
"""Rounds before positions begin anew; a power of two, so that it is a whole number of periods."""


@cache
def _positions(period: float) -> FloatArray:
    steps: FloatArray = np.full(_N_POSITIONS, 2 * np.pi / period)
    steps[0] = 0.0
    return np.cumsum(steps)


class AuthorsChain(CircularMarkovChain):
    """The circular chain; a hit draws the next state, although it is certain, before the reward."""

    def __init__(self, streams: OneState) -> None:
        super().__init__(CircularMarkovChainParameters(noise_std=NOISE_STD), streams)
        self._rng = streams.generator("rewards")
        self.reward = OneDrawGaussian(NOISE_STD, self._rng)

    def step(self, arm: int) -> float:
        """The reward of an arm; the chain has moved to the next arm after a hit."""
        means = self.means()
        if arm == self._best:
            self._best = int(self._rng.choice(self.n_arms, p=np.roll(means, 1)))
        return self.reward(means, arm)


def authors_world(parameters: AuthorsWorldParameters, streams: Streams) -> Problem:
    """The environment of one row, drawn from `RandomState(seed)`."""
    if streams.seed > _LARGEST_SEED:
        raise ParameterError(
            f"the seed of authors-world must be at most {_LARGEST_SEED}, got {streams.seed}"
        )
    state = OneState(streams.seed, state=np.random.RandomState(streams.seed))
    row = parameters.row
    if row == "circular-markov-chain":
        return AuthorsChain(state)
    if row in ("flipping-digits", "wall-following"):
        return _classification(row, state)
    if row in ("flipping-vector", "rotating-vector-32", "rotating-vector-2048"):
        return _linear(row, state)
    return _arms(row, state)


def authors_files(parameters: AuthorsWorldParameters) -> list[Path]:
    """The files that the rows with observations read; nothing where they cannot be had."""
    if parameters.row == "wall-following":
        return classification.wall_following_files(parameters)
    return datasets.training_order_files() if parameters.row == "flipping-digits" else []


def _arms(row: Row, streams: OneState) -> DriftingArms:
    rng, means = streams.generator("rewards"), np.array(MEANS)
    if row == "flipping-gaussian":
        reward = OneDrawGaussian(ARM_NOISE_STD, rng)
        return DriftingArms(Flip(means, -means, ARM_HALF_PERIOD), reward)
    drift: Drift = Flip(means, 1 - means, ARM_HALF_PERIOD)
    if row == "sinusoidal-bernoulli":
        drift = AccumulatedSine(N_WAVES, WAVE_PERIOD)
    return DriftingArms(drift, OneDrawBernoulli(rng))


def _linear(row: Row, streams: OneState) -> LinearProblem:
    rng = streams.generator("world")
    drift: Drift
    if row == "flipping-vector":
        dim, w = FLIPPING_DIM, unit_vectors(1, FLIPPING_DIM, rng)[0]
        drift = Flip(w, -w, HALF_PERIOD)
    else:
        dim, drift = 2, Rotation(float(row.rpartition("-")[2]))
    sampler = PoolSampler([(unit_vectors(POOL_SIZE, dim, rng), N_VECTORS)])
    world = LinearProblem(sampler=sampler, drift=drift, noise_std=NOISE_STD, streams=streams)
    world.reward = OneDrawGaussian(NOISE_STD, rng)
    return world


def _classification(row: Row, streams: OneState) -> classification.ClassificationProblem:
    digits = row == "flipping-digits"
    data = datasets.training_digits() if digits else datasets.wall_following()
    robot_arm = [ROBOT_ARMS.index(movement) for movement in datasets.MOVEMENTS]

    def rule(label: int, t: int) -> int | None:
        if not digits:
            return robot_arm[label]
        return classification.published_arm(label) if is_flipped(t, HALF_PERIOD) else label

    return classification.ClassificationProblem(
        data=data,
        order=np.arange(len(data.labels)),
        scale=255.0 if digits else 1.0,
        n_arms=classification.N_DIGITS if digits else len(ROBOT_ARMS),
        rule=rule,
        parameters=OneBestArm(noise_std=NOISE_STD),
        reward=OneDrawGaussian(NOISE_STD, streams.generator("rewards")),
    )
