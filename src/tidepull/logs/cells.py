"""Cells of a batch as arrays: numbers, times and labels, with a mask of those that cannot be
read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.log import ContextColumn, parse_time, to_time, zone_of
from tidepull.types import BoolArray, FloatArray, IntArray

LARGEST = 1e15
"""Rewards and features beyond this size are refused, as policies do."""

MOST_LABELS = 100_000
"""Different texts of a column, beyond which it is taken for a column of ids."""

_WORDS = {
    **dict.fromkeys(
        ("true", "yes", "y", "t", "ja", "wahr", "oui", "vrai", "sí", "si", "sì", "sim"), 1.0
    ),
    **dict.fromkeys(
        ("false", "no", "n", "f", "nein", "falsch", "non", "faux", "não", "nao", "nee"), 0.0
    ),
}
"""Words that spreadsheets and databases of several languages write for 1 and 0."""
_CURRENCY = (
    r"(?:r|us|a|c|nz|hk)?[$]|[€£¥₹₺₽₩]|zł|kč|kr|usd|eur|gbp|chf|sek|nok|dkk|pln|jpy|inr|brl|aud|cad"
)
_AMOUNT = re.compile(
    rf"""
    (?P<open>\()? (?P<before>{_CURRENCY})? \s* (?P<sign>[+\-−])? \s* (?P<between>{_CURRENCY})? \s*
    (?P<whole>[1-9]\d{{0,2}} (?: (?P<group>[.,'’\s]) \d{{3}} (?: (?P=group) \d{{3}} )* )? | \d+)
    (?: (?P<point>[.,]) (?P<rest>\d+) )?
    \s* (?P<after>{_CURRENCY}|%)? (?P<close>\))?
    """,
    re.VERBOSE,
)
"""Numbers with a decimal comma, thousands, a currency, a percent sign, or brackets for a minus."""
_NOTHING = ("", "null", "none", "na", "nan", "n/a", "-", "–", "\\n")


class TooManyLabelsError(DataError):
    """A column of texts that are nearly all different."""


def is_arrow(column: Any) -> bool:
    """Whether a column is an array of pyarrow's."""
    return hasattr(column, "to_pylist")


def to_list(column: Any) -> list[Any]:
    """The cells as Python values."""
    return list(column.to_pylist() if is_arrow(column) else column)


def numbers(column: Any) -> tuple[FloatArray, BoolArray]:
    """Numbers, NaN where missing, and which cells are no finite numbers of a sensible size."""
    values = _cast(column)
    if values is None:
        values, bad = _each(to_list(column), number_of)
    else:
        bad = np.zeros(len(values), bool)
    with np.errstate(invalid="ignore"):
        return values, bad | (np.abs(values) > LARGEST)


def times_of(
    column: Any, form: str = "", timezone: str = "UTC"
) -> tuple[FloatArray, BoolArray, bool]:
    """Moments as numbers, which cells are none, and whether they are seconds since 1970; `form` is
    that of dates as `strptime` has it, where they are not in ISO 8601. Dates that name no zone are
    those of `timezone`."""
    zone = zone_of(timezone)
    if form:
        return *_each(to_list(column), lambda cell: parse_time(cell, form, zone)), True
    quick = _cast(column)
    if quick is not None:
        return quick, np.isinf(quick), False
    dates = _cast_dates(column, timezone)
    if dates is not None:
        return dates, np.zeros(len(dates), bool), True
    cells = to_list(column)
    values, bad = _each(cells, lambda cell: to_time(cell, zone))
    read = (cell for cell, wrong in zip(cells, bad, strict=True) if not wrong)
    dated = any(not _is_numeric(cell) for cell in read if cell not in (None, ""))
    return values, bad | np.isinf(values), dated


def number_of(value: Any) -> float:
    """One cell as a number; ValueError where it is none.

    >>> number_of("yes"), number_of("nein"), number_of("44,61"), number_of("1.234,5")
    (1.0, 0.0, 44.61, 1234.5)
    >>> number_of("1.234 €"), number_of("-$1,234.50"), number_of("(3.54)"), number_of("12,5 %")
    (1234.0, -1234.5, -3.54, 0.125)
    """
    if not isinstance(value, str):
        return float(value)
    text = value.strip().lower()
    if text in _WORDS:
        return _WORDS[text]
    try:
        return float(text)
    except ValueError:
        return _amount(text)


def _amount(text: str) -> float:
    """A number as people write it. One comma before three digits may be a thousand or a decimal
    comma: it is a thousand of a currency, and else refused."""
    parts = _AMOUNT.fullmatch(text)
    wrong = ValueError(f"no number: {text!r}")
    if parts is None or (parts["open"] is None) != (parts["close"] is None):
        raise wrong
    marks = [parts[name] for name in ("before", "between", "after") if parts[name]]
    group, point = parts["group"], parts["point"]
    is_money = marks not in ([], ["%"])
    unclear = group == "," and point is None and len(parts["whole"]) <= 7 and not is_money
    if len(marks) > 1 or unclear or (group is not None and group == point):
        raise wrong
    whole = re.sub(r"\D", "", parts["whole"])
    number = float(f"{whole}.{parts['rest'] or 0}") / (100 if marks == ["%"] else 1)
    return -number if parts["open"] or parts["sign"] in ("-", "−") else number


def label_of(value: Any) -> str:
    """One cell as a label: whole numbers without a point.

    >>> label_of(3.0), label_of("3"), label_of("red")
    ('3', '3', 'red')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


class Labels:
    """Texts and their numbers, in the order in which they appeared."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.known: dict[str, int] = {}

    def code(self, label: str) -> int:
        """The number of a text, which is new or not."""
        code = self.known.setdefault(label, len(self.known))
        if code >= MOST_LABELS:
            raise TooManyLabelsError(
                f"column '{self._name}' has more than {MOST_LABELS:,} different texts; name the "
                "right column"
            )
        return code

    def codes(self, column: Any) -> IntArray:
        """The numbers of all cells; -1 where missing."""
        if is_arrow(column):
            import pyarrow as pa

            chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
            places = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            table = [self._cell(value) for value in coded.dictionary.to_pylist()]
            codes: IntArray = np.array([*table, -1], np.int32)[places]
            return codes
        return np.array([self._cell(value) for value in column], np.int32)

    def _cell(self, value: Any) -> int:
        missing = value is None or value == "" or (isinstance(value, float) and math.isnan(value))
        return -1 if missing else self.code(label_of(value))


def _cast(column: Any) -> FloatArray | None:
    """All cells at once, where that goes without a fault."""
    import pyarrow as pa

    if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
        return column.astype(float)
    try:
        if not is_arrow(column):
            if any(isinstance(cell, str) for cell in column):
                return None
            column = pa.array(column)
        if pa.types.is_temporal(column.type) or pa.types.is_nested(column.type):
            return None
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        values = column.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
        return None
    return np.array(values.to_numpy(zero_copy_only=False), float)


def _cast_dates(column: Any, timezone: str) -> FloatArray | None:
    import pyarrow as pa
    from pyarrow import compute

    if not is_arrow(column):
        return None
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            moments = column.cast(kind)
            is_local = kind.tz is None and getattr(column.type, "tz", None) is None
            if is_local and timezone != "UTC":
                moments = compute.assume_timezone(
                    moments, timezone, ambiguous="earliest", nonexistent="earliest"
                )
            micros = moments.cast(pa.int64())
            micros_as_float = np.array(
                micros.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), float
            )
            return micros_as_float / 1e6
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return None


def _each(cells: list[Any], read: Callable[[Any], float]) -> tuple[FloatArray, BoolArray]:
    values, bad = np.full(len(cells), np.nan), np.zeros(len(cells), bool)
    for n, cell in enumerate(cells):
        if cell is None or (isinstance(cell, str) and cell.strip().lower() in _NOTHING):
            continue
        try:
            values[n] = read(cell)
        except (TypeError, ValueError, OverflowError):
            bad[n] = True
    return values, bad


def _is_numeric(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


class Series:
    """Parts of a column, batch after batch; batches in which it did not appear are missing
    cells."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dropped = False
        self._labels = Labels(name)
        self._parts: list[Any] = []
        self._length = 0

    def add(self, column: Any, start: int, keep: BoolArray) -> None:
        """The kept cells of a batch that begins at row `start`."""
        if self.dropped:
            return
        if start > self._length:
            self._parts.append(np.full(start - self._length, np.nan))
        values, bad = numbers(column)
        try:
            part: FloatArray | IntArray = (
                self._labels.codes(column)[keep] if bad.any() else values[keep]
            )
        except TooManyLabelsError:
            self.dropped, self._parts = True, []
            return
        self._parts.append(part)
        self._length = start + len(part)

    def finish(self, rows: int) -> ContextColumn:
        """The whole column. Where some batches have texts, numbers become texts."""
        if rows > self._length:
            self._parts.append(np.full(rows - self._length, np.nan))
        if not any(part.dtype == np.int32 for part in self._parts):
            whole: FloatArray = np.concatenate(self._parts)
            return ContextColumn(whole)
        coded = [part if part.dtype == np.int32 else self._as_codes(part) for part in self._parts]
        codes: IntArray = np.concatenate(coded)
        return ContextColumn(codes, tuple(self._labels.known))

    def _as_codes(self, part: FloatArray | IntArray) -> IntArray:
        return np.array(
            [-1 if np.isnan(x) else self._labels.code(label_of(float(x))) for x in part], np.int32
        )
