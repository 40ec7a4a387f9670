"""A simulator from a log: `simulator(log)` fits a world in which policies can be compared, with what the log
leaves open.

Each arm's mean reward is a linear function of the row's features: the context (numbers standardised, the commonest
texts as flags), the clock (two waves of the day, the weekend) and slow waves over the log, which follow drifts and
changes roughly. Weights have a normal prior whose width, one for levels, contexts, clock and slow waves each, is
the one under which the log is likeliest: where nothing depends on time the widths of its weights become small, and
the world has no time in it. The posterior is exact; `from-log` draws from it by the seed.
"""

from __future__ import annotations

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.features import Features
from tidepull.logs.log import Log
from tidepull.logs.moments import local_seconds
from tidepull.problems.from_log import FittedWorld
from tidepull.types import FloatArray, IntArray

MOST_ROWS = 20_000
WIDTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Widths of priors that compete, in standard deviations of rewards."""
_SLOW = 4
_SWEEPS = 3
_LARGEST = 4_000_000


def simulator(log: Log, *, most: int = MOST_ROWS) -> FittedWorld:
    """A world fitted to a log, to its latest `most` rows: `world.problem()` plays it, `world.save(path)` is for
    `from-log`."""
    rows = log.where(slice(max(0, len(log) - most), None)) if len(log) > most else log
    paid = np.flatnonzero(~np.isnan(rows.reward))
    if len(paid) < 20:
        raise DataError(
            f"{log.reading.source} has {len(paid)} rewards; at least 20 are needed to fit a world to it"
        )
    reward = rows.reward[paid]
    if reward.min() == reward.max():
        raise DataError(
            f"{log.reading.source}: every reward is {reward[0]:g}, so there is no world to be fitted"
        )
    if log.n_arms < 2:
        raise DataError(
            f"{log.reading.source} has one arm only, '{log.arms[0]}'; say which others there were (--arms)"
        )
    seen = Features(rows).rows(0, len(rows))
    time = None if rows.time is None else local_seconds(rows.time, rows.zone) if rows.dated else rows.time
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
    return FittedWorld(
        rows.arms, features, seen, time, rows.dated, rows.available, mean, factor, fit.noise, binary, about
    )


def _clock(time: FloatArray) -> FloatArray:
    angle = 2 * np.pi * time / 86_400
    weekend = (np.floor(time / 86_400) + 3) % 7 >= 5
    return np.column_stack(
        [np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle), weekend - 2 / 7]
    )


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
        """The prior width of each part under which the rewards are likeliest, found one part at a time."""
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
        """Means of weights, and the lower triangular root of their covariance, in the units of rewards."""
        precision = self._precision(widths)
        covariance = np.linalg.inv(precision)
        mean = np.einsum("kij,kj->ki", covariance, self._cross / self._variance) * self._spread
        mean[:, 0] += self._centre
        return mean, np.linalg.cholesky((covariance + covariance.transpose(0, 2, 1)) / 2) * self._spread

    def _precision(self, widths: FloatArray) -> FloatArray:
        made: FloatArray = self._gram / self._variance + np.diag(1 / widths[self._groups] ** 2)
        return made

    def _evidence(self, widths: FloatArray) -> float:
        """Log probability of all rewards, up to what no width changes."""
        precision = self._precision(widths)
        pulled = self._cross / self._variance
        solved = np.linalg.solve(precision, pulled[:, :, None])[:, :, 0]
        size = np.linalg.slogdet(precision)[1] + 2 * np.log(widths[self._groups]).sum()
        return float(0.5 * ((pulled * solved).sum(axis=1) - size).sum())
