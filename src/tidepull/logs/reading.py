"""`read`: any log; format and columns are guessed where they are not named.

The names of columns say what they hold, and so do their first cells: dates in any usual form, ids.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tidepull._internal.extras import needs
from tidepull.errors import DataError, ParameterError
from tidepull.logs import formats
from tidepull.logs.build import Batch, Builder
from tidepull.logs.cells import number_of, to_list
from tidepull.logs.formats import LoggedDecision, decisions, read_lines, tables
from tidepull.logs.formats.tables import Roles, find_roles
from tidepull.logs.log import Log, parse_time, unit_of, zone_of
from tidepull.types import FloatArray

_TABLES: dict[str, tuple[Callable[[Path], list[str]], Callable[[Path, Roles], Iterator[Batch]]]] = {
    "csv": (formats.header_of, tables.csv_batches),
    "parquet": (tables.parquet_columns, tables.parquet_batches),
    "jsonl": (tables.jsonl_columns, tables.jsonl_batches),
    "open-bandit": (formats.header_of, tables.csv_batches),
}
_DECISIONS: dict[str, Callable[[Path], Iterator[tuple[int, LoggedDecision | str]]]] = {
    "dsjson": lambda path: read_lines(path, decisions.dsjson_row),
    "vw-json": lambda path: read_lines(path, decisions.vw_json_row),
    "vw-text": decisions.vw_text_rows,
    "gittins": decisions.gittins_rows,
}
FORMATS = (*_TABLES, "obp", *_DECISIONS)
"""Every format by its name."""


def read(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    format: str | None = None,
    arm: str | None = None,
    reward: str | None = None,
    time: str | None = None,
    propensity: str | None = None,
    paid_at: str | None = None,
    context: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    timezone: str = "UTC",
    most_bad: float = 0.1,
) -> Log:
    """Read a log: a file, or a dictionary of the Open Bandit Pipeline.

    The format and the columns are guessed if they are not named. `Log.preview()` describes what
    was understood.

    Parameters
    ----------
    source : str, os.PathLike or mapping of str to array
        A file (CSV, Parquet, JSON lines and others; `.gz`, `.bz2` and `.xz` are unpacked), or a
        dictionary of arrays.
    format : str, optional
        One of `FORMATS`. By default it is guessed from the file's first bytes.
    arm, reward, time, propensity : str, optional
        Names of columns. By default they are guessed from usual names; a column of dates is taken
        for the time whatever its name, and one that differs in nearly every row for the id.
    paid_at : str, optional
        Name of the column with the time of the reward. By default it is guessed.
    context : sequence of str, optional
        Names of the context's columns. By default these are all other columns, but for those that
        are known only after the decision.
    arms : sequence of str, optional
        All arms, if some were never played.
    timezone : str, default: "UTC"
        The time zone of hours and weekdays, and of dates that name none.
    most_bad : float, default: 0.1
        The largest share of rows that may be unreadable. They are counted in `Log.reading.bad`.

    Returns
    -------
    Log
        The decisions in the order of time.

    Raises
    ------
    DataError
        If the file is missing, empty or not readable, or has too many bad rows.
    ParameterError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> arms, rewards, chances = np.array([0, 1]), np.array([1.0, 0.0]), np.array([0.5, 0.5])
    >>> log = read({"action": arms, "reward": rewards, "pscore": chances})
    >>> len(log), log.arms
    (2, ('0', '1'))
    """
    with needs("reading logs", "tables"):
        import pyarrow  # noqa: F401
    zone_of(timezone)
    if not 0 <= most_bad <= 1:
        raise ParameterError(f"most_bad must be a share from 0 to 1, got {most_bad!r}")

    def build(
        batches: Iterator[Batch],
        roles: Mapping[str, str],
        notes: Sequence[str] = (),
        forms: Mapping[str, str] = MappingProxyType({}),
    ) -> Log:
        builder = Builder(
            name,
            most_bad=most_bad,
            timezone=timezone,
            arms=arms,
            forms=forms,
            named=context is not None,
        )
        for batch in batches:
            builder.add(batch)
        return builder.finish(kind, roles, notes)

    if isinstance(arms, str) or isinstance(context, str):
        name, wrong = ("arms", arms) if isinstance(arms, str) else ("context", context)
        raise ParameterError(f"{name} must be a list of texts, got {wrong!r}")
    if not isinstance(source, Mapping | str | os.PathLike):
        raise ParameterError(f"a log is read from a file or a dictionary, got {source!r}")
    if isinstance(source, Mapping):
        kind, name = "obp", "the dictionary"
        batch, arms = tables.obp_batch(source, name)
        return build(iter([batch]), {})
    path, name = Path(source), str(Path(source))
    if not path.is_file():
        if path.is_dir():
            raise DataError(f"{path} is a directory; name a file")
        raise DataError(f"there is no file {path}")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty; give a log with at least one decision")
    kind = guess_format(path) if format is None else format
    if kind not in FORMATS:
        raise ParameterError(f"format must be one of {', '.join(FORMATS)}, got {kind!r}")
    if kind == "obp":
        batch, arms = tables.obp_batch(tables.load_obp(path), name)
        return build(iter([batch]), {})
    named = {"arm": arm, "reward": reward, "time": time, "propensity": propensity}
    named["paid_at"] = paid_at
    names = {part: column for part, column in named.items() if column is not None}
    if kind in _DECISIONS:
        if names or context is not None:
            raise ParameterError(
                f"a log of format {kind} has fixed names: leave arm, reward, time and the others "
                "out"
            )
        return build(formats.to_batches(_DECISIONS[kind](path)), {})
    list_columns, read_batches = _TABLES[kind]
    there = list_columns(path)
    twice = next((column for column in there if column and there.count(column) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: there are several columns '{twice}'; rename all but one")
    notes = []
    if kind == "open-bandit":
        if not names and context is None:
            names, context = tables.open_bandit_names(there)
        arms = tables.open_bandit_items(path) if arms is None else arms
        left = [column for column in there if column.startswith("user-item_affinity_")]
        if left:
            notes.append(
                f"{len(left)} columns '{left[0]}' and so on belong to arms and are left out of the "
                "context"
            )
    roles = find_roles(there, names, context, name)
    if kind == "open-bandit":
        return build(read_batches(path, roles), roles.parts, notes)
    every = roles if context is None else find_roles(there, names, None, name)
    guess = guess_columns(next(read_batches(path, every), Batch([], {})), every)
    if context is None:
        roles, notes = guess.roles, [*guess.notes]
    elif (column := guess.roles.parts.get("time")) is not None and column not in context:
        roles = replace(roles, parts={**roles.parts, "time": column}, clock=guess.roles.clock)
    return build(read_batches(path, roles), roles.parts, notes, guess.forms)


def guess_format(path: Path) -> str:
    """The format of a file, by its first bytes."""
    with path.open("rb") as handle:
        start = handle.read(4)
    if start == b"PAR1":
        return "parquet"
    if start[:2] == b"PK" and path.suffix == ".npz":
        return "obp"
    if start in _WORKBOOKS:
        raise DataError(f"{path} is a workbook or an archive; save its table as 'CSV UTF-8'")
    first = formats.first_line(path)
    if not first:
        raise DataError(f"{path} is empty; give a log with at least one decision")
    if "\0" in first:
        raise DataError(f"{path} is not text; give a table as CSV, Parquet or JSON lines")
    if first.lstrip().startswith("["):
        raise DataError(
            f"{path} is one JSON array; write an object on each line (jq -c '.[]' does so)"
        )
    if first.lstrip().startswith("{"):
        record: Mapping[str, Any] = next(
            (row for _, row in formats.json_lines(path) if not isinstance(row, str)), {}
        )
        kinds = {
            "gittins": decisions.is_gittins, "dsjson": decisions.is_dsjson, "vw-json": decisions.is_vw_json,
        }  # fmt: skip
        return next((kind for kind, fits in kinds.items() if fits(record)), "jsonl")
    if decisions.is_vw_text(first):
        return "vw-text"
    return "open-bandit" if tables.is_open_bandit(formats.header_of(path)) else "csv"


_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""First bytes of Excel's and other office files, and of ZIP archives."""
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
    "%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%b %d %Y",
)  # fmt: skip
_CLOCKS = (
    "", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S", " %Hh%M", " %H.%M",
    " %I:%M%p", " %I:%M:%S%p", " %H:%M:%S %z",
)  # fmt: skip
_CLOCK_ALONE = re.compile(r"\d{1,2}[:h]\d{2}([:.]\d{2})?(\s?[ap]m)?", re.IGNORECASE)
_DAY_ALONE = re.compile(r"(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2})\.?")


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
    clock = _find_clock(cells, dates, parts, batch)
    if clock:
        dates = {name: form for name, form in dates.items() if name != parts["time"]}
        notes.append(f"column '{clock}' has times of the day and is joined to '{parts['time']}'")
    if "time" not in parts and dates:
        parts["time"] = min(dates, key=lambda name: _lateness(cells[name], dates[name]))
        notes.append(
            f"column '{parts['time']}' has dates and is taken for the time (--time names another)"
        )
    left_out = [
        name for name in dates if name != parts.get("time") and _numbers(cells[name]) is None
    ]
    notes += [
        f"column '{name}' has dates and is left out of the context (--paid-at names the time of rewards)"
        for name in left_out
    ]
    for name in [
        name
        for name, column in cells.items()
        if name not in (*dates, *parts.values(), clock) and is_id(name, column)
    ]:
        left_out.append(name)
        role = "left out of the context" if "id" in parts else "taken for the id of decisions"
        parts.setdefault("id", name)
        notes.append(f"column '{name}' differs in nearly every row and is {role}")
    first = next((cell for cell in to_list(batch.cells.get("time", ())) if cell), None)
    if not clock and isinstance(first, str) and _CLOCK_ALONE.fullmatch(first.strip()):
        day = next((f"'{name}'" for name in dates), "the column of the day")
        raise DataError(
            f"column '{parts['time']}' has times of the day without a date, such as '{first}': join "
            f"it with {day} to one column, or name another for the time (--time)"
        )
    forms = {}
    for part in ("time", "paid_at"):
        column = cells.get(parts.get(part, ""), to_list(batch.cells.get(part, ()))[:_SAMPLE])
        if clock and part == "time":
            times = cells.get(clock, to_list(batch.cells.get(part, ()))[:_SAMPLE])
            column = tables.joined(column, times)
        if form := date_form(column):
            forms[part] = form
            notes.append(f"dates of '{parts[part]}' are read as {form}")
    used = {*parts.values(), *left_out, clock}
    context = tuple(name for name in roles.context if name not in used)
    roles = replace(roles, parts=parts, context=context, left_out=tuple(left_out), clock=clock)
    return Guess(roles, forms, tuple(notes))


def _find_clock(
    cells: Mapping[str, Sequence[Any]],
    dates: Mapping[str, str],
    parts: dict[str, str],
    batch: Batch,
) -> str | None:
    """The only column of times of the day, where one other column has days; that one is the time."""
    columns = {**cells}
    if "time" in parts:
        columns[parts["time"]] = to_list(batch.cells.get("time", ()))[:_SAMPLE]
    clocks = [name for name, column in columns.items() if _all_cells(column, _CLOCK_ALONE)]
    days = [name for name in {**dates, parts.get("time", ""): ""} if name not in clocks]
    days = [name for name in days if name in columns and _all_cells(columns[name], _DAY_ALONE)]
    if len(clocks) != 1 or len(days) != 1 or parts.get("time", days[0]) not in (*clocks, *days):
        return None
    parts["time"] = days[0]
    return clocks[0]


def _all_cells(cells: Sequence[Any], form: re.Pattern[str]) -> bool:
    known = [cell for cell in cells if cell not in (None, "")]
    return bool(known) and all(isinstance(x, str) and form.fullmatch(x.strip()) for x in known)


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
    plain = _numbers(known)
    if plain is not None:
        return ISO if _is_epoch(plain) else None
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
    numbers = _numbers(known)
    if numbers is None:
        return True
    counts = (np.diff(np.sort(numbers)) == 1).mean() >= 0.9 or (np.diff(numbers) > 0).all()
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


def _numbers(cells: Sequence[Any]) -> FloatArray | None:
    """The numbers of all cells that are filled; None where one is no finite number."""
    try:
        numbers = np.array([number_of(cell) for cell in cells if cell not in (None, "")])
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).all() else None


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
    numbers = _numbers(known)
    if numbers is not None:
        return len(cells) - len(known), float(numbers.mean() / (unit_of(numbers) or 1.0))
    return len(cells) - len(known), float(_times(known, form).mean())
