"""What the service can be asked, one file for each kind of question."""

from __future__ import annotations

from tidepull.service.operation import Operation
from tidepull.service.routes import agents, arms, decisions, health, insight, learning, personalizer, rewards

OPERATIONS: list[Operation] = [
    *decisions.OPERATIONS,
    *rewards.OPERATIONS,
    *personalizer.OPERATIONS,
    *agents.OPERATIONS,
    *arms.OPERATIONS,
    *learning.OPERATIONS,
    *insight.OPERATIONS,
    *health.OPERATIONS,
]
"""Everything, the most frequent first: they are looked through in this order."""
