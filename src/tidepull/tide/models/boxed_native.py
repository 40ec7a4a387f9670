"""Boxed arguments of compiled kernels; imported when kernels are compiled."""

from __future__ import annotations

from typing import Any

from numba import typeof
from numba.core import types
from numba.experimental import structref

from tidepull._internal.compiler import NotCompiledError
from tidepull.tide.models.algebra import compiled
from tidepull.tide.models.boxed import PythonBox


@structref.register
class _BoxType(types.StructRef):  # type: ignore[name-defined]
    """A tuple of any arrays."""


class NativeBox(structref.StructRefProxy):
    """The argument of a compiled kernel. Kernels in Python can read its `arrays`, too."""


structref.define_constructor(NativeBox, _BoxType, ["arrays"])
structref.define_boxing(_BoxType, NativeBox)


def _new_box(arrays: Any) -> Any:
    return NativeBox(arrays)


_native: Any = compiled(_new_box)


def box(arrays: Any) -> Any:
    """Box a tuple for kernels; in Python where nothing is compiled for such a tuple."""
    try:
        boxed = _native.dispatcher(arrays)
    except NotCompiledError:
        return PythonBox(arrays)
    boxed.arrays = arrays
    return boxed


def type_of(arrays: Any) -> Any:
    """The type of a `NativeBox` of such a tuple."""
    return _BoxType([("arrays", typeof(arrays))])
