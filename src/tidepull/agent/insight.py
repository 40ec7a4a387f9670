"""Looking into an agent's ledger: explain, lift, history and warnings. Nothing here changes anything."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from tidepull.agent.alarms import alarms, drift
from tidepull.agent.clock import Jump
from tidepull.agent.explain import Report, beliefs_of, in_words
from tidepull.agent.ledger import Ledger
from tidepull.agent.lift import Lift, lift_of
from tidepull.agent.log import Log, LogReader
from tidepull.agent.mind import Mind
from tidepull.agent.records import Kind
from tidepull.agent.when import Hours, next_change, spans
from tidepull.types import FloatArray

TELLING = 100
"""Decisions from which on hours are told: before, they are the luck of a few draws."""


@dataclass(frozen=True, slots=True)
class Told:
    """What only the mind itself can say, so that the rest can be said while it goes on."""

    beliefs: list[tuple[str, float]]
    drift: list[str]


class Insight:
    """A view of an agent at one moment. Only `told` looks at what changes while the agent works: call it while nobody
    takes a step. Everything else reads what is safe in the ledger."""

    def __init__(self, mind: Mind, ledger: Ledger, reader: LogReader | None = None) -> None:
        self.mind = mind
        self._ledger = ledger
        self._reader = reader or LogReader(mind.settings, mind.clock)
        self._told: Told | None = None
        self.clock = mind.clock
        self.room = mind.arms.room
        self.labels = {place: arm.label for place, arm in enumerate(mind.arms)}
        self.open = {place: arm.label for place, arm in enumerate(mind.arms) if not arm.retired}
        self._frozen, self._in_warmup = mind.frozen, mind.learning.policy is None

    def told(self) -> Told:
        """What the policy believes, and which fields drift."""
        if self._told is None:
            policy = None if self.mind.learning.policy is None else self.mind.learning.policy.inner
            beliefs = beliefs_of(policy, self.labels, self.mind.settings.time_features)
            self._told = Told(beliefs, drift(self.mind.learning))
        return self._told

    def log(self) -> Log:
        """Every decision."""
        return self._reader.read(self._ledger)

    def lift(self, since: float | None = None, level: float = 0.95) -> Lift:
        """The gain over the control."""
        log = self.log()
        return lift_of(log if since is None else log.since(since), level)

    def report(self) -> Report:
        """What it believes, in words."""
        log = self.log()
        if not len(log):
            nothing = lift_of(log)
            return Report("No decisions yet.", {}, [], None, [], self._changes(), nothing, [])
        now = float(log.at[-1])
        hours = self._reader.late.hours(self.room)
        told = self.told()
        return Report(
            self._status(log),
            self.chances(),
            self._when(hours) if len(log) >= TELLING else [],
            self._next(hours, self.clock.datetime(now)) if len(log) >= TELLING else None,
            [f"{words} ({weight:.0%})" for words, weight in told.beliefs],
            self._changes(),
            lift_of(log),
            [*alarms(log, self.open, now), *told.drift],
        )

    def chances(self) -> dict[str, float]:
        """Each arm's chance to be best now, after the log was read."""
        now = self._reader.late.now(self.room)
        return {} if now is None else {label: float(now[place]) for place, label in self.open.items()}

    def week(self) -> FloatArray:
        """Each arm's mean share in every hour of every weekday, after the log was read."""
        return self._reader.late.week(self.room)

    def _status(self, log: Log) -> str:
        paid = int((~np.isnan(log.reward)).sum())
        first = self.clock.datetime(float(log.at[0]))
        frozen = " It is frozen: it decides and does not learn." if self._frozen else ""
        warmup = " It is still guessing what contexts look like." if self._in_warmup else ""
        worth = (
            f"{paid:,} with a reward ({np.nanmean(log.reward):.3g} on average)" if paid else "no reward yet"
        )
        decisions = f"{len(log):,} decision{'s' * (len(log) != 1)} since {first:%d %B %Y}"
        return f"{decisions}, {worth}.{frozen}{warmup}"

    def _when(self, hours: Hours) -> list[str]:
        found = [(self.labels[arm], text) for arm, text in spans(hours.best) if arm in self.labels]
        return [f"{label} is best {text}." for label, text in found]

    def _next(self, hours: Hours, now: datetime) -> str | None:
        change = next_change(hours.best, now)
        if change is None:
            return None
        moment, before, after = change
        new, old = self.labels.get(after), self.labels.get(before)
        return f"Next change {in_words(moment, now)}: {new} takes over from {old}."

    def changes(self, most: int) -> list[tuple[float, str]]:
        """Arms, freezes, rollbacks and notes: when, and in words, latest last."""
        kinds = (Kind.ARMS, Kind.FREEZE, Kind.UNFREEZE, Kind.ROLLBACK, Kind.NOTE)
        records = [record for kind in kinds for record in self._ledger.of_kind(kind)]
        records.sort(key=lambda record: record.seq)
        return [(record.at, _said(record)) for record in records[-most:]]

    def _changes(self, most: int = 10) -> list[str]:
        return [f"{self.clock.datetime(at):%d %B %Y %H:%M}: {words}" for at, words in self.changes(most)]


def _said(record: Any) -> str:
    if record.kind is Kind.ARMS:
        change = json.loads(record.body)
        done = {"add": "added", "retire": "retired", "rename": "renamed", "describe": "described anew"}[
            change["op"]
        ]
        return f"arm '{change['label']}' {done}" + (f" to '{change['to']}'" if "to" in change else "")
    if record.kind is Kind.NOTE:
        return str(Jump.unpack(record.body))
    return {Kind.FREEZE: "frozen", Kind.UNFREEZE: "unfrozen"}.get(record.kind, "rolled back")
