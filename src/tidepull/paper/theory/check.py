"""The table of configurations on which the theorem, its events and its potential are put to the test."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from tidepull.paper.theory.adversaries import ADVERSARIES
from tidepull.paper.theory.bound import OPTIMISM, Setting
from tidepull.paper.theory.measurement_error import Scenario
from tidepull.paper.theory.noise import NOISES, SCHEDULES
from tidepull.paper.theory.promise import Promise
from tidepull.paper.theory.simulate import Simulated


@dataclass(frozen=True, slots=True)
class Promises:
    """What a simulation measured beside what the analysis promises.

    Failures are counted per trial: at most delta sum 1/t^2 for E^w and, from round 2 on (in round 1 the promise
    is empty), sum_{t >= 2} 1/t^2 for E^Theta. `regret_share` and `potential_share` are worst cases over trials
    and checkpoints, as shares of their limits. `optimism_promised` is 0 where Lemma 2's premise does not hold.
    `steps` are the lemmas one by one.
    """

    regret_share: float
    potential_share: float
    w_failures: float
    w_allowed: float
    theta_failures: float
    theta_allowed: float
    optimism: float
    optimism_promised: float
    steps: tuple[Promise, ...]

    @property
    def kept(self) -> bool:
        """Whether every promise was kept."""
        return (
            self.regret_share <= 1
            and self.potential_share <= 1
            and self.w_failures <= self.w_allowed
            and self.theta_failures <= self.theta_allowed
            and self.optimism >= self.optimism_promised
            and all(step.kept for step in self.steps)
        )


def promises(result: Simulated, *, premise_holds: bool) -> Promises:
    """Measured beside promised, for one simulation."""
    trials, horizon = result.scenario.seeds, result.scenario.horizon
    inverse_squares = 1.0 / np.arange(1, horizon + 1, dtype=np.float64) ** 2
    return Promises(
        regret_share=result.worst_share,
        potential_share=0.0 if math.isnan(result.potential_share) else result.potential_share,
        w_failures=float(result.failures_w.sum()) / trials,
        w_allowed=result.setting.delta * float(inverse_squares.sum()),
        theta_failures=float(result.failures_theta[1:].sum()) / trials,
        theta_allowed=float(inverse_squares[1:].sum()),
        optimism=result.optimism,
        optimism_promised=OPTIMISM if premise_holds else 0.0,
        steps=result.lemmas.promises(premise_holds=premise_holds),
    )


def configurations(*, horizon: int, seeds: int, seed: int) -> Iterator[tuple[Setting, Scenario]]:
    """Forty-five: every adversary, noise and epsilon; other shapes, errors along w, loud noise; errors that vary.

    Where sigma is above 0.2, it is large enough for Lemma 2's premise in every round; where d is 2 then, arms are
    saturated within 2,048 rounds.
    """
    for adversary, noise in product(ADVERSARIES, NOISES):
        # Without error nothing hides the best arm: all arms of "hidden-best" would be the same.
        for epsilon in (0.01, 0.1, 0.5) if adversary == "hidden-best" else (0.0, 0.01, 0.1):
            scenario = Scenario(horizon=horizon, seeds=seeds, seed=seed, adversary=adversary, noise=noise)
            yield Setting(d=5, k=10, epsilon=epsilon), scenario
    for adversary in ADVERSARIES:
        common = Scenario(horizon=horizon, seeds=seeds, seed=seed, adversary=adversary)
        yield Setting(d=2, k=25, epsilon=0.05), common
        yield Setting(d=2, k=25, epsilon=0.001, sigma=0.21), common
        yield Setting(d=5, k=10, epsilon=0.1), replace(common, error="aligned")
        yield Setting(d=5, k=10, epsilon=0.01, sigma=0.5), common
        for schedule in SCHEDULES[1:]:
            yield Setting(d=5, k=10, epsilon=0.1, sigma=0.5), replace(common, schedule=schedule)
