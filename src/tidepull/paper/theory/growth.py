"""How regret grows with epsilon, d, T and K: exponents of fitted power laws, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tidepull.paper.theory.bound import Floats, Setting, regret_bound
from tidepull.paper.theory.measurement_error import Scenario
from tidepull.paper.theory.simulate import Simulated, simulate
from tidepull.random import Streams

EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2)
DIMENSIONS = (2, 4, 8, 16)
ARMS = (2, 4, 8, 16, 32, 64)
_OCTAVES = 4
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Exponent:
    """Regret grows like `axis` to the power `slope`, with a 95% interval over trials.

    `bound_slope` is the same fit to the bound over the same values; logarithms keep it from its asymptote.
    """

    axis: str
    values: tuple[float, ...]
    regret: tuple[float, ...]
    slope: float
    low: float
    high: float
    bound_slope: float


def fit(axis: str, values: Floats, regret: Floats, bound: Floats, rng: np.random.Generator) -> Exponent:
    """Least squares of log mean regret on log value; `regret` is trials x values, trials are resampled."""
    design = np.log(values) - np.mean(np.log(values))

    def slope(means: Floats) -> Floats:
        return np.asarray(np.log(means) @ design / np.sum(design**2))

    trials = regret.shape[0]
    resampled = regret[rng.integers(0, trials, (_RESAMPLES, trials))].mean(axis=1)
    low, high = np.quantile(slope(resampled), (0.025, 0.975))
    means = regret.mean(axis=0)
    numbers = float(slope(means)), float(low), float(high), float(slope(bound))
    return Exponent(axis, tuple(map(float, values)), tuple(map(float, means)), *numbers)


def horizon_growth(result: Simulated) -> Exponent | None:
    """The exponent of T over the last octaves of one simulation; None when regret is 0 or there are too few."""
    late = result.checkpoints >= max(2.0, result.scenario.horizon / 2**_OCTAVES)
    regret = result.regret[:, late]
    if late.sum() < 3 or not np.all(regret.mean(axis=0) > 0):
        return None
    rng = Streams(result.scenario.seed).child("theory").generator("bootstrap")
    return fit("T", result.checkpoints[late].astype(np.float64), regret, result.bound[late], rng)


def vary(
    setting: Setting,
    scenario: Scenario,
    *,
    axis: str,
    values: Sequence[float],
    on_round: Callable[[int], None] | None = None,
) -> Exponent | None:
    """Simulate once for each value of one field of the setting ('epsilon', 'd' or 'k'), and fit."""
    settings = [Setting.from_mapping({**setting.to_mapping(), axis: value}) for value in values]
    finals = np.stack(
        [simulate(each, scenario, on_round=on_round).regret[:, -1] for each in settings], axis=1
    )
    if not np.all(finals.mean(axis=0) > 0):
        return None
    bounds = np.array([float(regret_bound(scenario.horizon, each).total) for each in settings])
    rng = Streams(scenario.seed).child("theory").generator("bootstrap")
    return fit(axis, np.asarray(values, dtype=np.float64), finals, bounds, rng)
