"""Stream the published file: tab-separated, gzip-compressed, 16,468,027 rows."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.errors import DataError, MissingExtraError
from tidepull.problems.criteo.schema import FEATURES, PUBLISHED_NAME, TARGET, Impressions

_GZIP = b"\x1f\x8b"
_BLOCK_BYTES = 8 << 20


class MeteredFile(io.RawIOBase):
    """A file that is hashed and counted while it is read, so that one pass does everything."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("rb")
        self._sha256 = hashlib.sha256()
        self.count = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data = self._file.read(size)
        self._sha256.update(data)
        self.count += len(data)
        return data

    def close(self) -> None:
        """Close the file underneath."""
        self._file.close()
        super().close()

    def sha256(self) -> str:
        """The hash of what has been read."""
        return self._sha256.hexdigest()


def open_published(path: Path) -> MeteredFile:
    """The file, or one sentence on why it cannot be it."""
    try:
        with path.open("rb") as file:
            beginning = file.read(len(_GZIP))
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; give the path of {PUBLISHED_NAME}") from None
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror}); give the path of {PUBLISHED_NAME}"
        ) from None
    if beginning == b"PK":
        raise DataError(f"{path} is a zip archive; unpack it and give the {PUBLISHED_NAME} inside")
    if beginning != _GZIP:
        raise DataError(f"{path} is not gzip-compressed; give {PUBLISHED_NAME} as it was published")
    return MeteredFile(path)


def read_rows(file: MeteredFile, path: Path) -> Iterator[Impressions]:
    """The rows of an open file in blocks, in order; `path` is named in error messages."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("reading the Criteo file", "data") from None
    try:
        for batch in _open_csv(pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "gzip")):
            yield _rows(batch, path)
    except pa.ArrowKeyError:
        wanted = ", ".join((*FEATURES, TARGET))
        raise DataError(
            f"{path} has another header; its tab-separated columns must include {wanted}"
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} is truncated or damaged ({str(error).splitlines()[0]}); get it again"
        ) from None


def _open_csv(stream: Any) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    names = [*FEATURES, TARGET]
    return csv.open_csv(
        stream,
        read_options=csv.ReadOptions(block_size=_BLOCK_BYTES),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=csv.ConvertOptions(
            include_columns=names, column_types=dict.fromkeys(names, pa.int64())
        ),
    )


def _rows(batch: Any, path: Path) -> Impressions:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count:
            raise DataError(f"{path} has an empty value in the column '{name}'; get it again")
    click = batch.column(TARGET).to_numpy()
    if not np.isin(click, (0, 1)).all():
        raise DataError(f"{path} has a value other than 0 and 1 in the column '{TARGET}'; get it again")
    return Impressions(np.column_stack([batch.column(name).to_numpy() for name in FEATURES]), click == 1)
