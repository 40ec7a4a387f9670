"""The learners; importing this package registers their ids."""

from __future__ import annotations

from tidepull.registry import policies

__all__ = ["policies"]
