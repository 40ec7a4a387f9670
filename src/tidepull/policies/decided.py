"""The round that an event belongs to, as a policy behind the guard sees it."""

from __future__ import annotations

from tidepull.errors import EventError
from tidepull.types import Event


def decided_round(event: Event) -> int:
    """The round that an event finishes. The guard always says it; an event that is a round of its own has the
    number that the next choice would have had."""
    if event.decided is None:
        raise EventError(
            "decided must say which round the event finishes; policies built from their id find it"
        )
    return event.decided
