"""What CSV, Parquet and plain JSON lines share: tables with a column for every part."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tidepull.logs.build import Batch
from tidepull.logs.cells import listed
from tidepull.logs.roles import Roles


def batch_of(columns: Mapping[str, Any], roles: Roles, lines: Sequence[int]) -> Batch:
    """The batch of some rows of a table. A column of whole contexts (dictionaries, or JSON) becomes many."""
    context: dict[str, Any] = {name: columns[name] for name in roles.context if name in columns}
    faults: list[tuple[int, str]] = []
    if roles.nested is not None and roles.nested in columns:
        context.update(_spread(listed(columns[roles.nested]), lines, faults))
    available = None
    if roles.available is not None and roles.available in columns:
        available = _offered(listed(columns[roles.available]), lines, faults)
    bad = {line for line, _ in faults}
    made = Batch(
        lines=lines,
        arm=columns[roles.arm],
        reward=_of(columns, roles.reward),
        time=_of(columns, roles.time),
        propensity=_of(columns, roles.propensity),
        paid_at=_of(columns, roles.paid_at),
        available=available,
        id=_of(columns, roles.id),
        context=context,
    )
    return _without(made, bad, faults) if bad else made


def rows_as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Dictionaries as columns; None where one has no such key."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def flattened(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with dots; lists of texts become flags, other lists numbered columns.

    >>> flattened({"user": {"age": 31, "tags": ["new"]}})
    {'user.age': 31, 'user.tags=new': 1}
    """
    made: dict[str, Any] = {}
    for name, inner in value.items():
        whole = f"{prefix}{name}"
        if isinstance(inner, Mapping):
            made.update(flattened(inner, f"{whole}."))
        elif isinstance(inner, list):
            for n, item in enumerate(inner):
                if isinstance(item, str):
                    made[f"{whole}={item}"] = 1
                elif isinstance(item, Mapping):
                    made.update(flattened(item, f"{whole}."))
                else:
                    made[f"{whole}.{n}"] = item
        else:
            made[whole] = inner
    return made


def _of(columns: Mapping[str, Any], name: str | None) -> Any:
    return None if name is None else columns.get(name)


def _spread(
    cells: Sequence[Any], lines: Sequence[int], faults: list[tuple[int, str]]
) -> dict[str, list[Any]]:
    rows: list[Mapping[str, Any]] = []
    for line, cell in zip(lines, cells, strict=True):
        try:
            value = json.loads(cell) if isinstance(cell, str) and cell else cell or {}
            if not isinstance(value, Mapping):
                raise ValueError
            rows.append(flattened(value))
        except ValueError:
            faults.append((int(line), f"context is no dictionary: {cell!r}"))
            rows.append({})
    return rows_as_columns(rows)


def _offered(
    cells: Sequence[Any], lines: Sequence[int], faults: list[tuple[int, str]]
) -> list[Sequence[Any] | None]:
    """Lists of arms, as lists or JSON; None where nothing is said."""
    made: list[Sequence[Any] | None] = []
    for line, cell in zip(lines, cells, strict=True):
        try:
            value = json.loads(cell) if isinstance(cell, str) and cell else cell or None
        except ValueError:
            value = cell
        if value is not None and not (isinstance(value, list) and value):
            faults.append((int(line), f"available is no list of arms: {cell!r}"))
            value = None
        made.append(value)
    return made


def _without(batch: Batch, bad: set[int], faults: list[tuple[int, str]]) -> Batch:
    keep = [n for n, line in enumerate(batch.lines) if line not in bad]

    def some(cells: Any) -> Any:
        return None if cells is None else [listed(cells)[n] for n in keep]

    return Batch(
        lines=[batch.lines[n] for n in keep],
        arm=some(batch.arm),
        reward=some(batch.reward),
        time=some(batch.time),
        propensity=some(batch.propensity),
        paid_at=some(batch.paid_at),
        available=some(batch.available),
        id=some(batch.id),
        context={name: some(cells) for name, cells in batch.context.items()},
        faults=faults,
    )
