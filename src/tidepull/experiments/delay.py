"""How late rewards come: a number of rounds, a distribution, or your own function of the round."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tidepull.errors import ParameterError
from tidepull.random import Streams

Delay: TypeAlias = "int | str | Callable[[int], int | None]"
"""Rounds by which a reward is late (0: at once), a text that `parse` reads, or a function of the
round; None from the function means never."""

LateBy: TypeAlias = Callable[[int], "int | None"]

AT_ONCE = "0"
"""The text of no delay."""


@dataclass(frozen=True, slots=True)
class Geometric:
    """Late by a geometric number of rounds of the given mean; a share of the rewards is lost."""

    mean: float
    lost: float = 0.0

    def late_by(self, streams: Streams) -> LateBy:
        """The delays of a trial: the same for every policy under one seed."""
        rng = streams.generator("delay")

        def late(_: int) -> int | None:
            u, v = rng.random(2)
            # P(delay >= n) = (mean / (1 + mean))^n has the given mean
            falls = math.log(self.mean / (1 + self.mean)) if self.mean > 0 else -math.inf
            return None if u < self.lost else int(math.log(1 - v) / falls)

        return late


def parse(value: Any) -> int | Geometric:
    """`8`, `"8"`, or `"geometric:20"` (mean of 20 rounds), or `"geometric:20:0.05"` (5% are lost).

    >>> parse("geometric:20:0.05")
    Geometric(mean=20.0, lost=0.05)
    """
    text = str(value).strip()
    name, _, rest = text.partition(":")
    try:
        if isinstance(value, bool):
            raise ValueError
        if name != "geometric":
            rounds = int(text)
            if rounds < 0:
                raise ValueError
            return rounds
        mean, lost = ([float(part) for part in rest.split(":")] + [0.0])[:2]
        if rest.count(":") > 1 or not (0 <= mean < 1e9 and 0 <= lost < 1):
            raise ValueError
    except ValueError:
        raise ParameterError(
            f"delay must be a whole number of rounds that is not negative, 'geometric:MEAN' or "
            f"'geometric:MEAN:LOST' with LOST a share below 1, got {value!r}"
        ) from None
    return Geometric(mean, lost)


def delay_text(value: Any) -> str:
    """The one way to write a delay: `8`, `geometric:20:0.05`, or `0` for rewards that come at once.

    >>> delay_text("geometric:20.0:0")
    'geometric:20'
    """
    parsed = parse(value)
    if isinstance(parsed, int):
        return str(parsed)
    numbers = [parsed.mean, parsed.lost] if parsed.lost else [parsed.mean]
    if not any(numbers):
        return AT_ONCE
    return ":".join(["geometric", *(repr(n).removesuffix(".0") for n in numbers)])


def delay_slug(delay: str) -> str:
    """Of a delay's text, for ids and names of files: `delay-8`, or nothing where rewards come at
    once."""
    return "" if delay == AT_ONCE else f"delay-{delay.replace(':', '-')}"


def delay_words(delay: str) -> str:
    """Of a delay's text, for titles: `rewards 8 rounds late`; nothing where they come at once.

    >>> delay_words("geometric:20:0.05")
    'rewards 20 rounds late on average, 5% never come'
    """
    parsed = parse(delay)
    if parsed == 0:
        return ""
    if isinstance(parsed, int):
        return f"rewards {parsed:,} round{'s' if parsed > 1 else ''} late"
    lost = f", {100 * parsed.lost:g}% never come" if parsed.lost else ""
    return f"rewards {parsed.mean:g} rounds late on average{lost}"


def late_by(delay: Delay, streams: Streams) -> LateBy | None:
    """The delay of every round; None when all rewards come at once."""
    if callable(delay):
        return _checked(delay)
    parsed = parse(delay)
    if isinstance(parsed, Geometric):
        return parsed.late_by(streams)
    return None if parsed == 0 else lambda _: parsed


def _checked(delay: LateBy) -> LateBy:
    def late(t: int) -> int | None:
        value: Any = delay(t)
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if value is not None and not (whole and value >= 0):
            raise ParameterError(
                f"delay({t}) must be a whole number of rounds that is not negative, or None for "
                f"never, got {value!r}"
            )
        return None if value is None else int(value)

    return late
