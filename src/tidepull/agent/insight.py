"""What can be asked of an agent: its status, its report in plain words, and alarms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from tidepull.agent.clock import Jump
from tidepull.agent.commands import CommandHandler
from tidepull.agent.fields import Category, Number, Tags, Timestamp
from tidepull.agent.learning import Learning
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.lift import UNLIKELY, Lift, comparison, lift_of, sample_ratio_alarms
from tidepull.agent.log import (
    DecisionLog,
    LogReader,
    best_of_week,
    next_change,
    settings_changes,
    spans,
)
from tidepull.agent.records import DecisionGroup, Kind, unpack_json
from tidepull.agent.state import AgentState
from tidepull.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """`arms` are labels and whether each is retired; `latest` is when the last decision was made
    (seconds since 1970, None: there is none); `records` numbers the last line of the ledger,
    `saved` the one of the newest snapshot. `learning_window` is after how many seconds a decision
    is learnt (None: when its reward comes), `late_rewards` how many rewards came after it."""

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
    learning_window: float | None
    late_rewards: int


def status_of(commands: CommandHandler) -> AgentStatus:
    """The state of the agent whose commands it is."""
    state = commands.state
    schema = state.learning.schema
    return AgentStatus(
        [(arm.label, arm.retired) for arm in state.arms],
        None if schema is None else schema.plain(),
        state.frozen,
        state.learning.policy is None,
        state.decisions,
        state.rewards,
        state.latest if state.decisions else None,
        commands.ledger.last,
        commands.saved,
        state.learning.pending,
        state.learning_window if commands.settings.counts_missing else None,
        state.late_rewards,
    )


@dataclass(frozen=True, slots=True)
class AgentReport:
    """`chances` are each arm's chance to be best now (how often the policy's draws found it best in the
    present hour), `when` the hours at which each is best, `beliefs` what the policy holds true about time,
    `changes` what changed when, `outcomes` the gains in further outcomes."""

    status: str
    chances: dict[str, float]
    when: list[str]
    next: str | None
    beliefs: list[str]
    changes: list[str]
    lift: Lift
    outcomes: list[Lift]
    alarms: list[str]

    def __str__(self) -> str:
        lines = [self.status]
        early = self.when == [NOT_ENOUGH]
        lines += self.when if early else []
        if self.chances:
            ranked = sorted(self.chances.items(), key=lambda item: -item[1])
            title = "Shares of the arms now" if early else "Chance to be best now"
            lines.append(f"{title}: {', '.join(f'{arm} {p:.0%}' for arm, p in ranked)}.")
        lines += [] if early else self.when
        lines += [self.next] if self.next else []
        lines += [f"Most likely: {'; '.join(self.beliefs)}."] if self.beliefs else []
        lines += [str(lift) for lift in (self.lift, *self.outcomes)]
        lines += [f"Warning: {alarm}" for alarm in self.alarms]
        lines += (
            ["What changed:", *(f"  {change}" for change in self.changes)] if self.changes else []
        )
        return "\n".join(lines)


_BELIEVED = 0.95
"""Probability from which on a pattern is told."""
_ALL_MODELS = 1000
_PARTS = {
    "the hour of the day": "reward follows the hour of the day",
    "the weekend": "reward differs on weekends",
    "the day of the week": "reward follows the day of the week",
    "the context by hour": "reward depends on the context",
    "with a slow deviation": "arms change slowly",
}
"""What a structural model says, part by part, in a sentence."""
_NO_SEASON = "no season"
"""Not told: a small effect of the hour looks like none for thousands of decisions."""


def beliefs_of(policy: Any, labels: dict[int, str], calendar: bool) -> list[tuple[str, float]]:
    """What a policy that explains itself is sure of, and its probability: ("reward follows the hour
    of the day", 0.97). Models that agree in a part are added up for it. `calendar`: its contexts
    have hour and weekday in them."""
    explain = getattr(policy, "explain", None)
    if explain is None:
        return []
    chances: dict[str, float] = {}
    for belief in explain(_ALL_MODELS).beliefs:
        words = [_with_labels(belief.words, labels, calendar)]
        if belief.family == "structural":
            parts = belief.words.removeprefix("follows ").split(", ")
            parts = [part.removeprefix("and ") for part in parts if part != _NO_SEASON]
            words = [_PARTS.get(part, f"reward {part}") for part in parts]
        for part in words:
            chances[part] = chances.get(part, 0.0) + belief.weight
    ranked = sorted(chances.items(), key=lambda item: -item[1])
    return [(words, chance) for words, chance in ranked if chance >= _BELIEVED]


def _with_labels(words: str, labels: dict[int, str], calendar: bool) -> str:
    """Arms by their labels instead of numbers; a context that has the calendar in it named so."""
    if calendar:
        words = words.replace(
            "the context decides", "but for what hour, weekday and context decide"
        )
    return re.sub(r"\barm (\d+)", lambda match: labels.get(int(match[1]), match[0]), words)


def in_words(moment: datetime, now: datetime) -> str:
    """ "at 18:00", "on Saturday at 9:00"."""
    hour = f"{moment.hour}:00"
    if moment.date() == now.date():
        return f"at {hour}"
    return f"on {moment:%A} at {hour}"


STARVED, RECENT = 0.005, 1000
OUTSIDE = 0.05


def alarms(log: DecisionLog, labels: dict[int, str], now: float) -> dict[str, str]:
    """Sentences by their names; none is good news. `labels` are those of the arms that can be
    chosen."""
    return {**_silence(log, now), **_starved(log, labels), **sample_ratio_alarms(log)}


def _silence(log: DecisionLog, now: float) -> dict[str, str]:
    """No reward since: how likely is that, given how many decisions got one before, and how
    fast?"""
    paid = ~np.isnan(log.reward)
    if paid.sum() < 20:
        return {}
    patience = float(np.quantile((log.paid_at - log.at)[paid], 0.95))
    last = float(np.nanmax(log.paid_at))
    ripe = log.at + patience < now
    before, after = ripe & (log.at + patience <= last), ripe & (log.at > last - patience)
    after &= log.at + patience > last
    if not before.any() or paid[after].any():
        return {}
    rate, silent = float(paid[before].mean()), int(after.sum())
    if silent < 10 or (1 - min(rate, 0.9)) ** silent >= UNLIKELY:
        return {}
    return {
        "rewards-stopped": "Rewards have stopped coming: none for the last "
        f"{silent:,} decisions that should have one by now, while {rate:.0%} had one before."
    }


def _starved(log: DecisionLog, labels: dict[int, str]) -> dict[str, str]:
    recent = log.where(log.group == DecisionGroup.POLICY).where(slice(-RECENT, None))
    if len(recent) < RECENT:
        return {}
    counts = {place: int((recent.arm == place).sum()) for place in labels}
    return {
        f"starved: {labels[place]}": f"Arm '{labels[place]}' got {count} of the last {RECENT:,} "
        "decisions of the policy: what is known of it is old. Retire it, or give it a least share."
        for place, count in counts.items()
        if count < STARVED * RECENT
    }


def drift(learning: Learning) -> dict[str, str]:
    """Fields whose values are not what they used to be, each in a sentence."""
    sentences = {}
    for name, field in (learning.schema.fields if learning.schema is not None else {}).items():
        seen = learning.seen[name]
        if isinstance(field, Number | Timestamp) and seen[3] > OUTSIDE:
            sentences[f"drift: {name}"] = (
                f"Field '{name}' is far outside its usual range in {seen[3]:.0%} of recent decisions."
            )
        elif (
            isinstance(field, Category | Tags)
            and field.values
            and not field.unseen
            and seen[1] >= 20
        ):
            sentences[f"drift: {name}"] = (
                f"Field '{name}' had values {seen[1]:,} times that its list does not have."
            )
    return sentences


TELLING = 100
"""Decisions from which on hours are told: before, they are the luck of a few draws."""
NO_BEST_ARM = "No arm stands out at any hour yet."
NOT_ENOUGH = f"Not enough data yet: arms, hours and patterns are named from {TELLING} decisions on."


@dataclass(frozen=True, slots=True)
class PolicySummary:
    """What only the state itself can say, so that the rest can be said while it goes on."""

    beliefs: list[tuple[str, float]]
    drift: dict[str, str]
    week: IntArray | None = None  # the best arm of every hour of the week, as the policy knows it


class Insight:
    """A view of an agent at one moment. Only `told` looks at what changes while the agent works:
    call it while nobody takes a step. Everything else reads what is safe in the ledger."""

    def __init__(self, state: AgentState, ledger: Ledger, reader: LogReader | None = None) -> None:
        self.state = state
        self.ledger = ledger
        self._reader = reader or LogReader(state.settings, state.clock)
        self._summary: PolicySummary | None = None
        self.clock = state.clock
        self.room = state.arms.room
        self.label_at = state.arms.label
        self.labels = {place: arm.label for place, arm in enumerate(state.arms)}
        self.open = {place: arm.label for place, arm in enumerate(state.arms) if not arm.retired}
        schema = state.learning.schema
        fields = {} if schema is None else schema.fields
        self.moments = {name for name, kind in fields.items() if isinstance(kind, Timestamp)}
        self._frozen, self._in_warmup = state.frozen, state.learning.policy is None

    def summarise_policy(self) -> PolicySummary:
        """What the policy believes, and which fields drift."""
        if self._summary is None:
            policy = (
                None if self.state.learning.policy is None else self.state.learning.policy.inner
            )
            beliefs = beliefs_of(policy, self.labels, self.state.settings.time_features)
            explain = getattr(policy, "explain", None)
            week = getattr(explain(), "week", None) if explain else None
            self._summary = PolicySummary(beliefs, drift(self.state.learning), week)
        return self._summary

    def log(self) -> DecisionLog:
        """Every decision."""
        return self._reader.read(self.ledger)

    def lift(
        self, since: float | None = None, level: float = 0.95, outcome: str | None = None
    ) -> Lift:
        """The gain over the control, in reward or another outcome."""
        log, against = self.compared(since, outcome)
        return lift_of(log, level, against, outcome or "reward")

    def outcomes_of(self, seq: int) -> dict[str, float]:
        """What was reported beside the reward of a decision, after the log was read."""
        return self._reader.outcomes_of(seq)

    def compared(
        self, since: float | None = None, outcome: str | None = None
    ) -> tuple[DecisionLog, str | None]:
        """The decisions that `lift` compares, and with what: see `lift.comparison`."""
        log = self.log()
        log = log if outcome is None else self._reader.outcome(log, outcome)
        changes = settings_changes(self.ledger, "control_arm")
        if changes and not (log.baseline >= 0).any():
            log = log.where(log.seq > changes[-1][0])
        place = self.state.control_place
        label = None if place is None else self.labels[place]
        log = log if since is None else log.since(since)
        return comparison(log, self.state.settings.control, label)

    def last_before(self, moment: float) -> int:
        """The number of the last decision that was made before a moment; 0: none was."""
        log = self.log()
        old = log.seq[log.at < moment]
        return int(old[-1]) if len(old) else 0

    def report(self) -> AgentReport:
        """What it believes, in words."""
        log = self.log()
        if not len(log):
            nothing = "No decisions yet."
            return AgentReport(nothing, {}, [], None, [], self._changes(), self.lift(), [], [])
        now = float(log.at[-1])
        summary = self.summarise_policy()
        best = self._reader.late.best_hours(self.room)
        if summary.week is not None:
            best = best_of_week(summary.week, self.open)
        return AgentReport(
            self._status(log),
            self.chances(),
            self._when(best) if len(log) >= TELLING else [NOT_ENOUGH],
            self._next(best, self.clock.datetime(now)) if len(log) >= TELLING else None,
            [f"{words} ({chance:.0%})" for words, chance in summary.beliefs]
            if len(log) >= TELLING
            else [],
            self._changes(),
            self.lift(),
            [self.lift(outcome=name) for name in self._reader.outcomes],
            list(self.alarms().values()),
        )

    def alarms(self) -> dict[str, str]:
        """Warnings by their names."""
        log = self.log()
        if not len(log):
            return {}
        return {**alarms(log, self.open, float(log.at[-1])), **self.summarise_policy().drift}

    def chances(self) -> dict[str, float]:
        """Each arm's chance to be best now, after the log was read."""
        now = self._reader.late.now(self.room)
        return (
            {} if now is None else {label: float(now[place]) for place, label in self.open.items()}
        )

    def best_of_week(self) -> IntArray:
        """The arm that is surely best in every hour of the week (7 x 24); -1 where none is, or too
        little was decided to tell."""
        count, week = len(self.log()), self.summarise_policy().week
        if week is None:
            week = np.repeat(self._reader.late.best_hours(self.room), (5, 2), axis=0)
        return week if count >= TELLING else np.full_like(week, -1)

    def decisions_of_week(self) -> IntArray:
        """How many decisions of the last four weeks fell into every hour of the week, after the log
        was read."""
        return self._reader.late.decisions()

    def week(self) -> FloatArray:
        """Each arm's mean share in every hour of every weekday, after the log was read."""
        return self._reader.late.week(self.room)

    def _status(self, log: DecisionLog) -> str:
        paid = int((~np.isnan(log.reward)).sum())
        first = self.clock.datetime(float(log.at[0]))
        frozen = " It is frozen: it decides and does not learn." if self._frozen else ""
        warmup = (
            " The schema of contexts is inferred from the first decisions."
            if self._in_warmup
            else ""
        )
        worth = (
            f"{paid:,} with a reward ({np.nanmean(log.reward):.3g} on average)"
            if paid
            else "no reward yet"
        )
        decisions = f"{len(log):,} decision{'s' * (len(log) != 1)} since {first:%d %B %Y}"
        return f"{decisions}, {worth}.{frozen}{warmup}"

    def _when(self, best: IntArray) -> list[str]:
        sure = [(self.labels[arm], text) for arm, text in spans(best) if arm in self.labels]
        return [f"{label} is best {text}." for label, text in sure] or [NO_BEST_ARM]

    def _next(self, best: IntArray, now: datetime) -> str | None:
        change = next_change(best, now)
        if change is None:
            return None
        moment, before, after = change
        new, old = self.labels.get(after), self.labels.get(before)
        return f"Next change {in_words(moment, now)}: {new} takes over from {old}."

    def changes(self, most: int) -> list[tuple[float, str]]:
        """Arms, freezes, rollbacks and notes: when, and in words, latest last."""
        kinds = (Kind.ARMS, Kind.FREEZE, Kind.UNFREEZE, Kind.ROLLBACK, Kind.NOTE, Kind.UPGRADE,
                 Kind.SETTINGS)  # fmt: skip
        records = [record for kind in kinds for record in self.ledger.of_kind(kind)]
        records.sort(key=lambda record: record.seq)
        return [(record.at, _describe_change(record)) for record in records[-most:]]

    def _changes(self, most: int = 10) -> list[str]:
        return [
            f"{self.clock.datetime(at):%d %B %Y %H:%M}: {words}" for at, words in self.changes(most)
        ]


def _setting_words(name: str, before: Any, after: Any) -> list[str]:
    """One change of a setting in words."""
    if name == "promotion":
        shares = [0.0 if part is None else part[2] for part in (before, after)]
        return [f"{(after or before)[0]} has {shares[1]:.0%} of decisions ({shares[0]:.0%} before)"]
    if name != "context":
        return [f"{name} changed from {before} to {after}"]
    before = before or {}
    return [
        *(f"field '{field}' added" for field in after if field not in before),
        *(f"field '{field}' dropped" for field in before if field not in after),
        *(f"field '{field}' is of another kind" for field in after
          if field in before and before[field] != after[field]),
    ]  # fmt: skip


def _describe_change(record: Any) -> str:
    if record.kind is Kind.ARMS:
        change = unpack_json(record.body)
        done = {
            "add": "added",
            "retire": "retired",
            "rename": "renamed",
            "replace": "replaced",
            "describe": "new description",
        }[change["op"]]
        return f"arm '{change['label']}' {done}" + (
            f" {'by' if change['op'] == 'replace' else 'to'} '{change['to']}'"
            if "to" in change
            else ""
        )
    if record.kind is Kind.UPGRADE:
        details = unpack_json(record.body)
        gone = f"; {details['gone']:,} earlier ones were gone" if details["gone"] else ""
        plural = "s" * (details["decisions"] != 1)
        return f"{details['policy']} rebuilt from {details['decisions']:,} decision{plural}{gone}"
    if record.kind is Kind.SETTINGS:
        return "; ".join(
            words
            for name, (before, after) in unpack_json(record.body).items()
            for words in _setting_words(name, before, after)
        )
    if record.kind is Kind.NOTE:
        return str(Jump.unpack(record.body))
    return {Kind.FREEZE: "frozen", Kind.UNFREEZE: "unfrozen"}.get(record.kind, "rolled back")
