"""A log: which arm was played when, and the reward that followed, as columns in the order of time.

Times of any kind are seconds; hours, days and weekdays are those of a time zone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, tzinfo
from html import escape
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from tidepull.errors import DataError, ParameterError
from tidepull.types import BoolArray, FloatArray, IntArray

UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))
"""Numbers of at least the first are dates since 1970 in the second's part of a second."""

LATEST = 253_402_300_800.0
"""The first second that no calendar has: year 10000."""

HOURS = tuple(f"{hour:02d}:00" for hour in range(24))
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def parse_time(text: str, form: str = "", zone: tzinfo = UTC) -> float:
    """Seconds since 1970 of a date as text, in ISO 8601 or a form of `strptime`; a date that names
    no zone is one of `zone`. ValueError where it is none. Months of a form with `%b` may be words of several
    languages.

    >>> parse_time("1970-01-02 00:00:00+00:00")
    86400.0
    >>> parse_time("viernes, 2 de enero de 1970 a las 1:00", "%d %b %Y %H:%M")
    90000.0
    """
    text = text.strip()
    if "%b" in form:
        text = re.sub(r"(\d)[.,](?=\s|$)|,", r"\1 ", re.sub(r"[^\W\d_]+\.?", _month, text))
        text = " ".join(text.split())
    moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()


_MONTHS = {
    word: english
    for english, words in {
        "Jan": "january januar janvier enero janv ene", "Feb": "february februar février febrero févr",
        "Mar": "march märz mars marzo mär mrz", "Apr": "april avril abril avr abr",
        "May": "mai mayo", "Jun": "june juni juin junio", "Jul": "july juli juillet julio juil",
        "Aug": "august août agosto ago", "Sep": "september septembre septiembre sept",
        "Oct": "october oktober octobre octubre okt", "Nov": "november novembre noviembre",
        "Dec": "december dezember décembre diciembre dez déc dic",
    }.items()
    for word in (english.lower(), *words.split())
}  # fmt: skip


def _month(word: re.Match[str]) -> str:
    """The English name of a month; other words, but for AM, PM and Z, are left out."""
    text = word[0].rstrip(".")
    return _MONTHS.get(text.lower(), text if text.upper() in ("AM", "PM", "Z") else " ")


def unit_of(times: FloatArray) -> float | None:
    """How many of its units a second has, for numbers that are dates since 1970; None for numbers
    that are not.

    >>> unit_of(np.array([1.7e12, 1.8e12]))
    1000.0
    """
    known = times[~np.isnan(times)]
    low = float(known.min()) if len(known) else 0.0
    return next((unit for least, unit in UNITS if low >= least), None)


def zone_of(name: str) -> ZoneInfo:
    """The time zone of that name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ParameterError(
            f"timezone must be the name of a time zone as 'Europe/Berlin', got {name!r}"
        ) from None


def local_seconds(times: FloatArray, timezone: str) -> FloatArray:
    """Seconds as clocks on the wall show them; the zone's offset is asked once a quarter of an
    hour."""
    if timezone == "UTC":
        return times
    where = zone_of(timezone)
    quarters, back = np.unique(np.floor(times / 900), return_inverse=True)
    offsets = [_offset(float(quarter) * 900, where) for quarter in quarters]
    local: FloatArray = times + np.array(offsets)[back]
    return local


def hour_of(local: FloatArray) -> IntArray:
    """The hour of the day, 0 to 23, of local seconds."""
    hours: IntArray = np.floor(local / 3600).astype(np.int64) % 24
    return hours


def weekday_of(local: FloatArray) -> IntArray:
    """The day of the week, 0 (Monday) to 6; 1 January 1970 was a Thursday."""
    days: IntArray = (np.floor(local / 86_400).astype(np.int64) + 3) % 7
    return days


def _offset(seconds: float, where: ZoneInfo) -> float:
    offset = datetime.fromtimestamp(seconds, where).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def slices(times: FloatArray, by: str, timezone: str) -> tuple[IntArray, tuple[str, ...]]:
    """Which slice each moment belongs to, and the slices' names: by 'day', 'hour' or 'weekday'.

    >>> slices(np.array([0.0, 90000.0]), "hour", "UTC")
    (array([0, 1]), ('00:00', '01:00'))
    """
    local = local_seconds(times, timezone)
    if by == "day":
        kinds, places = np.unique(np.floor(local / 86_400), return_inverse=True)
        return places, tuple(str(np.datetime64(int(day), "D")) for day in kinds)
    if by == "hour":
        numbers, names = hour_of(local), HOURS
    elif by == "weekday":
        numbers, names = weekday_of(local), WEEKDAYS
    else:
        raise ParameterError(f"by must be 'day', 'hour' or 'weekday', got {by!r}")
    kinds, places = np.unique(numbers, return_inverse=True)
    return places, tuple(names[kind] for kind in kinds)


def format_time(seconds: float, timezone: str) -> str:
    """A moment as text."""
    if math.isnan(seconds):
        return "?"
    return f"{datetime.fromtimestamp(seconds, zone_of(timezone)):%Y-%m-%d %H:%M:%S}"


def to_time(value: Any, zone: tzinfo = UTC) -> float:
    """One cell as a number: a number, a number as text, or seconds of a date. ValueError where it
    is none."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=zone)).timestamp()
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return parse_time(value, zone=zone)
    return float(value)


_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class BadRows:
    """Rows that were not understood: how many, how often for which reason, and the first of them
    with their line."""

    count: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    first: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ReadSummary:
    """How a log was understood: its format, which column has which part, what was not understood,
    and remarks."""

    source: str
    format: str
    roles: Mapping[str, str]
    bad: BadRows = BadRows()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ContextColumn:
    """One column of contexts: numbers (NaN where missing) or, where there are `labels`, places in
    these (-1)."""

    values: FloatArray | IntArray
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Decisions as columns of equal length, sorted by time.

    Columns that the source does not have are None.

    Parameters
    ----------
    arms : tuple of str
        Labels of all arms.
    arm : array of int of shape (n,)
        The place of each row's arm in `arms`.
    reward : array of shape (n,)
        The rewards. NaN if no reward has come.
    time : array of shape (n,) or None
        When the arm was played: seconds since 1970 if `dated`, else plain numbers.
    propensity : array of shape (n,) or None
        The probability with which the logged arm was chosen.
    paid_at : array of shape (n,) or None
        When the reward came, in the unit of `time`.
    available : array of bool of shape (n, n_arms) or None
        Which arms were available.
    context : mapping of str to ContextColumn
        Columns of the context by name.
    dated : bool
        Whether times are dates.
    timezone : str
        The time zone of hours and weekdays.
    reading : ReadSummary
        How the source was understood.
    id : array of int of shape (n,), optional
        Numbers that identify decisions, made of their ids. 0 if a decision has none.
    """

    arms: tuple[str, ...]
    arm: IntArray
    reward: FloatArray
    time: FloatArray | None
    propensity: FloatArray | None
    paid_at: FloatArray | None
    available: BoolArray | None
    context: Mapping[str, ContextColumn]
    dated: bool
    timezone: str
    reading: ReadSummary
    id: IntArray | None = None

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def n_arms(self) -> int:
        """Number of arms, including those that were never played."""
        return len(self.arms)

    def where(self, rows: Any) -> Log:
        """Select rows.

        Parameters
        ----------
        rows : array of bool, slice or array of int
            A mask, a slice or row numbers.

        Returns
        -------
        Log
            The log of these rows.
        """
        parts: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, np.ndarray):
                parts[part.name] = value[rows]
        parts["context"] = {
            name: ContextColumn(column.values[rows], column.labels)
            for name, column in self.context.items()
        }
        return replace(self, **parts)

    def with_uniform_propensities(self) -> Log:
        """Return the log with equal propensities for all available arms.

        The caller must know that arms were chosen with equal probability; the log is checked.

        Returns
        -------
        Log
            The log with propensities.

        Raises
        ------
        DataError
            If the shares of arms differ, or depend on time or context.
        """
        from tidepull.logs.diagnosis.confounding import require_uniform

        require_uniform(self)
        chances: FloatArray = np.full(len(self), 1 / self.n_arms)
        if self.available is not None:
            chances = 1 / self.available.sum(axis=1)
        return replace(self, propensity=chances)

    def place(self, label: Any) -> int:
        """Return the number of an arm.

        Parameters
        ----------
        label : str
            The arm's label.

        Returns
        -------
        int
            The place of the label in `arms`.

        Raises
        ------
        DataError
            If there is no such arm.
        """
        if str(label) not in self.arms:
            shown = ", ".join(self.arms[:8]) + (", ..." if self.n_arms > 8 else "")
            raise DataError(
                f"there is no arm '{label}' in {self.reading.source}; its arms are {shown}"
            )
        return self.arms.index(str(label))

    def decisions(self) -> Iterator[dict[str, Any]]:
        """Iterate over the decisions as dictionaries.

        Yields
        ------
        dict
            `arm`, and if they are known `reward`, `at` (seconds since 1970) and `context`.
        """
        for start in range(0, len(self), _AT_ONCE):
            part = self.where(slice(start, start + _AT_ONCE))
            columns = {name: _cells(column) for name, column in part.context.items()}
            times = part.time.tolist() if part.time is not None and self.dated else None
            for n, (arm, reward) in enumerate(
                zip(part.arm.tolist(), part.reward.tolist(), strict=True)
            ):
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
        """Describe how the source was understood, with the first rows.

        Parameters
        ----------
        rows : int, default: 5
            The number of rows to show.

        Returns
        -------
        str
            Several lines of text.
        """
        reading, bad = self.reading, self.reading.bad
        roles = ", ".join(f"{role} from '{column}'" for role, column in reading.roles.items())
        lines = [
            f"{reading.source}: {len(self):,} decisions, {self.n_arms:,} arm{'s' * (self.n_arms != 1)}, read as "
            f"{reading.format}" + (f" ({roles})" if roles else ""),
            self._when(),
            self._paid(),
            f"contexts: {', '.join(self.context) if self.context else 'none'}",
        ]
        if bad.count:
            reasons = ", ".join(f"{reason} ({count:,})" for reason, count in bad.reasons.items())
            lines.append(f"{bad.count:,} row{'s' * (bad.count != 1)} left out: {reasons}")
            lines += [f"  line {line}: {why}" for line, why in bad.first]
        lines += reading.notes
        lines += [self._row(n) for n in range(min(rows, len(self)))]
        return "\n".join(line for line in lines if line)

    def _when(self) -> str:
        if self.time is None:
            return "no times: rows are taken in the order of the file"
        return f"from {self._time_text(0)} to {self._time_text(-1)}"

    def _time_text(self, row: int) -> str:
        if self.time is None:
            return ""
        time = float(self.time[row])
        return format_time(time, self.timezone) if self.dated else f"{time:g}"

    def _paid(self) -> str:
        known = ~np.isnan(self.reward)
        mean = f", {np.mean(self.reward[known]):.4g} on average" if known.any() else ""
        chances = "no propensities"
        if self.propensity is not None:
            low, high = np.nanmin(self.propensity), np.nanmax(self.propensity)
            chances = f"propensities from {low:.3g} to {high:.3g}"
        return f"{int(known.sum()):,} rewards{mean}; {chances}"

    def _row(self, n: int) -> str:
        chance = "" if self.propensity is None else f" (chance {self.propensity[n]:.3g})"
        paid = "no reward" if np.isnan(self.reward[n]) else f"{self.reward[n]:g}"
        return f"  {self._time_text(n)} {self.arms[self.arm[n]]}{chance}: {paid}".rstrip()


def _cells(column: ContextColumn) -> list[Any]:
    """A column as Python values; None where missing."""
    if column.labels is None:
        return [None if value != value else value for value in column.values.tolist()]
    return [None if code < 0 else column.labels[code] for code in column.values.tolist()]


def table_html(rows: Sequence[Mapping[str, Any]]) -> str:
    """Plain rows as a table.

    >>> table_html([{"arm": "a", "mean": 0.5}])
    '<table><tr><th>arm</th><th>mean</th></tr><tr><td>a</td><td>0.5</td></tr></table>'
    """
    if not rows:
        return ""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in rows[0])
    lines = ("".join(f"<td>{escape(_cell(value))}</td>" for value in row.values()) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def list_html(sentences: Iterable[str]) -> str:
    """Sentences as a list."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "not known"
    return str(value)
