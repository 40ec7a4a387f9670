"""Classes that come in blocks: in each block only a few classes show up, and only the arm of the right one pays.

A class is a cloud of points about its own centre. Nobody says when a block begins; classes return in later blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.drift import read_only
from tidepull.problems.rewards import BernoulliReward
from tidepull.problems.structures import levels
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, Structure


@dataclass(frozen=True, kw_only=True)
class ClassBlocksParameters(Parameters):
    """Parameters of `class-blocks`."""

    n_arms: int = parameter(40, "classes, each with its own arm", ge=2, le=1000)
    numbers: int = parameter(21, "numbers in an observation", ge=1, le=1000)
    together: int = parameter(4, "classes that show up in a block", ge=1)
    block: int = parameter(300, "rounds of a block", ge=1)
    apart: float = parameter(3.0, "mean distance of two centres, in standard deviations of a class", ge=0)

    sure: float = parameter(0.98, "chance that the arm of the right class pays", gt=0, le=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.together > self.n_arms:
            raise ParameterError(f"together must be at most n_arms ({self.n_arms}), got {self.together}")


class ClassBlocks:
    """A world of `class-blocks`."""

    def __init__(self, parameters: ClassBlocksParameters, streams: Streams) -> None:
        self.n_arms = parameters.n_arms
        self._parameters = parameters
        world = streams.generator("world")
        shape = (parameters.n_arms, parameters.numbers)
        self._centres = world.standard_normal(shape) * parameters.apart / np.sqrt(2 * parameters.numbers)
        self._rows = [read_only(row) for row in parameters.sure * np.eye(self.n_arms)]
        self._contexts = streams.generator("contexts")
        self._reward = BernoulliReward(streams.generator("noise"))
        self._t, self._classes = 0, np.arange(0)
        self._begin()

    def context(self) -> Context:
        """A point of the class at hand."""
        return Context(observation=self._point)

    def means(self) -> FloatArray:
        """`sure` for the class at hand, 0 for all others."""
        return self._rows[self._label]

    def step(self, arm: int) -> float:
        """1 or 0, and on to the next point."""
        reward = self._reward(self._rows[self._label], arm)
        self._t += 1
        self._begin()
        return reward

    def structure(self) -> Structure:
        """Which class it is; what each arm pays then is to be learnt."""
        return levels(np.arange(self.n_arms) + self.n_arms * self._label, None)

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: `sure` but for one arm of n in every round."""
        return horizon * self._parameters.sure * (1 - 1 / self.n_arms)

    def _begin(self) -> None:
        parameters, rng = self._parameters, self._contexts
        if self._t % parameters.block == 0:
            # Every class has had its block before one has another.
            place = self._t // parameters.block * parameters.together % self.n_arms
            if place < parameters.together:
                self._order = rng.permutation(self.n_arms)
            self._classes = np.take(self._order, range(place, place + parameters.together), mode="wrap")
        self._label = int(rng.choice(self._classes))
        self._point = read_only(self._centres[self._label] + rng.standard_normal(parameters.numbers))
