"""Contexts of a log as rows of numbers: numbers standardised, the commonest texts as flags."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidepull.logs.log import Log
from tidepull.logs.moments import local_seconds
from tidepull.types import FloatArray

LEVELS = 10
"""Texts of a column that get a flag, the commonest first; others have none."""

CHUNK = 8192
"""Rows that are made at once."""


class Features:
    """Rows of numbers for a log. Means and spreads are those of the whole log.

    With `calendar` a row also has sine and cosine of the hour and whether it is a weekend, where times are dates.
    """

    def __init__(self, log: Log, *, calendar: bool = False) -> None:
        self._log = log
        self._calendar = calendar and log.dated and log.time is not None
        self.names: list[str] = []
        self._numbers: list[tuple[str, float, float]] = []
        self._flags: list[tuple[str, int]] = []
        for name, column in log.context.items():
            if column.labels is None:
                known = column.values[~np.isnan(column.values)]
                if len(known) and known.min() < known.max():
                    self._numbers.append((name, float(known.mean()), float(known.std())))
            else:
                counts = np.bincount(column.values[column.values >= 0], minlength=len(column.labels))
                common = [int(code) for code in np.argsort(-counts, kind="stable")[:LEVELS] if counts[code]]
                self._flags += [(name, code) for code in (common if len(common) > 1 else [])]
        self.names = [name for name, _, _ in self._numbers]
        for name, code in self._flags:
            labels = log.context[name].labels
            assert labels is not None
            self.names.append(f"{name}={labels[code]}")
        self.names += ["hour, sine", "hour, cosine", "weekend"] if self._calendar else []

    @property
    def dim(self) -> int:
        """How many numbers a row has."""
        return len(self.names)

    def rows(self, start: int, stop: int) -> FloatArray:
        """Some rows; what is missing counts as average."""
        log = self._log
        made: FloatArray = np.empty((min(stop, len(log)) - start, self.dim))
        place = 0
        for name, mean, spread in self._numbers:
            made[:, place] = np.nan_to_num((log.context[name].values[start:stop] - mean) / spread)
            place += 1
        for name, code in self._flags:
            made[:, place] = log.context[name].values[start:stop] == code
            place += 1
        if self._calendar:
            assert log.time is not None
            local = local_seconds(log.time[start:stop], log.zone)
            angle = 2 * np.pi * local / 86_400
            made[:, place], made[:, place + 1] = np.sin(angle), np.cos(angle)
            made[:, place + 2] = (np.floor(local / 86_400) + 3) % 7 >= 5
        return made

    def chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        """All rows, some at a time."""
        for start in range(0, len(self._log), CHUNK):
            yield slice(start, min(start + CHUNK, len(self._log))), self.rows(start, start + CHUNK)
