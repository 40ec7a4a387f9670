"""One BLAS thread: several workers with a thread per core each run many times slower than one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import threadpoolctl


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the block; also makes sums come out in one order."""
    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        yield
