"""A tuple of arrays that kernels find ready.

With every call of a kernel Python takes a tuple of twenty arrays apart, one by one: as long as many
a kernel takes. Here it is done once. What is written into the arrays is seen by both sides.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.experimental import structref

from tidepull.tide.models.algebra import compiled


@structref.register
class _HeldType(types.StructRef):  # type: ignore[name-defined]
    """A tuple, whatever is in it."""


class HeldArrays(structref.StructRefProxy):
    """What kernels are given; they read its `arrays`."""


structref.define_constructor(HeldArrays, _HeldType, ["arrays"])
structref.define_boxing(_HeldType, HeldArrays)


@compiled
def _hold(arrays: Any) -> Any:
    return HeldArrays(arrays)


class Ready:
    """Holds the tuple that was asked for last."""

    def __init__(self) -> None:
        self._of: Any = None
        self._held: Any = None

    def __call__(self, arrays: Any) -> Any:
        """The tuple as kernels take it; anew when it is another."""
        if arrays is not self._of:
            self._of, self._held = arrays, _hold(arrays)
        return self._held

    def __deepcopy__(self, memo: Any) -> Ready:
        """A copy has arrays of its own."""
        return Ready()
