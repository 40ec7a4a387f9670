"""Formats that are read column by column: CSV, the Open Bandit Dataset, Parquet, and the Open
Bandit Pipeline's arrays.

Every cell of a CSV file is read as text first, so that a wrong one is named with its line.
"""

from __future__ import annotations

import csv as plain_csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.build import ROWS, Batch, Fault
from tidepull.logs.formats import delimiter_of, header_of, lines
from tidepull.logs.formats.tables import Roles, batch_of
from tidepull.types import BoolArray, IntArray

_BLOCK = 8 << 20
"""Bytes of a CSV file that are read at once."""

_OPEN_BANDIT = {
    "arm": "item_id", "reward": "click", "time": "timestamp", "propensity": "propensity_score",
}  # fmt: skip
"""The fixed names of the Open Bandit Dataset (ZOZO)."""


def csv_batches(path: Path, roles: Roles) -> Iterator[Batch]:
    """The rows of a CSV file with a header, block by block."""
    import pyarrow as pa
    from pyarrow import csv

    used = (*roles.columns, *roles.context)
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
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
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
            numbers = _line_numbers(n_rows, len(block), faults)
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
        raise DataError(f"{path}: cannot be read as CSV ({_short(error)})") from None


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
        raise DataError(f"{path}: damaged after row {row - 1} ({_short(error)})") from None


def _open_parquet(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path}: cannot be read as Parquet ({_short(error)})") from None


def load_obp(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file; nothing is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: cannot be read as a dictionary of arrays ({error})") from None


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
