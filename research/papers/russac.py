"""Russac, Vernade and Cappé (NeurIPS 2019), D-LinUCB's own experiments: 50 fresh vectors a round.

Two dimensions, 6,000 rounds, noise N(0, 1). Vectors are uniform in [-1, 1]^2, those longer than 1
shortened to 1. `abrupt`: w is (1, 0), (-1, 0), (0, 1), (0, -1) from rounds 0, 1,000, 2,000, 3,000
on. `slow`: w turns from (1, 0) to (0, 1) in 3,000 rounds and stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from research.papers.tables import TableDrift, segments
from tidepull import Context, Entry, add_problem
from tidepull.parameters import Parameters, parameter
from tidepull.problems.drift import read_only
from tidepull.problems.rewards import GaussianReward, Names, weights
from tidepull.random import Streams
from tidepull.types import FloatArray, Structure

ROUNDS, TURN, ARMS = 6000, 3000, 50


@dataclass(frozen=True, kw_only=True)
class RussacParameters(Parameters):
    """Parameters of `russac`."""

    kind: Literal["abrupt", "slow"] = parameter("abrupt", "how the weights change")


def path(kind: str) -> FloatArray:
    """w of every round."""
    if kind == "abrupt":
        rows = [[1, 0], [-1, 0], [0, 1], [0, -1]]
        return segments(rows, [0, 1000, 2000, 3000], ROUNDS)
    angle = math.pi / 2 * np.minimum(np.arange(ROUNDS) / TURN, 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


class FreshVectors:
    """Rewards w . x plus noise."""

    n_arms = ARMS

    def __init__(self, parameters: RussacParameters, streams: Streams) -> None:
        self._turns = parameters.kind == "slow"
        self.drift = TableDrift(path(parameters.kind))
        self._contexts = streams.generator("contexts")
        self._reward = GaussianReward(1.0, streams.generator("noise"))
        self._names = Names()
        self._begin(0)

    def context(self) -> Context:
        """The vectors of this round."""
        return Context(arm_features=self._features)

    def means(self) -> FloatArray:
        """w . x."""
        return self._means

    def step(self, arm: int) -> float:
        """The reward of an arm, and on to the next round."""
        reward = self._reward(self._means, arm)
        self._begin(self._t + 1)
        return reward

    def structure(self) -> Structure:
        """Weights that turn as is known, or that hold until they change."""
        group = np.zeros(ARMS, np.int64)
        (c, s), features = self.drift(self._t), self._features
        if self._turns:
            return weights(group, features @ np.array([[c, -s], [s, c]]), 1.0)
        return weights(group + self._names.of([(c, s)])[0], features, 1.0)

    def _begin(self, t: int) -> None:
        self._t = t
        drawn = self._contexts.uniform(-1, 1, (ARMS, 2))
        lengths = np.linalg.norm(drawn, axis=1, keepdims=True)
        self._features = read_only(drawn / np.maximum(1, lengths))
        self._means = read_only(self._features @ self.drift(t))


add_problem(
    Entry("russac", "D-LinUCB's experiments", RussacParameters, FreshVectors, horizon=ROUNDS)
)
