"""Compiled kernels on disk, known by all their sources.

Numba's own cache looks at the file of a kernel alone, so a kernel that was inlined from another
file stays as it was. Here the stamp of a kernel is a digest of the names and contents of its file
and of all files of this package that it imports, and theirs (without `_internal`, where decorators
are). Functions of other packages are not
affected.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import llvmlite.binding
from numba.core import caching, environment
from numba.core.codegen import JITCodeLibrary
from numba.core.runtime import _nrt_python

from tidepull._internal import compiler

_ROOT = Path(__file__).parents[1]


class _KernelLocator(caching._CacheLocator):  # type: ignore[misc]
    """Where numba looks for one kernel, and the stamp by which it knows that the kernel is
    fresh."""

    def __init__(self, function: Callable[..., Any], source: Path) -> None:
        self._line, self._source = function.__code__.co_firstlineno, source
        self.places = [
            root / self.get_suitable_cache_subpath(str(source)) for root in compiler.places()
        ]
        self.place = self.places[0]

    def get_cache_path(self) -> str:
        return str(self.place)

    def get_source_stamp(self) -> str:
        return compiler.source_digest(self._source)

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _KernelLocator | None:
        return cls(function, Path(file)) if Path(file).is_relative_to(_ROOT) else None


class _LoadedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A kernel from disk. The bitcode that other kernels are compiled with, some megabytes in all,
    stays there until one is compiled."""

    read_bitcode: Callable[[], bytes]

    @property
    def _shared_module(self) -> Any:
        return llvmlite.binding.parse_bitcode(self.read_bitcode())


class _KernelFiles(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_KernelLocator,)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        (name, kind, (machine_code, _)), described, *rest = payload
        # Numba takes the names of functions from the bitcode; these are the ones that it looks for.
        target_context.codegen()._engine._defined_symbols |= {
            described.llvm_func_name,
            described.llvm_cpython_wrapper_name,
            described.llvm_cfunc_wrapper_name,
        }
        library = name, kind, (machine_code, _no_bitcode())
        result = super().rebuild(target_context, (library, described, *rest))
        del result.library._shared_module
        result.library.__class__ = _LoadedLibrary
        return result


def _environment(module: str | None, constants: list[Any], name: str) -> Any:
    """What a function of a kernel has in Python. Its globals serve code that calls Python alone, so
    numba's own modules, 20 MB with what they import, are not imported for them."""
    if (known := environment.lookup_environment(name)) is not None:
        return known
    fresh = environment.Environment(vars(sys.modules[module]) if module in sys.modules else {})
    fresh.consts[:], fresh.env_name = constants, name
    environment.Environment._memo[name] = fresh
    return fresh


environment._rebuild_env = _environment  # pickles of kernels name it


@cache
def _no_bitcode() -> bytes:
    bitcode: bytes = llvmlite.binding.parse_assembly("").as_bitcode()
    return bitcode


class KernelIndex(caching.IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index of one kernel; one that cannot be read is empty, and written anew."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except OSError:
            raise
        except Exception:  # it is damaged, or names a class that an earlier release had
            return {}


def _bitcode(file: KernelIndex, key: Any) -> bytes:
    (_, _, (_, bitcode)), *_ = file.load(key)
    return bitcode  # type: ignore[no-any-return]


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's cache of a function, in several places: read from all, written to the first that can
    be written."""

    _impl_class = _KernelFiles

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        # Of what numba does first (`target_context.refresh()`), kernels need the addresses of its
        # runtime alone; the rest is for compilers, and takes 90 MB.
        for name, address in _nrt_python.c_helpers.items():
            llvmlite.binding.add_symbol(name if name[0] == "_" else f"NRT_{name}", address)
        for _ in self._each_place():
            with suppress(OSError), self._guard_against_spurious_io_errors():
                if (data := self._load_overload(signature, target_context)) is not None:
                    key = self._index_key(signature, target_context.codegen())
                    data.library.read_bitcode = partial(_bitcode, self._cache_file, key)
                    return data
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        for _ in self._each_place():
            with suppress(OSError):
                return super().save_overload(signature, data)  # type: ignore[no-any-return]
        return None

    def signatures(self, target_context: Any) -> list[Any]:
        """Types of arguments for which there is a compiled kernel."""
        types, target = [], target_context.codegen().magic_tuple()
        for _ in self._each_place():
            with suppress(OSError):
                types += [key[0] for key in self._cache_file._load_index() if key[1] == target]
        return types

    def _each_place(self) -> Iterator[None]:
        locator, name = self._impl.locator, self._impl.filename_base
        stamp = locator.get_source_stamp()
        for place in locator.places:
            locator.place = place
            self._cache_path = str(place)
            self._cache_file = KernelIndex(str(place), name, stamp)
            yield
