"""A world like your own: a model that was fitted to a log (`tidepull model LOG --out FILE`), played as a problem.

Rounds are the log's rows in their order: the same contexts, times and arms on offer; after the last row the log begins
anew, whole weeks later. What arms pay is the model's: an arm's mean is a linear function of the row's features, with
weights drawn once, by the seed, from what the log leaves open. It is a model of the log and not the log: what the model
cannot express (`tidepull.logs.world` says what it can) is not in this world.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from tidepull import state as snapshots
from tidepull._internal.files import write_whole
from tidepull.errors import DataError, SnapshotError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.datasets import find
from tidepull.problems.drift import read_only
from tidepull.problems.rewards import BernoulliReward, GaussianReward, Reward
from tidepull.random import Streams
from tidepull.types import BoolArray, Context, FloatArray

REMARK = "a model of a log"
WEEK = 604_800.0
_KIND = "world fitted to a log"


@dataclass(frozen=True, slots=True, eq=False)
class FittedWorld:
    """A fitted model: rows of a log, and what each arm's mean depends on.

    `features` (rows x d, 1 first) are what means depend on, `observation` what a policy sees of them (rows x any),
    `time` the rows' times (`dated`: local seconds), `available` the arms on offer. `mean` (arms x d) and `factor`
    (arms x d x d, lower triangular) are the weights' posterior: mean, and square root of its covariance. `noise`
    is the standard deviation of rewards, which are 0 and 1 where `binary`.
    """

    arms: tuple[str, ...]
    features: FloatArray
    observation: FloatArray
    time: FloatArray | None
    dated: bool
    available: BoolArray | None
    mean: FloatArray
    factor: FloatArray
    noise: float
    binary: bool
    about: dict[str, Any]

    def save(self, path: Path | str) -> None:
        """Write it for `from-log`."""
        state = {part.name: getattr(self, part.name) for part in fields(self)}
        write_whole(Path(path), snapshots.dump({"kind": _KIND, **state, "arms": list(self.arms)}))

    def problem(self, *, drawn: bool = True, seed: int = 0) -> FromLog:
        """The same as a problem, for your own loop."""
        return FromLog(self, drawn, Streams(seed).child("problem"))


@dataclass(frozen=True, kw_only=True)
class FromLogParameters(Parameters):
    """Parameters of `from-log`."""

    path: str | None = parameter(
        None, "the fitted world, made by `tidepull model LOG --out FILE`; it must be given"
    )
    drawn: bool = parameter(
        True, "the seed draws arms' means from what the log leaves open, instead of the model's best guess"
    )


def from_log(parameters: FromLogParameters, streams: Streams) -> FromLog:
    """The world of a file."""
    return FromLog(load(_place(parameters)), parameters.drawn, streams)


def files(parameters: FromLogParameters) -> list[Path]:
    """The file that the problem reads; nothing where none is named, as building the problem says so."""
    return [] if parameters.path is None else [_place(parameters)]


def load(path: Path) -> FittedWorld:
    """Read and verify a fitted world."""
    try:
        state = snapshots.load(path.read_bytes())
        snapshots.check_kind(state, _KIND)
        state.pop("kind")
        made = FittedWorld(**{**state, "arms": tuple(state["arms"])})
        rows, width = made.features.shape
        if (
            made.mean.shape != (len(made.arms), width)
            or made.factor.shape != (len(made.arms), width, width)
            or not rows
        ):
            raise SnapshotError("its parts do not fit together")
    except FileNotFoundError:
        raise DataError(
            f"there is no fitted world {path}; make it with 'tidepull model LOG --out {path}'"
        ) from None
    except (SnapshotError, TypeError, KeyError, AttributeError, ValueError) as error:
        raise DataError(f"{path} is no fitted world ({error}); make it again with 'tidepull model'") from None
    return made


def _place(parameters: FromLogParameters) -> Path:
    if parameters.path is None:
        raise DataError(
            "from-log needs a fitted world: --set path=FILE, made by 'tidepull model LOG --out FILE'"
        )
    place = Path(parameters.path).expanduser()
    if place.is_file():
        return place
    return find(place.name) or place


class FromLog:
    """A fitted world as a problem."""

    remark = REMARK

    def __init__(self, world: FittedWorld, drawn: bool, streams: Streams) -> None:
        self.world = world
        self.n_arms = len(world.arms)
        noise = streams.generator("noise")
        self._reward: Reward = BernoulliReward(noise) if world.binary else GaussianReward(world.noise, noise)
        self.weights = np.array(world.mean, float)
        if drawn:
            z = streams.generator("weights").standard_normal(world.mean.shape)
            self.weights += np.einsum("kij,kj->ki", world.factor, z)
        self._lap = _lap(world)
        self._begin(0)

    def context(self) -> Context:
        """What the log's decision saw."""
        world, row = self.world, self._row
        time = (
            None
            if world.time is None
            else float(world.time[row]) + self._t // len(world.features) * self._lap
        )
        return Context(
            observation=read_only(np.array(world.observation[row], float))
            if world.observation.shape[1]
            else None,
            available=None if world.available is None else world.available[row],
            time=time,
        )

    def means(self) -> FloatArray:
        """What the model says of every arm in this row."""
        return self._means

    def step(self, arm: int) -> float:
        """The reward of an arm, and on to the next row."""
        reward = self._reward(self._means, arm)
        self._begin(self._t + 1)
        return reward

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms among those on offer."""
        total = 0.0
        for t in range(horizon):
            row = t % len(self.world.features)
            means = self._means_of(row)
            if self.world.available is not None:
                means = means[self.world.available[row]]
            total += float(means.max() - means.mean())
        return total

    def _begin(self, t: int) -> None:
        self._t, self._row = t, t % len(self.world.features)
        self._means = read_only(self._means_of(self._row))

    def _means_of(self, row: int) -> FloatArray:
        means: FloatArray = self.weights @ self.world.features[row]
        return np.clip(means, 0.0, 1.0) if self.world.binary else means


def _lap(world: FittedWorld) -> float:
    """How much later the log begins anew: whole weeks, so that hours and weekdays go on."""
    if world.time is None:
        return 0.0
    span = float(world.time[-1] - world.time[0])
    step = span / max(1, len(world.time) - 1)
    return float(np.ceil((span + step) / WEEK) * WEEK) if world.dated else span + step
