"""Arrays that begin at a cache line: rows that straddle two lines cost a third of a kernel's speed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidepull.types import FloatArray

LINE = 64


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> FloatArray:
    """An array of zeros whose first number lies at the beginning of a cache line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    block = np.zeros(size + LINE, np.uint8)
    start = -block.ctypes.data % LINE
    array: FloatArray = block[start : start + size].view(dtype).reshape(shape)
    return array
