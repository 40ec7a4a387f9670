"""The log of an agent as tables: its decisions as rows, a file, and back (Parquet, JSON lines and CSV,
with the chances of every choice), and the rewards of each arm, in all and by the values of a
context's field."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tidepull._internal.extras import needs
from tidepull._internal.files import replacing
from tidepull.agent.insight import Insight
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.records import Choice, DecisionGroup, Kind, unpack_json
from tidepull.errors import DataError, InputError
from tidepull.types import FloatArray

COLUMNS = (
    "id",
    "at",
    "arm",
    "group",
    "propensity",
    "reward",
    "rewarded_at",
    "subject",
    "context",
    "available",
    "chances",
    "baseline",
    "also",
)
ENDINGS = (".parquet", ".jsonl", ".csv")


def rows(
    insight: Insight, ledger: Ledger, name: Any, upto: int | None = None, after: int = 0
) -> Iterator[dict[str, Any]]:
    """One dictionary for each decision after a number, up to a number; `name` makes an id of one. `chances` has every
    available arm's share of the policy's draws, `propensity` the exact chance of the arm that was
    played, given its group."""
    log = insight.log()
    worth = dict(
        zip(
            log.seq.tolist(),
            zip(log.reward.tolist(), log.paid_at.tolist(), strict=True),
            strict=True,
        )
    )
    last = int(log.seq[-1]) if len(log) else 0  # others may have come meanwhile
    for record in ledger.tail(after, last if upto is None else min(upto, last)):
        if record.kind is not Kind.DECISION:
            continue
        choice = Choice.unpack(record.body)
        reward, paid_at = worth[record.seq]
        open_arms = {
            place: insight.label_at(place, record.seq)
            for place in range(len(choice.available))
            if choice.available[place]
        }
        yield {
            "id": record.name or name(record.seq),
            "at": insight.clock.datetime(record.at).isoformat(),
            "arm": insight.label_at(choice.arm, record.seq),
            "group": DecisionGroup(choice.group).name.lower(),
            "propensity": choice.propensity,
            "reward": None if reward != reward else reward,
            "rewarded_at": None
            if paid_at != paid_at
            else insight.clock.datetime(paid_at).isoformat(),
            "subject": None if record.subject is None else record.subject.hex(),
            "context": None if record.context is None else _context(insight, record.context),
            "available": list(open_arms.values()),
            "chances": {
                label: round(int(choice.counts[place]) / 65535, 5)
                for place, label in open_arms.items()
            },
            "baseline": None
            if choice.baseline < 0
            else insight.label_at(choice.baseline, record.seq),
            "also": insight.outcomes_of(record.seq) or None,
        }


def _context(insight: Insight, stored: bytes) -> dict[str, Any]:
    """A context as it was given: moments as text, not as seconds."""
    context: dict[str, Any] = unpack_json(stored)
    for name in insight.moments & context.keys():
        context[name] = insight.clock.datetime(context[name]).isoformat()
    return context


def write(path: Path, table: Iterator[dict[str, Any]]) -> int:
    """Write a table whole, in the format of the file's ending; how many rows."""
    require_ending(path)
    if path.suffix == ".parquet":
        return _write_parquet(path, table)
    count = 0
    with replacing(path) as handle:
        if path.suffix == ".csv":
            handle.write((",".join(COLUMNS) + "\n").encode())
        for row in table:
            handle.write(
                (_csv_line(row) if path.suffix == ".csv" else json.dumps(row) + "\n").encode()
            )
            count += 1
    return count


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file that `write` made, or of one with at least context, arm and reward."""
    require_ending(path)
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    if path.suffix == ".parquet":
        yield from map(_loaded, _parquet().read_table(path).to_pylist())
        return
    with path.open(newline="") as handle:
        lines: Any = csv.DictReader(handle) if path.suffix == ".csv" else handle
        for number, line in enumerate(lines, 1):
            try:
                yield _loaded(line if path.suffix == ".csv" else json.loads(line))
            except (ValueError, TypeError, AttributeError):
                raise DataError(f"{path}: line {number} cannot be read") from None


def require_ending(path: Path) -> None:
    """Refuse a file whose ending names no format."""
    if path.suffix not in ENDINGS:
        raise InputError(
            f"{path}: the file's ending says the format; use one of {', '.join(ENDINGS)}"
        )


def frame(table: Iterable[dict[str, Any]], kind: str, fields: Iterable[str] = ()) -> Any:
    """A pandas or polars data frame with a column for every field of the context, or plain rows;
    `fields` of the context are moments."""
    flat = [_flat(row) for row in table]
    if kind == "rows":
        return flat
    if kind not in ("pandas", "polars"):
        raise InputError(f"kind must be 'pandas', 'polars' or 'rows', got {kind!r}")
    with needs(f"history as a {kind} table", "tables"):
        module = __import__(kind)
    names = list(dict.fromkeys(name for row in flat for name in row))
    columns = {name: [row.get(name) for row in flat] for name in names}
    dates = {"at", "rewarded_at", *(f"context.{name}" for name in fields)} & columns.keys()
    return (_pandas if kind == "pandas" else _polars)(module, columns, dates)


def _pandas(pandas: Any, columns: dict[str, list[Any]], dates: set[str]) -> Any:
    moments: dict[str, Any] = {
        name: pandas.to_datetime(columns[name], utc=True, format="ISO8601") for name in dates
    }
    return pandas.DataFrame({**columns, **moments})


def _polars(polars: Any, columns: dict[str, list[Any]], dates: set[str]) -> Any:
    """What is missing at first and a number later is a number: all rows say what a column is."""
    moments: dict[str, Any] = {
        name: polars.Series(name, columns[name], dtype=polars.String).str.to_datetime(
            time_zone="UTC"
        )
        for name in dates
    }
    numbers: dict[str, Any] = {
        name: polars.Series(name, columns[name], dtype=polars.Float64)
        for name in ("propensity", "reward")
        if name in columns
    }
    return polars.DataFrame({**columns, **numbers, **moments}, strict=False)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    nested = ("context", "available", "chances", "also")
    flat = {name: row[name] for name in COLUMNS if name not in nested}
    for part in ("context", "also"):
        flat |= {f"{part}.{name}": value for name, value in (row[part] or {}).items()}
    return flat


def _csv_line(row: dict[str, Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([_cell(row[name]) for name in COLUMNS])
    return text.getvalue()


ROWS_AT_A_TIME = 10_000
"""Rows of a Parquet file that are in memory at a time."""


def _write_parquet(path: Path, table: Iterator[dict[str, Any]]) -> int:
    parquet = _parquet()
    import pyarrow

    numbers = ("propensity", "reward")
    schema = pyarrow.schema(
        [(name, pyarrow.float64() if name in numbers else pyarrow.string()) for name in COLUMNS]
    )
    count = 0
    with (
        replacing(path) as handle,
        parquet.ParquetWriter(handle, schema, compression="zstd") as writer,
    ):
        while group := list(islice(table, ROWS_AT_A_TIME)):
            count += len(group)
            rows = [{name: _cell(row[name]) for name in COLUMNS} for row in group]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema))
    return count


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _parquet() -> Any:
    with needs("Parquet", "tables"):
        import pyarrow.parquet
    return pyarrow.parquet


def _loaded(row: dict[str, Any]) -> dict[str, Any]:
    """With context and arms as values again, and numbers as numbers."""
    cells = {name: value for name, value in row.items() if value not in (None, "")}
    for name in ("context", "available", "chances", "also"):
        if isinstance(cells.get(name), str):
            cells[name] = json.loads(cells[name])
    for name in ("reward", "propensity"):
        if name in cells:
            cells[name] = float(cells[name])
    return cells


MOST_VALUES = 8
"""Values of a field that have rows of their own; the others share one."""

_NORMAL = 1.96
MISSING, OTHERS = "(missing)", "(others)"


@dataclass(frozen=True, slots=True)
class ArmRate:
    """An arm's decisions, those with a reward, and their mean with its 95% interval (NaN: not
    known)."""

    value: str | None
    arm: str
    decisions: int
    rewarded: int
    mean: float
    low: float
    high: float


def arm_rates(insight: Insight, field: str | None, since: float | None = None) -> list[ArmRate]:
    """A row for each arm, or for each value of a field and arm; decisions of all groups count."""
    log = insight.log()
    groups = np.zeros(len(log), np.int64) if field is None else None
    names: list[str | None] = [None]
    if field is not None:
        values = _values(insight, field)
        texts = _texts([values.get(seq) for seq in log.seq.tolist()])
        names = [name for name, _ in Counter(texts).most_common()]
        groups = np.array([names.index(text) for text in texts], np.int64)
    assert groups is not None
    counts = np.ones(len(log), bool) if since is None else log.at >= since
    rows = []
    for n, name in enumerate(names):
        for place, label in insight.labels.items():
            mine = counts & (groups == n) & (log.arm == place)
            if mine.any():
                reward = log.reward[mine]
                reward = reward[~np.isnan(reward)]
                rows.append(ArmRate(name, label, int(mine.sum()), len(reward), *interval(reward)))
    return rows


def _values(insight: Insight, field: str) -> dict[int, Any]:
    """A field's value in every decision that had one."""
    schema = insight.state.learning.schema
    if schema is None or field not in schema.fields:
        known = "none yet" if schema is None else ", ".join(schema.fields) or "none"
        raise InputError(f"there is no field '{field}'; fields: {known}")
    if field in schema.private:
        raise InputError(f"the field '{field}' is private")
    values = {}
    for record in insight.ledger.tail(0):
        if record.kind is Kind.DECISION and record.context is not None:
            value = unpack_json(record.context).get(field)
            if value is not None:
                values[record.seq] = value
    return values


def _texts(values: list[Any]) -> list[str]:
    """Values as few texts: numbers by quarters, of others the most frequent ones."""
    present = [value for value in values if value is not None]
    numbers = [v for v in present if isinstance(v, int | float) and not isinstance(v, bool)]
    if numbers and len(numbers) == len(present) and len(set(numbers)) > MOST_VALUES:
        edges = np.unique(np.quantile(numbers, [0.25, 0.5, 0.75])).tolist()
        names = [f"under {edges[0]:.3g}"]
        names += [f"{a:.3g} to {b:.3g}" for a, b in pairwise(edges)]
        names += [f"{edges[-1]:.3g} and more"]
        texts = [
            None if v is None else names[int(np.searchsorted(edges, v, "right"))] for v in values
        ]
    else:
        texts = [None if value is None else _text(value) for value in values]
    frequent = {
        name for name, _ in Counter(t for t in texts if t is not None).most_common(MOST_VALUES)
    }
    return [MISSING if t is None else t if t in frequent else OTHERS for t in texts]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)[:60]


def interval(reward: FloatArray) -> tuple[float, float, float]:
    """The mean of rewards and its 95% interval: Wilson's where all are 0 or 1.

    >>> [round(end, 2) for end in interval(np.zeros(10))]
    [0.0, 0.0, 0.28]
    """
    n = len(reward)
    if n == 0:
        return math.nan, math.nan, math.nan
    mean = float(reward.mean())
    if np.isin(reward, (0.0, 1.0)).all():
        square = _NORMAL**2
        middle = (mean + square / (2 * n)) / (1 + square / n)
        spread = mean * (1 - mean) / n + square / (4 * n**2)
        half = _NORMAL / (1 + square / n) * math.sqrt(spread)
        return mean, max(0.0, middle - half), min(1.0, middle + half)
    if n < 2:
        return mean, math.nan, math.nan
    half = _NORMAL * float(reward.std(ddof=1)) / math.sqrt(n)
    return mean, mean - half, mean + half
