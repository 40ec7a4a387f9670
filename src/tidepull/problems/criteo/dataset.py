"""The published Criteo attribution dataset: its columns, a stream of its rows, and a uniform sample
of them.

The file is tab-separated and gzip-compressed and has 16,468,027 rows. The sample takes one pass, in
memory that does not grow with the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tidepull._internal.extras import needs
from tidepull.errors import DataError

COLUMNS = (
    "timestamp", "uid", "campaign", "conversion", "conversion_timestamp", "conversion_id", "attribution",
    "click", "click_pos", "click_nb", "cost", "cpo", "time_since_last_click",
    "cat1", "cat2", "cat3", "cat4", "cat5", "cat6", "cat7", "cat8", "cat9",
)  # fmt: skip
"""Every column of the published file, in its order."""

FEATURES = ("campaign", "cat1", "cat2", "cat3", "cat4", "cat5", "cat6", "cat8", "cat9")
"""What describes a banner: the campaign and cat1 to cat9 without cat7."""

TARGET = "click"

PUBLISHED_NAME = "criteo_attribution_dataset.tsv.gz"
PUBLISHED_ROWS = 16_468_027

DIM = 50
SAMPLE = 200_000
POOL = 10_000

FIRST_SYNTHETIC_CAMPAIGN = 900_000_000
"""Synthetic campaigns are numbered from here, far above the published ids, so that a file made by
`synthesize-criteo` is recognised even after it was unpacked, cut or packed again."""


@dataclass(frozen=True, slots=True, eq=False)
class Impressions:
    """Some banners: their categories (a row each, a column for each of `FEATURES`), and who
    clicked.

    The two are kept apart so that what makes features can be given the categories alone.
    """

    categories: NDArray[np.int64]
    clicked: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.clicked)


_GZIP = b"\x1f\x8b"
_BLOCK_BYTES = 8 << 20


def open_published(path: Path) -> BinaryIO:
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
    return path.open("rb")


def read_rows(file: BinaryIO, path: Path) -> Iterator[Impressions]:
    """The rows of an open file in blocks, in order; `path` is named in error messages."""
    with needs("reading the Criteo file", "data"):
        import pyarrow as pa
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
        raise DataError(
            f"{path} has a value other than 0 and 1 in the column '{TARGET}'; get it again"
        )
    categories = np.column_stack([batch.column(name).to_numpy() for name in FEATURES])
    return Impressions(categories, click == 1)


class UniformSample:
    """Keeps the `size` rows with the smallest random keys: every set of `size` rows is equally
    likely.

    Keys are drawn one per row in the order of the stream, so the sample depends on the generator
    and the rows, not on how the rows were cut into blocks. At most `2 * size` rows are held at any
    time.
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size, self._rng = size, rng
        self._keys = np.empty(2 * size)
        self._categories = np.empty((2 * size, len(FEATURES)), np.int64)
        self._clicked = np.empty(2 * size, np.bool_)
        self.held = 0
        self._threshold = np.inf
        self.seen = 0

    @property
    def capacity(self) -> int:
        """How many rows there is room for; it never grows."""
        return len(self._keys)

    def add(self, rows: Impressions) -> None:
        """Take in the next rows of the stream."""
        keys = self._rng.random(len(rows))
        self.seen += len(rows)
        candidates = np.flatnonzero(keys < self._threshold)
        for start in range(0, len(candidates), self._size):
            chosen = candidates[start : start + self._size]
            if self.held + len(chosen) > 2 * self._size:
                self._prune()
            into = slice(self.held, self.held + len(chosen))
            self._keys[into] = keys[chosen]
            self._categories[into] = rows.categories[chosen]
            self._clicked[into] = rows.clicked[chosen]
            self.held += len(chosen)

    def rows(self) -> Impressions:
        """The sample so far, in the order of the stream; all rows when there were fewer than
        `size`."""
        self._prune()
        return Impressions(self._categories[: self.held].copy(), self._clicked[: self.held].copy())

    def _prune(self) -> None:
        if self.held <= self._size:
            return
        smallest = np.sort(np.argsort(self._keys[: self.held], kind="stable")[: self._size])
        for column in (self._keys, self._categories, self._clicked):
            column[: self._size] = column[smallest]
        self.held = self._size
        self._threshold = self._keys[: self._size].max()
