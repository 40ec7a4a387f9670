"""A policy's own count of rounds, behind the guard."""

from __future__ import annotations

from tidepull.errors import EventError
from tidepull.types import Event


class Clock:
    """The number of the latest round; -1 before the first.

    A round begins with a choice, or with an event that is a round of its own (its number is the next one).
    """

    def __init__(self) -> None:
        self.latest = -1

    def begin(self) -> None:
        """A choice was made."""
        self.latest += 1

    def reach(self, decided: int) -> None:
        """An event of that round was learnt."""
        self.latest = max(self.latest, decided)


def decided_round(event: Event) -> int:
    """The round that an event finishes, which the guard always says."""
    if event.decided is None:
        raise EventError(
            "decided must say which round the event finishes; policies built from their id find it"
        )
    return event.decided
