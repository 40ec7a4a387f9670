"""Looking into an agent's ledger: explain, lift, history and warnings. Nothing here changes anything."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import numpy as np

from tidepull.online.alarms import alarms
from tidepull.online.explain import CHANCES, Report, beliefs_of, in_words, mean_shares
from tidepull.online.ledger import Ledger
from tidepull.online.lift import Lift, lift_of
from tidepull.online.log import Log, read_log, shares_of
from tidepull.online.mind import Mind
from tidepull.online.records import Kind
from tidepull.online.when import Hours, hours_of, next_change, spans

WEEKS = 4 * 7 * 86_400.0
"""How far back "when" looks, in seconds."""


class Insight:
    """A view of an agent at one moment."""

    def __init__(self, mind: Mind, ledger: Ledger) -> None:
        self.mind = mind
        self._ledger = ledger
        self.clock = mind.clock
        self.labels = {place: arm.label for place, arm in enumerate(mind.arms)}
        self.open = {place: arm.label for place, arm in enumerate(mind.arms) if not arm.retired}

    def log(self) -> Log:
        """Every decision."""
        return read_log(self._ledger, self.mind.settings)

    def lift(self, since: float | None = None, level: float = 0.95) -> Lift:
        """The gain over the control."""
        log = self.log()
        return lift_of(log if since is None else log.since(since), level)

    def report(self) -> Report:
        """What it believes, in words."""
        log, mind = self.log(), self.mind
        if not len(log):
            nothing = lift_of(log)
            return Report("No decisions yet.", {}, [], None, [], self._changes(), nothing, [])
        now = float(log.at[-1])
        moments, shares = self._late_shares(log, now)
        hours = hours_of(moments, shares, mind.arms.room)
        policy = None if mind.learning.policy is None else mind.learning.policy.inner
        return Report(
            self._status(log),
            mean_shares(shares[-CHANCES:], self.open),
            self._when(hours),
            self._next(hours, self.clock.datetime(now)),
            beliefs_of(policy, self.labels, mind.settings.calendar),
            self._changes(),
            lift_of(log),
            alarms(log, self.open, mind.learning, now),
        )

    def _late_shares(self, log: Log, now: float) -> tuple[list[datetime], list[np.ndarray[Any, Any]]]:
        late = log.seq[log.at >= now - WEEKS]
        pairs = list(shares_of(self._ledger, int(late[0]) - 1, self.mind.arms.room))
        return [self.clock.datetime(at) for at, _ in pairs], [row for _, row in pairs]

    def hours(self) -> Hours:
        """Shares by hour over the last four weeks."""
        log = self.log()
        return hours_of(*self._late_shares(log, float(log.at[-1])), self.mind.arms.room)

    def _status(self, log: Log) -> str:
        paid = int((~np.isnan(log.reward)).sum())
        first = self.clock.datetime(float(log.at[0]))
        frozen = " It is frozen: it decides and does not learn." if self.mind.frozen else ""
        guessing = (
            " It is still guessing what contexts look like." if self.mind.learning.policy is None else ""
        )
        return (
            f"{len(log):,} decisions since {first:%d %B %Y}, {paid:,} with a reward "
            f"({np.nanmean(log.reward) if paid else 0:.3g} on average).{frozen}{guessing}"
        )

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

    def _changes(self, most: int = 10) -> list[str]:
        """Arms, freezes, rollbacks and notes, latest last."""
        kinds = (Kind.ARMS, Kind.FREEZE, Kind.UNFREEZE, Kind.ROLLBACK, Kind.NOTE)
        records = [record for kind in kinds for record in self._ledger.of_kind(kind)]
        records.sort(key=lambda record: record.seq)
        return [
            f"{self.clock.datetime(record.at):%d %B %Y %H:%M}: {_said(record)}" for record in records[-most:]
        ]


def _said(record: Any) -> str:
    if record.kind is Kind.ARMS:
        change = json.loads(record.body)
        done = {"add": "added", "retire": "retired", "rename": "renamed"}[change["op"]]
        return f"arm '{change['label']}' {done}" + (f" to '{change['to']}'" if "to" in change else "")
    if record.kind is Kind.NOTE:
        return str(record.body.decode())
    return {Kind.FREEZE: "frozen", Kind.UNFREEZE: "unfrozen"}.get(record.kind, "rolled back")
