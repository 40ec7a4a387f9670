"""What formats of one decision a line (or a few lines) share: rows collected into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidepull.logs.build import ROWS, Batch
from tidepull.logs.formats.flat import rows_as_columns
from tidepull.logs.opening import json_lines


class NotARowError(ValueError):
    """A line that is no decision; the message says why."""


@dataclass(slots=True)
class Row:
    """One decision."""

    arm: str
    reward: float | None = None
    time: Any = None
    propensity: Any = None
    paid_at: Any = None
    available: Sequence[str] | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    id: Any = None


def collected(found: Iterable[tuple[int, Row | str]]) -> Iterator[Batch]:
    """Rows, or why a line is none, as batches."""
    lines: list[int] = []
    rows: list[Row] = []
    faults: list[tuple[int, str]] = []
    for line, row in found:
        if isinstance(row, str):
            faults.append((line, row))
        else:
            lines.append(line)
            rows.append(row)
        if len(rows) + len(faults) >= ROWS:
            yield _batch(lines, rows, faults)
            lines, rows, faults = [], [], []
    if rows or faults:
        yield _batch(lines, rows, faults)


def read_lines(path: Path, read: Callable[[Mapping[str, Any]], Row]) -> Iterator[tuple[int, Row | str]]:
    """The rows of a file of JSON lines; whatever cannot be read is a fault of its line."""
    for line, given, why in json_lines(path):
        if given is None:
            yield line, why
            continue
        try:
            yield line, read(given)
        except NotARowError as error:
            yield line, str(error)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            yield line, f"not as expected ({type(error).__name__}: {error})"


def label_at(actions: Sequence[Any], place: int) -> str:
    """The label of an action: its tag or id, else its place, counted from 0."""
    if not 0 <= place < len(actions):
        raise NotARowError(f"action {place} of {len(actions)}")
    action = actions[place]
    if isinstance(action, Mapping):
        for name in ("_tag", "id", "Id"):
            if action.get(name) not in (None, ""):
                return str(action[name])
        return str(place)
    return str(action) if isinstance(action, str | int) and not isinstance(action, bool) else str(place)


def _batch(lines: list[int], rows: list[Row], faults: list[tuple[int, str]]) -> Batch:
    def column(name: str) -> list[Any] | None:
        cells = [getattr(row, name) for row in rows]
        return cells if any(cell is not None for cell in cells) else None

    return Batch(
        lines=lines,
        arm=[row.arm for row in rows],
        reward=column("reward"),
        time=column("time"),
        propensity=column("propensity"),
        paid_at=column("paid_at"),
        available=column("available"),
        id=column("id"),
        context=rows_as_columns([row.context for row in rows]),
        faults=faults,
    )
