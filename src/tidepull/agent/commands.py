"""The command handler of an agent: every step that changes its state and its ledger, one at a time.

Each step changes the state and appends a record to the ledger (event sourcing). A step that fails
halfway leaves the state dirty: it is read from the ledger again.
"""

from __future__ import annotations

import json
import logging
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from enum import Enum
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple, cast

import numpy as np

from tidepull import __version__
from tidepull import state as snapshots
from tidepull._internal import compiler
from tidepull._internal.validation import is_unicode, shown
from tidepull.agent.clock import HELD, Clock, Jump
from tidepull.agent.decisions import Decision, DecisionInputs, Decisions, PendingDecision, id_of
from tidepull.agent.learning import shape_of
from tidepull.agent.ledger.base import PAGES, Ledger
from tidepull.agent.limits import require_affordable
from tidepull.agent.rebuild import Pace, Rebuild, Spans, counts, is_within
from tidepull.agent.records import (
    Choice,
    DecisionGroup,
    Kind,
    LearnAt,
    Record,
    link,
    pack_reward,
    unpack_json,
    unpack_outcomes,
    unpack_reward,
)
from tidepull.agent.replay import load_state, newest_state, replay
from tidepull.agent.schema import Schema, guess, plain_context, require_same_kind
from tidepull.agent.settings import CHANGEABLE, AgentSettings
from tidepull.agent.state import SLICES_OF_A_CALL, AgentState
from tidepull.errors import (
    ArmError,
    ConflictError,
    ExpiredError,
    InputError,
    LedgerError,
    OtherRewardError,
)
from tidepull.registry import Named
from tidepull.types import BoolArray, Snapshot


class Caller(Enum):
    """Who says when something happens. Rewards that are waited for are lost if time passes too
    quickly, so what a caller's `at` can do depends on who it is."""

    PROCESS = "process"  # the program that has the agent: its `at` is the time, also for what waits
    ADMIN = "admin"  # of a service: any `at`, but what waits is judged by the clock
    CLIENT = "client"  # of a service: an `at` near the present


class Stamp(NamedTuple):
    """The moment that a record gets, and the one by which it is judged whether a decision still
    waits."""

    at: float
    now: float


class Rollback(NamedTuple):
    """A rollback to the state after record `after`: what it takes back, and the last record when it
    was asked for."""

    after: int
    erased: Spans
    upto: int


class Request(NamedTuple):
    """The arguments of `Agent.choose`, for `CommandHandler.decide_all`. A `deferred` decision
    counts for nothing until it is activated."""

    context: Mapping[str, Any] | None = None
    arms: Sequence[str] | None = None
    subject: str | None = None
    at: float | str | None = None
    id: str | None = None
    deferred: bool = False
    caller: Caller = Caller.PROCESS
    baseline: str | None = None


Prepared = tuple[DecisionInputs, float] | PendingDecision | InputError | None
"""What becomes of a request: a decision to make (and by which moment it is judged what still
waits), the one that was made for its id, why it is refused, or None: one before it has its id."""

SETTLED_AT_ONCE = 2
"""Overdue decisions that a call settles at most. A call makes at most one, so that a backlog
shrinks."""

LOOKED_AT = 8
"""Decisions that were paid in time and are passed over, for each one that may be settled."""

_LOG = logging.getLogger("tidepull")
_LAST = 2**62  # a number that no record has
_AS_JSON = json.JSONEncoder(separators=(",", ":")).encode


class CommandHandler:
    """State, ledger and steps of one agent; not for two threads at once, but for `flush`."""

    def __init__(
        self,
        ledger: Ledger,
        settings: AgentSettings,
        salt: bytes,
        clock: Clock,
        where: str,
        *,
        read_only: bool,
    ) -> None:
        self.ledger = ledger
        self._founding = settings
        self.clock = clock
        self.read_only = read_only
        self.pays_slices = False  # whether each call leaves slices of upkeep to the next
        self._salt = salt
        self._where = where
        self._around = _Step(self)
        self._broken = False
        self.reload()

    def reload(self) -> None:
        """Read the state from the ledger."""
        self._latest = 0  # all that is read from the ledger is safe, also if reading fails halfway
        state = load_state(self._founding, self._salt, self.clock, self.ledger, self.erased())
        self._install(state)

    def _install(self, state: AgentState) -> None:
        """Go on from a state after all records of the ledger, which are safe."""
        self._latest = 0
        self._hash = next((record.hash for record in self.ledger.tail(self.ledger.safe - 1)), b"")
        self._read = self.ledger.safe  # up to which number records were read, and not made since
        self.state: AgentState = state
        self.decisions = Decisions(self.ledger, self._salt)
        self._overdue: deque[Record] = deque()  # the next decisions to settle, oldest first
        self._next_due = -math.inf
        self._settling: float | None = (
            None  # by this moment more is overdue than calls have settled
        )
        self._arms_changed = max(
            (record.seq for record in self.ledger.of_kind(Kind.ARMS)), default=0
        )
        notes = (
            (record.seq, Jump.unpack(record.body)) for record in self.ledger.of_kind(Kind.NOTE)
        )
        self._jumps = [(seq, jump.seconds) for seq, jump in notes if jump.state == "believed"]
        saved = self.ledger.snapshots()
        self.saved = self.tried = saved[0] if saved else 0
        self.unsaved = False  # whether a snapshot is due whatever the number of records
        self._broken = False

    @property
    def settings(self) -> AgentSettings:
        """Settings as they are now."""
        return self.state.settings

    @property
    def dirty(self) -> bool:
        """Whether a step or a commit failed, so that the state must be read from the ledger
        again."""
        return self._broken or self.ledger.failed

    def ensure_recovered(self, *, upgrade: bool = True) -> None:
        """Before anything else: be sure of the state, and that its policy is of this release."""
        if self.dirty:
            self._broken = True  # until the state has been read
            if self.ledger.failed:
                self.ledger.recover()
                self._latest = 0  # whoever waits for a refused record is told, not this call
            else:
                self.flush()  # steps before the one that broke count, and must not be written after the state is read
            self.reload()
        if upgrade and self.state.stale:
            self.upgrade()

    def prepare_upgrade(self, policy: Named | None) -> Rebuild:
        """A policy to be made anew beside the one that decides."""
        settings, state = self.settings.upgraded(policy), self.state
        if policy is not None:
            require_affordable(settings, shape_of(settings, state.arms, state.learning.schema))
        rebuild = state.rebuild(state.arms, settings)
        self.state.upgrading = rebuild
        return rebuild

    def upgrade(self, policy: Named | None = None, rebuild: Rebuild | None = None) -> Record | None:
        """Make the policy anew from the ledger, in its newest form or as another one; the record
        of it (None: nothing can be written)."""
        self.flush()
        state = self.state
        settings = self.settings.upgraded(policy) if rebuild is None else rebuild.settings
        if self.read_only and policy is None:
            state.upgrade(settings, self.ledger, self.ledger.last, state.slices)
            self._founding = replace(self._founding, **settings.of_policy)
            return None
        with self._step():
            moment = self._moment(None)
            self._do_owed_slices()
            self.flush()
            count = state.upgrade(settings, self.ledger, self.ledger.last, state.slices, rebuild)
            details = {**settings.of_policy, "release": __version__, "decisions": count}
            details["gone"] = max(0, state.decisions - count - self._count_erased())
            self._founding, self.unsaved = replace(self._founding, **settings.of_policy), True
            _LOG.warning(
                "%s: %s was rebuilt from %d decisions (%d earlier ones are gone)",
                self._where, settings.policy, count, details["gone"],
            )  # fmt: skip
            record = self._append(Kind.UPGRADE, moment, body=json.dumps(details).encode())
            state.rebuild_at = record.seq
            return record

    def _count_erased(self) -> int:
        """Decisions that rollbacks took back."""
        return len(
            {
                record.seq
                for after, upto in self.state.erased
                for record in self.ledger.tail(after, upto)
                if record.kind is Kind.DECISION
            }
        )

    def erased(self) -> list[tuple[int, int]]:
        """Spans of records that rollbacks took back."""
        return [
            (int(unpack_json(record.body)["to"]), record.seq)
            for record in self.ledger.of_kind(Kind.ROLLBACK)
        ]

    def newest_state(self, erased: Spans) -> tuple[AgentState, int]:
        """The state of the newest snapshot outside of some spans of records, and its record."""
        return newest_state(self._founding, self._salt, self.clock, self.ledger, erased)

    def fresh_state(self) -> AgentState:
        """One that knows nothing yet."""
        return AgentState(self._founding, self._salt, self.clock)

    def flush(self, seq: int | None = None) -> None:
        """Return when a record is safe. None means all records since the state was read from the
        ledger; the caller must have kept the agent's lock since `ensure_recovered`, or another
        thread may have read it again."""
        self.ledger.flush(self._latest if seq is None else seq)

    def number_to_wait_for(self, seq: int) -> int:
        """Return the number that a caller who sees record `seq` waits for: 0 if it was read from
        the ledger.

        Its commit may have failed after all of it was written. The caller of that commit is
        refused, a retry is not.
        """
        return 0 if seq <= self._read else seq

    def mark_dirty(self) -> None:
        """A step failed halfway: the state is not to be trusted."""
        self._broken = True

    # ---- decisions

    def check_inputs(
        self,
        context: Any,
        arms: Any,
        subject: Any,
        at: Any,
        caller: Caller = Caller.PROCESS,
        baseline: Any = None,
    ) -> tuple[DecisionInputs, float]:
        """A decision to make, everything checked, and by which moment it is judged what still
        waits; nothing has changed yet."""
        learning = self.state.learning
        schema = learning.coming_schema()
        if schema is not None:
            cleaned = schema.clean(context)
        else:
            cleaned = plain_context(context)
            self._require_fitting([cleaned])
        cleaned = self._hash_private(cleaned)
        available = self.state.arms.available(arms)
        place = -1 if baseline is None else self._baseline_place(baseline, available)
        subject = id_of(subject)
        if subject is not None and not (isinstance(subject, str) and is_unicode(subject)):
            raise InputError(f"subject must be text, got {shown(subject)}")
        stamp = self._stamp(at, caller)
        hashed = None if subject is None else self.hash(subject)
        inputs = DecisionInputs(cleaned, stamp.at, available, hashed, baseline=place)
        return inputs, stamp.now

    def _baseline_place(self, baseline: Any, available: BoolArray) -> int:
        place = self.state.arms.place(baseline)
        if not available[place]:
            raise ArmError(
                f"baseline: the arm '{baseline}' cannot be chosen in this decision; name one of "
                "its arms"
            )
        return place

    def decide(self, inputs: DecisionInputs, now: float, name: str | None) -> PendingDecision:
        """Make a decision."""
        with self._step():
            self._do_owed_slices()
            self._settle_overdue(now)
            return self._add(inputs, self._choose(inputs), name)

    def _choose(self, inputs: DecisionInputs) -> tuple[int, Choice]:
        """A round of the policy, and the slices of upkeep that were done before it."""
        self._do_owed_slices()
        state = self.state
        slices, state.slices = state.slices, 0
        try:
            choice = state.decide(inputs)
        except InputError:  # others of a batch may be chosen, and have no record yet
            self.mark_dirty()
            raise
        state.owed_slices = SLICES_OF_A_CALL
        return slices, choice

    def _add(
        self, inputs: DecisionInputs, chosen: tuple[int, Choice], name: str | None
    ) -> PendingDecision:
        """The record of a decision."""
        slices, choice = chosen
        record = self._append(
            Kind.DECISION,
            inputs.at,
            body=choice.pack(),
            context=_AS_JSON(inputs.cleaned).encode(),
            subject=inputs.subject,
            name=name,
            slices=slices,
        )
        if self.settings.counts_missing:
            self._next_due = min(self._next_due, inputs.at + self.state.learning_window)
        return self.decisions.remember(PendingDecision(record, record.seq))

    def decide_all(self, requests: Sequence[Request]) -> list[PendingDecision]:
        """Make decisions, all of them or none; the same id again, with the same request, is the
        same decision again. All arms are chosen before the first record is made, which takes a
        tenth less time than one decision after the other."""
        prepared = self._prepare_all(requests)
        for n, one in enumerate(prepared):
            if isinstance(one, InputError):
                raise (type(one)(f"decisions[{n}]: {one}") if len(requests) > 1 else one) from None
        self._require_fitting([one[0].cleaned for one in prepared if isinstance(one, tuple)])
        return cast(list[PendingDecision], self._decide_prepared(requests, prepared))

    def decide_each(self, requests: Sequence[Request]) -> list[PendingDecision | InputError]:
        """Make decisions that have nothing to do with each other: each, or why it is refused."""
        if self.state.learning.schema is not None:
            return self._decide_prepared(requests, self._prepare_all(requests))
        decisions = list[PendingDecision | InputError]()
        for request in requests:  # each may change what the next must fit
            decisions += self._decide_prepared([request], self._prepare_all([request]))
        return decisions

    def _prepare_all(self, requests: Sequence[Request]) -> list[Prepared]:
        prepared, by_id = list[Prepared](), dict[str, Request]()
        for request in requests:
            try:
                prepared.append(self._prepare(request, by_id))
            except InputError as error:
                prepared.append(error)
        return prepared

    def _decide_prepared(
        self, requests: Sequence[Request], prepared: Sequence[Prepared]
    ) -> list[PendingDecision | InputError]:
        fresh = [one for one in prepared if isinstance(one, tuple)]
        with self._step() if fresh else nullcontext():
            if fresh:
                self._do_owed_slices()
                self._settle_overdue(fresh[-1][1], SETTLED_AT_ONCE * len(fresh))
            chosen = iter([self._choose(inputs) for inputs, _ in fresh])
            return [
                self._decided(request, one, chosen)
                for request, one in zip(requests, prepared, strict=True)
            ]

    def _prepare(self, request: Request, by_id: dict[str, Request]) -> Prepared:
        """A decision to make, or the one that its id has; `by_id` are requests before it."""
        id = request.id
        if id is not None and id in by_id:
            if by_id[id] != request:
                raise ConflictError(f"id {id!r} is in this batch twice, with different requests")
            return None
        pending = None if id is None else self.decisions.named(id)
        if pending is not None:
            self._require_same(request, pending)
        prepared = pending or self.check_inputs(
            request.context,
            request.arms,
            request.subject,
            request.at,
            request.caller,
            request.baseline,
        )
        if id is not None:
            by_id[id] = request
        return prepared

    def _decided(
        self, request: Request, prepared: Prepared, chosen: Iterator[tuple[int, Choice]]
    ) -> PendingDecision | InputError:
        """The decision of a request; where it is to be made, the next of those that were
        chosen."""
        if isinstance(prepared, tuple):
            pending = self._add(prepared[0], next(chosen), request.id)
            if request.deferred:
                self._append_about(pending, Kind.DEFERRED, pending.record.at)
                pending.deferred = True
            return pending
        return prepared or self.decisions.find(request.id)

    def chances(self, pending: PendingDecision) -> dict[str, float]:
        """The chance that each arm had which could be chosen in a decision."""
        choice, arms = pending.choice, self.state.arms
        if choice.sticky:
            open_places = np.flatnonzero(choice.available).tolist()
            return {arms.label(place): float(place == choice.arm) for place in open_places}
        shares = np.zeros(arms.room)
        shares[: len(choice.counts)] = choice.counts / max(1, int(choice.counts.sum()))
        available = arms.widened(choice.available)
        chances = self.state.chances(choice.group, shares, available, choice.baseline)
        return {
            arms.label(place, pending.record.seq): float(chances[place])
            for place in np.flatnonzero(available).tolist()
        }

    def _require_fitting(self, contexts: Sequence[Mapping[str, Any]]) -> None:
        """While the schema is guessed, contexts must fit each other, and all of them an agent of
        bounded size."""
        learning = self.state.learning
        if learning.schema is not None or not contexts:
            return
        together = [*(early["context"] for early in learning.early), *contexts]
        for n, context in enumerate(contexts, len(learning.early)):
            require_same_kind(together[:n], context)
        known = {name for early in learning.early for name in early["context"]}
        if any(context.keys() - known for context in contexts):
            schema = Schema(guess(together), self.clock, guessed=True)
            require_affordable(self.settings, shape_of(self.settings, self.state.arms, schema))

    def _require_same(self, request: Request, pending: PendingDecision) -> None:
        """An id stands for one request; what the ledger does not know any more is not compared."""
        record = pending.record
        other = []
        if record.context is not None and not self._same_context(
            request.context, unpack_json(record.context)
        ):
            other.append("context")
        if record.subject != (None if request.subject is None else self.hash(request.subject)):
            other.append("subject")
        if request.at is not None and self.clock.read(request.at) != record.at:
            other.append("at")
        if not self._same_arms(request.arms, pending):
            other.append("arms")
        rule = pending.choice.baseline
        if (-1 if request.baseline is None else self.state.arms.place(request.baseline)) != rule:
            other.append("baseline")
        if other:
            raise ConflictError(
                f"id {request.id!r} was used for a decision with another {' and '.join(other)}: "
                "repeat the same request, or take a new id"
            )

    def _same_context(self, context: Any, stored: dict[str, Any]) -> bool:
        """As it was cleaned then: by the schema, or before there was one."""
        schema = self.state.learning.schema
        if schema is not None and self._hash_private(schema.clean(context)) == stored:
            return True
        return (schema is None or schema.guessed) and plain_context(context) == stored

    def _same_arms(self, arms: Any, pending: PendingDecision) -> bool:
        then = pending.choice.available
        if arms is None:
            changed = self._arms_changed > pending.record.seq
            return changed or bool((self.state.arms.available()[: len(then)] == then).all())
        places = {self.state.arms.place(label) for label in arms}
        return places == {place for place in range(len(then)) if then[place]}

    # ---- rewards

    def reward(
        self,
        id: str,
        pending: PendingDecision,
        value: float,
        at: Any,
        key: str | None,
        caller: Caller = Caller.PROCESS,
        also: Mapping[str, float] | None = None,
    ) -> tuple[Record, bool]:
        """The record that says what a decision was worth, and whether it is new."""
        stamp = self._stamp(at, caller)
        if at is not None:
            self._require_later(id, pending.record, stamp.at)
        if pending.deferred:
            return self._hold_reward(id, pending, pack_reward(value, also=also), stamp.at)
        key = (
            key if self.settings.on_duplicate == "add" else None
        )  # elsewhere the value itself says whether it is news
        if pending.paid:
            earlier = self._find_duplicate(id, pending, pack_reward(value, also=also), key)
            if earlier is not None:
                return earlier, False
        self._require_in_time(id, pending, stamp.at)
        if self.settings.learns_when_due or self.settings.holds_rewards:
            worth = self._worth([*(unpack_reward(record.body) for record in pending.paid), value])
            self.state.learning.require_reward(worth)
        return self.pay(pending, value, stamp, key, also), True

    def pay(
        self,
        pending: PendingDecision,
        value: float,
        stamp: Stamp,
        key: str | None = None,
        also: Mapping[str, float] | None = None,
    ) -> Record:
        """A reward that is new and in time."""
        with self._step():
            self._do_owed_slices()
            self._settle_overdue(stamp.now)
            self.state.owed_slices = SLICES_OF_A_CALL
            choice, decision = pending.choice, pending.record
            learn_at = self._learn_at(pending, choice)
            if learn_at is LearnAt.ARRIVAL and not self.settings.learns_when_due:
                self.state.learn(decision.seq, choice, decision.at, value)
            body = pack_reward(value, learn_at, also)
            record = self._append_about(pending, Kind.REWARD, stamp.at, body, key)
            self.state.rewards += counts(record, self.settings)
            window = self.state.learning_window
            self.state.note_reward(record, decision)
            if self.state.learning_window != window:
                self._next_due = -math.inf
            pending.paid = (*pending.paid, record)
            if self.settings.on_duplicate == "refuse" and learn_at is not LearnAt.CLOSE:
                self.decisions.done(pending)
            return record

    def _learn_at(self, pending: PendingDecision, choice: Choice) -> LearnAt:
        """When a reward that comes now is learnt; those of imported logs have all come."""
        if choice.group is DecisionGroup.IMPORTED or not self.settings.holds_rewards:
            return LearnAt.ARRIVAL
        return LearnAt.NEVER if pending.over else LearnAt.CLOSE

    def _worth(self, rewards: list[float], deferred: bool = False) -> float | None:
        """What a decision was worth when its time is over, given the rewards that came."""
        if not rewards:
            return None if deferred else self.settings.default_reward
        return sum(rewards) if self.settings.on_duplicate == "add" else rewards[-1]

    def _hold_reward(
        self, id: str, pending: PendingDecision, body: bytes, moment: float
    ) -> tuple[Record, bool]:
        """A reward waits until its decision is activated; where one may not change, the first one
        counts."""
        if pending.held and self.settings.on_duplicate == "refuse":
            return pending.held[0], False
        self._require_in_time(id, pending, moment)
        with self._step():
            record = self._append_about(pending, Kind.HELD, moment, body)
        pending.held = (*pending.held, record)
        return record, True

    def activate(self, id: str, pending: PendingDecision) -> bool:
        """A deferred decision counts from now on, with the rewards that have come; False if it does
        already."""
        if not pending.deferred:
            return False
        stamp = self._stamp(None)
        self._require_in_time(id, pending, stamp.at)
        with self._step():
            self._append_about(pending, Kind.ACTIVATED, stamp.at)
            pending.deferred = False
        for record in pending.held:
            also = unpack_outcomes(record.body)
            self.pay(pending, unpack_reward(record.body), stamp, also=also)
        return True

    def _find_duplicate(
        self, id: str, pending: PendingDecision, body: bytes, key: str | None
    ) -> Record | None:
        """The record that says the same already; another reward is an error, unless it may be added
        or replace."""
        on_duplicate = self.settings.on_duplicate
        if key is not None:
            return next((record for record in pending.paid if record.name == key), None)
        if on_duplicate == "add":
            return None
        latest = pending.paid[-1]
        value = unpack_reward(body)
        also = unpack_outcomes(body)
        if unpack_reward(latest.body) == value and unpack_outcomes(latest.body) == also:
            return latest
        if on_duplicate == "replace":
            return None
        was, new = (f"{unpack_reward(b):g}" + b[9:].decode() for b in (latest.body, body))
        raise OtherRewardError(
            f"decision {id} has the reward {was} already, and {new} is another; "
            "make the agent with on_duplicate='add' or 'replace' if rewards may change"
        )

    def _require_in_time(self, id: str, pending: PendingDecision, moment: float) -> None:
        within = self.settings.reward_within
        if within is None:
            return
        end = self._decided_at(pending.record) + within
        over = pending.over and (not self.settings.holds_rewards or self.state.latest > end)
        if over or moment > end:
            raise ExpiredError(
                f"decision {id} has expired: its reward had to come within {within:g} seconds"
            )

    def _require_later(self, id: str, record: Record, moment: float) -> None:
        """A reward is not dated before its decision, but for the difference of two clocks."""
        early = self._decided_at(record) - moment
        if early > HELD:
            raise InputError(
                f"at is {early:,.0f} seconds before decision {id} was made: give the moment of the "
                "reward, or leave it out"
            )

    def _decided_at(self, record: Record) -> float:
        """The moment of a decision by the clock of now: one that jumped since has moved it."""
        return record.at + sum(seconds for seq, seconds in self._jumps if seq > record.seq)

    def _due(self, record: Record) -> float:
        """When a decision is learnt, where missing rewards count."""
        return self._decided_at(record) + self.state.learning_window

    def _settle_overdue(self, now: float, most: int = SETTLED_AT_ONCE) -> None:
        """Decisions whose time is over: their default reward, or what came in the meantime."""
        if not self.settings.counts_missing or now < self._next_due:
            return
        self._settling = None
        settled = looked = 0
        while settled < most and looked < LOOKED_AT * most:
            record = self._oldest_waiting()
            self._next_due = math.inf if record is None else self._due(record)
            if record is None or self._next_due >= now:
                return
            settled += self._settle(self.decisions.load(self._overdue.popleft()), now)
            looked += 1
        self._settling = now

    def _oldest_waiting(self) -> Record | None:
        """The oldest decision that is not settled."""
        if not self._overdue:
            decisions = (r for r in self.ledger.tail(self.state.due) if r.kind is Kind.DECISION)
            self._overdue.extend(islice(decisions, PAGES[0]))
        return self._overdue[0] if self._overdue else None

    @property
    def is_settling(self) -> bool:
        """Whether there are decisions that are overdue and not settled."""
        return self._settling is not None

    def settle(self, most: int) -> None:
        """Settle overdue decisions, those that calls left."""
        if self._settling is not None:
            with self._step():
                self._settle_overdue(self._settling, most)

    def _settle(self, pending: PendingDecision, now: float) -> bool:
        """Whether there was something to settle: a decision that was paid in time needs nothing."""
        seq = pending.record.seq
        held = self.settings.holds_rewards and bool(pending.paid)
        learnt = held and LearnAt.of(pending.paid[0].body) is LearnAt.ARRIVAL
        waits = not pending.over and not learnt
        if waits:
            final = self._worth(
                [unpack_reward(record.body) for record in pending.paid], pending.deferred
            )
            if final is not None:
                try:
                    self.state.learn(seq, pending.choice, pending.record.at, final)
                except InputError as error:  # others must not wait for ever behind it
                    _LOG.warning("the reward of decision %d is not learnt: %s", seq, error)
                    final = None
            learn_at = LearnAt.CLOSE if held else LearnAt.ARRIVAL
            body = b"" if final is None else pack_reward(final, learn_at)
            record = self._append_about(pending, Kind.DUE, now, body)
            self.state.rewards += counts(record, self.settings)
            pending.over = True
        self.decisions.done(pending)
        self.state.due = seq
        return waits

    # ---- arms, holding still, going back

    def prepare_arms(self, change: dict[str, Any]) -> Rebuild | None:
        """A policy to be made anew beside the one that decides, where arms need more room; what
        cannot be is refused."""
        arms = self.state.arms.apply(change)
        if change["op"] == "replace":
            self._require_unbound(change["label"])
        if not self.state.arms.needs_rebuild(change, arms):
            return None
        schema = self.state.learning.schema
        require_affordable(self.settings, shape_of(self.settings, arms, schema))
        return self.state.rebuild(arms, self.settings)

    def _require_unbound(self, label: str) -> None:
        """What settings say of an arm is not said of the one that takes its place."""
        place, settings = self.state.arms.place(label), self.settings
        founder = settings.arms[place][0] if place < len(settings.arms) else None
        if founder is not None and founder in (settings.control_arm, *settings.share_bounds):
            raise ArmError(
                f"the arm '{label}' cannot be replaced: it is the control arm, or its share is "
                "bounded; retire it instead"
            )

    def change_arms(self, change: dict[str, Any], at: Any, rebuild: Rebuild | None) -> Record:
        """Arms come and go."""
        self.state.arms.apply(change)  # what cannot be is refused before anything is done
        self.flush()
        state, ledger = self.state, self.ledger
        if rebuild is not None and rebuild.settings is not self.settings:
            rebuild = None  # the policy was made anew meanwhile
        with self._step():
            self._do_owed_slices()
            state.change_arms(change, ledger, ledger.last, state.slices, rebuild)
            record = self._append(Kind.ARMS, self._moment(at), body=json.dumps(change).encode())
            self._arms_changed = record.seq
            return record

    def settings_change(self, wanted: Mapping[str, Any]) -> tuple[dict[str, Any], AgentSettings]:
        """What a change of settings to some plain values changes, as {name: [before, after]}, and
        the settings after it; what cannot be is refused."""
        state, wanted = self.state, self._with_first_labels(wanted)
        schema = state.learning.schema
        if "context" in wanted and schema is None:
            raise InputError(
                "context: its fields are still guessed from the first decisions; change them later"
            )
        present = {name: getattr(state.settings, name) for name in CHANGEABLE}
        present["context"] = None if schema is None else schema.plain()
        change = {
            name: [present[name], value] for name, value in wanted.items() if value != present[name]
        }
        settings = replace(state.settings, **{name: pair[1] for name, pair in change.items()})
        settings.require_labels([*state.founders, *(arm.label for arm in state.arms)])
        if "context" in change:
            schema = Schema(settings.context or {}, self.clock)
            require_affordable(settings, shape_of(settings, state.arms, schema))
        return change, settings

    def _with_first_labels(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that name arms, by the labels that settings have for them."""
        founders = self.state.founders

        def named(label: str) -> str:
            place = self.state.arms.place(label)
            if place >= len(founders) and label in founders:
                raise InputError(f"the arm '{label}' has the first label of another arm: rename it")
            return founders[place] if place < len(founders) else label

        changes = dict(wanted)
        if changes.get("control_arm") is not None:
            changes["control_arm"] = named(changes["control_arm"])
        if "share_bounds" in changes:
            changes["share_bounds"] = {
                named(arm): pair for arm, pair in changes["share_bounds"].items()
            }
        return changes

    def prepare_settings(self, wanted: Mapping[str, Any]) -> tuple[dict[str, Any], Rebuild | None]:
        """What a change of settings changes, and a policy to be made anew beside the one that
        decides, where it needs one."""
        change, settings = self.settings_change(wanted)
        self.flush()
        state, candidate = self.state, settings.of_candidate
        if "context" in change:
            return change, state.prepare_context(settings)
        if candidate is None or settings.has_candidate_of(state.settings):
            return change, None
        if state.learning.policy is None:
            raise InputError("promote: the context's fields are still guessed; promote it later")
        require_affordable(candidate, shape_of(candidate, state.arms, state.learning.schema))
        return change, state.rebuild(state.arms, candidate)

    def change_settings(self, wanted: Mapping[str, Any], rebuild: Rebuild | None) -> Record | None:
        """Change settings; None where they are so already."""
        change, _ = self.settings_change(wanted)
        if not change:
            return None
        body = json.dumps(change).encode()
        self.flush()
        state, ledger = self.state, self.ledger
        with self._step():
            moment = self._moment(None)
            self.flush()
            change = json.loads(body)  # as a replay has it
            state.change_settings(change, ledger, ledger.last + 1, state.slices, rebuild)
            self._next_due = -math.inf
            self._overdue.clear()
            return self._append(Kind.SETTINGS, moment, body=body)

    def hold(self, kind: Kind) -> Record:
        """Freeze or unfreeze."""
        with self._step():
            self.state.frozen = kind is Kind.FREEZE
            return self._append(kind, self._moment(None))

    def prepare_rollback(self, to: Any) -> Rollback:
        """Where to go back to."""
        self.flush()
        after = self._last_before(to)
        erased = self.erased()
        usable = [s for s in self.ledger.snapshots() if s <= after and not is_within(s, erased)]
        if not usable and self.ledger.read("whole") == "no":
            raise InputError(
                "rollback: what was known then cannot be rebuilt; its records were archived"
            )
        return Rollback(after, [*erased, (after, _LAST)], self.ledger.safe)

    def replay_rollback(self, rollback: Rollback) -> AgentState:
        """The state as it was then, made beside the one that decides."""
        return load_state(
            self._founding,
            self._salt,
            self.clock,
            self.ledger,
            rollback.erased,
            rollback.upto,
            Pace(),
        )

    def roll_back(self, rollback: Rollback, state: AgentState) -> None:
        """Take back what was learnt since."""
        self.flush()
        if state.founding is not self._founding:  # the policy was made anew meanwhile
            state = self.replay_rollback(rollback)
        with self._step():
            moment = self._moment(None)
            body = json.dumps({"to": rollback.after}).encode()
            record = self._append(Kind.ROLLBACK, moment, body=body)
            self.flush()
            self.ledger.drop_snapshots(rollback.after)
            replay(state, self.ledger, rollback.upto)
            state.erased[-1] = (rollback.after, record.seq)
            self._install(state)

    def _last_before(self, to: Any) -> int:
        to = to.id if isinstance(to, Decision) else to
        if isinstance(to, str) and (pending := self.decisions.named(to)) is not None:
            return pending.record.seq
        try:
            moment = self.clock.read(to)
        except InputError:
            raise InputError(
                f"rollback: to must be a decision of this agent or a moment such as "
                f"'2026-07-01T12:00', got {to!r}"
            ) from None
        return max((record.seq for record in self.ledger.tail(0) if record.at <= moment), default=0)

    # ---- work

    def slice(self) -> None:
        """One slice of upkeep."""
        with self._step():
            self.state.slice()

    @property
    def owes_slices(self) -> bool:
        """Whether the next call will begin with slices of upkeep, unless they are done before; none
        while kernels are being compiled. Records say how many were done."""
        state = self.state
        owes = self.pays_slices and state.owed_slices > 0 and state.learning.pending
        return owes and not compiler.is_cold()

    def _do_owed_slices(self) -> None:
        """What the call before left. When it is done changes nothing: no step comes between a call
        and its slices."""
        while self.owes_slices:
            self.state.slice()

    def take(self) -> tuple[Record, Callable[[], bytes]]:
        """The record of having taken a snapshot, and the call that makes bytes of it: others may
        decide meanwhile."""
        with self._step():
            self._do_owed_slices()
            moment = self._moment(None)  # a note of the clock belongs to the state that is taken
            taken = self.state.take()
            record = self._append(Kind.SNAPSHOT, moment)
            self.tried = record.seq
            return record, lambda: self._dump(taken, record)

    def mark_saved(self, seq: int) -> None:
        """A snapshot is in the ledger."""
        self.saved, self.unsaved = max(self.saved, seq), False

    def _dump(self, taken: Callable[[], Snapshot], record: Record) -> bytes:
        with self._step():
            return snapshots.dump({**taken(), "record": record.hash.hex()})

    def drop_old_contexts(self) -> None:
        """What `retention` says, as far as no restart needs it."""
        saved = self.ledger.snapshots()
        if self.settings.retention is not None and len(saved) >= 2:
            self.ledger.drop_contexts(saved[1], self.state.latest - self.settings.retention)

    # ---- inside

    def hash(self, text: str) -> bytes:
        """A text that must not be stored, as something that only this agent can make of it."""
        return blake2b(text.encode(), key=self._salt, digest_size=8).digest()

    def _hash_private(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """Private fields as salted hashes."""
        schema = self.state.learning.schema
        for name in schema.private if schema is not None else ():
            if name in cleaned:
                value = cleaned[name]
                several = isinstance(value, list)
                hashes = sorted(self.hash(text).hex() for text in (value if several else [value]))
                cleaned[name] = hashes if several else hashes[0]
        return cleaned

    def _moment(self, at: Any) -> float:
        return self._stamp(at).at

    def _stamp(self, at: Any, caller: Caller = Caller.PROCESS) -> Stamp:
        if at is not None and caller is Caller.PROCESS:
            moment = self.clock.read(at)
            return Stamp(moment, moment)
        if at is not None and caller is Caller.CLIENT:
            at = self.clock.read_near(at, self.settings.reward_within)
        moment, now, jumps = self.clock.stamp(self.state.latest)
        if not self.read_only:
            for jump in jumps:
                self._note(moment, jump)
        return Stamp(moment if at is None else self.clock.read(at), now)

    def _note(self, moment: float, jump: Jump) -> None:
        with self._step():
            record = self._append(Kind.NOTE, moment, body=jump.pack())
            self.state.latest = moment
            if jump.state == "believed":
                self._jumps.append((record.seq, jump.seconds))
                self._next_due = -math.inf

    def _append(
        self,
        kind: Kind,
        at: float,
        *,
        ref: int | None = None,
        body: bytes = b"",
        context: bytes | None = None,
        subject: bytes | None = None,
        name: str | None = None,
        slices: int | None = None,
    ) -> Record:
        if slices is None:
            slices, self.state.slices = self.state.slices, 0
        fields = (kind, at, slices, ref, body, context, subject, name, self.ledger.last + 1)
        self._hash = link(self._hash, *fields)
        record = Record(*fields, self._hash)
        self.ledger.append(record)
        self._latest = record.seq
        return record

    def _append_about(
        self,
        pending: PendingDecision,
        kind: Kind,
        at: float,
        body: bytes = b"",
        name: str | None = None,
    ) -> Record:
        record = self._append(kind, at, ref=pending.record.seq, body=body, name=name)
        pending.latest = record.seq
        return record

    def _step(self) -> _Step:
        if self.read_only:
            raise LedgerError(
                f"{self._where} was opened with read_only=True: nothing can be changed"
            )
        return self._around


class _Step:
    """Around everything that changes the state: what goes wrong inside makes the state dirty,
    unless it was the caller's mistake, which changes nothing."""

    def __init__(self, commands: CommandHandler) -> None:
        self._commands = commands

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, InputError):
            self._commands.mark_dirty()
