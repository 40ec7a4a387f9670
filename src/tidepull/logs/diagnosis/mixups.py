"""Where means over the whole log mislead, because arms were played at different times: Simpson's paradox.

Two arms are compared twice: by their means over all decisions, and within hours (or weekdays, or stretches of
time), where the differences are averaged with the weights of the traffic. It bites where the two disagree about
who is better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from tidepull.logs.log import Log
from tidepull.logs.moments import WEEKDAYS, local_seconds
from tidepull.types import FloatArray, IntArray

_MOST_ARMS = 12
_SURE = 1.96
_LEAST = 5


@dataclass(frozen=True, slots=True)
class Shift:
    """How far arms' shares move with `by`: Cramer's V (0: not at all, 1: the time decides), and the p-value that
    they do not move."""

    by: str
    moves: float
    p: float


@dataclass(frozen=True, slots=True, eq=False)
class Mixup:
    """`better` has the higher mean over all decisions by `apart`, but within `by` `other` earns more by `within`; both
    with standard errors. `slices` has for each slice of time its name, and each arm's decisions and mean reward."""

    by: str
    better: str
    other: str
    apart: float
    apart_error: float
    within: float
    within_error: float
    slices: tuple[tuple[str, int, float, int, float], ...]


def strata(log: Log) -> dict[str, tuple[IntArray, list[str]]]:
    """Each row's hour, weekday and tenth of the log."""
    made: dict[str, tuple[IntArray, list[str]]] = {}
    if log.time is not None and log.dated:
        local = local_seconds(log.time, log.zone)
        days = (local[-1] - local[0]) / 86_400
        if days >= 2:
            made["hour"] = (
                np.floor(local / 3600).astype(np.int64) % 24,
                [f"{hour:02d}:00" for hour in range(24)],
            )
        if days >= 7:
            made["weekday"] = (np.floor(local / 86_400).astype(np.int64) + 3) % 7, list(WEEKDAYS)
    tenths = np.minimum(np.arange(len(log)) * 10 // max(1, len(log)), 9)
    made["tenth of the log"] = tenths, [f"tenth {n + 1}" for n in range(10)]
    return made


def shifts_of(log: Log) -> tuple[Shift, ...]:
    """How far shares of arms move with time."""
    found = []
    for by, (place, names) in strata(log).items():
        table = np.bincount(place * log.n_arms + log.arm, minlength=len(names) * log.n_arms).reshape(
            len(names), -1
        )
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(table.shape) < 2:
            continue
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        chi = float(((table - expected) ** 2 / expected).sum())
        least = min(table.shape) - 1
        p = float(stats.chi2.sf(chi, (table.shape[0] - 1) * (table.shape[1] - 1)))
        found.append(Shift(by, float(np.sqrt(chi / table.sum() / least)), p))
    return tuple(found)


def mixups_of(log: Log) -> tuple[Mixup, ...]:
    """Pairs of arms whose order turns round within slices of time, for sure both ways; at most one for each `by`."""
    paid = ~np.isnan(log.reward)
    reward, arm = log.reward[paid], log.arm[paid]
    common = np.argsort(-np.bincount(arm, minlength=log.n_arms), kind="stable")[:_MOST_ARMS]
    found: list[Mixup] = []
    for by, (place, names) in strata(log).items():
        table = _Table(reward, arm, place[paid], log.n_arms, len(names))
        turned = []
        for i, a in enumerate(common):
            for b in common[i + 1 :]:
                one = _compared(table, int(a), int(b), log.arms, by, names)
                if one is not None:
                    turned.append(one)
        if turned:
            found.append(
                max(turned, key=lambda one: min(one.apart / one.apart_error, one.within / one.within_error))
            )
    return tuple(found)


class _Table:
    """Numbers, means and variances of rewards by slice (rows) and arm (columns)."""

    def __init__(self, reward: FloatArray, arm: IntArray, place: IntArray, n_arms: int, slices: int) -> None:
        cell, cells = place * n_arms + arm, slices * n_arms
        shape = (slices, n_arms)
        self.n = np.bincount(cell, minlength=cells).reshape(shape).astype(float)
        self.sums = np.bincount(cell, weights=reward, minlength=cells).reshape(shape)
        self.squares = np.bincount(cell, weights=reward**2, minlength=cells).reshape(shape)


def _compared(
    table: _Table, a: int, b: int, arms: tuple[str, ...], by: str, names: list[str]
) -> Mixup | None:
    n, sums, squares = table.n[:, [a, b]], table.sums[:, [a, b]], table.squares[:, [a, b]]
    if (n.sum(axis=0) < 2 * _LEAST).any():
        return None
    means = sums.sum(axis=0) / n.sum(axis=0)
    variances = squares.sum(axis=0) / n.sum(axis=0) - means**2
    apart = float(means[0] - means[1])
    error = float(np.sqrt((variances / n.sum(axis=0)).sum()))
    both = (n >= _LEAST).all(axis=1)
    if not both.any():
        return None
    weight = n[both].sum(axis=1) / n[both].sum()
    inner = sums[both] / n[both]
    noise = np.maximum(squares[both] / n[both] - inner**2, variances / 10) / n[both]
    within = float(weight @ (inner[:, 0] - inner[:, 1]))
    within_error = float(np.sqrt(weight**2 @ noise.sum(axis=1)))
    if apart * within >= 0 or abs(apart) < _SURE * error or abs(within) < _SURE * within_error:
        return None
    first = [0, 1] if apart > 0 else [1, 0]
    labels = (arms[a], arms[b])
    shown = tuple(
        (names[s], int(n[s, first[0]]), float(sums[s, first[0]] / n[s, first[0]]), int(n[s, first[1]]),
        float(sums[s, first[1]] / n[s, first[1]])) for s in np.flatnonzero(both).tolist()
    )  # fmt: skip
    return Mixup(by, labels[first[0]], labels[first[1]], abs(apart), error, abs(within), within_error, shown)
