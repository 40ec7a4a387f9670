"""Arms of which nobody says beforehand what is known of them: free-form objects, as a few numbers for each arm.

Names and values of features get columns as those of a context do (`hashed.py`): the first ones to come a column each,
later ones share by their hash. Which arm it is has columns too, shared by hash, so that the numbers are as many for a
thousand arms as for three. An arm keeps its numbers until it is described anew.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from tidepull.agent.clock import Clock
from tidepull.agent.fields import FieldError, State
from tidepull.agent.hashed import Hashed
from tidepull.errors import ArmError
from tidepull.types import BoolArray, FloatArray

FREE = "features"
"""The one key of the features of an arm that is described freely."""

COLUMNS, NAMES = 16, 16
"""Numbers for what an arm is like, and for which it is."""


def is_free(features: Any) -> bool:
    """Whether an arm is described by a free-form object."""
    return isinstance(features, Mapping) and list(features) == [FREE] and isinstance(features[FREE], Mapping)


def cleaned(label: Any, features: Mapping[str, Any]) -> dict[str, Any]:
    """A free-form description as JSON values by flat names."""
    try:
        return {FREE: Hashed().clean(features[FREE], Clock())}
    except FieldError as error:
        raise ArmError(f"arm '{label}': what it is described by {error}") from None


class Described:
    """What arms are like, by their places; `state` is what the columns have seen."""

    def __init__(self, state: State | None = None, rows: Mapping[int, list[float]] | None = None) -> None:
        self._field = Hashed(COLUMNS)
        self._state = self._field.fresh() if state is None else state
        self._rows = dict(rows or {})

    @classmethod
    def founded(cls, arms: Sequence[tuple[str, Mapping[str, Any]]]) -> Described:
        """The first arms: their numbers are standardised by all of them."""
        made = cls()
        for place, (label, features) in enumerate(arms):
            made = made.with_arm(place, label, features)
        for place, (label, features) in enumerate(arms):
            made._rows[place] = made.with_arm(place, label, features)._rows[place]
        return made

    def with_arm(self, place: int, label: str, features: Mapping[str, Any]) -> Described:
        """These, and one more or one that is described anew."""
        state = copy.deepcopy(self._state)
        like = self._field.encode(cleaned(label, features)[FREE], 0.0, state, Clock())
        which = [0.0] * NAMES
        which[int.from_bytes(blake2b(label.encode(), digest_size=8).digest(), "little") % NAMES] = 1.0
        row = np.asarray([*which, *like], np.float32).astype(float).tolist()
        return Described(state, {**self._rows, place: row})

    def rows(self, x: FloatArray, room: int, among: BoolArray | None) -> FloatArray:
        """What a policy sees in a context x of each place that is asked for: which it is, and what it is like times
        (1, x)."""
        seen = np.concatenate([[1.0], x])
        rows = np.zeros((room, self.width(len(x))))
        for place, row in self._rows.items():
            if among is None or among[place]:
                rows[place, :NAMES] = row[:NAMES]
                np.multiply.outer(row[NAMES:], seen, out=rows[place, NAMES:].reshape(COLUMNS, -1))
        return rows

    @staticmethod
    def width(observed: int) -> int:
        """How long a row is, for contexts of so many numbers."""
        return NAMES + COLUMNS * (1 + observed)

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {"state": self._state, "rows": [[place, row] for place, row in self._rows.items()]}

    @classmethod
    def restored(cls, plain: Mapping[str, Any]) -> Described:
        """From JSON."""
        return cls(copy.deepcopy(plain["state"]), {int(place): list(row) for place, row in plain["rows"]})
