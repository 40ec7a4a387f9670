"""What an agent believes, in plain words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidepull.agent.lift import Lift


@dataclass(frozen=True, slots=True)
class Report:
    """`chances` are each arm's chance to be best now (how often the policy's draws found it best of late), `when` the
    hours at which each is best, `beliefs` what the policy holds true about time, `changes` what changed when."""

    status: str
    chances: dict[str, float]
    when: list[str]
    next: str | None
    beliefs: list[str]
    changes: list[str]
    lift: Lift
    alarms: list[str]

    def __str__(self) -> str:
        lines = [self.status]
        if self.chances:
            ranked = sorted(self.chances.items(), key=lambda item: -item[1])
            lines.append("Chance to be best now: " + ", ".join(f"{arm} {p:.0%}" for arm, p in ranked) + ".")
        lines += self.when
        lines += [self.next] if self.next else []
        lines += [f"It believes: {'; '.join(self.beliefs)}."] if self.beliefs else []
        lines += [str(self.lift)]
        lines += [f"Warning: {alarm}" for alarm in self.alarms]
        lines += ["What changed:", *(f"  {change}" for change in self.changes)] if self.changes else []
        return "\n".join(lines)


def beliefs_of(
    policy: Any, labels: dict[int, str], calendar: bool, least: float = 0.05
) -> list[tuple[str, float]]:
    """What a policy that explains itself believes, and how much: ("repeats every day", 0.97); `calendar`: its contexts
    have hour and weekday in them."""
    explain = getattr(policy, "explain", None)
    if explain is None:
        return []
    found = [(_named(belief.words, labels, calendar), belief.weight) for belief in explain().beliefs]
    return [(words, weight) for words, weight in found if weight >= least][:3]


def _named(words: str, labels: dict[int, str], calendar: bool) -> str:
    """Arms by their labels instead of numbers; a context that has the calendar in it named so."""
    if calendar:
        words = words.replace("the context decides", "but for what hour, weekday and context decide")
    return re.sub(r"\barm (\d+)", lambda found: labels.get(int(found[1]), found[0]), words)


def in_words(moment: datetime, now: datetime) -> str:
    """ "at 18:00", "on Saturday at 9:00"."""
    hour = f"{moment.hour}:00"
    if moment.date() == now.date():
        return f"at {hour}"
    return f"on {moment:%A} at {hour}"
