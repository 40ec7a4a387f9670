"""What the machine has: a cluster of Ray, one BLAS thread for each worker, and the memory that is
free.

Several workers with a BLAS thread per core each run many times slower than one. Memory is checked
before large arrays are made, since a system may promise memory that it has not got.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import threadpoolctl

from tidepull._internal.extras import needs
from tidepull.errors import InputError, ParameterError

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def connected(
    address: str, what: str, environment: dict[str, Any] | None = None, **options: Any
) -> Any:
    """Ray, connected to the cluster at an address; `what` is to be done there, in the
    environment."""
    with needs(what, "cluster"):
        import ray
    _knock(address)
    try:
        ray.init(
            address=address,
            runtime_env={**(environment or {}), "env_vars": ONE_THREAD},
            log_to_driver=False,
            logging_level="error",
            **options,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_answer(address, str(error).strip().splitlines()[0]) from None
    return ray


def _knock(address: str) -> None:
    """Is anybody there? Ray itself would try for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError as error:
            raise _no_answer(address, str(error)) from None


def _no_answer(address: str, reason: str) -> InputError:
    return InputError(
        f"no Ray cluster answers at '{address}' ({reason}); start one: ray start --head"
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the block; also makes sums come out in one order."""
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> threadpoolctl.ThreadpoolController:  # noqa: ARG001
    # Looking for loaded libraries takes milliseconds; only an import can add one.
    return threadpoolctl.ThreadpoolController()


def require_memory(n_bytes: int, what: str) -> None:
    """Refuse what would not fit into the memory that is free now, in one sentence."""
    free = free_memory()
    if n_bytes > free:
        raise ParameterError(
            f"{what} would need {_size(n_bytes)} of memory; {_size(free)} are free here"
        )


def free_memory() -> int:
    """Bytes that can be had without swapping, or all there are where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _size(n_bytes: int) -> str:
    """`3.2 GB`; at least one of the largest unit below it."""
    value, units = float(n_bytes), ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:,.3g} {units[0]}" if value < 1000 else f"{value:,.0f} {units[0]}"
