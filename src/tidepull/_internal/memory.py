"""Is there room? Asked before large arrays are made: a system may promise memory that it has not got."""

from __future__ import annotations

import os
from pathlib import Path

from tidepull.errors import ParameterError


def require_memory(n_bytes: int, what: str) -> None:
    """Refuse what would not fit into the memory that is free now, in one sentence."""
    free = free_memory()
    if n_bytes > free:
        raise ParameterError(f"{what} would need {_size(n_bytes)} of memory; {_size(free)} are free here")


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
