"""Frozen, validated hyperparameters: a dataclass beside each algorithm, its ranges said once.

    @dataclass(frozen=True, kw_only=True)
    class Windowed(Parameters):
        window: int = parameter(100, "rounds remembered", ge=1)

A wrong name, type or value raises a `ParameterError` that names the parameter and what it allows.
Where the parameter sets no upper limit, numbers beyond 1e15 are refused, and those nearer to 0 than
1e-100: their squares are no numbers any more.
"""

from __future__ import annotations

import difflib
import operator
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from tidepull.errors import ParameterError

P = TypeVar("P", bound="Parameters")

LARGEST, SMALLEST = 1e15, 1e-100
_HOLDS = {"≥": operator.ge, ">": operator.gt, "≤": operator.le, "<": operator.lt}


def parameter(
    default: Any = MISSING,
    description: str = "",
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    stored_as: Mapping[str, str] | None = None,
    added: bool = False,
    earlier_name: str | None = None,
) -> Any:
    """Declare a field of `Parameters` with a description and the range of its numbers.

    Parameters
    ----------
    default : object, optional
        The default value. Without it, the parameter is required.
    description : str, default: ""
        What the parameter means, for lists and the docs.
    ge : float, optional
        The smallest number allowed.
    gt : float, optional
        The number that values must be above.
    le : float, optional
        The largest number allowed.
    lt : float, optional
        The number that values must be below.
    stored_as : mapping of str to str, optional
        Earlier names of choices that were renamed, by their present names. An earlier name stays
        valid, and `to_mapping` returns it, so that stored trials and snapshots keep their identity.
    added : bool, default: False
        Whether the parameter was added later. `to_mapping` then leaves it out while it has its
        default.
    earlier_name : str, optional
        The earlier name of a parameter that was renamed. It stays valid, and `to_mapping` has it.

    Returns
    -------
    dataclasses.Field
        The field.

    Examples
    --------
    >>> import tidepull
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Windowed(tidepull.Parameters):
    ...     window: int = tidepull.parameter(100, "rounds remembered", ge=1)
    >>> Windowed(window=0)
    Traceback (most recent call last):
    tidepull.errors.ParameterError: window must be ≥ 1, got 0
    """
    bounds = {"≥": ge, ">": gt, "≤": le, "<": lt}
    metadata = {
        "description": description,
        "bounds": {k: v for k, v in bounds.items() if v is not None},
        "stored_as": dict(stored_as or {}),
        "added": added,
        "earlier_name": earlier_name,
    }
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Base class of every set of hyperparameters; it checks types and ranges.

    Subclasses are frozen dataclasses whose fields are made by `parameter`.

    Raises
    ------
    ParameterError
        If a value has the wrong type, or is out of range.

    Examples
    --------
    >>> import tidepull
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Discounted(tidepull.Parameters):
    ...     discount: float = tidepull.parameter(0.99, "weight of the past", gt=0, le=1)
    >>> Discounted(discount=0.9).to_mapping()
    {'discount': 0.9}
    """

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for f in fields(self):
            try:
                value = _coerce(_renamed(f, getattr(self, f.name)), hints[f.name])
            except OverflowError:
                raise ParameterError(
                    f"{f.name} must be finite, got a number beyond all floats"
                ) from None
            object.__setattr__(self, f.name, value)
            _check(f, value, hints[f.name])

    @classmethod
    def from_mapping(cls: type[P], values: Mapping[str, Any], *, owner: str = "") -> P:
        """Make parameters from names and values.

        Parameters
        ----------
        values : mapping of str to value
            Values of parameters by name.
        owner : str, default: ""
            The id of a problem or policy, which error messages begin with.

        Returns
        -------
        Parameters
            An instance of this class.

        Raises
        ------
        ParameterError
            If a name does not exist or is missing, or a value is out of range.
        """
        present = {f.metadata.get("earlier_name"): f.name for f in fields(cls)}
        values = {present.get(name, name): value for name, value in values.items()}
        known = [f.name for f in fields(cls)]
        whose = f"{owner}: " if owner else ""
        for name in values:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f" (did you mean '{near[0]}'?)" if near else ""
                allowed = ", ".join(known) if known else "none"
                raise ParameterError(
                    f"{whose}there is no parameter '{name}'{hint}; parameters: {allowed}"
                )
        missing = [f.name for f in fields(cls) if _required(f) and f.name not in values]
        if missing:
            raise ParameterError(f"{whose}the parameter '{missing[0]}' must be given")
        try:
            return cls(**values)
        except ParameterError as error:
            raise ParameterError(f"{whose}{error}") from None

    def to_mapping(self) -> dict[str, Any]:
        """Return the values as JSON, by which stored trials and snapshots are identified.

        A renamed choice or parameter has its earlier name. A parameter that was added later is left
        out while it has its default.
        """
        values = {f.name: (f, getattr(self, f.name)) for f in fields(self)}
        return {
            f.metadata.get("earlier_name") or name: _plain(_stored(f, value))
            for name, (f, value) in values.items()
            if not (f.metadata.get("added") and value == f.default)
        }

    @classmethod
    def stored_name(cls, name: str) -> str:
        """Return the name that a parameter has in `to_mapping`.

        Parameters
        ----------
        name : str
            The name of a parameter.

        Returns
        -------
        str
            Its earlier name where it was renamed, else the same name.
        """
        renamed = {f.name: f.metadata.get("earlier_name") for f in fields(cls)}
        return renamed.get(name) or name

    @classmethod
    def from_earlier(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Translate values that an earlier release stored.

        Parameters
        ----------
        values : mapping of str to value
            Stored values by name.

        Returns
        -------
        dict of str to value
            Values of this release; by default the same ones.
        """
        return dict(values)


@dataclass(frozen=True, kw_only=True)
class NoParameters(Parameters):
    """Parameters of a problem or policy that has nothing to set.

    Examples
    --------
    >>> import tidepull
    >>> tidepull.NoParameters().to_mapping()
    {}
    """


@dataclass(frozen=True, slots=True)
class ParameterDoc:
    """One parameter as shown to a reader."""

    name: str
    kind: str
    default: str
    description: str
    range: str


def describe(cls: type[Parameters]) -> list[ParameterDoc]:
    """Documentation of every parameter, for `tidepull list` and the docs."""
    hints = get_type_hints(cls)
    return [
        ParameterDoc(
            name=f.name,
            kind=_kind(hints[f.name]),
            default="required" if _required(f) else _show(f.default),
            description=str(f.metadata.get("description", "")),
            range=", ".join(
                f"{sign} {bound:g}" for sign, bound in f.metadata.get("bounds", {}).items()
            ),
        )
        for f in fields(cls)
    ]


def _required(f: Field[Any]) -> bool:
    return f.default is MISSING and f.default_factory is MISSING


def _renamed(f: Field[Any], value: Any) -> Any:
    earlier = f.metadata.get("stored_as", {})
    return next(
        (name for name, old in earlier.items() if isinstance(value, str) and old == value), value
    )


def _stored(f: Field[Any], value: Any) -> Any:
    return f.metadata.get("stored_as", {}).get(value, value) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _show(value: Any) -> str:
    return "auto" if value is None else str(_plain(value))


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _kind(hint: Any) -> str:
    names: list[str] = []
    for option in _options(hint):
        if option is type(None):
            continue
        if get_origin(option) is Literal:
            names.extend(repr(choice) for choice in get_args(option))
        elif get_origin(option) is tuple:
            names.append("list of " + _kind(get_args(option)[0]))
        else:
            names.append(
                {int: "whole number", float: "number", bool: "true or false", str: "text"}[option]
            )
    return " or ".join(names)


def _coerce(value: Any, hint: Any) -> Any:
    """Lists become tuples, numpy scalars plain ones, whole numbers floats where a float is
    wanted."""
    if isinstance(value, np.generic):
        value = value.item()
    if _is_list(value):
        inner = [get_args(option)[0] for option in _options(hint) if get_origin(option) is tuple]
        return tuple(_coerce(item, _inner_for(item, inner)) for item in value)
    wants_int = int in _options(hint)
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and float in _options(hint)
        and not wants_int
    ):
        return float(value)
    if (
        isinstance(value, float)
        and value.is_integer()
        and wants_int
        and float not in _options(hint)
    ):
        return int(value)
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _inner_for(item: Any, hints: list[Any]) -> Any:
    """Of several kinds of list, the one whose items are lists where this item is one."""
    alike = [hint for hint in hints if (get_origin(hint) is tuple) == _is_list(item)]
    return next(iter(alike or hints), Any)


def _fits(value: Any, option: Any) -> bool:
    if option is Any:
        return True
    if option is type(None):
        return value is None
    if get_origin(option) is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(option))
    if get_origin(option) is tuple:
        inner, *rest = get_args(option)
        if not isinstance(value, tuple) or (rest != [Ellipsis] and len(value) != 1 + len(rest)):
            return False
        return all(_fits(item, inner) for item in value)
    return type(value) is option


def _numbers(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [number for item in value for number in _numbers(item)]
    return [value]


def _check(f: Field[Any], value: Any, hint: Any) -> None:
    options = _options(hint)
    if not any(_fits(value, option) for option in options):
        raise ParameterError(f"{f.name} must be a {_kind(hint)}, got {value!r}")
    for number in _numbers(value):
        if isinstance(number, bool) or not isinstance(number, int | float):
            continue
        if not -sys.float_info.max <= number <= sys.float_info.max:
            got = "a number beyond all floats" if isinstance(number, int) else number
            raise ParameterError(f"{f.name} must be finite, got {got}")
        bounds = f.metadata.get("bounds", {})
        for sign, bound in bounds.items():
            if not _HOLDS[sign](number, bound):
                raise ParameterError(f"{f.name} must be {sign} {bound:g}, got {number:g}")
        if {"≤", "<"} & set(bounds):
            continue
        if abs(number) > LARGEST:
            raise ParameterError(f"{f.name} must be at most {LARGEST:g} in size, got {number:g}")
        if 0 < abs(number) < SMALLEST:
            raise ParameterError(
                f"{f.name} must be at least {SMALLEST:g} in size, or 0, got {number:g}"
            )
