"""One column of contexts while a log is read: numbers as long as all cells are, else texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.logs.cells import Labels, TooManyLabelsError, label_of, numbers
from tidepull.logs.log import Column
from tidepull.types import BoolArray, FloatArray, IntArray


class Series:
    """Parts of a column, batch after batch; batches in which it did not appear are missing cells."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dropped = False
        self._labels = Labels(name)
        self._parts: list[Any] = []
        self._length = 0

    def add(self, column: Any, start: int, keep: BoolArray) -> None:
        """The kept cells of a batch that begins at row `start`."""
        if self.dropped:
            return
        if start > self._length:
            self._parts.append(np.full(start - self._length, np.nan))
        made, bad = numbers(column)
        try:
            part: FloatArray | IntArray = self._labels.codes(column)[keep] if bad.any() else made[keep]
        except TooManyLabelsError:
            self.dropped, self._parts = True, []
            return
        self._parts.append(part)
        self._length = start + len(part)

    def finish(self, rows: int) -> Column:
        """The whole column. Where some batches have texts, numbers become texts."""
        if rows > self._length:
            self._parts.append(np.full(rows - self._length, np.nan))
        if not any(part.dtype == np.int32 for part in self._parts):
            whole: FloatArray = np.concatenate(self._parts)
            return Column(whole)
        coded = [part if part.dtype == np.int32 else self._as_codes(part) for part in self._parts]
        codes: IntArray = np.concatenate(coded)
        return Column(codes, tuple(self._labels.known))

    def _as_codes(self, part: FloatArray | IntArray) -> IntArray:
        return np.array(
            [-1 if np.isnan(x) else self._labels.code(label_of(float(x))) for x in part], np.int32
        )
