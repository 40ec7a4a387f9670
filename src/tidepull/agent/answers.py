"""What a decision tells its caller, in the same form from an agent and from a service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """An arm that was chosen. `propensity` is the exact chance that it had, given its group ("policy", "control",
    "warmup"); `at` is in seconds since 1970."""

    id: str
    arm: str
    propensity: float
    group: str
    at: float
