"""Classification as a bandit: an observation is shown, and the arm of its class pays best.

In `class-blocks` a class is a cloud of points about its own centre. In each block of rounds only a
few classes show up; the beginning of a block is not announced, and classes return in later blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from tidepull.errors import DataError, MissingExtraError, ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems import datasets, rewards
from tidepull.problems.arms import OneBestArm
from tidepull.problems.drift import FlipsRegularly, is_flipped, read_only
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, IntArray, Structure

Rule: TypeAlias = Callable[[int, int], int | None]
"""From a label and a round to the arm that pays best, or None where no arm does."""

N_DIGITS = 10


class ClassificationProblem(rewards.SimulatedProblem):
    """Rows of a data set in a given order, again from the first row after the last.

    `scale` divides the stored observations.
    """

    def __init__(
        self,
        *,
        data: datasets.Labelled,
        order: IntArray,
        scale: float,
        n_arms: int,
        rule: Rule,
        parameters: OneBestArm,
        reward: rewards.Reward,
    ) -> None:
        self.n_arms = n_arms
        self._data = data
        self._order = order
        self._scale = scale
        self._rule = rule
        self._rows = parameters.rows(n_arms)
        self._none_pays = read_only(np.full(n_arms, parameters.mean))
        self._best_mean = parameters.best_mean
        self.reward = reward
        self._begin(0)

    def context(self) -> Context:
        """The observation of this round."""
        return Context(observation=self._observation)

    def means(self) -> FloatArray:
        """`best_mean` for the arm of the observation's class, `mean` for all others."""
        return self._means_at(self._t)

    def benchmark(self) -> float:
        """`best_mean` in every round, also where no arm pays."""
        return self._best_mean

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: (1 - 1/K) times the gap wherever an arm pays,
        the whole gap elsewhere."""
        return float(sum(self._best_mean - mu.mean() for mu in map(self._means_at, range(horizon))))

    def _row(self, t: int) -> int:
        return int(self._order[t % len(self._order)])

    def _means_at(self, t: int) -> FloatArray:
        best = self._rule(int(self._data.labels[self._row(t)]), t)
        return self._none_pays if best is None else self._rows[best]

    def _begin(self, t: int) -> None:
        self._t = t
        self._observation = read_only(self._data.observations[self._row(t)] / self._scale)


@dataclass(frozen=True, kw_only=True)
class FlippingDigitsParameters(FlipsRegularly, OneBestArm):
    """Parameters of `flipping-digits`."""

    half_period: int = parameter(64, "rounds between two changes of the labels k to 9 - k", ge=1)
    variant: Literal["paper", "published-code"] = parameter(
        "paper", "labels flip as the paper says, or with the slip of the authors' published code"
    )


@dataclass(frozen=True, kw_only=True)
class WallFollowingParameters(OneBestArm):
    """Parameters of `wall-following`."""


def flipping_digits(
    parameters: FlippingDigitsParameters, streams: Streams
) -> ClassificationProblem:
    """MNIST digits in an order drawn from the seed; arm k stands for digit k, or 9 - k in flipped
    phases."""
    data = datasets.digits()
    after_flip = _mirrored if parameters.variant == "paper" else published_arm

    def rule(label: int, t: int) -> int | None:
        return after_flip(label) if is_flipped(t, parameters.half_period) else label

    return ClassificationProblem(
        data=data,
        order=streams.generator("order").permutation(len(data.labels)),
        scale=255.0,
        n_arms=N_DIGITS,
        rule=rule,
        parameters=parameters,
        reward=rewards.GaussianReward(parameters.noise_std, streams.generator("noise")),
    )


def wall_following_files(_: Parameters) -> list[Path]:
    """The sensors' file; nothing where it cannot be had, as building the problem says why."""
    try:
        return [datasets.fetch(datasets.WALL_FOLLOWING)]
    except (DataError, MissingExtraError):
        return []


def wall_following(parameters: WallFollowingParameters, streams: Streams) -> ClassificationProblem:
    """The robot's readings in order of time; the arm of the movement recorded in the same row
    pays."""
    data = datasets.wall_following()
    return ClassificationProblem(
        data=data,
        order=np.arange(len(data.labels)),
        scale=1.0,
        n_arms=len(datasets.MOVEMENTS),
        rule=lambda label, _t: label,
        parameters=parameters,
        reward=rewards.GaussianReward(parameters.noise_std, streams.generator("noise")),
    )


def _mirrored(label: int) -> int:
    return N_DIGITS - 1 - label


def published_arm(label: int) -> int | None:
    """The arm that pays in flipped phases of the authors' published code, or None.

    `arm == (x & flipped) == 1` binds otherwise than meant: even labels pay arm 1, odd labels none.
    """
    return 1 if label % 2 == 0 else None


@dataclass(frozen=True, kw_only=True)
class ClassBlocksParameters(Parameters):
    """Parameters of `class-blocks`."""

    n_arms: int = parameter(40, "classes, each with its own arm", ge=2, le=1000)
    numbers: int = parameter(21, "numbers in an observation", ge=1, le=1000)
    together: int = parameter(4, "classes that show up in a block", ge=1)
    block: int = parameter(300, "rounds of a block", ge=1)
    apart: float = parameter(
        3.0, "mean distance of two centres, in standard deviations of a class", ge=0
    )

    sure: float = parameter(0.98, "chance that the arm of the right class pays", gt=0, le=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.together > self.n_arms:
            raise ParameterError(
                f"together must be at most n_arms ({self.n_arms}), got {self.together}"
            )


class ClassBlocks(rewards.SimulatedProblem):
    """A world of `class-blocks`."""

    def __init__(self, parameters: ClassBlocksParameters, streams: Streams) -> None:
        self.n_arms = parameters.n_arms
        self._parameters = parameters
        world = streams.generator("world")
        shape = (parameters.n_arms, parameters.numbers)
        self._centres = world.standard_normal(shape) * parameters.apart
        self._centres /= np.sqrt(2 * parameters.numbers)
        self._rows = [read_only(row) for row in parameters.sure * np.eye(self.n_arms)]
        self._contexts = streams.generator("contexts")
        self.reward = rewards.BernoulliReward(streams.generator("noise"))
        self._begin(0)

    def context(self) -> Context:
        """A point of the class at hand."""
        return Context(observation=self._point)

    def means(self) -> FloatArray:
        """`sure` for the class at hand, 0 for all others."""
        return self._rows[self._label]

    def structure(self) -> Structure:
        """Which class it is; what each arm pays then is to be learnt."""
        return rewards.levels(np.arange(self.n_arms) + self.n_arms * self._label, None)

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: `sure` but for one arm of n in every round."""
        return horizon * self._parameters.sure * (1 - 1 / self.n_arms)

    def _begin(self, t: int) -> None:
        self._t, parameters, rng = t, self._parameters, self._contexts
        if t % parameters.block == 0:
            # Every class has had its block before one has another.
            place = t // parameters.block * parameters.together % self.n_arms
            if place < parameters.together:
                self._order = rng.permutation(self.n_arms)
            places = range(place, place + parameters.together)
            self._classes = np.take(self._order, places, mode="wrap")
        self._label = int(rng.choice(self._classes))
        noise = rng.standard_normal(parameters.numbers)
        self._point = read_only(self._centres[self._label] + noise)
