"""Memory for a bank that is filled piece by piece: small pages first, large ones when it has settled.

numpy asks the system for huge pages where an array is large. They make kernels a tenth quicker, but the first touch of
one fills two megabytes and may wait until the system has found them in one piece: 5 ms and more, in the middle of a
slice of upkeep. So a bank begins on small pages, and asks for huge ones when it is full; the system then exchanges
them in the background.
"""

from __future__ import annotations

import mmap

import numpy as np

from tidepull.hypotheses.slices import STEPS, Pieces
from tidepull.types import FloatArray

_LARGE = 1 << 22
"""Bytes from which on numpy asks for huge pages."""


def small_pages(count: int) -> FloatArray:
    """So many zeros."""
    if 8 * count < _LARGE:
        return np.zeros(count)
    return np.frombuffer(mmap.mmap(-1, 8 * count), np.float64)


def _mapped(array: FloatArray) -> mmap.mmap | None:
    """The memory of an array from `small_pages`; None where it is small, or a copy."""
    memory = array.base.obj if isinstance(array.base, memoryview) else None
    return memory if isinstance(memory, mmap.mmap) else None


def releasing(array: FloatArray) -> Pieces[None]:
    """Give the memory of an array that nobody reads any more back in slices: all at once takes milliseconds, too."""
    memory = _mapped(array)
    if memory is not None and hasattr(mmap, "MADV_DONTNEED"):
        for start in range(0, len(memory), _LARGE):
            memory.madvise(mmap.MADV_DONTNEED, start, min(_LARGE, len(memory) - start))
            yield STEPS // 2


def large_pages(array: FloatArray) -> None:
    """Ask for huge pages for an array from `small_pages`, where the system has such."""
    memory = _mapped(array)
    if memory is not None and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
