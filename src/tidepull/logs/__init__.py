"""Logs of decisions: reading them, and what another policy would have earned on them."""

from __future__ import annotations

from tidepull.logs.log import Log
from tidepull.logs.reading import read

__all__ = ["Log", "read"]
