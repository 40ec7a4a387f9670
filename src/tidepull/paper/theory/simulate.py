"""Put the analysis to the test: regret against the bound, and every event of the proof against its promise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidepull._internal.threads import one_blas_thread
from tidepull.paper.theory import bound as theory
from tidepull.paper.theory.adversaries import Adversary
from tidepull.paper.theory.bound import Floats, Setting
from tidepull.paper.theory.lemmas import Lemmas
from tidepull.paper.theory.measurement_error import Round, Scenario, play, require_room
from tidepull.types import BoolArray, IntArray

_SQUARES = 18
"""d x d matrices of each trial at once: the agent's, those of the lemmas and their potentials, and passing ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """What was measured in many trials of one setting.

    `regret` and `potential` (the running sum of s_{t,A_t}) are trials x checkpoints; `failures_w` and
    `failures_theta` count, for each round, the trials in which the event did not hold; `clean_w` says of each
    trial whether E^w held in all rounds, and `nearest_w` how near to failing it came in each round: the largest
    |x . w^_t - x* . w| of any trial and arm as a share of l_t s + epsilon. `optimism` is the share of rounds with
    Theta_{t,a*} + epsilon >= x*_{a*} . w, `saturated` the share of arms in C_t. `lemmas` has the steps of the proof.
    """

    setting: Setting
    scenario: Scenario
    checkpoints: IntArray
    regret: Floats
    potential: Floats
    failures_w: IntArray
    failures_theta: IntArray
    clean_w: BoolArray
    nearest_w: Floats
    optimism: float
    saturated: float
    lemmas: Lemmas
    seconds: float

    @property
    def bound(self) -> Floats:
        """The theorem's bound at each checkpoint."""
        return theory.regret_bound(self.checkpoints, self.setting).total

    @property
    def potential_limit(self) -> Floats:
        """5 sqrt(d T log T) at each checkpoint; 0 at T = 1, where it does not hold."""
        T = self.checkpoints.astype(np.float64)
        return np.asarray(5.0 * np.sqrt(self.setting.d * T * np.log(T)))

    @property
    def worst_share(self) -> float:
        """The largest regret of any trial at any checkpoint, as a share of the bound there."""
        return float(np.max(self.regret / self.bound))

    @property
    def potential_share(self) -> float:
        """The largest sum of s in any trial at any checkpoint from T = 2, as a share of 5 sqrt(d T log T)."""
        from_two = self.checkpoints >= 2
        if not from_two.any():
            return math.nan
        return float(np.max(self.potential[:, from_two] / self.potential_limit[from_two]))


def checkpoints(horizon: int, per_octave: int = 4) -> IntArray:
    """Rounds spaced evenly on a log axis, the first and the last included."""
    count = 1 + math.ceil(per_octave * math.log2(max(horizon, 2)))
    return np.unique(np.round(np.geomspace(1, horizon, count)).astype(np.int64))


def simulate(
    setting: Setting,
    scenario: Scenario,
    *,
    adversary: Adversary | None = None,
    on_round: Callable[[int], None] | None = None,
) -> Simulated:
    """Play `scenario.seeds` trials and measure everything that the proof speaks of."""
    started = time.perf_counter()
    require_room(setting, scenario, squares=_SQUARES)
    tally = _Tally(setting, scenario)
    with one_blas_thread():
        for played in play(setting, scenario, adversary=adversary):
            tally.add(played)
            if on_round is not None:
                on_round(played.t)
    return tally.result(time.perf_counter() - started)


class _Tally:
    """Running sums over rounds; one column is kept at each checkpoint."""

    def __init__(self, setting: Setting, scenario: Scenario) -> None:
        self._setting, self._scenario = setting, scenario
        trials, horizon = scenario.seeds, scenario.horizon
        t = np.arange(1, horizon + 1)
        self._nu = theory.nu(t, setting) if scenario.inflate else np.full(horizon, setting.sigma)
        self._l, self._c, self._g = theory.l(t, setting), theory.c(t, setting), theory.g(t, setting)
        self._checkpoints = checkpoints(horizon)
        self._regret, self._potential = np.zeros(trials), np.zeros(trials)
        self._columns: list[tuple[Floats, Floats]] = []
        self._failures = np.zeros((2, horizon), np.int64)
        self._clean = np.ones(trials, np.bool_)
        self._nearest = np.zeros(horizon)
        self._optimistic = self._saturated = 0
        self._lemmas = Lemmas(setting, scenario, self._checkpoints)

    def add(self, played: Round) -> None:
        """Take in one round of every trial."""
        i, look, means, epsilon = played.t - 1, played.look, played.means, self._setting.epsilon
        every = np.arange(means.shape[0])
        self._regret += means.max(axis=1) - means[every, played.arms]
        self._potential += look.s[every, played.arms]
        holds_w = theory.event_w(look.estimates, means, look.s, self._l[i], epsilon)
        holds_theta = theory.event_theta(look.theta, look.estimates, look.s, self._nu[i], self._c[i])
        self._failures[:, i] = np.sum(~holds_w), np.sum(~holds_theta)
        self._clean &= holds_w
        self._nearest[i] = np.max(np.abs(look.estimates - means) / (self._l[i] * look.s + epsilon))
        best = means.argmax(axis=1)
        self._optimistic += int(np.sum(look.theta[every, best] + epsilon >= means[every, best]))
        self._saturated += int(np.sum(theory.saturated(means, look.s, self._g[i], epsilon)))
        self._lemmas.add(played, holds_w)
        if played.t == self._checkpoints[len(self._columns)]:
            self._columns.append((self._regret.copy(), self._potential.copy()))

    def result(self, seconds: float) -> Simulated:
        """Everything measured."""
        rounds = self._scenario.horizon * self._scenario.seeds
        return Simulated(
            setting=self._setting,
            scenario=self._scenario,
            checkpoints=self._checkpoints,
            regret=np.stack([regret for regret, _ in self._columns], axis=1),
            potential=np.stack([potential for _, potential in self._columns], axis=1),
            failures_w=self._failures[0],
            failures_theta=self._failures[1],
            clean_w=self._clean,
            nearest_w=self._nearest,
            optimism=self._optimistic / rounds,
            saturated=self._saturated / (rounds * self._setting.k),
            lemmas=self._lemmas,
            seconds=seconds,
        )
