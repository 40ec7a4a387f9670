"""A field for contexts of which nobody says beforehand what is in them: free-form objects, as other services take them.

Names and values become columns of a fixed number: the first ones to come have a column each, later ones share them by
their hash. So an object may change as it likes, and the policy sees a vector of constant length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidepull.agent.clock import Clock
from tidepull.agent.fields import KINDS, Field, FieldError, Number, State, finite_number, place, standardised
from tidepull.errors import ParameterError

MOST_FEATURES, DEEPEST, LONGEST = 256, 8, 1000
"""Of one object: features, levels, characters of a name or text."""


@dataclass(frozen=True)
class Hashed(Field):
    """An object of numbers, texts, booleans, lists of these and objects, in `columns` columns."""

    columns: int = 32

    def __post_init__(self) -> None:
        whole = isinstance(self.columns, int) and not isinstance(self.columns, bool)
        if not whole or not 1 <= self.columns <= 1024:
            raise ParameterError(
                f"context: columns must be a whole number from 1 to 1024, got {self.columns!r}"
            )

    @property
    def width(self) -> int:
        """Its columns."""
        return self.columns

    def fresh(self) -> State:
        """The features that have a column of their own, how many came that have none, and what columns have seen."""
        return [[], 0, [Number().fresh() for _ in range(self.columns)]]

    def clean(self, value: Any, clock: Clock) -> dict[str, float | bool]:
        """Features by name, sorted: a number, or true for what is simply there ("colour=red")."""
        if not isinstance(value, Mapping):
            raise FieldError(f"must be an object, got {value!r}")
        made = dict(_features(value, "", 1))
        if len(made) > MOST_FEATURES:
            raise FieldError(f"has {len(made)} features; at most {MOST_FEATURES} are taken")
        return dict(sorted(made.items()))

    def encode(self, value: dict[str, float | bool], at: float, state: State, clock: Clock) -> list[float]:
        """1 in the column of what is there, numbers as distances from their column's mean in spreads."""
        row = [0.0] * self.columns
        for name, number in value.items():
            column = place(name, (), self.columns, state)
            assert column is not None
            row[column] += 1.0 if number is True else standardised(number, state[2][column])
        return row


def _features(value: Any, name: str, level: int) -> Iterator[tuple[str, float | bool]]:
    if level > DEEPEST:
        raise FieldError(f"is nested more than {DEEPEST} deep")
    if len(name) > LONGEST:
        raise FieldError(f"has a name of {len(name):,} characters; at most {LONGEST:,} are taken")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str) or not key:
                raise FieldError("has a name that is empty or no text")
            yield from _features(inner, f"{name}.{key}" if name else key, level + 1)
    elif isinstance(value, list | tuple):
        for n, inner in enumerate(value):
            whole = isinstance(inner, str | bool | Mapping)
            yield from _features(inner, name if whole else f"{name}.{n}", level + 1)
    elif isinstance(value, bool):
        yield (name if value and "=" in name else f"{name}={'yes' if value else 'no'}"), True
    elif isinstance(value, str):
        if len(value) > LONGEST:
            raise FieldError(f"has a text of {len(value):,} characters; at most {LONGEST:,} are taken")
        yield f"{name}={value}", True
    elif value is not None:
        number = finite_number(value)
        if number is not None and not math.isnan(number):
            # a log that was made flat has "tags=new": 1 where a request has {"tags": ["new"]}
            yield (name, True) if "=" in name and number == 1.0 else (name, number)


KINDS[Hashed.__name__] = Hashed
