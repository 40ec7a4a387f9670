"""A uniform sample of the rows of a stream, in one pass and in memory that the stream cannot grow."""

from __future__ import annotations

import numpy as np

from tidepull.problems.criteo.schema import FEATURES, Impressions


class UniformSample:
    """Keeps the `size` rows with the smallest random keys: every set of `size` rows is equally likely.

    Keys are drawn one per row in the order of the stream, so the sample depends on the generator and
    the rows, not on how the rows were cut into blocks. At most `2 * size` rows are held at any time.
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
        """The sample so far, in the order of the stream; all rows when there were fewer than `size`."""
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
