"""What a decision tells its caller, in the same form from an agent and from a service."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Self, TypeAlias
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Decision:
    """An arm that an agent chose.

    Parameters
    ----------
    id : str
        Name of the decision, for its reward.
    arm : str
        Label of the chosen arm.
    propensity : float
        Exact probability with which the arm was chosen, given the group.
    group : str
        "policy", "control" (drawn uniformly, or the control arm), "warmup" (drawn uniformly while the schema is
        guessed) or "imported" (learnt from a log).
    at : datetime
        Moment of the decision, with a time zone: the agent's, or UTC from a service.
    timestamp : float
        The same moment in seconds since 1970, exactly as the ledger has it.

    Examples
    --------
    >>> import tidepull
    >>> agent = tidepull.Agent.memory(arms=["a", "b"], context={}, policy="random", seed=1)
    >>> decision = agent.choose(at="2026-07-01T12:00")
    >>> str(decision.at)
    '2026-07-01 12:00:00+00:00'
    >>> agent.reward(decision, 1.0)
    True
    """

    id: str
    arm: str
    propensity: float
    group: str
    at: datetime
    timestamp: float = field(repr=False)

    @classmethod
    def from_seconds(
        cls, id: str, arm: str, propensity: float, group: str, at: float, timezone: tzinfo = UTC
    ) -> Self:
        """A decision whose moment is given in seconds since 1970, as in HTTP."""
        return cls(id, arm, propensity, group, datetime.fromtimestamp(at, timezone), at)


DecisionId: TypeAlias = str | int | UUID | Decision
"""What names a decision: its id as text, whole number or UUID, or the decision itself."""


def id_of(given: Any) -> Any:
    """The id as text; what cannot be one is left for the check."""
    if isinstance(given, Decision):
        return given.id
    is_whole = isinstance(given, numbers.Integral) and not isinstance(given, bool)
    return str(given) if is_whole or isinstance(given, UUID) else given
