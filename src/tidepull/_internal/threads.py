"""One BLAS thread: several workers with a thread per core each run many times slower than one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import threadpoolctl


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the block; also makes sums come out in one order."""
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> threadpoolctl.ThreadpoolController:  # noqa: ARG001
    # Looking for loaded libraries takes milliseconds; only an import can add one.
    return threadpoolctl.ThreadpoolController()
