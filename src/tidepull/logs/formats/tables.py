"""Tables with a column for every part: which column is which, and plain JSON lines.

Columns are named by the caller, else guessed from usual names. JSON lines are such as agents
export; contexts may be nested.
"""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidepull.errors import DataError
from tidepull.logs.build import Batch, Fault
from tidepull.logs.cells import to_list
from tidepull.logs.formats import flatten, in_batches, json_lines, rows_as_columns

NAMES = {
    "arm": (
        "arm", "action", "item_id", "arm_id", "action_id", "variant", "variation", "chosen", "choice", "item",
    ),
    "reward": ("reward", "click", "clicked", "conversion", "converted", "outcome", "payoff", "value"),
    "time": ("time", "timestamp", "at", "datetime", "date", "ts", "decided_at", "created_at"),
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

_FIRST_ROWS = 1000
"""Rows of JSON from which the columns are known."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The column of every part, and those of the context; `nested` is a column with whole contexts,
    `limited` says that the caller named the context's columns, `left_out` are of no use."""

    parts: Mapping[str, str]
    context: tuple[str, ...]
    nested: str | None
    limited: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The columns of all parts and of whole contexts."""
        return [*self.parts.values(), *([self.nested] if self.nested else [])]

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
    lower = {column.lower(): column for column in reversed(there)}
    parts: dict[str, str] = {}
    for part, usual in NAMES.items():
        if part in names:
            parts[part] = _require(names[part], part, there, source)
            continue
        free = [
            lower[name] for name in usual if name in lower and lower[name] not in parts.values()
        ]
        if free:
            parts[part] = free[0]
    if "arm" not in parts:
        raise DataError(
            f"{source}: no column looks like the arm that was played; name it (--arm); "
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


def _require(name: str, part: str, there: list[str], source: str) -> str:
    if name not in there:
        near = difflib.get_close_matches(name, there, n=1)
        hint = f"did you mean '{near[0]}'?" if near else _hint(there)
        raise DataError(f"{source}: there is no column '{name}' for the {part}; {hint}")
    return name


def _hint(there: list[str]) -> str:
    more = ", ..." if len(there) > 12 else ""
    return "its columns are " + ", ".join(repr(name) for name in there[:12]) + more


def batch_of(columns: Mapping[str, Any], roles: Roles, lines: Sequence[int]) -> Batch:
    """The batch of some rows of a table. A column of whole contexts (dictionaries, or JSON) becomes
    many."""
    context: dict[str, Any] = {name: columns[name] for name in roles.context if name in columns}
    cells = {part: columns[name] for part, name in roles.parts.items() if name in columns}
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
    for lines, rows, faults in in_batches(json_lines(path)):
        columns = {name: [row.get(name) for row in rows] for name in roles.columns}
        batch = batch_of(columns, roles, lines)
        good = set(batch.lines)
        context = [
            flatten({name: value for name, value in row.items() if roles.is_context(name)})
            for line, row in zip(lines, rows, strict=True)
            if line in good
        ]
        batch.context = {**batch.context, **rows_as_columns(context)}
        batch.faults = [*batch.faults, *faults]
        yield batch
