"""Contexts and features of arms as vectors: a schema, how it is guessed, and hashed free-form
features."""

from __future__ import annotations

import copy
import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any
from uuid import UUID

import numpy as np

from tidepull._internal.validation import is_unicode, shown
from tidepull.agent.clock import Clock
from tidepull.agent.fields import (
    KINDS,
    Boolean,
    Category,
    Field,
    FieldError,
    FieldState,
    Number,
    Tags,
    Timestamp,
    column_of,
    field_of,
    finite_number,
    is_missing,
    standardised,
    text_of,
)
from tidepull.errors import ArmError, ContextError, ParameterError
from tidepull.types import BoolArray, FloatArray

MOST_FIELDS = 256


class Schema:
    """Named fields in a fixed order; knows nothing of what has been seen.

    >>> schema = Schema({"device": ["phone", "desktop"], "age": float}, Clock())
    >>> schema.width, schema.clean({"age": 31})
    (2, {'age': 31.0})
    """

    def __init__(self, kinds: Mapping[str, Any], clock: Clock, *, guessed: bool = False) -> None:
        if not isinstance(kinds, Mapping) or not all(
            isinstance(name, str) and name for name in kinds
        ):
            raise ParameterError(
                f"context must be a dictionary of field names and kinds, such as {{'age': float}}, "
                f"got {kinds!r}"
            )
        if len(kinds) > MOST_FIELDS:
            raise ParameterError(
                f"context has {len(kinds)} fields; at most {MOST_FIELDS} are taken"
            )
        self.fields: dict[str, Field] = {name: field_of(kind, name) for name, kind in kinds.items()}
        self.guessed = guessed
        self.dropped: frozenset[str] = frozenset()  # earlier fields, which callers may still give
        self.clock = clock
        self.private = [name for name, field in self.fields.items() if field.private]
        self.width = sum(field.width for field in self.fields.values())
        self._zeros = {name: [0.0] * field.width for name, field in self.fields.items()}
        for name, field in self.fields.items():
            if getattr(field, "flag", False):
                self._zeros[name] = [0.0, 1.0]

    def clean(self, context: Any) -> dict[str, Any]:
        """The context as JSON values without what is missing; a `ContextError` names the field that
        does not fit."""
        cleaned = {}
        for name, value in _mapping(context).items():
            field = self.fields.get(name)
            if field is None:
                if self.guessed or name in self.dropped:
                    continue
                raise ContextError(self._unknown(name))
            if type(value) is not str and is_missing(value):
                continue
            try:
                value = field.clean(value, self.clock)
            except FieldError as error:
                raise ContextError(f"context: field '{name}' {error}") from None
            if value is not None:
                cleaned[name] = value
        return cleaned

    def unknown(self, context: Any) -> list[str]:
        """Names in a context that the schema does not have."""
        return [] if context is None else [name for name in context if name not in self.fields]

    def fresh(self) -> dict[str, FieldState]:
        """What has been seen before anything came."""
        return {name: field.fresh() for name, field in self.fields.items()}

    def encode(
        self, cleaned: Mapping[str, Any], at: float, seen: dict[str, FieldState]
    ) -> list[float]:
        """`width` numbers; `seen` moves on."""
        row: list[float] = []
        for name, field in self.fields.items():
            value = cleaned.get(name)
            row += (
                self._zeros[name]
                if value is None
                else field.encode(value, at, seen[name], self.clock)
            )
        return row

    def plain(self) -> dict[str, Any]:
        """As JSON; `Schema(plain, clock)` is the same schema."""
        return {name: field.plain() for name, field in self.fields.items()}

    def _unknown(self, name: Any) -> str:
        near = difflib.get_close_matches(str(name), self.fields, n=1)
        hint = (
            f"did you mean '{near[0]}'?" if near else f"fields: {', '.join(self.fields) or 'none'}"
        )
        return f"context: there is no field {name!r}; {hint}"

    def converted(self, x: FloatArray, before: Schema) -> FloatArray:
        """What a policy saw of a context under an earlier schema, as this one has it: fields that
        are new are missing in it."""
        columns, start = {}, 0
        for name, field in before.fields.items():
            columns[name] = x[start : start + field.width]
            start += field.width
        blank = self.encode({}, 0.0, {})
        moved, start = list[float](), 0
        for name, field in self.fields.items():
            known = before.fields.get(name) == field
            moved += columns[name].tolist() if known else blank[start : start + field.width]
            start += field.width
        return np.array(moved)


def to_single_precision(row: Sequence[float]) -> FloatArray:
    """The numbers as they are kept in the ledger: single precision, in double."""
    return np.asarray(row, np.float32).astype(np.float64)


ENOUGH = 16
"""Decisions after which the schema is fixed; their arms are drawn uniformly."""


def plain_context(context: Any) -> dict[str, Any]:
    """A context of which nothing is known yet, as JSON values; what is missing is left out."""
    mapping = _mapping(context)
    return {
        _name(name): _plain(name, value) for name, value in mapping.items() if not is_missing(value)
    }


def _mapping(context: Any) -> Mapping[str, Any]:
    if context is None:
        return {}
    if not isinstance(context, Mapping):
        raise ContextError(f"context must be a dictionary, got a {type(context).__name__}")
    return context


def guess(contexts: Sequence[Mapping[str, Any]]) -> dict[str, Field]:
    """The kind of every field that appeared.

    >>> guess([{"age": 31, "device": "phone"}, {"age": 40.5, "device": "tv", "tags": ["new"]}])["age"]
    Number(flag=False)
    """
    names = dict.fromkeys(name for context in contexts for name in context)
    return {name: _kind([c[name] for c in contexts if name in c]) for name in names}


def require_same_kind(earlier: Sequence[Mapping[str, Any]], context: Mapping[str, Any]) -> None:
    """A field is a list always or never."""
    for name, value in context.items():
        for before in earlier:
            if name in before and isinstance(before[name], list) != isinstance(value, list):
                raise ContextError(
                    f"context: field '{name}' was {before[name]!r} before, now it is {value!r}; "
                    "let it be a list always or never"
                )


def _kind(values: Sequence[Any]) -> Field:
    if all(isinstance(value, bool) for value in values):
        return Boolean()
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return Number()
    if all(isinstance(value, list) for value in values):
        return Tags()
    if all(isinstance(value, str) and _is_moment(value) for value in values):
        return Timestamp()
    return Category(unseen=8)


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name or not is_unicode(name):
        raise ContextError(f"context: the name of a field must be text, got {name!r}")
    return name


def _plain(name: str, value: Any) -> Any:
    try:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, bool | str | UUID):
            return value if isinstance(value, bool) else text_of(value)
        if isinstance(value, int | float | Decimal):
            return finite_number(value)
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, list | tuple | set | frozenset):
            return sorted(text_of(item) for item in value)
    except ValueError as error:
        raise ContextError(f"context: field '{name}' {error}") from None
    raise ContextError(
        f"context: field '{name}' must be a number, text, boolean, datetime or list of texts, got "
        f"{value!r}"
    )


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) >= 10 and "-" in text


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

    def fresh(self) -> FieldState:
        """The features that have a column of their own, how many came that have none, and what
        columns have seen."""
        return [[], 0, [Number().fresh() for _ in range(self.columns)]]

    def clean(self, value: Any, clock: Clock) -> dict[str, float | bool]:
        """Features by name, sorted: a number, or true for what is simply there ("colour=red")."""
        if not isinstance(value, Mapping):
            raise FieldError(f"must be an object, got {value!r}")
        features = dict(_features(value, "", 1))
        if len(features) > MOST_FEATURES:
            raise FieldError(f"has {len(features)} features; at most {MOST_FEATURES} are taken")
        return dict(sorted(features.items()))

    def encode(
        self, value: dict[str, float | bool], at: float, state: FieldState, clock: Clock
    ) -> list[float]:
        """1 in the column of what is there, numbers as distances from their column's mean in
        spreads."""
        row = [0.0] * self.columns
        for name, number in value.items():
            column = column_of(name, (), self.columns, state)
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
            if not isinstance(key, str) or not key or not is_unicode(key):
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
            raise FieldError(
                f"has a string of {len(value):,} characters; at most {LONGEST:,} are taken"
            )
        if not is_unicode(value):
            raise FieldError(f"must be Unicode, got {shown(value)}")
        yield f"{name}={value}", True
    elif value is not None:
        number = finite_number(value)
        if number is not None and not math.isnan(number):
            # a log that was made flat has "tags=new": 1 where a request has {"tags": ["new"]}
            yield (name, True) if "=" in name and number == 1.0 else (name, number)


KINDS[Hashed.__name__] = Hashed


FREE = "features"
"""The one key of the features of an arm that is described freely."""

COLUMNS, NAMES = 16, 16
"""Numbers for what an arm is like, and for which it is."""


def is_free(features: Any) -> bool:
    """Whether an arm is described by a free-form object."""
    return (
        isinstance(features, Mapping)
        and list(features) == [FREE]
        and isinstance(features[FREE], Mapping)
    )


def clean_features(label: Any, features: Mapping[str, Any]) -> dict[str, Any]:
    """A free-form description as JSON values by flat names."""
    try:
        return {FREE: Hashed().clean(features[FREE], Clock())}
    except FieldError as error:
        raise ArmError(f"arm '{label}': what it is described by {error}") from None


class FreeFormFeatures:
    """What arms are like, by their places; `state` is what the columns have seen."""

    def __init__(
        self, state: FieldState | None = None, rows: Mapping[int, list[float]] | None = None
    ) -> None:
        self._field = Hashed(COLUMNS)
        self._state = self._field.fresh() if state is None else state
        self._rows = dict(rows or {})

    @classmethod
    def founded(cls, arms: Sequence[tuple[str, Mapping[str, Any]]]) -> FreeFormFeatures:
        """The first arms: their numbers are standardised by all of them."""
        table = cls()
        for place, (label, features) in enumerate(arms):
            table = table.with_arm(place, label, features)
        for place, (label, features) in enumerate(arms):
            table._rows[place] = table.with_arm(place, label, features)._rows[place]
        return table

    def with_arm(self, place: int, label: str, features: Mapping[str, Any]) -> FreeFormFeatures:
        """These, and one more or one that is described anew."""
        state = copy.deepcopy(self._state)
        like = self._field.encode(clean_features(label, features)[FREE], 0.0, state, Clock())
        which = [0.0] * NAMES
        which[int.from_bytes(blake2b(label.encode(), digest_size=8).digest(), "little") % NAMES] = (
            1.0
        )
        row = np.asarray([*which, *like], np.float32).astype(float).tolist()
        return FreeFormFeatures(state, {**self._rows, place: row})

    def rows(self, x: FloatArray, room: int, among: BoolArray | None) -> FloatArray:
        """What a policy sees in a context x of each place that is asked for: which it is, and what
        it is like times (1, x)."""
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
    def restored(cls, plain: Mapping[str, Any]) -> FreeFormFeatures:
        """From JSON."""
        return cls(
            copy.deepcopy(plain["state"]), {int(place): list(row) for place, row in plain["rows"]}
        )
