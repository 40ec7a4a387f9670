"""A tuple of arrays that kernels find ready.

With every call of a compiled kernel Python takes a tuple of twenty arrays apart, one by one: as
long as many a kernel takes. Here it is done once. What is written into the arrays is seen by both
sides.
"""

from __future__ import annotations

from typing import Any

from tidepull._internal import compiler


class HeldArrays:
    """What kernels are given while they run in Python; they read its `arrays`."""

    def __init__(self, arrays: Any) -> None:
        self.arrays = arrays

    def numba_type(self) -> Any:
        """The type of the compiled counterpart."""
        from tidepull.tide.models.held_native import type_of

        return type_of(self.arrays)

    @property
    def _numba_type_(self) -> Any:
        raise compiler.NotCompiledError("held for Python")


class Ready:
    """Holds the tuple that was asked for last."""

    def __init__(self) -> None:
        self._of: Any = None
        self._held: Any = None

    def __call__(self, arrays: Any) -> Any:
        """The tuple as kernels take it; anew when it is another, or kernels are compiled."""
        if arrays is not self._of or (isinstance(self._held, HeldArrays) and compiler.is_ready()):
            self._of, self._held = arrays, self._hold(arrays)
        return self._held

    def _hold(self, arrays: Any) -> Any:
        if not compiler.is_ready():
            return HeldArrays(arrays)
        from tidepull.tide.models.held_native import hold

        return hold(arrays)

    def __deepcopy__(self, memo: Any) -> Ready:
        """A copy has arrays of its own."""
        return Ready()
