"""Handlers of requests, one file for each part of the interface."""

from __future__ import annotations

from tidepull.service import personalizer
from tidepull.service.handlers import agents, comparison, decisions, insight, reasons, system
from tidepull.service.operations import Operation

OPERATIONS: list[Operation] = [
    *decisions.OPERATIONS,
    *personalizer.OPERATIONS,
    *agents.OPERATIONS,
    *insight.OPERATIONS,
    *comparison.OPERATIONS,
    *reasons.OPERATIONS,
    *system.OPERATIONS,
]
"""All operations, the most frequent first: the router tries them in this order."""
