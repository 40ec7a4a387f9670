"""Where means over a log mislead: Simpson's paradox, and propensities that are wrong.

Two arms are compared twice: by their means over all decisions, and within hours (or weekdays, or
stretches of time), where the differences are averaged with the weights of the traffic. The paradox
is there where the two disagree.

A log has the chance of the arm that was played and not of the others, so a chance of 0.3 cannot be
compared with how often that arm came. But the sum of 1/p over an arm's decisions must be about the
number of decisions in which it was on offer: in all of the log, in each tenth of it, and in each
hour of the day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from tidepull.logs.diagnosis.overview import balances
from tidepull.logs.log import Log
from tidepull.logs.shares import strata
from tidepull.types import FloatArray, IntArray

_MOST_ARMS = 12
_SURE = 1.96
_LEAST = 5


@dataclass(frozen=True, slots=True, eq=False)
class Mixup:
    """`better` has the higher mean over all decisions by `apart`, but within `by` `other` earns
    more by `within`; both with standard errors. `slices` has for each slice of time its name, and
    each arm's decisions and mean reward."""

    by: str
    better: str
    other: str
    apart: float
    apart_error: float
    within: float
    within_error: float
    slices: tuple[tuple[str, int, float, int, float], ...]

    @property
    def sureness(self) -> float:
        """The smaller of the two differences, in standard errors."""
        return min(self.apart / self.apart_error, self.within / self.within_error)


def mixups_of(log: Log) -> tuple[Mixup, ...]:
    """Pairs of arms whose order turns round within slices of time, for sure both ways; at most one
    for each `by`."""
    paid = ~np.isnan(log.reward)
    reward, arm = log.reward[paid], log.arm[paid]
    common = np.argsort(-np.bincount(arm, minlength=log.n_arms), kind="stable")[:_MOST_ARMS]
    results: list[Mixup] = []
    for by, (place, names) in strata(log).items():
        table = _SliceTable(reward, arm, place[paid], log.n_arms, len(names))
        turned = []
        for i, a in enumerate(common):
            for b in common[i + 1 :]:
                one = _compared(table, int(a), int(b), log.arms, by, names)
                if one is not None:
                    turned.append(one)
        if turned:
            results.append(max(turned, key=lambda one: one.sureness))
    return tuple(results)


class _SliceTable:
    """Numbers, means and variances of rewards by slice (rows) and arm (columns)."""

    def __init__(
        self, reward: FloatArray, arm: IntArray, place: IntArray, n_arms: int, slices: int
    ) -> None:
        cell, cells = place * n_arms + arm, slices * n_arms
        shape = (slices, n_arms)
        self.n = np.bincount(cell, minlength=cells).reshape(shape).astype(float)
        self.sums = np.bincount(cell, weights=reward, minlength=cells).reshape(shape)
        self.squares = np.bincount(cell, weights=reward**2, minlength=cells).reshape(shape)


def _compared(
    table: _SliceTable, a: int, b: int, arms: tuple[str, ...], by: str, names: list[str]
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
    return Mixup(
        by, labels[first[0]], labels[first[1]], abs(apart), error, abs(within), within_error, shown
    )


_FALSE = 0.01
"""The chance that right propensities are called wrong, over all checks together."""


@dataclass(frozen=True, slots=True)
class Balance:
    """The sum of 1/p over decisions, as a share of what it should be (1), with its standard error:
    of one arm, or of all arms in one slice of time."""

    what: str
    slice: str
    value: float
    error: float

    @property
    def off(self) -> float:
        """How many standard errors it is off."""
        distance = abs(self.value - 1)
        if self.error > 1e-12:
            return distance / self.error
        return 0.0 if distance < 1e-6 else np.inf


@dataclass(frozen=True, slots=True)
class Calibration:
    """All checks. `wrong` are those that right propensities would fail once in a hundred logs at
    most."""

    checks: tuple[Balance, ...]

    @property
    def wrong(self) -> tuple[Balance, ...]:
        """Checks that failed, the worst first."""
        if not self.checks:
            return ()
        limit = -float(special.ndtri(_FALSE / 2 / len(self.checks)))
        failed = [
            check
            for check in self.checks
            if check.off > max(limit, 3.0) and abs(check.value - 1) > 0.005
        ]
        return tuple(sorted(failed, key=lambda check: -check.off))


def calibration_of(log: Log) -> Calibration | None:
    """The checks; None where there are no propensities."""
    if log.propensity is None:
        return None
    value, error = balances(log)
    played = np.bincount(log.arm, minlength=log.n_arms)
    checks = [
        Balance("arm", log.arms[arm], float(value[arm]), float(error[arm]))
        for arm in range(log.n_arms)
        if played[arm] >= 10
    ]
    for by, (place, names) in strata(log).items():
        for n, name in enumerate(names):
            here = place == n
            if here.sum() >= 50:
                checks.append(Balance(by, name, *_of_all_arms(log.where(here))))
    return Calibration(tuple(checks))


def _of_all_arms(log: Log) -> tuple[float, float]:
    """The mean of 1/p as a share of the number of arms on offer."""
    assert log.propensity is not None
    known = ~np.isnan(log.propensity)
    weight = 1 / log.propensity[known]
    offered = np.full(len(weight), float(log.n_arms))
    if log.available is not None:
        offered = log.available[known].sum(axis=1).astype(float)
    ratio = weight / offered
    return float(ratio.mean()), float(ratio.std(ddof=1) / max(1, len(ratio)) ** 0.5) if len(
        ratio
    ) > 1 else np.inf
