"""Latent autoregressive bandits (Trella et al.): two arms that pay -z and +z plus N(0, 1), and LARL.

z follows an AR process of order k with N(0, 1) steps; its first k values are 10 N(0, 1), and their
rounds do not count. LARL is LinUCB for each arm on the latest s pairs of arm and reward,

    x = (r_i onehot(arm_i), onehot(arm_i) for the latest s rounds i, 1),   width 1, ridge 1,

and s, 1 to 15, has the least BIC after 40 rounds in which the arms take turns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull import Context, Entry, Event, NoParameters, add_policy, add_problem
from tidepull.parameters import Parameters, parameter
from tidepull.problems.drift import read_only
from tidepull.random import Streams
from tidepull.types import FloatArray, ProblemShape

ROUNDS = 200
COEFFICIENTS: dict[int, tuple[float, ...]] = {
    1: (0.9,),
    5: (0.209161, -0.219063, -0.280937, 0.057676, 0.233163),
    10: (
        0.083495, -0.141504, -0.174013, 0.003902, 0.096107, -0.0664, 0.239384, 0.077113, -0.034692,
        -0.083392,
    ),
}  # fmt: skip
"""From the order to the weights of the latest value, the one before it, and so on."""


@dataclass(frozen=True, kw_only=True)
class LatentParameters(Parameters):
    """Parameters of `latent-ar`."""

    order: int = parameter(1, "k: 1, 5 or 10", ge=1, le=10)


class LatentArms:
    """One path of z, drawn from the seed."""

    n_arms = 2

    def __init__(self, parameters: LatentParameters, streams: Streams) -> None:
        weights, rng = np.array(COEFFICIENTS[parameters.order]), streams.generator("path")
        path = list(10 * rng.standard_normal(len(weights)))
        while len(path) < ROUNDS:
            path.append(weights @ path[: -len(weights) - 1 : -1] + rng.standard_normal())
        self._z, self._uncounted = np.array(path), len(weights)
        self._noise = streams.generator("noise").standard_normal((ROUNDS, 2))
        self._t = 0

    def context(self) -> Context:
        """Nothing to see."""
        return Context()

    def means(self) -> FloatArray:
        """-z and z; zeros in rounds that do not count."""
        z = 0.0 if self._t < self._uncounted else self._z[self._t % ROUNDS]
        return read_only([-z, z])

    def step(self, arm: int) -> float:
        """The reward of an arm."""
        t = self._t % ROUNDS
        self._t += 1
        return float((-1, 1)[arm] * self._z[t] + self._noise[t, arm])


class LatentLinearUcb:
    """LARL."""

    explore, largest = 40, 15

    def __init__(self, _: NoParameters, shape: ProblemShape, streams: Streams) -> None:
        self._n_arms = shape.n_arms
        self._arms: list[int] = []
        self._rewards: list[float] = []
        self._order = 0
        self._inverse = self._products = np.empty(0)

    def choose(self, context: Context) -> int:
        """Turns first, then the highest bound."""
        if len(self._arms) < self.explore:
            return len(self._arms) % self._n_arms
        if not self._order:
            self._fit()
        x = self._row(len(self._arms), self._order)
        seen = self._inverse @ x
        return int(np.argmax((seen * self._products).sum(axis=1) + np.sqrt(seen @ x)))

    def learn(self, event: Event) -> None:
        """One more pair."""
        if self._order:
            x = self._row(len(self._arms), self._order)
            self._take(event.arm, x, event.reward)
        self._arms.append(event.arm)
        self._rewards.append(event.reward)

    def _row(self, t: int, order: int) -> FloatArray:
        chosen = np.eye(self._n_arms)[self._arms[t - order : t]]
        paid = np.array(self._rewards[t - order : t])[:, None] * chosen
        return np.concatenate([paid.ravel(), chosen.ravel(), [1.0]])

    def _take(self, arm: int, x: FloatArray, reward: float) -> None:
        seen = self._inverse[arm] @ x
        self._inverse[arm] -= np.outer(seen, seen) / (1 + x @ seen)
        self._products[arm] += reward * x

    def _fit(self) -> None:
        """Take the order of the least BIC."""
        self._order = min(range(1, self.largest + 1), key=self._bic)
        self._regress(self._order)

    def _bic(self, order: int) -> float:
        X, y = self._regress(order)
        arms = self._arms[order:]
        fitted = np.einsum("ni,nij,nj->n", X, self._inverse[arms], self._products[arms])
        spread = float(np.mean((y - fitted) ** 2))
        return len(y) * math.log(spread) + (2 * order * self._n_arms + 1) * math.log(len(y))

    def _regress(self, order: int) -> tuple[FloatArray, FloatArray]:
        size = 2 * order * self._n_arms + 1
        self._inverse = np.tile(np.eye(size), (self._n_arms, 1, 1))
        self._products = np.zeros((self._n_arms, size))
        X = np.stack([self._row(t, order) for t in range(order, len(self._arms))])
        y = np.array(self._rewards[order:])
        for arm, x, reward in zip(self._arms[order:], X, y, strict=True):
            self._take(arm, x, float(reward))
        return X, y


_WORLD = "two arms that follow a hidden AR process"
add_problem(Entry("latent-ar", _WORLD, LatentParameters, LatentArms, horizon=ROUNDS))
add_policy(
    Entry("larl", "LinUCB on the latest pairs of arm, reward", NoParameters, LatentLinearUcb)
)
