"""Personalizer's ideas in an agent's words: actions are arms, free-form features one hashed field
of the context.

The same for calls (`service/personalizer.py`) and for logs, so that what was logged teaches what is
called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tidepull.agent.arms import room_for
from tidepull.agent.schema import FREE, Hashed
from tidepull.protocols import HasDecisions

FIELD = "features"
"""The one field of the agent's contexts."""

MOST_ACTIONS = 1000
"""Actions that an agent ever gets to know."""

WAIT = 600.0
DEFAULTS: dict[str, Any] = {"reward_within": WAIT, "default_reward": 0.0, "on_duplicate": "refuse"}
"""Personalizer's own: ten minutes, then 0; the earliest reward counts."""

SHARED = "FromUrl."
"""Where Personalizer's logs keep what came as `contextFeatures`."""


POLICY = "lin-ts", {"noise_std": 0.3, "regularisation": 1.0}
"""Who learns from features of actions: one model for all, so that a new action is known by what it
is like."""

ROOM = 64
"""Actions for which there is room from the start."""


def settings(
    actions: Mapping[str, Mapping[str, Any]] | Iterable[str], **chosen: Any
) -> dict[str, Any]:
    """What an agent behind this interface is made of: actions with their features, or their ids
    alone."""
    arguments: dict[str, Any] = {"context": {FIELD: Hashed()}, **DEFAULTS}
    if isinstance(actions, Mapping):
        arms = {action: {FREE: features} for action, features in actions.items()}
        arguments |= {"arms": arms, "policy": POLICY, "capacity": max(ROOM, room_for(len(arms)))}
    else:
        arguments["arms"] = list(actions)
    return {**arguments, **chosen}


def merged(features: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """All objects in one; what has a name twice is a list."""
    by_name: dict[str, list[Any]] = {}
    for part in features or ():
        for name, value in part.items():
            by_name.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in by_name.items()}


def context_of(features: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """The context of a decision."""
    return {FIELD: merged(features)}


def logged_context(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The context of a decision from a log, as `context_of` would have had it."""
    return {FIELD: {name.removeprefix(SHARED): value for name, value in flat.items()}}


class PersonalizerLog:
    """A log of Personalizer's (DSJSON, read by `tidepull.logs`) for an agent with such a field."""

    def __init__(self, log: HasDecisions) -> None:
        self._log = log

    def decisions(self) -> Iterator[Mapping[str, Any]]:
        """One after the other, contexts as calls have them."""
        for row in self._log.decisions():
            yield {**row, "context": logged_context(row.get("context", {}))}
