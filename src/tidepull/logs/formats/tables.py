"""Tables with a column for every part: CSV, Parquet, JSON lines, the Open Bandit Dataset, and the
Open Bandit Pipeline's arrays.

Columns are named by the caller, else guessed from usual names. JSON lines are such as agents
export; contexts may be nested. Every cell of a CSV file is read as text first, so that a wrong one
is named with its line.
"""

from __future__ import annotations

import csv as plain_csv
import difflib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.build import ROWS, Batch, Fault
from tidepull.logs.cells import number_of, to_list
from tidepull.logs.formats import (
    TO_UTF_8,
    delimiter_of,
    encoding_of,
    flatten,
    header_line,
    header_of,
    in_batches,
    json_lines,
    lines,
    rows_as_columns,
)
from tidepull.logs.log import parse_time
from tidepull.types import BoolArray, IntArray

NAMES = {
    "arm": (
        "arm", "action", "item_id", "arm_id", "action_id", "variant", "variation", "chosen", "choice", "item",
        "banner", "offer", "creative", "treatment", "variant_name", "arm_name", "banner_name", "offer_name",
    ),
    "reward": (
        "reward", "click", "clicked", "clicks", "conversion", "converted", "outcome", "payoff", "value",
        "purchased", "bought",
    ),
    "time": ("time", "timestamp", "at", "datetime", "date_time", "date", "ts", "decided_at", "created_at"),
    "propensity": ("propensity", "propensity_score", "pscore", "probability", "prob", "chance"),
    "paid_at": ("rewarded_at", "paid_at", "reward_time"),
    "available": ("available",),
    "id": ("decision_id", "event_id", "eventid", "id"),
}  # fmt: skip
"""Names of columns for every part, the likeliest first."""

NOT_CONTEXT = (
    "", "index", "id", "decision_id", "event_id", "eventid", "group", "chances", "__index_level_0__",
)  # fmt: skip
"""Columns that are neither a part of their own nor a context."""

_SHOWN = 60
"""Characters of a name that are shown."""

_FIRST_ROWS = 1000
"""Rows of JSON from which the columns are known."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The column of every part, and those of the context; `nested` is a column with whole contexts,
    `limited` says that the caller named the context's columns, `left_out` are of no use, `clock` has
    the time of day to the dates of the time."""

    parts: Mapping[str, str]
    context: tuple[str, ...]
    nested: str | None
    limited: bool = False
    left_out: tuple[str, ...] = ()
    clock: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of all parts, of whole contexts, and of the time of day."""
        return [*self.parts.values(), *(name for name in (self.nested, self.clock) if name)]

    def is_context(self, name: str) -> bool:
        """Whether a column, also one that appears late in a file, belongs to the context."""
        if self.limited or name in self.context:
            return name in self.context
        others = (*self.columns, *self.left_out)
        return name not in others and name.lower() not in NOT_CONTEXT


def find_roles(
    columns: Iterable[str], names: Mapping[str, str], context: Sequence[str] | None, source: str
) -> Roles:
    """The role of every column; `names` are the columns of parts that the caller named.

    >>> find_roles(["at", "variant", "clicked", "age"], {}, None, "shop.csv").parts
    {'arm': 'variant', 'reward': 'clicked', 'time': 'at'}
    """
    there = list(columns)
    lower = {_plain(column): column for column in reversed(there)}
    parts: dict[str, str] = {}
    for part, usual in NAMES.items():
        if part in names:
            parts[part] = _require(names[part], part, there, source)
            continue
        present = (lower[name] for name in usual if name in lower)
        free = [column for column in present if column not in parts.values()]
        if free:
            parts[part] = free[0]
    if not there:
        raise DataError(f"{source} has no columns: no line can be read; name its format (--format)")
    if "arm" not in parts:
        if any(_is_a_value(column) for column in there):
            raise DataError(
                f"{source} has no header: put the names of the columns above its first line, "
                f"{', '.join(there)[:_SHOWN]}"
            )
        also = "" if "reward" in parts else "; name the reward, too (--reward)"
        raise DataError(
            f"{source}: no column looks like the arm that was played; name it (--arm){also}; "
            f"{_hint(there)}"
        )
    if "reward" not in parts:
        raise DataError(
            f"{source}: no column looks like the reward; name it (--reward); {_hint(there)}"
        )
    if context is not None:
        limited = tuple(_require(name, "context", there, source) for name in context)
        return Roles(parts, limited, None, limited=True)
    nested = "context" if "context" in there else None
    used = {*parts.values(), nested}
    rest = tuple(name for name in there if name not in used and name.lower() not in NOT_CONTEXT)
    return Roles(parts, rest, nested)


def _plain(name: str) -> str:
    """A name in lower case, with underscores for blanks and without other marks."""
    return re.sub(r"[^\w.]+", "_", name.lower()).strip("_")


def _require(name: str, part: str, there: list[str], source: str) -> str:
    if name not in there:
        near = difflib.get_close_matches(name, there, n=1)
        hint = f"did you mean '{near[0]}'?" if near else _hint(there)
        raise DataError(f"{source}: there is no column '{name}' for the {part}; {hint}")
    return name


def _hint(there: list[str]) -> str:
    more = ", ..." if len(there) > 12 else ""
    return "its columns are " + ", ".join(repr(name[:_SHOWN]) for name in there[:12]) + more


def _is_a_value(cell: str) -> bool:
    """Whether a name of a column is a number or a date instead."""
    for read in (number_of, parse_time):
        try:
            read(cell)
        except ValueError:
            continue
        return True
    return False


def batch_of(columns: Mapping[str, Any], roles: Roles, lines: Sequence[int]) -> Batch:
    """The batch of some rows of a table. A column of whole contexts (dictionaries, or JSON) becomes
    many."""
    context: dict[str, Any] = {name: columns[name] for name in roles.context if name in columns}
    cells = {part: columns[name] for part, name in roles.parts.items() if name in columns}
    if roles.clock is not None and "time" in cells:
        cells["time"] = joined(to_list(cells["time"]), to_list(columns[roles.clock]))
    faults: list[Fault] = []
    if roles.nested is not None and roles.nested in columns:
        context.update(_spread(to_list(columns[roles.nested]), lines, faults))
    if "available" in cells:
        cells["available"] = _offered(to_list(cells["available"]), lines, faults)
    if not faults:
        return Batch(lines, cells, context)
    bad = {line for line, _ in faults}
    keep = [n for n, line in enumerate(lines) if line not in bad]

    def some(column: Any) -> list[Any]:
        values = to_list(column)
        return [values[n] for n in keep]

    return Batch(
        [lines[n] for n in keep],
        {part: some(column) for part, column in cells.items()},
        {name: some(column) for name, column in context.items()},
        faults,
    )


def joined(days: Sequence[Any], clocks: Sequence[Any]) -> list[Any]:
    """Dates with their times of the day; a date without one stays as it is."""
    return [
        f"{day.strip()} {clock.strip()}" if day and clock else day
        for day, clock in zip(days, clocks, strict=True)
    ]


def _spread(
    cells: Sequence[Any], lines: Sequence[int], faults: list[Fault]
) -> dict[str, list[Any]]:
    """Contexts as columns, from dictionaries or JSON."""
    rows: list[Mapping[str, Any]] = []
    for line, cell in zip(lines, cells, strict=True):
        try:
            value = json.loads(cell) if isinstance(cell, str) and cell else cell or {}
            if not isinstance(value, Mapping):
                raise ValueError
            rows.append(flatten(value))
        except ValueError:
            faults.append((int(line), f"context is no dictionary: {cell!r}"))
            rows.append({})
    return rows_as_columns(rows)


def _offered(
    cells: Sequence[Any], lines: Sequence[int], faults: list[Fault]
) -> list[Sequence[Any] | None]:
    """Lists of arms, as lists or JSON; None where a cell is empty."""
    offered: list[Sequence[Any] | None] = []
    for line, cell in zip(lines, cells, strict=True):
        try:
            value = json.loads(cell) if isinstance(cell, str) and cell else cell or None
        except ValueError:
            value = cell
        if value is not None and not (isinstance(value, list) and value):
            faults.append((int(line), f"available is no list of arms: {cell!r}"))
            value = None
        offered.append(value)
    return offered


def jsonl_columns(path: Path) -> list[str]:
    """The keys of the first rows."""
    first = itertools.islice(json_lines(path), _FIRST_ROWS)
    return list(dict.fromkeys(name for _, row in first if not isinstance(row, str) for name in row))


def jsonl_batches(path: Path, roles: Roles) -> Iterator[Batch]:
    """The rows; lines that are no JSON objects are faults. Keys that appear later belong to the
    context."""
    for numbers, rows, faults in in_batches(json_lines(path)):
        columns = {name: [row.get(name) for row in rows] for name in roles.columns}
        batch = batch_of(columns, roles, numbers)
        good = set(batch.lines)
        context = [
            flatten({name: value for name, value in row.items() if roles.is_context(name)})
            for line, row in zip(numbers, rows, strict=True)
            if line in good
        ]
        batch.context = {**batch.context, **rows_as_columns(context)}
        batch.faults = [*batch.faults, *faults]
        yield batch


_BLOCK = 8 << 20
"""Bytes of a CSV file that are read at once."""
_ENCODINGS = {"utf-8-sig": "utf8", "utf-16": "utf-16"}
"""Encodings as pyarrow names them."""

_OPEN_BANDIT = {
    "arm": "item_id", "reward": "click", "time": "timestamp", "propensity": "propensity_score",
}  # fmt: skip
"""The fixed names of the Open Bandit Dataset (ZOZO)."""


def csv_batches(path: Path, roles: Roles) -> Iterator[Batch]:
    """The rows of a CSV file with a header, block by block."""
    import pyarrow as pa
    from pyarrow import csv

    used = (*roles.columns, *roles.context)
    above = header_line(path)[0] - 1
    columns = [name for name in header_of(path) if name in used]
    faults: list[Fault] = []

    def refuse(row: Any) -> str:
        why = (
            f"{row.actual_columns} cells instead of {row.expected_columns}"
            if row.text.strip()
            else ""
        )
        faults.append((row.number, why))
        return "skip"

    try:
        reader = csv.open_csv(
            path,
            read_options=csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK,
                skip_rows=above,
                encoding=_ENCODINGS[encoding_of(path)],
            ),
            parse_options=csv.ParseOptions(
                delimiter=delimiter_of(path), invalid_row_handler=refuse, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=columns,
                strings_can_be_null=True,
            ),
        )
        n_reported = n_rows = 0
        for block in reader:
            below = [(line - above, why) for line, why in faults]
            numbers = _line_numbers(n_rows, len(block), below) + above
            n_rows += len(block)
            filled = _filled(block)
            cells = {name: block.column(name).filter(pa.array(filled)) for name in columns}
            batch = batch_of(cells, roles, numbers[filled])  # type: ignore[arg-type]
            batch.faults = [*batch.faults, *(fault for fault in faults[n_reported:] if fault[1])]
            n_reported = len(faults)
            yield batch
        if n_reported < len(faults):
            yield Batch([], {}, faults=[fault for fault in faults[n_reported:] if fault[1]])
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        if "UTF8" in str(error):
            raise DataError(f"{path} is not UTF-8 text; {TO_UTF_8}") from None
        raise DataError(f"{path} cannot be read as CSV ({_short(error)})") from None


def _filled(block: Any) -> BoolArray:
    """Which rows have anything in them: an empty line is no row."""
    missing: BoolArray = np.ones(len(block), bool)
    for column in block.columns:
        missing &= column.is_null().to_numpy(zero_copy_only=False)
    return ~missing


def _line_numbers(n_before: int, count: int, faults: list[Fault]) -> IntArray:
    """The line of each good row: the header is line 1, and bad lines stand between."""
    places = np.arange(n_before, n_before + count)
    before = np.array([line - 2 - n for n, (line, _) in enumerate(sorted(faults))], np.int64)
    return places + 2 + np.searchsorted(before, places, side="right")


def _short(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


def is_open_bandit(columns: list[str]) -> bool:
    """Whether a header is one of the Open Bandit Dataset."""
    return set(columns) >= {*_OPEN_BANDIT.values(), "position"}


def open_bandit_names(columns: list[str]) -> tuple[dict[str, str], list[str]]:
    """The fixed names of parts, and the context. A user's affinity to an item is a feature of arms,
    not of contexts."""
    context = [name for name in columns if name == "position" or name.startswith("user_feature_")]
    return _OPEN_BANDIT, context


def open_bandit_items(path: Path) -> list[str] | None:
    """All items, of which some may never have been shown; None where `item_context.csv` is not
    there."""
    beside = path.parent / "item_context.csv"
    if not beside.is_file():
        return None
    place = header_of(beside).index("item_id")
    rows = plain_csv.reader(line for number, line in lines(beside) if number > 1 and line)
    return sorted((row[place] for row in rows), key=int)


def parquet_columns(path: Path) -> list[str]:
    """The names of a Parquet file's columns."""
    return list(_open_parquet(path).schema_arrow.names)


def parquet_batches(path: Path, roles: Roles) -> Iterator[Batch]:
    """The rows, row group by row group; a row's line is its number, counted from 1."""
    import pyarrow as pa

    row = 1
    try:
        for block in _open_parquet(path).iter_batches(
            batch_size=ROWS, columns=[*roles.columns, *roles.context]
        ):
            columns = {name: block.column(name) for name in block.schema.names}
            yield batch_of(columns, roles, np.arange(row, row + len(block)))  # type: ignore[arg-type]
            row += len(block)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is damaged after row {row - 1} ({_short(error)})") from None


def _open_parquet(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet ({_short(error)})") from None


def load_obp(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file; nothing is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read as a dictionary of arrays ({error})") from None


def obp_batch(feedback: Mapping[str, Any], source: str) -> tuple[Batch, list[str]]:
    """All rounds of an Open Bandit Pipeline dictionary as one batch, and the arms."""
    for name in ("action", "reward"):
        if feedback.get(name) is None:
            raise DataError(f"{source}: an OBP dictionary must have '{name}'")
    action, n_actions = np.asarray(feedback["action"]), feedback.get("n_actions")
    rounds = len(action)
    n_arms = int(action.max(initial=-1)) + 1 if n_actions is None else int(n_actions)
    context: dict[str, Any] = {}
    if feedback.get("position") is not None:
        context["position"] = np.asarray(feedback["position"])
    if feedback.get("context") is not None:
        matrix = np.atleast_2d(np.asarray(feedback["context"], float))
        context.update({f"context_{n}": matrix[:, n] for n in range(matrix.shape[1])})
    cells = {"arm": action.tolist(), "reward": np.asarray(feedback["reward"], float)}
    for part, name in (("time", "time"), ("propensity", "pscore")):
        if feedback.get(name) is not None:
            cells[part] = feedback[name]
    for part, column in cells.items():
        if len(column) != rounds:
            raise DataError(f"{source}: '{part}' has {len(column)} entries, 'action' has {rounds}")
    return Batch(range(1, rounds + 1), cells, context), [str(arm) for arm in range(n_arms)]
