"""Personalizer's ideas in an agent's words: actions are arms, free-form features one hashed field of the context.

The same for calls (`service/personalizer.py`) and for logs, so that what was logged teaches what is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tidepull.online.hashed import Hashed
from tidepull.protocols import HasDecisions

FIELD = "features"
"""The one field of the agent's contexts."""

MOST_ACTIONS = 1000
"""Actions that an agent ever gets to know."""

WAIT = 600.0
DEFAULTS: dict[str, Any] = {"reward_within": WAIT, "default_reward": 0.0, "again": "refuse"}
"""Personalizer's own: ten minutes, then 0; the earliest reward counts."""

SHARED = "FromUrl."
"""Where Personalizer's logs keep what came as `contextFeatures`."""


def settings(actions: Iterable[str], **chosen: Any) -> dict[str, Any]:
    """What an agent behind this interface is made of."""
    return {"arms": list(actions), "context": {FIELD: Hashed()}, **DEFAULTS, **chosen}


def context_of(features: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """The context of a decision: all objects in one; what has a name twice is a list."""
    merged: dict[str, list[Any]] = {}
    for part in features or ():
        for name, value in part.items():
            merged.setdefault(name, []).append(value)
    return {FIELD: {name: found if len(found) > 1 else found[0] for name, found in merged.items()}}


def logged_context(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The context of a decision from a log, as `context_of` would have had it."""
    return {FIELD: {name.removeprefix(SHARED): value for name, value in flat.items()}}


class Translated:
    """A log of Personalizer's (DSJSON, read by `tidepull.logs`) for an agent with such a field."""

    def __init__(self, log: HasDecisions) -> None:
        self._log = log

    def decisions(self) -> Iterator[Mapping[str, Any]]:
        """One after the other, contexts as calls have them."""
        for row in self._log.decisions():
            yield {**row, "context": logged_context(row.get("context", {}))}
