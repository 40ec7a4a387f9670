"""Times as people say them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.4 hours`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} hours"
