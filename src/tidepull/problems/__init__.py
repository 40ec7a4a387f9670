"""The worlds of the paper; importing this package registers their ids."""

from __future__ import annotations

from tidepull.registry import problems

__all__ = ["problems"]
