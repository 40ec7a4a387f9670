"""Long work in small pieces: a generator that yields what each piece cost, in steps, and returns
its result.

Whoever runs it stops after `STEPS` steps and goes on later: that is a slice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Pieces: TypeAlias = Generator[int, None, T]

STEPS = 250_000
"""Steps of a slice (a round of a scan, a product of a replay): one to three milliseconds on one
core."""


def finished(work: Pieces[T]) -> T:
    """All of it at once."""
    return at_once(work)[0]


def at_once(work: Pieces[T]) -> tuple[T, int]:
    """All of it at once, and the steps that it took."""
    spent = 0
    while True:
        try:
            spent += next(work)
        except StopIteration as end:
            return end.value, spent


def ranges(count: int, steps_each: int) -> Iterator[tuple[int, int, int]]:
    """Ranges (start, stop) that cover `count` items of so many steps each, none longer than a
    slice; its steps."""
    size = max(1, STEPS // max(steps_each, 1))
    for start in range(0, count, size):
        stop = min(start + size, count)
        yield start, stop, (stop - start) * steps_each
