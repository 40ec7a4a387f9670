"""Held arrays as compiled kernels take them; imported when kernels are compiled."""

from __future__ import annotations

from typing import Any

from numba import typeof
from numba.core import types
from numba.experimental import structref

from tidepull._internal.compiler import NotCompiledError
from tidepull.tide.models.algebra import compiled
from tidepull.tide.models.held import HeldArrays


@structref.register
class _HeldType(types.StructRef):  # type: ignore[name-defined]
    """A tuple, whatever is in it."""


class NativeArrays(structref.StructRefProxy):
    """What compiled kernels are given. Kernels in Python can read its `arrays`, too."""


structref.define_constructor(NativeArrays, _HeldType, ["arrays"])
structref.define_boxing(_HeldType, NativeArrays)


def _native_arrays(arrays: Any) -> Any:
    return NativeArrays(arrays)


_native: Any = compiled(_native_arrays)


def hold(arrays: Any) -> Any:
    """A tuple for kernels: compiled, or in Python where nothing is compiled for such a tuple."""
    try:
        held = _native.dispatcher(arrays)
    except NotCompiledError:
        return HeldArrays(arrays)
    held.arrays = arrays
    return held


def type_of(arrays: Any) -> Any:
    """The type of `NativeArrays` that hold such a tuple."""
    return _HeldType([("arrays", typeof(arrays))])
