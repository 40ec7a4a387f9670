"""Compiled kernels: one decorator for all of them, and a cache on disk that notices every change of
their sources.

Numba's own cache looks at the file of a kernel alone, so a kernel that was inlined from another
file stays as it was. Here the stamp of a kernel is a digest of the names and contents of its file
and of all files of this package that it imports, and theirs. Kernels are read from all of these
places, and written to the first that can be written:

    TIDEPULL_CACHE, NUMBA_CACHE_DIR, __pycache__ beside the source, the user's cache directory

So an installation that cannot be written uses the kernels that lie in it. A kernel that is in none
of these places, where none can be written, is compiled in every process. Functions of other
packages are not affected.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import caching, event

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = "tidepull"
_ROOT = Path(__file__).parents[1]


def kernel(**options: Any) -> Callable[[F], F]:
    """Return a decorator that compiles a function with numba (`options` are those of `njit`) and
    keeps it on disk.

    >>> @kernel(nogil=True)
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """

    def decorate(function: F) -> F:
        compiled = numba.njit(**options)(function)
        # Where numba is switched off, it is the function itself.
        if hasattr(compiled, "enable_caching"):
            with suppress(RuntimeError):  # a function without a file
                compiled._cache = _KernelCache(function)
        return compiled  # type: ignore[no-any-return]

    return decorate


@cache
def source_digest(path: Path, root: Path = _ROOT) -> str:
    """Return a digest of a source file and of all files below `root` that it imports, directly or
    not."""
    digest, waiting, seen = blake2b(digest_size=16), [path.resolve()], set()
    while waiting:
        if (file := waiting.pop()) not in seen:
            seen.add(file)
            waiting += _imported(file, root.resolve())
    for file in sorted(seen):
        digest.update(str(file.relative_to(root.resolve())).encode() + b"\0" + _content(file))
    return digest.hexdigest()


@cache
def _content(file: Path) -> bytes:
    return file.read_bytes()


@cache
def _imported(file: Path, root: Path) -> list[Path]:
    """The files of the package that a file imports by `from` (the only way in this package)."""
    files = []
    for node in ast.walk(ast.parse(_content(file))):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == _PACKAGE
        ):
            module = root.joinpath(*node.module.split(".")[1:])
            names = [module / alias.name for alias in node.names]
            files += [
                p.with_suffix(".py") for p in (module, *names) if p.with_suffix(".py").is_file()
            ]
    return files


def _places(source: Path) -> Iterator[Path]:
    """Directories for the kernels of a file, the preferred one first."""
    inside = caching._CacheLocator.get_suitable_cache_subpath(str(source))
    for named in (os.environ.get("TIDEPULL_CACHE"), numba.config.CACHE_DIR):
        if named:
            yield Path(named) / inside
    yield source.parent / "__pycache__"
    with suppress(RuntimeError):  # a user without a home
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        yield home / _PACKAGE / "kernels" / inside


class _KernelLocator(caching._CacheLocator):  # type: ignore[misc]
    """Where numba looks for one kernel, and the stamp by which it knows that the kernel is
    fresh."""

    def __init__(self, function: Callable[..., Any], source: Path) -> None:
        self._line, self._source = function.__code__.co_firstlineno, source
        self.places = list(_places(source))
        self.place = self.places[0]

    def get_cache_path(self) -> str:
        return str(self.place)

    def get_source_stamp(self) -> str:
        return source_digest(self._source)

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _KernelLocator | None:
        return cls(function, Path(file)) if Path(file).is_file() else None


class _KernelFiles(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_KernelLocator,)


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's cache of a function, in several places: read from all, written to the first that can
    be written."""

    _impl_class = _KernelFiles

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        for _ in self._each_place():
            with suppress(OSError):
                if (data := super().load_overload(signature, target_context)) is not None:
                    return data
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        for _ in self._each_place():
            with suppress(OSError):
                return super().save_overload(signature, data)  # type: ignore[no-any-return]
        return None

    def _each_place(self) -> Iterator[None]:
        locator, name = self._impl.locator, self._impl.filename_base
        stamp = locator.get_source_stamp()
        for place in locator.places:
            locator.place = place
            self._cache_path = str(place)
            self._cache_file = caching.IndexDataCacheFile(str(place), name, stamp)
            yield


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    """Calls back when numba begins to compile something that its cache does not hold."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self.seen = False

    def on_start(self, event: Any) -> None:
        if not self.seen:
            self.seen = True
            self._announce()

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def compiling(announce: Callable[[], None]) -> Iterator[_FirstCompilation]:
    """Call `announce` once if numba compiles anything inside the block."""
    listener = _FirstCompilation(announce)
    with event.install_listener("numba:compile", listener):
        yield listener
