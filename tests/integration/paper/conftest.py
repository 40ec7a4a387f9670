"""The same small stores as those of the analysis."""

from __future__ import annotations

from tests.unit.reporting.conftest import store

__all__ = ["store"]
