"""Kernels: functions that run in Python until they are compiled.

An *exact* kernel gives the same bits in Python and compiled: sums in the order in which they are
written, every operation rounded by itself, functions of `math` (not `hypot` and `lgamma`, which
numba has of its own, and `math.pow` instead of `**`). So it runs in Python at first, and the switch
to compiled code (`compiler.py`) may come at any moment. A kernel that is not exact waits for its
compiler.

Numba is imported when the first kernel is loaded or compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np

from tidepull._internal import compiler
from tidepull._internal.compiler import NotCompiledError

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[Kernel] = []
"""All that were defined."""


def kernel(
    *,
    exact: bool = True,
    inline: bool = False,
    needs: str = "",
    until_compiled: Callable[..., Any] | None = None,
    **options: Any,
) -> Callable[[F], F]:
    """Return a decorator that makes a function a kernel.

    Parameters
    ----------
    exact : bool, default: True
        Whether Python and compiled code agree in every bit.
    inline : bool, default: False
        Whether only other kernels call it; it becomes a part of them.
    needs : str, optional
        Module with the extensions of numba that its compilation needs.
    until_compiled : callable, optional
        A quicker function with the same bits, such as one of NumPy, which runs until then.
    **options
        Those of `numba.njit`.

    Examples
    --------
    >>> @kernel(nogil=True)
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    if inline:
        # A call that is not inlined would copy the headers of up to twenty arrays, and one that
        # counts references (`_nrt`, which only functions that allocate something need) spends most
        # of its time on taking and giving them back.
        options |= {"forceinline": True, "_nrt": False}

    def decorate(function: F) -> F:
        compiled = Kernel(function, options, exact, needs)
        compiled.until_compiled = until_compiled or function
        compiled.inline = inline
        if inline:
            compiled._run = function
        KERNELS.append(compiled)
        return cast(F, compiled)

    return decorate


class Kernel:
    """A function that runs in Python until `switch`; the parameters are those of `kernel`."""

    inline = False
    until_compiled: Callable[..., Any]

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], exact: bool, needs: str
    ) -> None:
        functools.update_wrapper(self, function)
        self.name = f"{function.__module__.removeprefix('tidepull.')}.{function.__name__}"
        self.py_func, self.exact = function, exact
        self._options, self._needs = options, needs
        self._run: Callable[..., Any] = self._first_call

    def __call__(self, *args: Any) -> Any:
        """Run it, compiled if it can be."""
        try:
            return self._run(*args)
        except NotCompiledError:  # nothing has been done yet
            return self._in_python(*args)

    def __deepcopy__(self, memo: Any) -> Kernel:
        """A network that is copied has the same kernels."""
        return self

    def _in_python(self, *args: Any) -> Any:
        with np.errstate(all="ignore"):  # as compiled code
            return self.until_compiled(*args)

    def _first_call(self, *args: Any) -> Any:
        if self.exact:
            self._run = self._in_python
            compiler.adopt(self, args)
        else:
            compiler.wait()
            self.switch()
        return self._run(*args)

    def load(self, args: tuple[Any, ...]) -> None:
        """Load what is on disk for a call with such arguments."""
        typeof = self.dispatcher.typeof_pyval
        with suppress(NotCompiledError):
            self.dispatcher.compile(
                tuple(a.numba_type() if hasattr(a, "numba_type") else typeof(a) for a in args)
            )

    def forget(self) -> None:
        """Begin with the next call as with the first."""
        self._run = self._first_call

    def switch(self) -> None:
        """Run compiled from now on."""
        self._run = self.dispatcher

    @property
    def is_on_disk(self) -> bool:
        """Whether it was compiled for this processor, for arguments of some types; a kernel of
        another package cannot be."""
        signatures = getattr(self.dispatcher._cache, "signatures", None)
        return signatures is None or bool(signatures(self.dispatcher.targetctx))

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for in other kernels."""
        return self.dispatcher._numba_type_

    @cached_property
    def dispatcher(self) -> Any:
        """The compiled function: it loads from disk, and compiles only where that is allowed."""
        import numba

        from tidepull._internal.kernel_cache import KernelCache

        if self._needs:
            import_module(self._needs)
        dispatcher = numba.njit(**self._options)(self.py_func)
        if dispatcher is not self.py_func:  # numba is not switched off
            with suppress(RuntimeError):  # a function without a file
                dispatcher._cache = KernelCache(self.py_func)
            self._guard(dispatcher)
        return dispatcher

    def _guard(self, dispatcher: Any) -> None:
        """A call that finds nothing on disk raises `NotCompiledError`, unless this is not exact."""
        compile, for_args = dispatcher._compiler.compile, dispatcher._compile_for_args

        def compile_if_allowed(args: Any, return_type: Any) -> Any:
            if not compiler.is_allowed():
                raise NotCompiledError(self.name)
            return compile(args, return_type)

        def load_for(*args: Any, **kws: Any) -> Any:
            if self.exact and compiler.is_busy():  # numba's lock may be held for seconds
                raise NotCompiledError(self.name)
            try:
                return for_args(*args, **kws)
            except NotCompiledError:
                signature = tuple(map(dispatcher.typeof_pyval, args))
                if self.exact:
                    compiler.put(dispatcher, signature)
                    raise
                compiler.say(f"compiling {self.name}")
                with compiler.allowed():
                    return dispatcher.compile(signature)

        dispatcher._compiler.compile = compile_if_allowed
        dispatcher._compile_for_args = load_for
