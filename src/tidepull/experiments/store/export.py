"""A store as one flat table (CSV, JSON lines, parquet): a line for each trial, or for each setting."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tidepull._internal.files import write_whole
from tidepull.errors import ParameterError
from tidepull.experiments.store.rows import Row
from tidepull.experiments.store.trial_file import arrow
from tidepull.experiments.suites.seeds_text import seeds_text
from tidepull.experiments.suites.spec import canonical

_GROUP = ("suite", "problem", "name", "setting", "policy", "policy_parameters", "horizon", "delay")


def export(
    rows: Sequence[Row], path: Path, *, by_setting: bool = False, columns: Sequence[str] | None = None
) -> int:
    """Write the table in the format that the file's ending asks for; returns the number of lines."""
    lines = summarise(rows) if by_setting else [_flat(row) for row in rows]
    if columns and lines:
        unknown = [name for name in columns if name not in lines[0]]
        if unknown:
            raise ParameterError(f"there is no column '{unknown[0]}'; there are: {', '.join(lines[0])}")
        lines = [{name: line[name] for name in columns} for line in lines]
    writers = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
    if path.suffix not in writers:
        raise ParameterError(f"the export must end in {', '.join(writers)}, got '{path.name}'")
    write_whole(path, writers[path.suffix](lines))
    return len(lines)


def summarise(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One line for each problem and setting: how many trials, mean and standard deviation (ddof = 1)."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        flat = _flat(row)
        groups.setdefault(tuple(flat[name] for name in _GROUP), []).append(row)
    return [
        {
            **dict(zip(_GROUP, key, strict=True)),
            "seeds": seeds_text([row.seed for row in group]),
            "trials": len(group),
            "reward_mean": _mean([row.reward for row in group]),
            "reward_std": _std([row.reward for row in group]),
            "regret_mean": _mean([row.regret for row in group]),
            "regret_std": _std([row.regret for row in group]),
            "cpu_seconds": round(sum(row.cpu_seconds for row in group), 3),
            "remark": group[0].remark,
        }
        for key, group in groups.items()
    ]


def _flat(row: Row) -> dict[str, Any]:
    return {key: canonical(value) if isinstance(value, dict) else value for key, value in asdict(row).items()}


def _mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 6)


def _std(values: list[float]) -> float | None:
    return round(float(np.std(values, ddof=1)), 6) if len(values) > 1 else None


def _csv(lines: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]) if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def _jsonl(lines: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _parquet(lines: list[dict[str, Any]]) -> bytes:
    pa, pq = arrow()
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(lines), buffer, compression="zstd")
    return buffer.getvalue()
