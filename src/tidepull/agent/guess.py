"""A schema guessed from the first contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from tidepull.agent.fields import (
    Boolean,
    Category,
    Field,
    Number,
    Tags,
    Timestamp,
    finite_number,
    is_missing,
    text_of,
)
from tidepull.errors import ContextError

ENOUGH = 16
"""Decisions after which the schema is fixed; their arms are drawn uniformly."""


def plain_context(context: Any) -> dict[str, Any]:
    """A context of which nothing is known yet, as JSON values; what is missing is left out."""
    if context is None:
        return {}
    if not isinstance(context, Mapping):
        raise ContextError(f"context must be a dictionary, got a {type(context).__name__}")
    return {_name(name): _plain(name, value) for name, value in context.items() if not is_missing(value)}


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
    if not isinstance(name, str) or not name:
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
        f"context: field '{name}' must be a number, text, boolean, datetime or list of texts, got {value!r}"
    )


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) >= 10 and "-" in text
