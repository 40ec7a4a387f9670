"""Where means over a log mislead: shares of arms that move, Simpson's paradox, and propensities that
are wrong.

Whether shares depend on time or context is said by Cramer's V with a chi-square test. Cramer's V of
two columns is sqrt(chi^2 / (n (k - 1))), k the smaller side of their table: 0 where one says
nothing about the other, 1 where it decides it.

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
from scipy import special, stats

from tidepull.errors import DataError
from tidepull.logs.diagnosis.overview import balances, sums_by
from tidepull.logs.log import (
    HOURS,
    WEEKDAYS,
    ContextColumn,
    Log,
    hour_of,
    local_seconds,
    weekday_of,
)
from tidepull.types import FloatArray, IntArray

_FALSE_ALARMS = 0.001
"""Share of uniform logs that are refused, over all tests together."""
_LEAST_EFFECT = 0.05
"""Effect (Cohen's w, Cramer's V) below which a long log is taken for uniform all the same."""
_MOST_VALUES = 10
"""Values of a text column that are tested, the commonest first."""
_ROWS_A_CELL = 5
"""Rows that a cell of a table needs on average, so that the chi-square distribution holds."""


@dataclass(frozen=True, slots=True)
class Shift:
    """How far arms' shares move with `by`: Cramer's V (0: not at all, 1: the time decides), and the
    p-value that they do not move."""

    by: str
    moves: float
    p: float


def strata(log: Log) -> dict[str, tuple[IntArray, list[str]]]:
    """Each row's hour, weekday and tenth of the log."""
    groups: dict[str, tuple[IntArray, list[str]]] = {}
    if log.time is not None and log.dated:
        local = local_seconds(log.time, log.timezone)
        days = (local[-1] - local[0]) / 86_400
        if days >= 2:
            groups["hour"] = hour_of(local), list(HOURS)
        if days >= 7:
            groups["weekday"] = weekday_of(local), list(WEEKDAYS)
    tenths = np.minimum(np.arange(len(log)) * 10 // max(1, len(log)), 9)
    groups["tenth of the log"] = tenths, [f"tenth {n + 1}" for n in range(10)]
    return groups


def shifts_of(log: Log) -> tuple[Shift, ...]:
    """How far shares of arms move with time."""
    shifts = (_shift(by, place, log.arm) for by, (place, _) in strata(log).items())
    return tuple(shift for shift in shifts if shift is not None)


def require_uniform(log: Log) -> None:
    """Refuse a log whose arms were not chosen with equal probability.

    Parameters
    ----------
    log : Log
        The log. Where not all arms were always available, their overall shares alone are tested.

    Raises
    ------
    DataError
        If shares differ, or depend on the hour, the weekday, the tenth of the log or a column of
        the context.
    """
    tests = [_even_shares(log)]
    if log.available is None:
        tests += shifts_of(log)
        for name, column in log.context.items():
            place = _groups(column)
            known = place >= 0
            if known.sum() >= _ROWS_A_CELL * log.n_arms * (int(place.max(initial=0)) + 1):
                shift = _shift(f"column '{name}'", place[known], log.arm[known])
                tests += [] if shift is None else [shift]
    for test in tests:
        if test.p < _FALSE_ALARMS / len(tests) and test.moves >= _LEAST_EFFECT:
            raise DataError(
                f"{log.reading.source}: {_reason(log, test)}, so --uniform is wrong; {_FIX}"
            )


_FIX = "name the column of propensities (--propensity), or log them from now on"


def _reason(log: Log, test: Shift) -> str:
    if test.by:
        return (
            f"shares of arms depend on the {test.by} (Cramer's V {test.moves:.2f}, chi-square "
            f"p = {test.p:.1g})"
        )
    counts = np.bincount(log.arm, minlength=log.n_arms) / len(log)
    most, least = int(counts.argmax()), int(counts.argmin())
    return (
        f"arms were not equally likely, from {counts[most]:.1%} ('{log.arms[most]}') to "
        f"{counts[least]:.1%} ('{log.arms[least]}') (chi-square p = {test.p:.1g})"
    )


def _even_shares(log: Log) -> Shift:
    """The test that every available arm was equally likely."""
    counts = np.bincount(log.arm, minlength=log.n_arms)
    if log.available is None:
        expected = np.full(log.n_arms, len(log) / log.n_arms)
    else:
        expected = (log.available / log.available.sum(axis=1, keepdims=True)).sum(axis=0)
    chi, p = stats.chisquare(counts[expected > 0], expected[expected > 0])
    return Shift("", float(np.sqrt(chi / len(log))), float(p) if log.n_arms > 1 else 1.0)


def _shift(by: str, place: IntArray, arm: IntArray) -> Shift | None:
    """Cramer's V of arms and places; None where either has one value only."""
    table = stats.contingency.crosstab(place, arm).count
    if min(table.shape) < 2:
        return None
    chi, p, _, _ = stats.chi2_contingency(table, correction=False)
    return Shift(by, float(np.sqrt(chi / table.sum() / (min(table.shape) - 1))), float(p))


def _groups(column: ContextColumn) -> IntArray:
    """Each row's group: one of the commonest texts, or a quarter of the numbers; -1 elsewhere."""
    if column.labels is not None:
        codes = column.values.astype(np.int64)
        counts = np.bincount(codes[codes >= 0], minlength=len(column.labels))
        common = np.argsort(-counts, kind="stable")[:_MOST_VALUES]
        return np.where(np.isin(codes, common), codes, -1)
    known = ~np.isnan(column.values)
    groups = np.full(len(column.values), -1)
    if known.any():
        cuts = np.unique(np.quantile(column.values[known], [0.25, 0.5, 0.75]))
        groups[known] = np.searchsorted(cuts, column.values[known], side="left")
    return groups


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
    rewards = np.bincount(log.arm[~np.isnan(log.reward)], minlength=log.n_arms)
    common = np.argsort(-rewards, kind="stable")[:_MOST_ARMS]
    results: list[Mixup] = []
    for by, (place, names) in strata(log).items():
        cells = sums_by(log.reward, place * log.n_arms + log.arm, len(names) * log.n_arms)
        table = np.array(cells, float).reshape(3, len(names), log.n_arms)
        turned = []
        for i, a in enumerate(common):
            for b in common[i + 1 :]:
                one = _compared(table, int(a), int(b), log.arms, by, names)
                if one is not None:
                    turned.append(one)
        if turned:
            results.append(max(turned, key=lambda one: one.sureness))
    return tuple(results)


def _compared(
    table: FloatArray, a: int, b: int, arms: tuple[str, ...], by: str, names: list[str]
) -> Mixup | None:
    """Two arms; the table has numbers, sums and squares of rewards by slice (rows) and arm."""
    n, sums, squares = table[:, :, [a, b]]
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
