"""Large arrays on small pages of memory.

Numpy asks for huge pages where arrays are large. The first touch of one then fills two megabytes at
once, which may take milliseconds, and unused memory counts as used. The bank over-allocates for spare
slots, and is filled in slices: with small pages each slice pays for the memory that it touches.
Where megabytes are touched with every reward, kernels are a little slower for it
(`research/lab/performance_tide.md`).
"""

from __future__ import annotations

import math
import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

_LARGE = 1 << 22
"""Bytes from which on numpy asks for huge pages."""


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> np.ndarray[Any, Any]:
    """An array of zeros whose memory is allocated when it is touched, a few kilobytes at a time."""
    size = math.prod(shape) if isinstance(shape, tuple) else shape
    needed = size * np.dtype(dtype).itemsize
    if sys.platform != "linux" or needed < _LARGE:
        return np.zeros(shape, dtype)
    # Private: a process that is forked must not write into its parent's arrays.
    pages = mmap.mmap(-1, needed, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.ndarray(shape, dtype, pages)
