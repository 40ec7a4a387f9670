"""Parquet, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.build import ROWS, Batch
from tidepull.logs.formats.flat import batch_of
from tidepull.logs.roles import Roles


def _opened(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path}: cannot be read as Parquet ({str(error).splitlines()[0].rstrip('.')})"
        ) from None


def columns_of(path: Path) -> list[str]:
    """The names of its columns."""
    return list(_opened(path).schema_arrow.names)


def batches(path: Path, roles: Roles) -> Iterator[Batch]:
    """The rows; a row's line is its number, counted from 1."""
    import pyarrow as pa

    file = _opened(path)
    wanted = [*roles.said().values(), *roles.context, *([roles.nested] if roles.nested else [])]
    row = 1
    try:
        for block in file.iter_batches(batch_size=ROWS, columns=wanted):
            columns = {name: block.column(name) for name in block.schema.names}
            yield batch_of(columns, roles, np.arange(row, row + len(block)))  # type: ignore[arg-type]
            row += len(block)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path}: damaged after row {row - 1} ({str(error).splitlines()[0].rstrip('.')})"
        ) from None
