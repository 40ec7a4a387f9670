"""Classification as a bandit: an observation is shown, and the arm of its class pays best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from tidepull.errors import DataError, MissingExtraError
from tidepull.parameters import parameter
from tidepull.problems import datasets
from tidepull.problems.drift import is_flipped, read_only
from tidepull.problems.one_best import OneBestArm
from tidepull.problems.regimes import FlipsRegularly
from tidepull.problems.rewards import GaussianReward
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, IntArray

Rule: TypeAlias = Callable[[int, int], int | None]
"""From a label and a round to the arm that pays best, or None where no arm does."""

N_DIGITS = 10


class ClassificationProblem:
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
        streams: Streams,
    ) -> None:
        self.n_arms = n_arms
        self._data = data
        self._order = order
        self._scale = scale
        self._rule = rule
        self._rows = parameters.rows(n_arms)
        self._none_pays = read_only(np.full(n_arms, parameters.mean))
        self._reward = GaussianReward(parameters.noise_std, streams.generator("noise"))
        self._begin(0)

    def context(self) -> Context:
        """The observation of this round."""
        return Context(observation=self._observation)

    def means(self) -> FloatArray:
        """`best_mean` for the arm of the observation's class, `mean` for all others."""
        return self._means_at(self._t)

    def step(self, arm: int) -> float:
        """The reward of an arm, and on to the next observation."""
        reward = self._reward(self.means(), arm)
        self._begin(self._t + 1)
        return reward

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: (1 - 1/K) times the gap wherever an arm pays."""
        return float(sum(mu.max() - mu.mean() for mu in map(self._means_at, range(horizon))))

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


def flipping_digits(parameters: FlippingDigitsParameters, streams: Streams) -> ClassificationProblem:
    """MNIST digits in an order drawn from the seed; arm k stands for digit k, or 9 - k in flipped phases."""
    data = datasets.digits()
    after_flip = _mirrored if parameters.variant == "paper" else _published

    def rule(label: int, t: int) -> int | None:
        return after_flip(label) if is_flipped(t, parameters.half_period) else label

    return ClassificationProblem(
        data=data,
        order=streams.generator("order").permutation(len(data.labels)),
        scale=255.0,
        n_arms=N_DIGITS,
        rule=rule,
        parameters=parameters,
        streams=streams,
    )


def wall_following_files(_: WallFollowingParameters) -> list[Path]:
    """The sensors' file; nothing where it cannot be had, as building the problem says why."""
    try:
        return [datasets.fetch(datasets.WALL_FOLLOWING)]
    except (DataError, MissingExtraError):
        return []


def wall_following(parameters: WallFollowingParameters, streams: Streams) -> ClassificationProblem:
    """The robot's readings in order of time; the arm of the movement recorded in the same row pays."""
    data = datasets.wall_following()
    return ClassificationProblem(
        data=data,
        order=np.arange(len(data.labels)),
        scale=1.0,
        n_arms=len(datasets.MOVEMENTS),
        rule=lambda label, _t: label,
        parameters=parameters,
        streams=streams,
    )


def _mirrored(label: int) -> int:
    return N_DIGITS - 1 - label


def _published(label: int) -> int | None:
    # `arm == (x & flipped) == 1` binds otherwise than meant: even labels pay arm 1, odd labels nobody.
    return 1 if label % 2 == 0 else None
