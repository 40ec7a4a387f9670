"""Contexts as dictionaries, checked against a schema, and turned into one vector of constant length."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidepull.agent.clock import Clock
from tidepull.agent.fields import Field, FieldError, State, field_of, is_missing
from tidepull.errors import ContextError, ParameterError
from tidepull.types import FloatArray

MOST_FIELDS = 256


class Schema:
    """Named fields in a fixed order; knows nothing of what has been seen.

    >>> schema = Schema({"device": ["phone", "desktop"], "age": float}, Clock())
    >>> schema.width, schema.clean({"age": 31})
    (2, {'age': 31.0})
    """

    def __init__(self, given: Mapping[str, Any], clock: Clock, *, guessed: bool = False) -> None:
        if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
            raise ParameterError(
                f"context must be a dictionary of field names and kinds, such as {{'age': float}}, got {given!r}"
            )
        if len(given) > MOST_FIELDS:
            raise ParameterError(f"context has {len(given)} fields; at most {MOST_FIELDS} are taken")
        self.fields: dict[str, Field] = {name: field_of(kind, name) for name, kind in given.items()}
        self.guessed = guessed
        self.clock = clock
        self.private = [name for name, field in self.fields.items() if field.private]
        self.width = sum(field.width for field in self.fields.values())
        self._zeros = {name: [0.0] * field.width for name, field in self.fields.items()}
        for name, field in self.fields.items():
            if getattr(field, "flag", False):
                self._zeros[name] = [0.0, 1.0]

    def clean(self, context: Any) -> dict[str, Any]:
        """The context as JSON values without what is missing; a `ContextError` names the field that does not fit."""
        if context is None:
            return {}
        if not isinstance(context, Mapping):
            raise ContextError(f"context must be a dictionary, got a {type(context).__name__}")
        cleaned = {}
        for name, value in context.items():
            field = self.fields.get(name)
            if field is None:
                if self.guessed:
                    continue
                raise ContextError(self._unknown(name))
            if is_missing(value):
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

    def fresh(self) -> dict[str, State]:
        """What has been seen before anything came."""
        return {name: field.fresh() for name, field in self.fields.items()}

    def encode(self, cleaned: Mapping[str, Any], at: float, seen: dict[str, State]) -> list[float]:
        """`width` numbers; `seen` moves on."""
        row: list[float] = []
        for name, field in self.fields.items():
            value = cleaned.get(name)
            row += self._zeros[name] if value is None else field.encode(value, at, seen[name], self.clock)
        return row

    def plain(self) -> dict[str, Any]:
        """As JSON; `Schema(plain, clock)` is the same schema."""
        return {name: field.plain() for name, field in self.fields.items()}

    def _unknown(self, name: Any) -> str:
        near = difflib.get_close_matches(str(name), self.fields, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"fields: {', '.join(self.fields) or 'none'}"
        return f"context: there is no field '{name}'; {hint}"


def rounded(row: Sequence[float]) -> FloatArray:
    """The numbers as they are kept in the ledger: single precision, in double."""
    return np.asarray(row, np.float32).astype(np.float64)
