"""Cells of a batch as arrays: numbers, moments and labels, with a mask of those that cannot be read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.moments import moment_of
from tidepull.types import BoolArray, FloatArray, IntArray

LARGEST = 1e15
"""Rewards and features beyond this size are refused, as policies do."""

MOST_LABELS = 100_000
"""Different texts of a column, beyond which it is taken for a column of ids."""

_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_NOTHING = ("", "null", "none", "na", "nan", "n/a")


class TooManyLabelsError(DataError):
    """A column of texts that are nearly all different."""


def is_arrow(column: Any) -> bool:
    """Whether a column is an array of pyarrow's."""
    return hasattr(column, "to_pylist")


def listed(column: Any) -> list[Any]:
    """The cells as Python values."""
    return list(column.to_pylist() if is_arrow(column) else column)


def numbers(column: Any) -> tuple[FloatArray, BoolArray]:
    """Numbers, NaN where missing, and which cells are no finite numbers of a sensible size."""
    made = _cast(column)
    if made is None:
        made, bad = _each(listed(column), number_of)
    else:
        bad = np.zeros(len(made), bool)
    with np.errstate(invalid="ignore"):
        return made, bad | (np.abs(made) > LARGEST)


def moments(column: Any) -> tuple[FloatArray, BoolArray, bool]:
    """Moments as numbers, which cells are none, and whether they are seconds since 1970."""
    quick = _cast(column)
    if quick is not None:
        return quick, np.isinf(quick), False
    dates = _cast_dates(column)
    if dates is not None:
        return dates, np.zeros(len(dates), bool), True
    cells = listed(column)
    made, bad = _each(cells, moment_of)
    return made, bad | np.isinf(made), any(not _is_numeric(cell) for cell in cells if cell not in (None, ""))


def number_of(value: Any) -> float:
    """One cell as a number, "true" and "yes" as 1; ValueError where it is none."""
    if isinstance(value, str):
        text = value.strip().lower()
        return _WORDS[text] if text in _WORDS else float(text)
    return float(value)


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
                f"column '{self._name}' has more than {MOST_LABELS:,} different texts; name the right column"
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
        made = column.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
        return None
    return np.array(made.to_numpy(zero_copy_only=False), float)


def _cast_dates(column: Any) -> FloatArray | None:
    import pyarrow as pa

    if not is_arrow(column):
        return None
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            if pa.types.is_date(column.type):
                column = column.cast(pa.timestamp("us"))
            micros = column.cast(kind).cast(pa.int64())
            found = np.array(micros.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), float)
            return found / 1e6
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return None


def _each(cells: list[Any], read: Callable[[Any], float]) -> tuple[FloatArray, BoolArray]:
    made, bad = np.full(len(cells), np.nan), np.zeros(len(cells), bool)
    for n, cell in enumerate(cells):
        if cell is None or (isinstance(cell, str) and cell.strip().lower() in _NOTHING):
            continue
        try:
            made[n] = read(cell)
        except (TypeError, ValueError, OverflowError):
            bad[n] = True
    return made, bad


def _is_numeric(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True
