"""The same small stores as those of the analysis."""

from __future__ import annotations

from tests.analysis.conftest import broken_store, store

__all__ = ["broken_store", "store"]
