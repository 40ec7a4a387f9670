"""BONE (Duran-Martin et al., TMLR 2025): ten Bernoulli arms that walk, and RL[1]-OUPR.

p begins as U(0, 1) and moves by N(0, .003) a round, clipped to [0, 1]. Regret is against the best
*realised* reward of the round, as the authors have it: so a player who knows every p has regret,
too. `rl-oupr` has for the played arm a Gaussian belief N(m, v) of its log odds, with p(m) = 1 / (1
+ e^-m), R = p(m) (1 - p(m)) and prior N(m0, 1):

    g = chance that no change happened, by the densities of r under N(p(m), v + R) and under the
        prior, with chance .265 of a change (the authors' choice, tuned on one world)
    g < 1/2: back to the prior; else  m <- g m,  v <- g^2 v + 1 - g^2, then the Kalman update
    K = v / (v + R),  m <- m + K (r - p(m)),  v <- (1 - K)^2 v + K^2 R
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull import Context, Entry, Event, add_policy, add_problem
from tidepull.parameters import NoParameters, Parameters, parameter
from tidepull.problems.rewards import levels
from tidepull.problems.tables import TableWorld, WorldTable
from tidepull.random import Streams
from tidepull.types import ProblemShape, Structure

ROUNDS, ARMS, STEP = 10_000, 10, math.sqrt(0.003)


class WalkingArms(TableWorld):
    """One world of walks; what is compared are realised rewards."""

    def __init__(self, _: NoParameters, streams: Streams) -> None:
        rng = streams.generator("walk")
        chances = np.empty((ROUNDS, ARMS))
        p = rng.random(ARMS)
        for t in range(ROUNDS):
            p = chances[t] = np.clip(p + STEP * rng.standard_normal(ARMS), 0, 1)
        paid = (streams.generator("noise").random(chances.shape) < chances).astype(float)
        super().__init__(WorldTable(paid, paid))

    def structure(self) -> Structure:
        """Levels that walk."""
        return levels(np.arange(ARMS), None, STEP)


@dataclass(frozen=True, kw_only=True)
class ResetParameters(Parameters):
    """Parameters of `rl-oupr`."""

    change: float = parameter(0.265, "chance of a change in a round", gt=0, lt=1)


class PriorReset:
    """RL[1]-OUPR with Thompson sampling."""

    def __init__(self, values: ResetParameters, shape: ProblemShape, streams: Streams) -> None:
        self._change = values.change
        self._rng = streams.generator("posterior")
        self._mean = self._rng.random(shape.n_arms)
        self._prior = float(self._mean[0])
        self._variance = np.ones(shape.n_arms)

    def choose(self, context: Context) -> int:
        """The largest draw."""
        return int(np.argmax(self._rng.normal(self._mean, np.sqrt(self._variance))))

    def learn(self, event: Event) -> None:
        """Move the belief of the played arm."""
        m, v, r = float(self._mean[event.arm]), float(self._variance[event.arm]), event.reward
        stays = (1 - self._change) * density(r, m, v)
        resets = self._change * density(r, self._prior, 1.0)
        g = stays / (stays + resets)
        if g < 0.5:
            self._mean[event.arm], self._variance[event.arm] = self._prior, 1.0
            return
        m, v = g * m, g**2 * v + 1 - g**2
        p, noise = expected(m)
        gain = v / (v + noise)
        self._mean[event.arm] = m + gain * (r - p)
        self._variance[event.arm] = (1 - gain) ** 2 * v + gain**2 * noise


def expected(m: float) -> tuple[float, float]:
    """p(m) and R."""
    p = 1 / (1 + math.exp(-m))
    return p, p * (1 - p) + 1e-4


def density(r: float, m: float, v: float) -> float:
    """Of a reward under N(p(m), v + R)."""
    p, noise = expected(m)
    return math.exp(-((r - p) ** 2) / (2 * (v + noise))) / math.sqrt(v + noise)


add_problem(Entry("bone-walk", "ten arms that walk", NoParameters, WalkingArms, horizon=ROUNDS))
add_policy(Entry("rl-oupr", "RL[1]-OUPR, change or not", ResetParameters, PriorReset))
