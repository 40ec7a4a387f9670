"""Problems without contexts: a drift of the arms' expected rewards, and a kind of reward."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.drift import Drift
from tidepull.problems.rewards import Reward
from tidepull.problems.structures import Names, levels, noise_of, waves
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, Structure


class DriftingArms:
    """Arms whose expected rewards move by themselves."""

    def __init__(self, drift: Drift, reward: Reward) -> None:
        self.drift = drift
        self.n_arms = len(drift(0))
        self.reward = reward
        self._names = Names()
        self._begin(0)

    def context(self) -> Context:
        """Nothing to see."""
        return Context()

    def means(self) -> FloatArray:
        """The value of the drift now."""
        return self._means

    def step(self, arm: int) -> float:
        """The reward of an arm, and on to the next round."""
        reward = self.reward(self._means, arm)
        self._begin(self._t + 1)
        return reward

    def structure(self) -> Structure:
        """Waves of known period and phase, levels that walk, or levels that hold again whenever they come back."""
        noise, moving = noise_of(self.reward), getattr(self.drift, "waves", None)
        if moving is not None:
            stretch = getattr(self.drift, "stretch", None)
            return waves(moving(self._t), noise, 0 if stretch is None else int(stretch[self._t]))
        step = getattr(self.drift, "step", 0.0)
        same = [None] * self.n_arms if step else self._means.tolist()
        return levels(self._names.of(enumerate(same)), noise, step)

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: the sum of max_k mu_k - mean_k mu_k."""
        return float(sum(mu.max() - mu.mean() for mu in map(self.drift, range(horizon))))

    def _begin(self, t: int) -> None:
        self._t = t
        self._means = self.drift(t)


@dataclass(frozen=True, kw_only=True)
class InitialMeans(Parameters):
    """The arms' expected rewards in the first round."""

    means: tuple[float, ...] | None = parameter(
        None, "expected rewards in the first round (auto: evenly spaced from 0.1 to 0.9 without 0.5)"
    )
    n_arms: int | None = parameter(
        None, "number of arms (auto: one for each of means, else 8)", ge=1, le=10**6
    )
    shuffle: bool = parameter(False, "put the arms in an order drawn from the seed")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.means is not None and len(self.means) != (self.n_arms or len(self.means)):
            raise ParameterError(f"n_arms is {self.n_arms} but means has {len(self.means)} values")
        if self.means == ():
            raise ParameterError("means must have at least one value")

    def first_means(self, streams: Streams) -> FloatArray:
        """The values in the order of the arms."""
        means = np.array(evenly_spaced(self.n_arms or 8) if self.means is None else self.means)
        return streams.generator("arms").permutation(means) if self.shuffle else means


@dataclass(frozen=True, kw_only=True)
class InitialProbabilities(InitialMeans):
    """The arms' probabilities of a reward in the first round."""

    means: tuple[float, ...] | None = parameter(
        None,
        "probabilities of a reward in the first round (auto: evenly spaced from 0.1 to 0.9 without 0.5)",
        ge=0,
        le=1,
    )


def evenly_spaced(n_arms: int) -> list[float]:
    """Values from 0.1 to 0.9 that leave out 0.5, which a flip would not move.

    >>> evenly_spaced(8)
    [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    """
    spaced = np.linspace(0.1, 0.9, n_arms + 1).round(12).tolist()
    del spaced[n_arms // 2]
    return [float(value) for value in spaced]
