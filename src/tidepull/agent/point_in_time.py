"""What an agent knew at an earlier moment, and why it took an arm: a replay of its ledger on a copy,
a part at a time, beside the agent that decides."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidepull.agent import table
from tidepull.agent.fields import Boolean, Category, Field
from tidepull.agent.insight import Insight
from tidepull.agent.learning import Learning
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.log import LogReader
from tidepull.agent.rebuild import Pace, is_within
from tidepull.agent.records import Choice, DecisionGroup, Kind, Record, unpack_json
from tidepull.agent.state import LAST, AgentState
from tidepull.errors import InputError
from tidepull.types import FloatArray

if TYPE_CHECKING:
    from tidepull.agent.commands import CommandHandler

MOST_RECORDS = 200_000
"""Records after the nearest snapshot that are replayed at most."""

WHAT_IF_DRAWS, MOST_VALUES, MOST_WHAT_IFS = 200, 3, 12
"""Draws of a decision in another context; other values of a field, and of all fields, to try."""

_GONE = (
    "what was known then cannot be rebuilt: records or contexts were deleted; name a later moment"
)


class LedgerUntil:
    """A ledger as it was when a record was the last one, for reading."""

    def __init__(self, ledger: Ledger, upto: int) -> None:
        self._ledger = ledger
        self.upto = upto

    def tail(self, after: int, upto: int | None = None) -> Iterator[Record]:
        """Records in order."""
        return self._ledger.tail(after, self.upto if upto is None else min(upto, self.upto))

    def of_kind(self, kind: Kind) -> list[Record]:
        """All records of one of the rare kinds."""
        return [record for record in self._ledger.of_kind(kind) if record.seq <= self.upto]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Each arm's chance to be best had a field of the context had another value."""

    field: str
    value: Any
    chances: dict[str, float]


class PointInTime:
    """The state of an agent after record `upto`, once `advance` has replayed all records until then.

    Raises an `InputError` where it cannot be rebuilt: the policy was made anew since, or too many
    records would have to be replayed.
    """

    def __init__(self, commands: CommandHandler, upto: int) -> None:
        self._ledger, self.upto = commands.ledger, upto
        upgrades = [record for record in self._ledger.of_kind(Kind.UPGRADE) if record.seq > upto]
        if upgrades:
            moment = commands.clock.datetime(upgrades[-1].at)
            raise InputError(
                f"the policy was rebuilt or changed on {moment:%d %B %Y at %H:%M}: what it knew "
                "before cannot be replayed; name a later moment"
            )
        self.erased, self.reusable = spans_until(commands, upto), True
        snapshots = [
            s for s in self._ledger.snapshots() if s <= upto and not is_within(s, self.erased)
        ]
        if not snapshots and self._ledger.read("whole") == "no":
            raise InputError(_GONE)
        state, self.position = commands.newest_state([*self.erased, (upto, LAST)])
        state.erased = list(self.erased)
        self.state: AgentState = state
        self.reader = LogReader(state.settings, commands.clock)
        if upto - self.position > MOST_RECORDS:
            raise InputError(
                f"that moment is {upto - self.position:,} records after the nearest snapshot, and "
                f"at most {MOST_RECORDS:,} are replayed: name a later moment"
            )

    def reaches(self, commands: CommandHandler, upto: int) -> bool:
        """Whether `advance` can go on to a later record."""
        return (
            self.reusable and self.position <= upto and spans_until(commands, upto) == self.erased
        )

    def advance(self, seconds: float) -> bool:
        """Replay for so long at most; True when record `upto` is reached."""
        pace, end = Pace(), time.monotonic() + seconds
        for record in self._ledger.tail(self.position, self.upto):
            if record.kind is Kind.DECISION and record.context is None:
                raise InputError(_GONE)
            self.state.apply(record, self._ledger)
            self.position = record.seq
            pace.rest()
            if time.monotonic() > end:
                return self.position >= self.upto
        self.position = self.upto
        return True

    def insight(self) -> Insight:
        """What could be asked of the agent then."""
        until: Any = LedgerUntil(self._ledger, self.upto)
        return Insight(self.state, until, self.reader)

    def repeat(self, record: Record) -> bool:
        """Make the decision of the next record once more; whether the same came out."""
        before, self.upto = self.state.differences, record.seq
        self.advance(math.inf)
        return self.state.differences == before

    def what_if(self, record: Record) -> list[WhatIf]:
        """The chances of arms had a field of the last decision's context had another value."""
        learning, choice = self.state.learning, Choice.unpack(record.body)
        if learning.schema is None or record.context is None:
            return []
        cleaned = unpack_json(record.context)
        others = [
            (name, value)
            for name, field in learning.schema.fields.items()
            if name not in learning.schema.private
            for value in _others(field, cleaned.get(name))
        ]
        self.reusable = not learning.under_way  # a snapshot starts work anew, here too
        twin = Learning(self.state.settings, self.state.clock, self.state.arms)
        twin.restore(learning.take()())
        return [
            WhatIf(name, value, self._chances(twin, {**cleaned, name: value}, record.at, choice))
            for name, value in others[:MOST_WHAT_IFS]
        ]

    def _chances(
        self, learning: Learning, cleaned: dict[str, Any], at: float, choice: Choice
    ) -> dict[str, float]:
        available = self.state.arms.widened(choice.available)
        results: list[FloatArray] = []

        def pick(shares: FloatArray) -> int:
            results.append(shares)
            return choice.arm

        learning.decide(cleaned, at, available, WHAT_IF_DRAWS, pick)
        return {
            self.state.arms.label(place): float(results[0][place])
            for place in np.flatnonzero(available).tolist()
        }


def _others(field: Field, present: Any) -> list[Any]:
    """Other values that a field could have had."""
    if isinstance(field, Boolean):
        return [] if present is None else [not present]
    values = field.values if isinstance(field, Category) else ()
    return [value for value in values or () if value != present][:MOST_VALUES]


def spans_until(commands: CommandHandler, upto: int) -> list[tuple[int, int]]:
    """Spans of records that rollbacks up to a record took back."""
    return [span for span in commands.erased() if span[1] <= upto]


def last_record(insight: Insight, moment: float) -> int:
    """The number of the last record until a moment: of the records between two decisions, those
    with an earlier moment."""
    log = insight.log()
    before, after = log.seq[log.at <= moment], log.seq[log.at > moment]
    last = int(before[-1]) if len(before) else 0
    upto = int(after[0]) - 1 if len(after) else None
    for record in insight.ledger.tail(last, upto):
        if record.at > moment:
            break
        last = record.seq
    return last


@dataclass(frozen=True, slots=True)
class DecisionWhy:
    """A decision as a row of an export, and why its arm was taken, in a sentence."""

    row: dict[str, Any]
    why: str


def latest_decisions(
    insight: Insight, name: Any, until: float | None, limit: int
) -> list[DecisionWhy]:
    """The last decisions until a moment, latest first; `name` makes an id of a number."""
    log = insight.log()
    seqs = log.seq if until is None else log.seq[log.at <= until]
    if not len(seqs):
        return []
    against = insight.compared()[1] or "random arms"
    draws = insight.state.settings.propensity_draws
    after, upto = int(seqs[-limit:][0]) - 1, int(seqs[-1])
    rows = table.rows(insight, insight.ledger, name, upto, after)
    records = (r for r in insight.ledger.tail(after, upto) if r.kind is Kind.DECISION)
    return [
        DecisionWhy(row, _why(Choice.unpack(record.body), row["arm"], against, draws))
        for row, record in zip(rows, records, strict=True)
    ][::-1]


def _why(choice: Choice, label: str, against: str, draws: int) -> str:
    """Why an arm was taken; `against` is what the control gets."""
    share = choice.counts[choice.arm] / 65535 if choice.arm < len(choice.counts) else 0.0
    if choice.group is DecisionGroup.WARMUP:
        return f"It was still learning what contexts look like, so {label} was drawn at random."
    if choice.group is DecisionGroup.IMPORTED:
        return f"It was decided elsewhere: {label} was recorded."
    if choice.sticky:
        return f"The subject keeps the arm that was drawn for it before: {label}."
    if choice.group is DecisionGroup.CONTROL:
        return f"It fell into the control group, which gets {against}: {label}."
    return (
        f"{label} came out best in {share:.0%} of {draws} draws from what was believed then, and was "
        f"taken with a chance of {choice.propensity:.1%}."
    )
