"""Worlds that stay as they are for a stretch of rounds and then, unannounced, are another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.arms import DriftingArms
from tidepull.problems.drift import read_only
from tidepull.problems.rewards import BernoulliReward
from tidepull.random import Streams
from tidepull.types import FloatArray, IntArray

_QUIET = 100
"""Rounds at both ends of a trial in which nothing changes."""
_DRAWN_UP_TO = 1_000_000
"""Rounds for which stays of regimes are drawn; the last one is for ever."""
_PUBLISHED = {
    "published-local": (
        (0.3, 0.5, 0.9),
        (0.3, 0.2, 0.9),
        (0.3, 0.2, 0.1),
        (0.7, 0.2, 0.1),
        (0.7, 0.5, 0.1),
    ),
    "published-global": (
        (0.4, 0.5, 0.9),
        (0.5, 0.4, 0.7),
        (0.6, 0.3, 0.5),
        (0.7, 0.2, 0.3),
        (0.8, 0.1, 0.1),
    ),
}


@dataclass(frozen=True, eq=False)
class Stretches:
    """Row i of `values` from round `starts[i]` on, until the next one begins."""

    starts: IntArray
    values: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))

    def __call__(self, t: int) -> FloatArray:
        """The row that holds in round t."""
        row: FloatArray = self.values[np.searchsorted(self.starts, t, side="right") - 1]
        return row

    def variation(self, horizon: int) -> float:
        """One jump at the beginning of every stretch but the first."""
        reached = self.values[self.starts <= horizon]
        return float(np.linalg.norm(np.diff(reached, axis=0), axis=1).sum())


@dataclass(frozen=True, kw_only=True)
class ChangePointsParameters(Parameters):
    """Parameters of `change-points-bernoulli`."""

    levels: Literal["drawn", "published-local", "published-global"] = parameter(
        "drawn",
        "probabilities drawn from the seed, or those of Besson and Kaufmann's first two problems",
    )
    n_arms: int = parameter(4, "number of arms (drawn levels)", ge=2, le=10**4)
    changes: int = parameter(6, "number of changes (drawn levels)", ge=0, le=10**4)
    together: bool = parameter(
        False, "all arms change at once, instead of one arm drawn at random (drawn levels)"
    )
    rounds: int = parameter(5000, "rounds over which the changes are spread", ge=300, le=10**9)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.changes > self.rounds - 2 * _QUIET:
            raise ParameterError(
                f"changes is {self.changes}, but only {self.rounds - 2 * _QUIET} rounds may be one"
            )


@dataclass(frozen=True, kw_only=True)
class ReturningRegimesParameters(Parameters):
    """Parameters of `returning-regimes`."""

    n_arms: int = parameter(8, "number of arms", ge=2, le=10**4)
    regimes: int = parameter(3, "number of regimes", ge=2, le=1000)
    stay: float = parameter(300.0, "rounds that a regime stays on average", ge=2)
    low: float = parameter(0.1, "least probability of a reward", ge=0, le=1)
    high: float = parameter(0.9, "largest probability of a reward", ge=0, le=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise ParameterError(
                f"low is {self.low} and high is {self.high}: low must not lie above high"
            )


def change_points_bernoulli(parameters: ChangePointsParameters, streams: Streams) -> DriftingArms:
    """p_k stays until, in some round, that of one arm or of all is drawn anew."""
    rng = streams.generator("changes")
    if parameters.levels == "drawn":
        inner = np.arange(_QUIET, parameters.rounds - _QUIET)
        starts = np.sort(rng.choice(inner, parameters.changes, replace=False))
        values = redrawn(parameters.n_arms, parameters.changes, parameters.together, rng)
    else:
        values = np.array(_PUBLISHED[parameters.levels])
        starts = np.arange(1, len(values)) * parameters.rounds // len(values)
    drift = Stretches(np.concatenate([[0], starts]), values)
    return DriftingArms(drift, BernoulliReward(streams.generator("noise")))


def returning_regimes(parameters: ReturningRegimesParameters, streams: Streams) -> DriftingArms:
    """A few vectors of p_k, each for a while of random length, then another one of them."""
    rng = streams.generator("changes")
    levels = rng.uniform(parameters.low, parameters.high, (parameters.regimes, parameters.n_arms))
    starts, ruling = stays(parameters.regimes, parameters.stay, _DRAWN_UP_TO, rng)
    return DriftingArms(
        Stretches(starts, levels[ruling]), BernoulliReward(streams.generator("noise"))
    )


def redrawn(n: int, changes: int, together: bool, rng: np.random.Generator) -> FloatArray:
    """Rows of n levels in [0, 1], each row with one of them drawn anew, or all."""
    rows = rng.random((changes + 1, n))
    if not together:
        which = rng.integers(n, size=changes)
        for i in range(changes):
            fresh = rows[i + 1, which[i]]
            rows[i + 1] = rows[i]
            rows[i + 1, which[i]] = fresh
    return rows


def stays(
    regimes: int, mean: float, rounds: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """When stays begin and who rules in each: lengths are geometric, the next one is any other
    alike."""
    lengths = rng.geometric(1 / mean, size=max(2, int(2 * rounds / mean)))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    starts = starts[starts < rounds]
    steps = rng.integers(1, regimes, size=len(starts))
    return starts, np.cumsum(np.concatenate([[int(rng.integers(regimes))], steps[1:]])) % regimes
