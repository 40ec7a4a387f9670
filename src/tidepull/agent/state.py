"""Where an agent stands, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidepull.agent.desk import Desk


@dataclass(frozen=True, slots=True)
class State:
    """`arms` are labels and whether each is retired; `latest` is when the last decision was made (seconds since 1970,
    None: there is none); `records` numbers the last line of the ledger, `saved` the one of the newest snapshot."""

    arms: list[tuple[str, bool]]
    context: dict[str, Any] | None
    frozen: bool
    warmup: bool
    decisions: int
    rewards: int
    latest: float | None
    records: int
    saved: int
    upkeep_pending: bool


def state_of(desk: Desk) -> State:
    """The state of the agent whose desk it is."""
    mind = desk.mind
    schema = mind.learning.schema
    return State(
        [(arm.label, arm.retired) for arm in mind.arms],
        None if schema is None else schema.plain(),
        mind.frozen,
        mind.learning.policy is None,
        mind.decisions,
        mind.rewards,
        mind.latest if mind.decisions else None,
        desk.ledger.last,
        desk.saved,
        mind.learning.pending,
    )
