"""CSV with a header: read in blocks, every cell as text first, so that a wrong one is named with its line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.build import Batch
from tidepull.logs.formats.flat import batch_of
from tidepull.logs.opening import delimiter_of, header_of
from tidepull.logs.roles import Roles
from tidepull.types import BoolArray

BLOCK = 8 << 20
"""Bytes that are read at once."""


def columns_of(path: Path) -> list[str]:
    """The names in the header."""
    return header_of(path)


def batches(path: Path, roles: Roles) -> Iterator[Batch]:
    """The rows, block by block."""
    import pyarrow as pa
    from pyarrow import csv

    header = header_of(path)
    wanted = [name for name in header if name in (*roles.said().values(), *roles.context, roles.nested)]
    faults: list[tuple[int, str]] = []

    def refuse(row: Any) -> str:
        if row.text.strip():
            faults.append((row.number, f"{row.actual_columns} cells instead of {row.expected_columns}"))
        else:
            faults.append((row.number, ""))
        return "skip"

    try:
        reader = csv.open_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=csv.ParseOptions(
                delimiter=delimiter_of(path), invalid_row_handler=refuse, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()),
                include_columns=wanted,
                strings_can_be_null=True,
            ),
        )
        told = good = 0
        for block in reader:
            lines = _lines(good, len(block), faults)
            good += len(block)
            filled = _filled(block)
            columns = {name: block.column(name).filter(pa.array(filled)) for name in wanted}
            lines = lines[filled]
            made = batch_of(columns, roles, lines)
            ready = len(faults)
            made.faults = [*made.faults, *(fault for fault in faults[told:ready] if fault[1])]
            told = ready
            yield made
        if told < len(faults):
            yield Batch([], [], faults=[fault for fault in faults[told:] if fault[1]])
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read as CSV ({_short(error)})") from None


def _filled(block: Any) -> BoolArray:
    """Which rows have anything in them: an empty line is no row."""
    missing: BoolArray = np.ones(len(block), bool)
    for column in block.columns:
        missing &= column.is_null().to_numpy(zero_copy_only=False)
    return ~missing


def _lines(good: int, count: int, faults: list[tuple[int, str]]) -> Any:
    """The line of each good row: the header is line 1, and bad lines stand between."""
    places = np.arange(good, good + count)
    before = np.array([line - 2 - n for n, (line, _) in enumerate(sorted(faults))], np.int64)
    return places + 2 + np.searchsorted(before, places, side="right")


def _short(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")
