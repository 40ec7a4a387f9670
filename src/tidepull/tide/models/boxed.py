"""Boxed arguments of kernels: a tuple of arrays, or a generator, that is unpacked once.

Python unpacks a tuple of twenty arrays at every call of a compiled kernel, which takes as long as
many a kernel, and a generator takes 7 us. A box is unpacked once. Writes into the arrays and draws
from the generator are seen by both sides.
"""

from __future__ import annotations

from typing import Any

from tidepull._internal import compiler


class PythonBox:
    """The argument of a kernel that runs in Python, which reads its `arrays`."""

    def __init__(self, arrays: Any) -> None:
        self.arrays = arrays

    def numba_type(self) -> Any:
        """The type of the compiled counterpart."""
        from tidepull.tide.models.boxed_native import type_of

        return type_of(self.arrays)

    @property
    def _numba_type_(self) -> Any:
        raise compiler.NotCompiledError("boxed for Python")


class BoxCache:
    """Keeps the box of the latest tuple."""

    def __init__(self) -> None:
        self._of: Any = None
        self._boxed: Any = None

    def __call__(self, arrays: Any) -> Any:
        """The box of a tuple; a new one for another tuple, or once kernels are compiled."""
        if arrays is not self._of or (isinstance(self._boxed, PythonBox) and compiler.is_ready()):
            self._of, self._boxed = arrays, self._make(arrays)
        return self._boxed

    def _make(self, arrays: Any) -> Any:
        if not compiler.is_ready():
            return PythonBox(arrays)
        from tidepull.tide.models.boxed_native import box

        return box(arrays)

    def __deepcopy__(self, memo: Any) -> BoxCache:
        """A copy has arrays of its own."""
        return BoxCache()
