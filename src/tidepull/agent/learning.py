"""What an agent has learnt: the policy, what its fields have seen, and the first decisions while a
schema is guessed.

It is the part that a rollback takes back, and that is built anew when more arms come than there is
room for.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidepull._internal.system import one_blas_thread
from tidepull.agent.arms import Arms
from tidepull.agent.clock import CALENDAR, Clock
from tidepull.agent.control import quantise
from tidepull.agent.fields import FieldState
from tidepull.agent.records import Choice, DecisionGroup, unpack_json
from tidepull.agent.schema import ENOUGH, Schema, guess, to_single_precision
from tidepull.agent.settings import AgentSettings
from tidepull.errors import LedgerError, SnapshotError
from tidepull.policies import build_policy
from tidepull.policies.guard import Guarded
from tidepull.protocols import HasRewardCheck, Pick
from tidepull.types import BoolArray, Context, Event, FloatArray, IntArray, ProblemShape, Snapshot

if TYPE_CHECKING:
    from tidepull.policies.guard import Guarded

_LOG = logging.getLogger("tidepull")


class Learning:
    """A policy behind a schema. Every method is a deterministic step."""

    def __init__(self, settings: AgentSettings, clock: Clock, arms: Arms) -> None:
        self._settings = settings
        self._clock = clock
        self._arms = arms
        self.schema: Schema | None = None
        self.seen: dict[str, FieldState] = {}
        self.schemas: list[tuple[int, dict[str, Any]]] = []
        """Where the schema has changed: every one there was, and the record from which on."""
        self.policy: Guarded | None = None
        self.candidate: Learning | None = None  # another policy, which has a share of decisions
        self.candidate_counts: IntArray | None = None  # what it found in the latest decision
        self.shares: FloatArray | None = None  # what the policy found in a decision it repeated
        self.early: list[
            dict[str, Any]
        ] = []  # the first decisions, made while the schema is guessed
        self._settled = settings.context is not None
        self.first_round = 0  # the round, as ledgers count, that is the policy's round 0
        self._unsure = (
            False  # whether upkeep may have something to do, for policies that do not say
        )
        if settings.context is not None:
            self._begin(Schema(settings.context, clock))

    def _begin(self, schema: Schema) -> None:
        self.schema, self.seen = schema, schema.fresh()
        self.policy = self._build(schema)
        self.candidate = self._fresh_candidate()

    def _fresh_candidate(self) -> Learning | None:
        settings = self._settings.of_candidate
        if settings is None or self.schema is None:
            return None
        candidate = Learning(replace(settings, context=None), self._clock, self._arms)
        candidate.schema, candidate.policy = self.schema, candidate._build(self.schema)
        return candidate

    def _build(self, schema: Schema) -> Guarded:
        settings, shape = self._settings, shape_of(self._settings, self._arms, schema)
        return build_policy((settings.policy, settings.parameters), shape, seed=settings.seed)

    def encode(self, cleaned: Mapping[str, Any], at: float) -> FloatArray:
        """What the policy sees of a context; what fields have seen moves on."""
        if self.schema is None:
            return np.empty(0)
        row = self.schema.encode(cleaned, at, self.seen)
        return to_single_precision(
            row + self._clock.calendar(at) if self._settings.time_features else row
        )

    def decide(
        self, cleaned: Mapping[str, Any], at: float, available: BoolArray, draws: int, pick: Pick
    ) -> tuple[int, int, FloatArray]:
        """A decision in a context: the arm that `pick` chose, the policy's round (while a schema is
        guessed: how many decisions there were before), and what the policy saw."""
        if not self._settled and not self.in_warmup:
            self._guess()
            self.settle()
        if self.policy is None:
            arm = pick(available / available.sum())
            self.early.append(
                {
                    "context": dict(cleaned),
                    "at": at,
                    "arm": arm,
                    "available": available.tolist(),
                    "reward": None,
                }
            )
            return arm, len(self.early) - 1, np.empty(0)
        x = self.encode(cleaned, at)
        arm = self._choose_by(x, at, available, draws, pick)
        return arm, self.next_round - 1, x

    def _choose_by(
        self, x: FloatArray, at: float, available: BoolArray, draws: int, pick: Pick
    ) -> int:
        """A round of the policy, and of the candidate: `pick` sees the shares of both together."""
        assert self.policy is not None
        candidate = self.candidate
        context = self._context(x, at, available)
        if candidate is None:
            return self.policy.choose_by(context, draws, pick)
        number, theirs = self.next_round, candidate._fitted(x, at)

        def ask_candidate(shares: FloatArray) -> int:
            def mix(of_candidate: FloatArray) -> int:
                self.candidate_counts = quantise(of_candidate)
                return pick((1 - self.share) * shares + self.share * of_candidate)

            while candidate.next_round < number:  # decisions before it were removed
                candidate._choose_by(theirs, at, available, draws, lambda s: int(np.argmax(s)))
            return candidate._choose_by(theirs, at, available, draws, mix)

        return self.policy.choose_by(context, draws, ask_candidate)

    @property
    def share(self) -> float:
        """The candidate's share of the decisions."""
        return 0.0 if self._settings.promotion is None else float(self._settings.promotion[2])

    @property
    def next_round(self) -> int:
        """The number, as ledgers count, of the round that comes next."""
        return self.first_round + (0 if self.policy is None else self.policy.rounds)

    def begin_at(self, number: int) -> None:
        """The round that comes next has that number, as ledgers count."""
        assert self.policy is not None
        self.first_round = number - self.policy.rounds
        if self.candidate is not None:
            self.candidate.begin_at(number)

    def join(self, candidate: Learning | None) -> None:
        """A candidate decides too from now on; None: none does."""
        if candidate is not None and candidate.next_round > self.next_round:
            candidate.begin_at(self.next_round)  # it has seen no decision
        self.candidate, self.candidate_counts = candidate, None

    @property
    def in_warmup(self) -> bool:
        """Whether the coming decision is one of those from which the schema is guessed."""
        return self.schema is None and len(self.early) < ENOUGH

    def repeat(self, choice: Choice, at: float) -> None:
        """A decision of the ledger once more, as it was; there may be more room now."""

        def pick(shares: FloatArray) -> int:
            self.shares = shares
            return choice.arm

        draws = self._settings.propensity_draws
        self._choose_by(choice.x, at, self._arms.widened(choice.available), draws, pick)

    def learn(self, choice: Choice, at: float, reward: float) -> None:
        """The reward of a decision that was made at that time."""
        if self.candidate is not None:
            self.candidate.require_reward(reward)
        if choice.group is DecisionGroup.WARMUP:
            if choice.round >= len(self.early):  # it is not there any more
                return
            early = self.early[choice.round]
            early["reward"] = reward
            if not self._settled:
                return
            choice = self._early_choice(choice.round)
            at = early["at"]
        self._learn(choice, at, reward)
        if self.candidate is not None:
            self.candidate._learn(choice, at, reward)

    def _learn(self, choice: Choice, at: float, reward: float) -> None:
        assert self.policy is not None
        number = choice.round - self.first_round
        if number < 0:
            return
        context = self._context(self.refit(choice, at).x, at, self._arms.widened(choice.available))
        self.policy.learn(Event(context, choice.arm, reward, number))
        self._unsure = True

    def require_reward(self, reward: float | None) -> None:
        """A `RewardError` where the policy does not take such a reward, as far as it says so before
        it learns."""
        if (
            reward is not None
            and self.policy is not None
            and isinstance(self.policy.inner, HasRewardCheck)
        ):
            self.policy.inner.require_reward(reward)
        if self.candidate is not None:
            self.candidate.require_reward(reward)

    def slice(self) -> bool:
        """One slice of upkeep; True while more is pending."""
        if self.policy is None:
            return False
        with one_blas_thread():
            more = self.policy.upkeep()
        self._unsure = more
        return (self.candidate is not None and self.candidate.slice()) or more

    def catch_up(self) -> None:
        """All upkeep that is pending."""
        while self.pending:
            self.slice()

    @property
    def pending(self) -> bool:
        """Whether upkeep has something to do."""
        if self.candidate is not None and self.candidate.pending:
            return True
        if self.policy is None or not hasattr(self.policy.inner, "upkeep"):
            return False
        pending = getattr(self.policy.inner, "pending", None)
        return self._unsure if pending is None else bool(pending)

    def with_settings(self, settings: AgentSettings) -> None:
        """Settings have changed that the policy does not see."""
        self._settings = settings

    @property
    def under_way(self) -> bool:
        """Whether upkeep has begun a piece of work that a snapshot would start anew."""
        if self.candidate is not None and self.candidate.under_way:
            return True
        return self.policy is not None and getattr(self.policy.inner, "under_way", False)

    def with_arms(self, arms: Arms) -> None:
        """The arms have changed, but not their room."""
        self._arms = arms
        if self.candidate is not None:
            self.candidate.with_arms(arms)

    def _context(self, x: FloatArray, at: float, available: BoolArray) -> Context:
        rows = self._arms.rows(x, available)
        time = self._clock.local(at)
        if rows is not None:
            return Context(None, rows, available, time)
        return Context(x if len(x) else None, None, available, time)

    def coming_schema(self) -> Schema | None:
        """What the next context must fit; None where it is one of those from which the schema is
        guessed."""
        if self.schema is not None or self.in_warmup:
            return self.schema
        return Schema(guess([early["context"] for early in self.early]), self._clock, guessed=True)

    def _guess(self) -> None:
        """The first decisions say what the schema is."""
        schema = self.coming_schema()
        assert schema is not None
        self._begin(schema)
        for early in self.early:
            early["x"] = self.encode(schema.clean(early["context"]), early["at"]).tolist()

    def settle(self) -> None:
        """The policy lives through the first decisions, with those rewards that have come."""
        if self._settled:
            return
        self._settled = True
        for number, early in enumerate(self.early):
            choice = self._early_choice(number)
            self.repeat(choice, early["at"])
            early["context"] = {}
            if early["reward"] is not None:
                self.learn(choice, early["at"], early["reward"])

    def _early_choice(self, number: int) -> Choice:
        early = self.early[number]
        available = np.array(early["available"])
        return Choice(
            early["arm"],
            DecisionGroup.POLICY,
            1.0,
            number,
            np.empty(0, np.int64),
            np.array(early["x"]),
            available,
        )

    def follow(self, choice: Choice, context: bytes | None, at: float) -> None:
        """What a decision of the ledger leaves in the fields; the policy is not asked."""
        if choice.group is DecisionGroup.WARMUP:
            if context is not None and self.schema is None:
                early = {"context": unpack_json(context), "at": at, "arm": choice.arm}
                self.early.append({**early, "available": choice.available.tolist(), "reward": None})
            return
        if self.schema is None:
            if not self.early:
                raise LedgerError(
                    "the schema was guessed from decisions that are not there any more, and no "
                    "snapshot has it: restore a copy"
                )
            self._guess()
        if context is not None:
            self.encode(unpack_json(context), at)

    def pay_early(self, choice: Choice, reward: float) -> None:
        """The reward of one of the first decisions, kept for the policy that is made later."""
        if choice.group is DecisionGroup.WARMUP and choice.round < len(self.early):
            self.early[choice.round]["reward"] = reward

    def change_schema(self, settings: AgentSettings, seq: int) -> None:
        """The fields of contexts are others from record `seq` on. The policy is still the one of
        the fields before: it must be built anew."""
        assert self.schema is not None
        before, self._settings = self.schema, settings
        self.schemas = self.schemas or [(0, before.plain())]
        schema = Schema(settings.context or {}, self._clock)
        self.schemas = [*self.schemas, (seq, schema.plain())]
        self.early = [
            {**early, "x": schema.converted(np.array(early["x"]), before).tolist()}
            for early in self.early
        ]
        same = {name for name, field in schema.fields.items() if before.fields.get(name) == field}
        fresh = schema.fresh()
        self.seen = {name: self.seen[name] if name in same else fresh[name] for name in fresh}
        self.schema = schema
        self._ignore_dropped()

    def _ignore_dropped(self) -> None:
        assert self.schema is not None
        names = {name for _, plain in self.schemas for name in plain}
        self.schema.dropped = frozenset(names - set(self.schema.fields))

    def refit(self, choice: Choice, at: float, seq: int | None = None) -> Choice:
        """Decision `seq` as this policy sees it: with its fields (None: it has them), with the
        calendar or without."""
        assert self.schema is not None
        if self.schemas and seq is not None and seq < self.schemas[-1][0]:
            plain = next(plain for first, plain in reversed(self.schemas) if first <= seq)
            before = Schema(plain, self._clock)
            moved = self.schema.converted(choice.x[: before.width], before)
            return choice._replace(x=self._fitted(moved, at))
        x = self._fitted(choice.x, at)
        return choice if len(x) == len(choice.x) else choice._replace(x=x)

    def _fitted(self, x: FloatArray, at: float) -> FloatArray:
        """An encoded context as this policy sees it: with the calendar or without."""
        assert self.schema is not None
        width = self.schema.width
        if not self._settings.time_features:
            return x[:width]
        if len(x) == width + len(CALENDAR):  # as it was encoded
            return x
        return to_single_precision([*x[:width].tolist(), *self._clock.calendar(at)])

    def grow(self, arms: Arms, settings: AgentSettings) -> Learning:
        """A fresh policy, which knows the schema and what fields have seen, and nothing else."""
        fresh = Learning(settings, self._clock, arms)
        fresh.schema, fresh.seen, fresh.schemas = self.schema, self.seen, self.schemas
        if self.schema is None:
            fresh.early = self.early
            return fresh
        fresh.early = [{**early, "reward": None} for early in self.early]
        fresh._settled = not fresh.early
        fresh.policy = fresh._build(self.schema)
        fresh.candidate = fresh._fresh_candidate()
        return fresh

    def take(self) -> Callable[[], Snapshot]:
        """The whole state as it is now, made ready for saving by the call that is returned; work
        under way starts anew, here too."""
        schema = None if self.schema is None else self.schema.plain()
        policy = None if self.policy is None else self.policy.take()
        taken: dict[str, Any] = {
            "schema": schema,
            "guessed": self.schema is not None and self.schema.guessed,
            "seen": copy.deepcopy(self.seen),
            "early": copy.deepcopy(self.early),
            "first_round": self.first_round,
            "unsure": self._unsure,
        }
        if self.schemas:
            taken["schemas"] = [[first, plain] for first, plain in self.schemas]
        candidate = None if self.candidate is None else self.candidate._take_policy()
        return lambda: {
            **taken,
            "policy": None if policy is None else policy(),
            **({} if candidate is None else {"candidate": candidate()}),
        }

    def _take_policy(self) -> Callable[[], Snapshot]:
        assert self.policy is not None
        policy, first_round, unsure = self.policy.take(), self.first_round, self._unsure
        return lambda: {"policy": policy(), "first_round": first_round, "unsure": unsure}

    def _restore_policy(self, snapshot: Snapshot) -> bool:
        """Continue from the policy in a snapshot; False: it is another one, or of another
        release."""
        assert self.policy is not None
        self.first_round, self._unsure = int(snapshot["first_round"]), bool(snapshot["unsure"])
        try:
            self.policy.restore(snapshot["policy"])
        except SnapshotError as error:
            _LOG.info("the policy in a snapshot is of another form: %s", error)
            return False
        return True

    def restore(self, snapshot: Snapshot) -> bool:
        """Continue from a snapshot. False: its policy is another one, or of another release, and
        is left as it was."""
        fits = True
        self.early = [dict(early) for early in snapshot["early"]]
        if snapshot["schema"] is not None:
            self._begin(Schema(snapshot["schema"], self._clock, guessed=snapshot["guessed"]))
            self.schemas = [(first, plain) for first, plain in snapshot.get("schemas", [])]
            self._ignore_dropped()
            fits = self._restore_policy(snapshot)
            if self.candidate is not None:
                part = snapshot.get("candidate")
                fits = part is not None and self.candidate._restore_policy(part) and fits
        elif self.schema is not None:
            raise SnapshotError("the snapshot has no schema, but the agent has one")
        self._settled = self.schema is not None
        self.seen = {name: list(state) for name, state in snapshot["seen"].items()}
        return fits


def shape_of(settings: AgentSettings, arms: Arms, schema: Schema | None) -> ProblemShape:
    """What a policy is built for."""
    observed = 0 if schema is None else schema.width
    observed += len(CALENDAR) if settings.time_features else 0
    width = arms.row_width(observed)
    return ProblemShape(arms.room, 0 if width else observed, width)
