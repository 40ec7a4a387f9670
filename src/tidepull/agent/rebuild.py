"""A policy that is built anew from the ledger, a part at a time, beside the one that decides.

More room for arms, another policy and another release of it all need a replay of the ledger. The
replay reads records that are safe, so the agent can go on deciding; at the end the fresh policy
takes the place of the other one (copy and swap).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tidepull.agent.arms import Arms
from tidepull.agent.learning import Learning
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.records import Choice, DecisionGroup, Kind, LearnAt, Record, unpack_reward
from tidepull.agent.settings import AgentSettings

Spans = Sequence[tuple[int, int]]
"""Spans of records (after, upto]."""

CLOSE = 64
"""Records by which a replay may be behind when it is finished under the agent's lock."""


class Pace:
    """Rests as long as it works, a short time each, so that threads that decide get on."""

    WORK = 0.002

    def __init__(self) -> None:
        self._begun = time.perf_counter()

    def rest(self) -> None:
        """A piece of work is done."""
        if time.perf_counter() - self._begun > self.WORK:
            time.sleep(self.WORK)
            self._begun = time.perf_counter()


def is_within(seq: int, spans: Spans) -> bool:
    """Whether a record is in one of some spans."""
    return any(after < seq <= upto for after, upto in spans)


def teaches(record: Record, settings: AgentSettings) -> bool:
    """Whether the policy learns from a record."""
    if record.kind is Kind.DUE:
        return bool(record.body)
    at_once = record.kind is Kind.REWARD and LearnAt.of(record.body) is LearnAt.ARRIVAL
    return at_once and not settings.learns_when_due


def counts(record: Record, settings: AgentSettings) -> bool:
    """Whether a record adds a reward to the number of rewards: one that came, or the default."""
    if record.kind is Kind.DUE:
        return bool(record.body) and LearnAt.of(record.body) is LearnAt.ARRIVAL
    late = LearnAt.of(record.body) is LearnAt.NEVER
    return record.kind is Kind.REWARD and not late and not settings.learns_when_due


class Rebuild:
    """A fresh policy with some settings and arms that lives through the ledger. `erased` are spans
    that rollbacks took back.

    Its slices of upkeep may be smaller than they were, so where upkeep was done, all that is
    pending is done. Contexts are not needed: decisions have what a policy saw.
    """

    def __init__(
        self, learning: Learning, settings: AgentSettings, arms: Arms, erased: Spans
    ) -> None:
        self.arms = arms
        self.settings = settings
        self.position = 0  # number of the last record that was replayed
        self._learning = learning.grow(arms, settings)
        self._erased = erased
        self._frozen, self._first = False, True
        self.count = len(self._learning.early)

    def catch_up(self, ledger: Ledger) -> None:
        """Replay what is safe, until little is left or new records come as quickly as they are
        replayed."""
        left = ledger.safe - self.position
        while left > CLOSE:
            self.advance(ledger, ledger.safe, Pace())
            behind, left = left, ledger.safe - self.position
            if left > behind / 2:
                return

    def advance(self, ledger: Ledger, upto: int, pace: Pace | None = None) -> None:
        """Replay records up to a number; `pace`: beside other threads."""
        if self._learning.policy is None:
            return
        for record in ledger.tail(self.position, upto):
            if not is_within(record.seq, self._erased):
                self._apply(record, ledger)
            self.position = record.seq
            if pace is not None:
                pace.rest()
        self.position = max(self.position, upto)

    def finish(self, learning: Learning, decisions: int, slices: int) -> Learning:
        """The fresh policy, in the place of `learning`. `slices` of upkeep were done since the last
        record."""
        fresh = self._learning
        fresh.seen, fresh.schemas = learning.seen, learning.schemas
        if fresh.policy is None:
            return fresh
        if self._first:  # rewards of decisions that are gone must not meet rounds to come
            fresh.settle()
            fresh.begin_at(max(fresh.policy.rounds, decisions))
        if slices:
            fresh.catch_up()
        return fresh

    def _apply(self, record: Record, ledger: Ledger) -> None:
        fresh = self._learning
        if record.slices:
            fresh.catch_up()
        if record.kind is Kind.DECISION:
            self._repeat(record)
        elif record.kind is Kind.SNAPSHOT:
            fresh.take()
        elif record.kind in (Kind.FREEZE, Kind.UNFREEZE):
            self._frozen = record.kind is Kind.FREEZE
        elif not self._frozen and teaches(record, self.settings):
            decision = ledger.decision(record.ref or 0)
            if decision is None or is_within(decision.seq, self._erased):
                return
            choice = fresh.refit(Choice.unpack(decision.body), decision.at, decision.seq)
            if decision.seq > self.arms.since(choice.arm):  # else another arm had the place
                fresh.learn(choice, decision.at, unpack_reward(record.body))

    def _repeat(self, record: Record) -> None:
        fresh, choice = self._learning, Choice.unpack(record.body)
        if choice.group is DecisionGroup.WARMUP:
            return
        assert fresh.policy is not None
        choice, self.count = fresh.refit(choice, record.at, record.seq), self.count + 1
        if self._first:
            fresh.settle()
            fresh.begin_at(choice.round)
            self._first = False
        while fresh.next_round <= choice.round:
            fresh.repeat(choice, record.at)  # more than once where decisions before it were removed
