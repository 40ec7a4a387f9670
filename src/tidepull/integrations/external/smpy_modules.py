"""Single modules of SMPyBandits, without the rest of it.

Importing the package imports all of it, which prints, restyles matplotlib and silences numpy's warnings for the whole
process. Here its packages are stood in for by empty ones while a module is imported, `scipy.special.btdtri` by the
function that took its place, and everything is put back as it was; the modules stay known here alone.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy.special

_PACKAGE = "SMPyBandits"
_known: dict[str, ModuleType] = {}


@lru_cache
def smpy_module(name: str) -> Any:
    """One module of `SMPyBandits.Policies`."""
    with _alone(), _quiet(), _with_btdtri():
        return import_module(f"{_PACKAGE}.Policies.{name}")


@contextmanager
def _alone() -> Iterator[None]:
    before = _taken()
    if not _known:
        spec = find_spec(_PACKAGE)
        assert spec is not None
        assert spec.origin is not None
        root = Path(spec.origin).parent
        for name, folder in ((_PACKAGE, root), (f"{_PACKAGE}.Policies", root / "Policies")):
            _known[name] = ModuleType(name)
            _known[name].__path__ = [str(folder)]
    sys.modules.update(_known)
    try:
        yield
    finally:
        _known.update(_taken())
        sys.modules.update(before)


def _taken() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]
    return {name: sys.modules.pop(name) for name in names}


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _with_btdtri() -> Iterator[None]:
    special: Any = scipy.special
    if hasattr(special, "btdtri"):
        yield
        return
    special.btdtri = special.betaincinv
    try:
        yield
    finally:
        del special.btdtri
