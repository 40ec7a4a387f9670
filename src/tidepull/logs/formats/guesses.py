"""What the columns of a table hold, judged by their first cells: dates in any usual form, ids."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from tidepull.logs.build import Batch
from tidepull.logs.cells import to_list
from tidepull.logs.formats.tables import Roles
from tidepull.logs.log import parse_time, unit_of
from tidepull.types import FloatArray

_SAMPLE = 5000
"""Rows that are looked at."""
_FEWEST = 50
"""Rows below which a column whose cells all differ may be anything."""
_NEARLY_ALL = 0.98
"""Share of cells that must be dates, or of values that must differ."""
_CALENDAR = (946_684_800.0, 4_102_444_800.0)
"""Seconds since 1970 of the years 2000 and 2100: numbers between them may be dates."""

_NAME_OF_ID = re.compile(r"(^|[_\-. ])(id|ID|Id)$|[a-z]I[dD]$")

ISO = ""
"""The form of dates that need none: ISO 8601, and numbers since 1970."""
_DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%y", "%d/%m/%y",
    "%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
)  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S")


@dataclass(frozen=True, slots=True)
class Guess:
    """The roles of all columns, the form of dates in the columns of `time` and `paid_at`, and
    remarks."""

    roles: Roles
    forms: Mapping[str, str]
    notes: tuple[str, ...]


def guess_columns(batch: Batch, roles: Roles) -> Guess:
    """Find dates and ids among the columns that have no role yet.

    Parameters
    ----------
    batch : Batch
        The first rows, with all columns that have no other role as context.
    roles : Roles
        What the names of columns say.

    Returns
    -------
    Guess
        The roles with what the cells say.
    """
    cells = {
        name: to_list(batch.context[name])[:_SAMPLE]
        for name in roles.context
        if name in batch.context
    }
    parts, notes = dict(roles.parts), []
    dates = {
        name: form
        for name, column in cells.items()
        if (form := date_form(column)) is not None and not _NAME_OF_ID.search(name)
    }
    if "time" not in parts and dates:
        parts["time"] = min(dates, key=lambda name: _lateness(cells[name], dates[name]))
        notes.append(
            f"column '{parts['time']}' has dates and is taken for the time (--time names another)"
        )
    left_out = [
        name for name in dates if name != parts.get("time") and not _is_numeric(cells[name])
    ]
    notes += [
        f"column '{name}' has dates and is left out of the context (--paid-at names the time of rewards)"
        for name in left_out
    ]
    for name in [
        name for name, column in cells.items() if name not in dates and is_id(name, column)
    ]:
        left_out.append(name)
        role = "left out of the context" if "id" in parts else "taken for the id of decisions"
        parts.setdefault("id", name)
        notes.append(f"column '{name}' differs in nearly every row and is {role}")
    forms = {}
    for part in ("time", "paid_at"):
        column = cells.get(parts.get(part, ""), to_list(batch.cells.get(part, ()))[:_SAMPLE])
        if form := date_form(column):
            forms[part] = form
            notes.append(f"dates of '{parts[part]}' are read as {form}")
    used = {*parts.values(), *left_out}
    context = tuple(name for name in roles.context if name not in used)
    return Guess(
        replace(roles, parts=parts, context=context, left_out=tuple(left_out)), forms, tuple(notes)
    )


def date_form(cells: Sequence[Any]) -> str | None:
    """The form in which nearly all cells are dates, as `strptime` has it; None where they are none.

    Where day and month could be either, the form is taken under which rows are in the order of
    time most often, and then closest together.

    >>> date_form(["31.12.2025 18:00", "01.01.2026 06:30"])
    '%d.%m.%Y %H:%M'
    """
    known = [cell for cell in cells if cell not in (None, "")]
    if not known:
        return None
    if _is_numeric(known):
        return ISO if _is_epoch(np.array(known, float)) else None
    forms = [ISO, *(day + clock for day in _DAYS for clock in _CLOCKS)]
    times = {form: _times(known, form) for form in forms if _fits(known[0], form)}
    fit = {form: t for form, t in times.items() if len(t) >= _NEARLY_ALL * len(known)}
    return min(fit, key=lambda form: _disorder(fit[form]), default=None)


def is_id(name: str, cells: Sequence[Any]) -> bool:
    """Whether nearly every row has another text, or another whole number of a running count."""
    known = [cell for cell in cells if cell not in (None, "")]
    if len(known) < max(_FEWEST, _NEARLY_ALL * len(cells)):
        return False
    distinct = set(map(str, known))
    if len(distinct) < _NEARLY_ALL * len(known):
        return False
    if not _is_numeric(known):
        return True
    numbers = np.sort(np.array([float(text) for text in distinct]))
    counts = (np.diff(numbers) == 1).mean() >= 0.9
    return bool((numbers % 1 == 0).all() and (counts or _NAME_OF_ID.search(name) is not None))


def _disorder(times: FloatArray) -> tuple[int, float]:
    """Steps backwards, and the whole span."""
    return int((np.diff(times) < 0).sum()), float(np.ptp(times))


def _fits(cell: Any, form: str) -> bool:
    return len(_times([cell], form)) == 1


def _times(cells: Sequence[Any], form: str) -> FloatArray:
    """Seconds of those cells that are dates of that form."""
    times = []
    for cell in cells:
        try:
            times.append(cell.timestamp() if isinstance(cell, datetime) else parse_time(cell, form))
        except (TypeError, ValueError, AttributeError):
            continue
    return np.array(times)


def _is_numeric(cells: Sequence[Any]) -> bool:
    try:
        return bool(
            np.isfinite(np.array([cell for cell in cells if cell not in (None, "")], float)).all()
        )
    except (TypeError, ValueError):
        return False


def _is_epoch(numbers: FloatArray) -> bool:
    """Whether numbers are moments since 1970, and no running count."""
    unit = unit_of(numbers)
    if unit is None or len(numbers) < 2 or numbers.min() == numbers.max():
        return False
    inside = (numbers / unit >= _CALENDAR[0]) & (numbers / unit <= _CALENDAR[1])
    counts = len(numbers) >= _FEWEST and (np.diff(np.sort(numbers)) == 1).mean() >= 0.9
    return bool(inside.all() and not counts)


def _lateness(cells: Sequence[Any], form: str) -> tuple[int, float]:
    """Missing cells and mean moment: the time of a decision is always known, and comes first."""
    known = [cell for cell in cells if cell not in (None, "")]
    if _is_numeric(known):
        numbers = np.array(known, float)
        return len(cells) - len(known), float(numbers.mean() / (unit_of(numbers) or 1.0))
    return len(cells) - len(known), float(_times(known, form).mean())
