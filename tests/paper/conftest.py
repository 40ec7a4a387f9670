"""The same small stores as those of the analysis."""

from __future__ import annotations

from tests.analysis.conftest import store

__all__ = ["store"]
