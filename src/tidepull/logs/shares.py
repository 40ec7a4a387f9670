"""Whether shares of arms depend on time or context: Cramer's V with a chi-square test.

Cramer's V of two columns is sqrt(chi^2 / (n (k - 1))), k the smaller side of their table: 0 where
one says nothing about the other, 1 where it decides it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from tidepull.errors import DataError
from tidepull.logs.log import (
    HOURS,
    WEEKDAYS,
    ContextColumn,
    Log,
    hour_of,
    local_seconds,
    weekday_of,
)
from tidepull.types import IntArray

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
        local = local_seconds(log.time, log.zone)
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
