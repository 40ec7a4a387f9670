"""A log: who was shown what, when, and what came of it, as columns in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.moments import said
from tidepull.types import BoolArray, FloatArray, IntArray

_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class BadRows:
    """Rows that were not understood: how many, how often for which reason, and the first of them with their line."""

    count: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    first: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """How a log was understood: its format, which column has which part, what was not understood, and remarks."""

    source: str
    format: str
    roles: Mapping[str, str]
    bad: BadRows = BadRows()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column of contexts: numbers (NaN where missing) or, where there are `labels`, places in these (-1)."""

    values: FloatArray | IntArray
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Columns of equal length, sorted by time. `arm` has places in `arms`.

    `reward` is NaN where none has come, `propensity` the chance that the logged arm had when it was chosen, `time`
    and `paid_at` (when the reward came) are seconds since 1970 where `dated`, else plain numbers, `available`
    has a column for every arm, `id` tells decisions apart (numbers made of their ids; 0 where one has none). What the
    source has not got is None.
    """

    arms: tuple[str, ...]
    arm: IntArray
    reward: FloatArray
    time: FloatArray | None
    propensity: FloatArray | None
    paid_at: FloatArray | None
    available: BoolArray | None
    context: Mapping[str, Column]
    dated: bool
    zone: str
    reading: Reading
    id: IntArray | None = None

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def n_arms(self) -> int:
        """How many arms there are, with those that were never played."""
        return len(self.arms)

    def where(self, rows: Any) -> Log:
        """Some of the rows: a mask, a slice or places."""
        made: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, np.ndarray):
                made[part.name] = value[rows]
        made["context"] = {
            name: Column(column.values[rows], column.labels) for name, column in self.context.items()
        }
        return replace(self, **made)

    def with_uniform_propensities(self) -> Log:
        """The same where every available arm was equally likely, by the caller's word."""
        chances: FloatArray = np.full(len(self), 1 / self.n_arms)
        if self.available is not None:
            chances = 1 / self.available.sum(axis=1)
        return replace(self, propensity=chances)

    def place(self, label: Any) -> int:
        """The number of an arm."""
        if str(label) not in self.arms:
            shown = ", ".join(self.arms[:8]) + (", ..." if self.n_arms > 8 else "")
            raise DataError(f"there is no arm '{label}' in {self.reading.source}; its arms are {shown}")
        return self.arms.index(str(label))

    def decisions(self) -> Iterator[dict[str, Any]]:
        """Plain rows: `arm`, and where they are known `reward`, `at` (seconds, where `dated`) and `context`."""
        for start in range(0, len(self), _AT_ONCE):
            part = self.where(slice(start, start + _AT_ONCE))
            columns = {name: _cells(column) for name, column in part.context.items()}
            times = part.time.tolist() if part.time is not None and self.dated else None
            for n, (arm, reward) in enumerate(zip(part.arm.tolist(), part.reward.tolist(), strict=True)):
                row: dict[str, Any] = {"arm": self.arms[arm]}
                if reward == reward:
                    row["reward"] = reward
                if times is not None:
                    row["at"] = times[n]
                if columns:
                    row["context"] = {
                        name: cells[n] for name, cells in columns.items() if cells[n] is not None
                    }
                yield row

    def preview(self, rows: int = 5) -> str:
        """What was understood, in plain words, with the first rows."""
        reading, bad = self.reading, self.reading.bad
        roles = ", ".join(f"{role} from '{column}'" for role, column in reading.roles.items())
        lines = [
            f"{reading.source}: {len(self):,} decisions, {self.n_arms:,} arms, read as {reading.format}"
            + (f" ({roles})" if roles else ""),
            self._when(),
            self._paid(),
            f"contexts: {', '.join(self.context) if self.context else 'none'}",
        ]
        if bad.count:
            reasons = ", ".join(f"{reason} ({count:,})" for reason, count in bad.reasons.items())
            lines.append(f"{bad.count:,} rows left out: {reasons}")
            lines += [f"  line {line}: {why}" for line, why in bad.first]
        lines += reading.notes
        lines += [self._row(n) for n in range(min(rows, len(self)))]
        return "\n".join(line for line in lines if line)

    def _when(self) -> str:
        if self.time is None:
            return "no times: rows are taken in the order of the file"
        first, last = (said(float(t), self.zone) if self.dated else f"{t:g}" for t in self.time[[0, -1]])
        return f"from {first} to {last}"

    def _paid(self) -> str:
        known = ~np.isnan(self.reward)
        mean = f", {np.mean(self.reward[known]):.4g} on average" if known.any() else ""
        chances = "no propensities"
        if self.propensity is not None:
            low, high = np.nanmin(self.propensity), np.nanmax(self.propensity)
            chances = f"propensities from {low:.3g} to {high:.3g}"
        return f"{int(known.sum()):,} rewards{mean}; {chances}"

    def _row(self, n: int) -> str:
        when = ""
        if self.time is not None:
            when = said(float(self.time[n]), self.zone) if self.dated else f"{self.time[n]:g}"
        chance = "" if self.propensity is None else f" (chance {self.propensity[n]:.3g})"
        paid = "no reward" if np.isnan(self.reward[n]) else f"{self.reward[n]:g}"
        return f"  {when} {self.arms[self.arm[n]]}{chance}: {paid}".rstrip()


def _cells(column: Column) -> list[Any]:
    """A column as Python values; None where missing."""
    if column.labels is None:
        return [None if value != value else value for value in column.values.tolist()]
    return [None if code < 0 else column.labels[code] for code in column.values.tolist()]
