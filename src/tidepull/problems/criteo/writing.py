"""Write made-up impressions as a file of the published kind."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

from tidepull._internal.files import replacing
from tidepull.errors import MissingExtraError, ParameterError
from tidepull.problems.criteo.schema import COLUMNS
from tidepull.problems.criteo.synthetic import impressions


def write_synthetic(
    path: Path, *, rows: int, seed: int, on_rows: Callable[[int], None] | None = None
) -> None:
    """Write `rows` impressions to a tab-separated, gzip-compressed file; the same bytes for the same seed."""
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        raise MissingExtraError("writing a synthetic Criteo file", "data") from None
    if rows < 1:
        raise ParameterError(f"rows must be at least 1, got {rows}")
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    written = 0
    with (
        replacing(path) as handle,
        gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=handle, mtime=0) as packed,
    ):
        packed.write(("\t".join(COLUMNS) + "\n").encode())
        for block in impressions(rows, seed=seed):
            csv.write_csv(pa.table([block[name] for name in COLUMNS], names=COLUMNS), packed, options)
            written += len(block["timestamp"])
            if on_rows is not None:
                on_rows(written)
