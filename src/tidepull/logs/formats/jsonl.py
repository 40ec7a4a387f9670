"""JSON lines with a key for every part, such as agents export; contexts may be nested."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidepull.logs.build import ROWS, Batch
from tidepull.logs.formats.flat import batch_of, flattened, rows_as_columns
from tidepull.logs.opening import json_lines
from tidepull.logs.roles import Roles

LOOKED_AT = 1000
"""Rows from which the columns are known."""


def columns_of(path: Path) -> list[str]:
    """The keys of the first rows."""
    first = itertools.islice(json_lines(path), LOOKED_AT)
    return list(dict.fromkeys(name for _, row, _ in first if row is not None for name in row))


def batches(path: Path, roles: Roles) -> Iterator[Batch]:
    """The rows; lines that are no JSON objects are faults. Keys that appear later belong to the context."""
    lines: list[int] = []
    rows: list[dict[str, Any]] = []
    faults: list[tuple[int, str]] = []
    for line, row, why in json_lines(path):
        if row is None:
            faults.append((line, why))
        else:
            lines.append(line)
            rows.append(row)
        if len(rows) + len(faults) >= ROWS:
            yield _batch(rows, roles, lines, faults)
            lines, rows, faults = [], [], []
    if rows or faults:
        yield _batch(rows, roles, lines, faults)


def _batch(
    rows: list[dict[str, Any]], roles: Roles, lines: list[int], faults: list[tuple[int, str]]
) -> Batch:
    parts = [*roles.said().values(), *([roles.nested] if roles.nested else [])]
    columns = {name: [row.get(name) for row in rows] for name in parts}
    made = batch_of(columns, roles, lines)
    kept = set(made.lines)
    beside = [
        flattened({name: value for name, value in row.items() if roles.is_context(name)})
        for line, row in zip(lines, rows, strict=True)
        if line in kept
    ]
    made.context = {**made.context, **rows_as_columns(beside)}
    made.faults = [*made.faults, *faults]
    return made
