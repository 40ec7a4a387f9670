"""Long work in slices: a generator that yields None between pieces of bounded cost and returns its result."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Slices: TypeAlias = Generator[None, None, T]

STEPS = 400_000
"""Inner steps of a slice (a round of a scan, a product of a replay): one to three milliseconds."""


def finished(work: Slices[T]) -> T:
    """All slices at once."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def pieces(count: int, steps_each: int) -> Iterator[tuple[int, int]]:
    """Ranges (start, stop) that cover `count` items of so many steps each, none longer than a slice."""
    size = max(1, STEPS // max(steps_each, 1))
    return ((start, min(start + size, count)) for start in range(0, count, size))
