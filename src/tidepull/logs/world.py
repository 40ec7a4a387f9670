"""A world fitted to a log: `simulator(log)` fits it, `FromLog` plays it, with the uncertainty that
the log leaves.

Each arm's mean reward is a linear function of the row's features: the context (numbers
standardised, the commonest texts as flags), the clock (two waves of the day, the weekend) and slow
waves over the log, which follow drifts and changes roughly. Weights have a normal prior whose
width, one for levels, contexts, clock and slow waves each, is the one under which the log is
likeliest (empirical Bayes): where nothing depends on time the widths of its weights become small,
and the world has no time in it. The posterior is exact; `from-log` draws from it by the seed.

Rounds are the log's rows in their order: the same contexts, times and arms on offer; after the last
row the log begins anew, whole weeks later. What the model cannot express is not in this world.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from tidepull import state as snapshots
from tidepull._internal.files import write_whole
from tidepull.errors import DataError, SnapshotError
from tidepull.logs.log import Log, local_seconds
from tidepull.logs.models import Features
from tidepull.problems.drift import read_only
from tidepull.problems.rewards import BernoulliReward, GaussianReward, Reward, SimulatedProblem
from tidepull.random import Streams
from tidepull.types import BoolArray, Context, FloatArray, IntArray

REMARK = "a model of a log"
WEEK = 604_800.0
_KIND = "world fitted to a log"


@dataclass(frozen=True, slots=True, eq=False)
class FittedWorld:
    """A fitted model: rows of a log, and what each arm's mean depends on.

    `features` (rows x d, 1 first) are what means depend on, `observation` what a policy sees of
    them (rows x any), `time` the rows' times (`dated`: local seconds), `available` the arms on
    offer. `mean` (arms x d) and `factor` (arms x d x d, lower triangular) are the weights'
    posterior: mean, and square root of its covariance. `noise` is the standard deviation of
    rewards, which are 0 and 1 where `binary`.
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
        """Write the world to a file for the problem `from-log`.

        Parameters
        ----------
        path
            The file; an existing one is replaced.
        """
        state = {part.name: getattr(self, part.name) for part in fields(self)}
        write_whole(Path(path), snapshots.dump({"kind": _KIND, **state, "arms": list(self.arms)}))

    def problem(self, *, drawn: bool = True, seed: int = 0) -> FromLog:
        """Make the problem that plays this world.

        Parameters
        ----------
        drawn
            Draw the arms' weights from the posterior, instead of using its mean.
        seed
            Seed of the draw and of rewards.
        """
        return FromLog(self, drawn, Streams(seed).child("problem"))


def load(path: Path) -> FittedWorld:
    """Read and verify a fitted world."""
    try:
        state = snapshots.load(path.read_bytes())
        snapshots.check_kind(state, _KIND)
        state.pop("kind")
        world = FittedWorld(**{**state, "arms": tuple(state["arms"])})
        rows, width = world.features.shape
        if (
            world.mean.shape != (len(world.arms), width)
            or world.factor.shape != (len(world.arms), width, width)
            or not rows
        ):
            raise SnapshotError("its parts do not fit together")
    except FileNotFoundError:
        raise DataError(
            f"there is no fitted world {path}; make it with 'tidepull model LOG --out {path}'"
        ) from None
    except (SnapshotError, TypeError, KeyError, AttributeError, ValueError) as error:
        raise DataError(
            f"{path} is no fitted world ({error}); make it again with 'tidepull model'"
        ) from None
    return world


class FromLog(SimulatedProblem):
    """A fitted world as a problem."""

    remark = REMARK

    def __init__(self, world: FittedWorld, drawn: bool, streams: Streams) -> None:
        self.world = world
        self.n_arms = len(world.arms)
        noise = streams.generator("noise")
        self.reward: Reward = GaussianReward(world.noise, noise)
        if world.binary:
            self.reward = BernoulliReward(noise)
        self.weights = np.array(world.mean, float)
        if drawn:
            z = streams.generator("weights").standard_normal(world.mean.shape)
            self.weights += np.einsum("kij,kj->ki", world.factor, z)
        self._lap = _lap(world)
        self._begin(0)

    def context(self) -> Context:
        """What the log's decision saw."""
        world, row = self.world, self._row
        observation = time = None
        if world.observation.shape[1]:
            observation = read_only(np.array(world.observation[row], float))
        if world.time is not None:
            time = float(world.time[row]) + self._t // len(world.features) * self._lap
        available = None if world.available is None else world.available[row]
        return Context(observation=observation, available=available, time=time)

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


MOST_ROWS = 20_000
WIDTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Widths of priors that compete, in standard deviations of rewards."""
_SLOW = 4
_SWEEPS = 3
_LARGEST = 4_000_000


def simulator(log: Log, *, most: int = MOST_ROWS) -> FittedWorld:
    """Fit a world to a log, in which policies can be compared.

    Parameters
    ----------
    log : Log
        Decisions with at least 20 rewards that are not all equal, and two arms or more.
    most : int, default: 20000
        The number of rows that are used, which are the latest ones.

    Returns
    -------
    FittedWorld
        The world. `world.problem()` is a problem; `world.save(path)` writes a file for the
        problem `from-log`.

    Raises
    ------
    DataError
        If there are too few rewards or arms.
    """
    rows = log.where(slice(max(0, len(log) - most), None)) if len(log) > most else log
    paid = np.flatnonzero(~np.isnan(rows.reward))
    if len(paid) < 20:
        raise DataError(
            f"{log.reading.source} has {len(paid)} rewards; at least 20 are needed to fit a world "
            "to it"
        )
    reward = rows.reward[paid]
    if reward.min() == reward.max():
        raise DataError(
            f"{log.reading.source}: every reward is {reward[0]:g}, so there is no world to be "
            "fitted"
        )
    if log.n_arms < 2:
        raise DataError(
            f"{log.reading.source} has one arm only, '{log.arms[0]}'; say which others there were "
            "(--arms)"
        )
    seen = Features(rows).rows(0, len(rows))
    time = rows.time
    if time is not None and rows.dated:
        time = local_seconds(time, rows.timezone)
    clock = _clock(time) if rows.dated and time is not None else np.empty((len(rows), 0))
    slow = _slow(np.arange(len(rows), dtype=float) if time is None else time)
    groups = np.repeat(np.arange(4), [1, seen.shape[1], clock.shape[1], slow.shape[1]])
    features: FloatArray = np.column_stack([np.ones(len(rows)), seen, clock, slow])
    if log.n_arms * features.shape[1] ** 2 > _LARGEST:
        keep = groups != 1
        features, groups = features[:, keep], groups[keep]
    fit = _Fit(features[paid], rows.arm[paid], reward, log.n_arms, groups)
    widths = fit.widths()
    mean, factor = fit.posterior(widths)
    binary = bool(((reward == 0) | (reward == 1)).all())
    about = {
        "source": log.reading.source, "rows": len(rows), "rewards": len(paid), "widths": [float(w) for w in widths],
        "parts": ["level", "context", "clock", "slow waves"],
    }  # fmt: skip
    history = rows.arms, features, seen, time, rows.dated, rows.available
    return FittedWorld(*history, mean, factor, fit.noise, binary, about)


def _clock(time: FloatArray) -> FloatArray:
    angle = 2 * np.pi * time / 86_400
    weekend = (np.floor(time / 86_400) + 3) % 7 >= 5
    waves = [wave(k * angle) for k in (1, 2) for wave in (np.sin, np.cos)]
    return np.column_stack([*waves, weekend - 2 / 7])


def _slow(along: FloatArray) -> FloatArray:
    span = float(along[-1] - along[0]) or 1.0
    u = (along - along[0]) / span
    return np.column_stack([np.cos(np.pi * k * u) for k in range(1, _SLOW + 1)])


class _Fit:
    """Sums of a linear model for each arm; rewards in standard deviations from their mean."""

    def __init__(
        self, x: FloatArray, arm: IntArray, reward: FloatArray, n_arms: int, groups: IntArray
    ) -> None:
        self._centre, self._spread = float(reward.mean()), float(reward.std())
        y = (reward - self._centre) / self._spread
        self._groups = groups
        width = x.shape[1]
        self._gram, self._cross = np.zeros((n_arms, width, width)), np.zeros((n_arms, width))
        left = 0.0
        for a in np.unique(arm):
            mine = arm == a
            self._gram[a], self._cross[a] = x[mine].T @ x[mine], x[mine].T @ y[mine]
            left += float(((y[mine] - y[mine].mean()) ** 2).sum())
        self._variance = max(left / max(1, len(y) - len(np.unique(arm))), 1e-6)
        self.noise = self._spread * self._variance**0.5

    def widths(self) -> FloatArray:
        """The prior width of each part under which the rewards are likeliest, found one part at a
        time."""
        best = np.array([0.3, 0.03, 0.03, 0.03])
        for _ in range(_SWEEPS):
            for part in np.unique(self._groups):
                scores = []
                for width in WIDTHS:
                    tried = best.copy()
                    tried[part] = width
                    scores.append(self._evidence(tried))
                best[part] = WIDTHS[int(np.argmax(scores))]
        return best

    def posterior(self, widths: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means of weights, and the lower triangular root of their covariance, in the units of
        rewards."""
        precision = self._precision(widths)
        covariance = np.linalg.inv(precision)
        mean = np.einsum("kij,kj->ki", covariance, self._cross / self._variance) * self._spread
        mean[:, 0] += self._centre
        symmetric = (covariance + covariance.transpose(0, 2, 1)) / 2
        return mean, np.linalg.cholesky(symmetric) * self._spread

    def _precision(self, widths: FloatArray) -> FloatArray:
        world: FloatArray = self._gram / self._variance + np.diag(1 / widths[self._groups] ** 2)
        return world

    def _evidence(self, widths: FloatArray) -> float:
        """Log probability of all rewards, up to what no width changes."""
        precision = self._precision(widths)
        pulled = self._cross / self._variance
        solved = np.linalg.solve(precision, pulled[:, :, None])[:, :, 0]
        size = np.linalg.slogdet(precision)[1] + 2 * np.log(widths[self._groups]).sum()
        return float(0.5 * ((pulled * solved).sum(axis=1) - size).sum())
