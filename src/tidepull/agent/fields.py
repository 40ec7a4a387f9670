"""The kinds of fields that a context may have: what each accepts, how many numbers it becomes, and
which.

A field keeps what it has seen in a small list of JSON values (`fresh`), so that numbers are
standardised as they come and unseen values find a place; its width never changes. What is missing
becomes zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np

from tidepull._internal.validation import is_unicode, shown
from tidepull.agent.clock import Clock
from tidepull.errors import ParameterError

FieldState: TypeAlias = list[Any]

REMEMBERED = 4096
"""Values after which a number's mean and spread follow the latest so many."""

FARTHEST = 6.0
"""A standardised number is cut off here."""

_LARGEST = 1e15
_LONGEST_TEXT = 1000
_MOST_TAGS = 256
_PLAIN = frozenset((bool, int, float, str))

__all__ = ["Boolean", "Category", "Cyclic", "Number", "Tags", "Timestamp"]


class FieldError(ValueError):
    """A value that a field does not take; the text ends the sentence "field 'age' ..."."""


class Field:
    """One entry of a context."""

    private = False

    @property
    def width(self) -> int:
        """Number of columns that the field is encoded as."""
        raise NotImplementedError

    def fresh(self) -> FieldState:
        """Return the state before any value was seen."""
        return []

    def clean(self, value: Any, clock: Clock) -> Any:
        """Check a value, and return it as JSON.

        Parameters
        ----------
        value : object
            A value of a context.
        clock : Clock
            The agent's clock, which reads moments.

        Returns
        -------
        object
            The value as JSON; None if it is missing.

        Raises
        ------
        FieldError
            If the value is not of this kind.
        """
        raise NotImplementedError

    def encode(self, value: Any, at: float, state: FieldState, clock: Clock) -> list[float]:
        """Encode a value as numbers.

        Parameters
        ----------
        value : object
            A result of `clean` that is not missing.
        at : float
            Moment of the decision in seconds since 1970.
        state : list
            What the field has seen so far; it is updated in place.
        clock : Clock
            The agent's clock, which knows the time zone.

        Returns
        -------
        list of float
            As many numbers as `width` says.
        """
        raise NotImplementedError

    def plain(self) -> dict[str, Any]:
        """Return the field as JSON values, which `field_of` reads."""
        return {"kind": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class Number(Field):
    """A number: its z-score over the last 4,096 values, clipped to [-6, 6].

    Parameters
    ----------
    flag : bool, default: False
        Whether a second column says that the number is missing.

    Examples
    --------
    >>> Number().width, Number(flag=True).width
    (1, 2)
    """

    flag: bool = False

    @property
    def width(self) -> int:
        """Number of columns: one, or two with a flag."""
        return 2 if self.flag else 1

    def fresh(self) -> FieldState:
        """Return the state before any value was seen.

        It holds the count, the mean, the mean square deviation, and the discounted share of values
        that were clipped.
        """
        return [0, 0.0, 0.0, 0.0]

    def clean(self, value: Any, clock: Clock) -> float | None:
        """Check a number, and return it as a float.

        Parameters
        ----------
        value : object
            A value of a context.
        clock : Clock
            The agent's clock, which reads moments.

        Returns
        -------
        float or None
            The number; None if it is NaN.

        Raises
        ------
        FieldError
            If the value is not of this kind.
        """
        return finite_number(value)

    def encode(self, value: float, at: float, state: FieldState, clock: Clock) -> list[float]:
        """Encode a number as its z-score.

        Parameters
        ----------
        value : float
            A result of `clean` that is not missing.
        at : float
            Moment of the decision in seconds since 1970.
        state : list
            What the field has seen so far; it is updated in place.
        clock : Clock
            The agent's clock, which knows the time zone.

        Returns
        -------
        list of float
            The z-score, and -1 in a second column where there is a flag.
        """
        z = standardised(value, state)
        return [z, -1.0] if self.flag else [z]


@dataclass(frozen=True)
class Category(Field):
    """One of several texts or whole numbers, one-hot encoded.

    Two listed values without `unseen` columns share one column, with 1 and -1.

    Parameters
    ----------
    values : tuple of str, default: ()
        Listed values, with a column each.
    unseen : int, optional
        Number of columns for other values, given in order of appearance, then by hash. With 0
        columns, such values are missing. By default it is 0 with `values`, else 8.
    private : bool, default: False
        Whether only a salted hash of the value is stored.

    Raises
    ------
    ParameterError
        If a value is listed twice, or a private category lists values.

    Examples
    --------
    >>> Category(("phone", "desktop", "tv")).width, Category().width
    (3, 8)
    """

    values: tuple[str, ...] = ()
    unseen: int | None = None
    private: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(text_of(value) for value in self.values))
        if len(set(self.values)) != len(self.values):
            raise ParameterError(f"context: a category has a value twice: {', '.join(self.values)}")
        if self.private and self.values:
            raise ParameterError(
                "context: a private category cannot list its values; give "
                "tidepull.fields.Category(private=True)"
            )
        object.__setattr__(self, "unseen", buckets(self.unseen, 0 if self.values else 8))

    @property
    def width(self) -> int:
        """Number of columns: one for each listed value and each unseen one."""
        assert self.unseen is not None
        return 1 if len(self.values) == 2 and not self.unseen else len(self.values) + self.unseen

    def fresh(self) -> FieldState:
        """Return the state: unseen values with a column, and the number of those without."""
        return [[], 0]

    def clean(self, value: Any, clock: Clock) -> str:
        """Check a value, and return it as text.

        Parameters
        ----------
        value : object
            A value of a context.
        clock : Clock
            The agent's clock, which reads moments.

        Returns
        -------
        str
            The text.

        Raises
        ------
        FieldError
            If the value is not of this kind.
        """
        return text_of(value)

    def encode(self, value: str, at: float, state: FieldState, clock: Clock) -> list[float]:
        """Encode a value as 1 in its column.

        Parameters
        ----------
        value : str
            A result of `clean` that is not missing.
        at : float
            Moment of the decision in seconds since 1970.
        state : list
            What the field has seen so far; it is updated in place.
        clock : Clock
            The agent's clock, which knows the time zone.

        Returns
        -------
        list of float
            The row, which is 0 in all other columns.
        """
        values, unseen = self.values, self.unseen or 0
        if len(values) == 2 and not unseen:
            state[1] += value not in values
            return [1.0 if value == values[0] else -1.0 if value == values[1] else 0.0]
        row = [0.0] * (len(values) + unseen)
        column = column_of(value, values, unseen, state)
        if column is not None:
            row[column] = 1.0
        return row


@dataclass(frozen=True)
class Boolean(Field):
    """True or false, encoded as 1 or -1.

    Examples
    --------
    >>> Boolean().width
    1
    """

    @property
    def width(self) -> int:
        """Number of columns, which is one."""
        return 1

    def clean(self, value: Any, clock: Clock) -> bool:
        """Check a value, and return it as a boolean.

        Parameters
        ----------
        value : object
            A value of a context.
        clock : Clock
            The agent's clock, which reads moments.

        Returns
        -------
        bool
            The boolean.

        Raises
        ------
        FieldError
            If the value is not of this kind.
        """
        if isinstance(value, bool | np.bool_) or (type(value) is int and value in (0, 1)):
            return bool(value)
        raise FieldError(f"must be true or false, got {value!r}")

    def encode(self, value: bool, at: float, state: FieldState, clock: Clock) -> list[float]:
        """Encode a boolean as 1 or -1.

        Parameters
        ----------
        value : bool
            A result of `clean` that is not missing.
        at : float
            Moment of the decision in seconds since 1970.
        state : list
            What the field has seen so far; it is updated in place.
        clock : Clock
            The agent's clock, which knows the time zone.

        Returns
        -------
        list of float
            One number.
        """
        return [1.0 if value else -1.0]


@dataclass(frozen=True)
class Cyclic(Field):
    """A number on a circle, encoded as sine and cosine.

    Parameters
    ----------
    period : float
        Length of the circle, such as 24 for hours or 360 for directions.

    Raises
    ------
    ParameterError
        If the period is not positive.

    Examples
    --------
    >>> Cyclic(24).width
    2
    """

    period: float

    def __post_init__(self) -> None:
        if (
            isinstance(self.period, bool)
            or not isinstance(self.period, int | float)
            or not 0 < self.period <= _LARGEST
        ):
            raise ParameterError(
                f"context: the period of a cyclic field must be above 0, and {_LARGEST:g} at most"
            )

    @property
    def width(self) -> int:
        """Number of columns, which is two."""
        return 2

    def clean(self, value: Any, clock: Clock) -> float | None:
        """Check a number, and return it as a float.

        Parameters
        ----------
        value : object
            A value of a context.
        clock : Clock
            The agent's clock, which reads moments.

        Returns
        -------
        float or None
            The number; None if it is NaN.

        Raises
        ------
        FieldError
            If the value is not of this kind.
        """
        return finite_number(value)

    def encode(self, value: float, at: float, state: FieldState, clock: Clock) -> list[float]:
        """Encode a number as the sine and cosine of its angle.

        Parameters
        ----------
        value : float
            A result of `clean` that is not missing.
        at : float
            Moment of the decision in seconds since 1970.
        state : list
            What the field has seen so far; it is updated in place.
        clock : Clock
            The agent's clock, which knows the time zone.

        Returns
        -------
        list of float
            Two numbers.
        """
        angle = math.tau * (value % self.period) / self.period
        return [math.sin(angle), math.cos(angle)]


@dataclass(frozen=True)
class Timestamp(Field):
    """A moment, encoded as its age, its time of day and its weekday.

    The age at the decision is a z-score of the logarithm (base 2) of days.

    Examples
    --------
    >>> Timestamp().width
    5
    """

    @property
    def width(self) -> int:
        """Number of columns, which is five."""
        return 5

    def fresh(self) -> FieldState:
        """Return the state before any value was seen, as that of a `Number`."""
        return Number().fresh()

    def clean(self, value: Any, clock: Clock) -> float:
        """Check a moment, and return it in seconds.

        Parameters
        ----------
        value : object
            A value of a context.
        clock : Clock
            The agent's clock, which reads moments.

        Returns
        -------
        float
            Seconds since 1970.

        Raises
        ------
        FieldError
            If the value is not of this kind.
        """
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        try:
            return clock.read(value)
        except Exception:
            raise FieldError(
                f"must be a datetime, seconds since 1970 or ISO text, got {value!r}"
            ) from None

    def encode(self, value: float, at: float, state: FieldState, clock: Clock) -> list[float]:
        """Encode a moment as its age, its time of day and its weekday.

        Parameters
        ----------
        value : float
            A result of `clean` that is not missing.
        at : float
            Moment of the decision in seconds since 1970.
        state : list
            What the field has seen so far; it is updated in place.
        clock : Clock
            The agent's clock, which knows the time zone.

        Returns
        -------
        list of float
            Five numbers.
        """
        days = (at - value) / 86_400.0
        age = math.copysign(math.log2(1.0 + abs(days)), days)
        day = clock.calendar(value)
        return [standardised(age, state), day[0], day[1], day[4], day[5]]


@dataclass(frozen=True)
class Tags(Field):
    """A list of texts in any number and order, multi-hot encoded with length 1.

    Parameters
    ----------
    values : tuple of str, default: ()
        Listed tags, with a column each.
    unseen : int, optional
        Number of columns for other tags. By default it is 0 with `values`, else 8.
    private : bool, default: False
        Whether only salted hashes of the tags are stored.

    Raises
    ------
    ParameterError
        If private tags list values.

    Examples
    --------
    >>> Tags(("new", "sale")).width
    2
    """

    values: tuple[str, ...] = ()
    unseen: int | None = None
    private: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(text_of(value) for value in self.values))
        object.__setattr__(self, "unseen", buckets(self.unseen, 0 if self.values else 8))
        if self.private and self.values:
            raise ParameterError("context: private tags cannot list their values")

    @property
    def width(self) -> int:
        """Number of columns: one for each listed tag and each unseen one."""
        return len(self.values) + (self.unseen or 0)

    def fresh(self) -> FieldState:
        """Return the state before any value was seen, as that of a `Category`."""
        return [[], 0]

    def clean(self, value: Any, clock: Clock) -> list[str]:
        """Check a list of texts, and return it sorted.

        Parameters
        ----------
        value : object
            A value of a context.
        clock : Clock
            The agent's clock, which reads moments.

        Returns
        -------
        list of str
            The distinct texts.

        Raises
        ------
        FieldError
            If the value is not of this kind.
        """
        if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset | np.ndarray):
            raise FieldError(f"must be a list of texts, got {value!r}")
        if len(value) > _MOST_TAGS:
            raise FieldError(f"has {len(value)} tags; at most {_MOST_TAGS} are taken")
        return sorted({text_of(item) for item in value})

    def encode(self, value: list[str], at: float, state: FieldState, clock: Clock) -> list[float]:
        """Encode tags as equal numbers in their columns.

        Parameters
        ----------
        value : list of str
            A result of `clean` that is not missing.
        at : float
            Moment of the decision in seconds since 1970.
        state : list
            What the field has seen so far; it is updated in place.
        clock : Clock
            The agent's clock, which knows the time zone.

        Returns
        -------
        list of float
            The row, which has length 1 unless it is 0.
        """
        row = [0.0] * self.width
        for tag in value:
            column = column_of(tag, self.values, self.unseen or 0, state)
            if column is not None:
                row[column] = 1.0
        length = math.sqrt(sum(row))
        return [x / length for x in row] if length else row


KINDS: dict[str, type[Field]] = {
    kind.__name__: kind for kind in (Number, Category, Boolean, Cyclic, Timestamp, Tags)
}


def field_of(spec: Any, name: str) -> Field:
    """A field from what a user may write: a type, a list of values, a field, or its JSON.

    >>> field_of(float, "age"), field_of(["phone", "desktop"], "device").width
    (Number(flag=False), 1)
    """
    if isinstance(spec, Field):
        return spec
    if isinstance(spec, dict) and str(spec.get("kind")) in KINDS:
        values = {key: value for key, value in spec.items() if key != "kind"}
        try:
            return KINDS[str(spec["kind"])](**values)
        except (TypeError, FieldError) as error:
            raise ParameterError(
                f"context: field '{name}' cannot be made of {spec!r} ({error})"
            ) from None
    by_type = {
        float: Number,
        int: Number,
        str: Category,
        bool: Boolean,
        datetime: Timestamp,
        date: Timestamp,
    }
    if isinstance(spec, type) and spec in by_type:
        default: Field = by_type[spec]()
        return default
    if spec is list:
        return Tags()
    if isinstance(spec, list | tuple | set | frozenset) and spec:
        try:
            return Category(tuple(sorted(spec) if isinstance(spec, set | frozenset) else spec))
        except FieldError as error:
            raise ParameterError(f"context: field '{name}' {error}") from None
    raise ParameterError(
        f"context: field '{name}' must be float, str, bool, list, datetime, a list of values "
        f"or one of tidepull.fields ({', '.join(KINDS)}), got {spec!r}"
    )


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN of any kind, or pandas' NA and NaT."""
    if type(value) in _PLAIN:
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, float | datetime | np.floating | np.datetime64):
        return bool(value != value)
    return value is None or type(value).__name__ == "NAType"


def finite_number(value: Any) -> float | None:
    """A float of a sensible size, None for NaN."""
    if type(value) is float and -_LARGEST <= value <= _LARGEST:
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | Decimal | np.number
    ):
        raise FieldError(f"must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isnan(number):
        return None
    if abs(number) > _LARGEST:
        raise FieldError(f"must be at most {_LARGEST:g} in size, got {number:g}")
    return number


def text_of(value: Any) -> str:
    """Text, or a number or boolean as text."""
    if type(value) is str and len(value) <= _LONGEST_TEXT and value.isascii():
        return value
    if not isinstance(value, str):
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, str | bool | int | float | Decimal | UUID):
            raise FieldError(f"must be text, got {value!r}")
    text = str(value)
    if len(text) > _LONGEST_TEXT:
        raise FieldError(
            f"is a string of {len(text):,} characters; at most {_LONGEST_TEXT:,} are taken"
        )
    if not is_unicode(text):
        raise FieldError(f"must be Unicode, got {shown(text)}")
    return text


def buckets(unseen: int | None, usual: int) -> int:
    """How many columns unseen values get."""
    if unseen is None:
        return usual
    if isinstance(unseen, bool) or not isinstance(unseen, int) or not 0 <= unseen <= 256:
        raise ParameterError(
            f"context: unseen must be a whole number from 0 to 256, got {unseen!r}"
        )
    return unseen


def column_of(value: str, known: tuple[str, ...], unseen: int, state: FieldState) -> int | None:
    """The column of a text: its own, a free one which it keeps, or the one that its hash says;
    None: nowhere."""
    if value in known:
        return known.index(value)
    taken: list[str] = state[0]
    if value in taken:
        return len(known) + taken.index(value)
    if len(taken) < unseen:
        taken.append(value)
        return len(known) + len(taken) - 1
    state[1] += 1
    if not unseen:
        return None
    return (
        len(known)
        + int.from_bytes(blake2b(value.encode(), digest_size=8).digest(), "little") % unseen
    )


def standardised(value: float, state: FieldState) -> float:
    """(value - mean) / spread, the value itself counted in; `state` is as `Number.fresh` has it."""
    count, mean, square, outside = state
    count = count + 1 if count < REMEMBERED else REMEMBERED
    share, away = 1.0 / count, value - mean
    mean += share * away
    square += share * (away * (value - mean) - square)
    state[:3] = count, mean, square
    spread = math.sqrt(square) if square > 0.0 else 0.0
    if spread <= 1e-9 * abs(mean):
        return 0.0
    z = (value - mean) / spread
    near = -FARTHEST < z < FARTHEST
    state[3] = outside + 0.01 * ((not near) - outside)
    return float(z) if near else math.copysign(FARTHEST, z)
