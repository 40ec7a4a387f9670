"""Put the analysis to the test: regret against the bound, and every event of the proof against its
promise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from tidepull._internal.system import one_blas_thread
from tidepull.paper.theory import bound as theory
from tidepull.paper.theory.bound import OPTIMISM, Floats, LinearSetting, regret_bound
from tidepull.paper.theory.environment import ADVERSARIES, NOISES, SCHEDULES, Adversary
from tidepull.paper.theory.lemmas import Lemmas, Promise
from tidepull.paper.theory.measurement_error import Round, Scenario, play, require_room
from tidepull.random import Streams
from tidepull.types import BoolArray, IntArray

_SQUARES = 18
"""d x d matrices of each trial at once: the agent's, those of the lemmas and their potentials, and
passing ones."""


class Simulation:
    """What is measured in many trials of one setting, round after round.

    `regret` and `potential` (the running sum of s_{t,A_t}) are trials x checkpoints; `failures_w`
    and `failures_theta` count, for each round, the trials in which the event did not hold;
    `clean_w` says of each trial whether E^w held in all rounds, and `nearest_w` how near to failing
    it came in each round: the largest
    |x . w^_t - x* . w| of any trial and arm as a share of l_t s + epsilon. `optimism` is the share of rounds with
    Theta_{t,a*} + epsilon >= x*_{a*} . w, `saturated` the share of arms in C_t. `lemmas` has the
    steps of the proof.
    """

    def __init__(self, setting: LinearSetting, scenario: Scenario) -> None:
        self.setting, self.scenario, self.seconds = setting, scenario, 0.0
        trials, horizon = scenario.seeds, scenario.horizon
        t = np.arange(1, horizon + 1)
        self._nu = theory.nu(t, setting) if scenario.inflate else np.full(horizon, setting.sigma)
        self._l, self._c, self._g = theory.l(t, setting), theory.c(t, setting), theory.g(t, setting)
        self.checkpoints = checkpoints(horizon)
        self.regret, self.potential = np.zeros((2, trials, len(self.checkpoints)))
        self.failures_w, self.failures_theta = np.zeros((2, horizon), np.int64)
        self.clean_w: BoolArray = np.ones(trials, np.bool_)
        self.nearest_w: Floats = np.zeros(horizon)
        self.optimism = self.saturated = 0.0
        self.lemmas = Lemmas(setting, scenario, self.checkpoints)

    def add(self, played: Round) -> None:
        """Take in one round of every trial."""
        i, look, means, epsilon = played.t - 1, played.look, played.means, self.setting.epsilon
        every = np.arange(len(means))
        later = self.checkpoints >= played.t
        self.regret[:, later] += (means.max(axis=1) - means[every, played.arms])[:, None]
        self.potential[:, later] += look.s[every, played.arms][:, None]
        holds_w = theory.event_w(look.estimates, means, look.s, self._l[i], epsilon)
        holds_theta = theory.event_theta(
            look.theta, look.estimates, look.s, self._nu[i], self._c[i]
        )
        self.failures_w[i], self.failures_theta[i] = np.sum(~holds_w), np.sum(~holds_theta)
        self.clean_w &= holds_w
        self.nearest_w[i] = np.max(np.abs(look.estimates - means) / (self._l[i] * look.s + epsilon))
        best = means.argmax(axis=1)
        self.optimism += int(np.sum(look.theta[every, best] + epsilon >= means[every, best]))
        self.saturated += int(np.sum(theory.saturated(means, look.s, self._g[i], epsilon)))
        self.lemmas.add(played, holds_w)

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
        """The largest sum of s in any trial at any checkpoint from T = 2 (0 without one), as a share
        of 5 sqrt(d T log T)."""
        from_two = self.checkpoints >= 2
        shares = self.potential[:, from_two] / self.potential_limit[from_two]
        return float(np.max(shares, initial=0.0))


def checkpoints(horizon: int, per_octave: int = 4) -> IntArray:
    """Rounds spaced evenly on a log axis, the first and the last included."""
    count = 1 + math.ceil(per_octave * math.log2(max(horizon, 2)))
    return np.unique(np.round(np.geomspace(1, horizon, count)).astype(np.int64))


def simulate(
    setting: LinearSetting,
    scenario: Scenario,
    *,
    adversary: Adversary | None = None,
    on_round: Callable[[int], None] | None = None,
) -> Simulation:
    """Play `scenario.seeds` trials and measure everything that the proof speaks of."""
    started = time.perf_counter()
    require_room(setting, scenario, squares=_SQUARES)
    result = Simulation(setting, scenario)
    with one_blas_thread():
        for played in play(setting, scenario, adversary=adversary):
            result.add(played)
            if on_round is not None:
                on_round(played.t)
    result.optimism /= scenario.horizon * scenario.seeds
    result.saturated /= scenario.horizon * scenario.seeds * setting.k
    result.seconds = time.perf_counter() - started
    return result


def promises(result: Simulation) -> tuple[Promise, ...]:
    """All that the proof promises beside what was measured: the theorem and its events, then the
    lemmas step by step.

    Failures are counted per trial: at most delta sum 1/t^2 for E^w and, from round 2 on (in round 1
    the promise is empty), sum_{t >= 2} 1/t^2 for E^Theta. Shares of a limit are worst cases over
    trials and checkpoints.
    """
    trials, horizon = result.scenario.seeds, result.scenario.horizon
    inverse_squares = 1.0 / np.arange(1, horizon + 1, dtype=np.float64) ** 2
    w, theta = (n.sum() / trials for n in (result.failures_w, result.failures_theta[1:]))
    w_allowed = result.setting.delta * float(inverse_squares.sum())
    premise = theory.premise_from(result.setting) == 1
    optimism = {"at_least": True, "promised": premise}
    return (
        Promise("Theorem", "regret / bound, most", result.worst_share, 1.0),
        Promise("Theorem", "Σs / 5 √(d T log T), most", result.potential_share, 1.0),
        Promise("Lemma 1", "failures of E^w a trial", float(w), w_allowed),
        Promise(
            "Lemma 1",
            "failures of E^Θ a trial, from round 2",
            float(theta),
            float(inverse_squares[1:].sum()),
        ),
        Promise("Lemma 2", "rounds with optimism", result.optimism, OPTIMISM, **optimism),
        *result.lemmas.promises(premise_holds=premise),
    )


def configurations(
    *, horizon: int, seeds: int, seed: int
) -> Iterator[tuple[LinearSetting, Scenario]]:
    """Forty-six: three adversaries with every noise and epsilon; other shapes, errors along w, loud
    noise; errors that vary; a best arm that only a wide posterior finds.

    Where sigma is above 0.2, it is large enough for Lemma 2's premise in every round; where d is 2
    then, arms are saturated within 2,048 rounds.
    """
    *adversaries, unexplored = ADVERSARIES
    for adversary, noise in product(adversaries, NOISES):
        # Without error nothing hides the best arm: all arms of "hidden-best" would be the same.
        for epsilon in (0.01, 0.1, 0.5) if adversary == "hidden-best" else (0.0, 0.01, 0.1):
            scenario = Scenario(
                horizon=horizon, seeds=seeds, seed=seed, adversary=adversary, noise=noise
            )
            yield LinearSetting(d=5, k=10, epsilon=epsilon), scenario
    for adversary in adversaries:
        common = Scenario(horizon=horizon, seeds=seeds, seed=seed, adversary=adversary)
        yield LinearSetting(d=2, k=25, epsilon=0.05), common
        yield LinearSetting(d=2, k=25, epsilon=0.001, sigma=0.21), common
        yield LinearSetting(d=5, k=10, epsilon=0.1), replace(common, error="aligned")
        yield LinearSetting(d=5, k=10, epsilon=0.01, sigma=0.5), common
        for schedule in SCHEDULES[1:]:
            yield (
                LinearSetting(d=5, k=10, epsilon=0.1, sigma=0.5),
                replace(common, schedule=schedule),
            )
    alone = Scenario(horizon=horizon, seeds=seeds, seed=seed, adversary=unexplored)
    yield LinearSetting(d=2, k=2, sigma=0.21), alone


EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2)
DIMENSIONS = (2, 4, 8, 16)
ARMS = (2, 4, 8, 16, 32, 64)
_OCTAVES = 4
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Exponent:
    """Regret grows like `axis` to the power `slope`, with a 95% interval over trials.

    `bound_slope` is the same fit to the bound over the same values; logarithms keep it from its
    asymptote.
    """

    axis: str
    values: tuple[float, ...]
    regret: tuple[float, ...]
    slope: float
    low: float
    high: float
    bound_slope: float


def fit(
    axis: str, values: Floats, regret: Floats, bound: Floats, rng: np.random.Generator
) -> Exponent:
    """Least squares of log mean regret on log value; `regret` is trials x values, trials are
    resampled."""
    design = np.log(values) - np.mean(np.log(values))

    def slope(means: Floats) -> Floats:
        return np.asarray(np.log(means) @ design / np.sum(design**2))

    trials = regret.shape[0]
    resampled = regret[rng.integers(0, trials, (_RESAMPLES, trials))].mean(axis=1)
    low, high = np.quantile(slope(resampled), (0.025, 0.975))
    means = regret.mean(axis=0)
    numbers = float(slope(means)), float(low), float(high), float(slope(bound))
    return Exponent(axis, tuple(map(float, values)), tuple(map(float, means)), *numbers)


def horizon_growth(result: Simulation) -> Exponent | None:
    """The exponent of T over the last octaves of one simulation; None when regret is 0 or there are
    too few."""
    late = result.checkpoints >= max(2.0, result.scenario.horizon / 2**_OCTAVES)
    regret = result.regret[:, late]
    if late.sum() < 3 or not np.all(regret.mean(axis=0) > 0):
        return None
    rng = Streams(result.scenario.seed).child("theory").generator("bootstrap")
    return fit("T", result.checkpoints[late].astype(np.float64), regret, result.bound[late], rng)


def vary(
    setting: LinearSetting,
    scenario: Scenario,
    *,
    axis: str,
    values: Sequence[float],
    on_round: Callable[[int], None] | None = None,
) -> Exponent | None:
    """Simulate once for each value of one field of the setting ('epsilon', 'd' or 'k'), and fit."""
    settings = [
        LinearSetting.from_mapping({**setting.to_mapping(), axis: value}) for value in values
    ]
    finals = np.stack(
        [simulate(each, scenario, on_round=on_round).regret[:, -1] for each in settings], axis=1
    )
    if not np.all(finals.mean(axis=0) > 0):
        return None
    bounds = np.array([float(regret_bound(scenario.horizon, each).total) for each in settings])
    rng = Streams(scenario.seed).child("theory").generator("bootstrap")
    return fit(axis, np.asarray(values, dtype=np.float64), finals, bounds, rng)
