"""All that an agent knows, as a deterministic machine: the same records lead to the same state, bit
for bit.

The agent makes a record of every step; after a restart the records make the steps.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tidepull.agent.arms import Arm, Arms
from tidepull.agent.clock import Clock
from tidepull.agent.control import (
    KeptArm,
    StickyArms,
    bound_chances,
    control_chances,
    draw_arm,
    floor_chances,
    quantise,
    unit,
)
from tidepull.agent.decisions import DecisionInputs
from tidepull.agent.delays import RewardDelays
from tidepull.agent.learning import Learning
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.rebuild import Rebuild, counts, is_within, teaches
from tidepull.agent.records import (
    Choice,
    DecisionGroup,
    Kind,
    LearnAt,
    Record,
    unpack_json,
    unpack_reward,
)
from tidepull.agent.settings import AgentSettings
from tidepull.errors import LedgerError, SnapshotError
from tidepull.types import BoolArray, FloatArray, Snapshot

_LOG = logging.getLogger("tidepull")
FORMAT = 1
LAST = 2**62  # a number that no record has

SLICES_OF_A_CALL = 2
"""Slices of upkeep, of 0.1 to 0.2 ms, that a decision or a reward leaves to the background, or else
to the next call. Work that replays arriving rewards must be quicker than they come."""


class AgentState:
    """The state of an agent. `erased` are spans of records (after, upto] that a rollback took
    back."""

    def __init__(self, settings: AgentSettings, salt: bytes, clock: Clock) -> None:
        self.settings = self.founding = settings
        self.clock = clock
        self._salt = salt
        self.arms = Arms([Arm(*arm) for arm in settings.arms], settings.capacity)
        self.learning = Learning(settings, clock, self.arms)
        self.frozen = False
        self.sticky = StickyArms()
        self.latest = -1e300
        self.decisions = 0
        self.rewards = 0
        self.due = 0
        self.delays = RewardDelays(settings.reward_within or 0.0)
        self.late_rewards = 0  # those that came after the learning window
        self.slices = 0  # of upkeep, since the last record
        self.owed_slices = 0  # those that the last call left to the background, or the next call
        self.differences = 0
        self.erased: list[tuple[int, int]] = []
        self.stale = False  # the policy knows nothing, and is made anew before it decides
        self.rebuild_at = 0  # the record of the last upgrade
        self.upgrading: Rebuild | None = None  # an upgrade that is under way
        self._bounds()

    def decide(self, inputs: DecisionInputs) -> Choice:
        """Choose an arm; a round of the policy begins."""
        group = self.group(inputs)
        sticky = None if inputs.subject is None else self._sticky_arm(inputs, group)
        draws: list[tuple[int, float, FloatArray]] = []

        def pick(shares: FloatArray) -> int:
            if sticky is not None:
                draws.append((sticky.arm, sticky.propensity, shares))
            else:
                chances = self.chances(group, shares, inputs.available, inputs.baseline)
                arm = draw_arm(chances, unit(self._salt, "arm", self.decisions))
                draws.append((arm, float(chances[arm]), shares))
            return draws[0][0] if inputs.played is None else inputs.played

        _, number, x = self.learning.decide(
            inputs.cleaned, inputs.at, inputs.available, self.settings.propensity_draws, pick
        )
        self.latest, self.decisions = inputs.at, self.decisions + 1
        arm, chance, shares = draws[0]
        if inputs.imported and inputs.played is not None:
            arm, chance = inputs.played, inputs.propensity
        choice = Choice(
            arm, group, chance, number, quantise(shares), x, inputs.available,
            inputs.baseline, sticky is not None, self.learning.share, self.learning.candidate_counts,
        )  # fmt: skip
        self._keep(inputs.subject, choice, inputs.at)
        return choice

    def _sticky_arm(self, inputs: DecisionInputs, group: DecisionGroup) -> KeptArm | None:
        """The arm that a subject keeps, if it can be chosen. The control keeps no arm that the
        caller's rule takes."""
        if inputs.baseline >= 0 and group is DecisionGroup.CONTROL:
            return None
        sticky = self.sticky.find(inputs.subject, group, inputs.at)
        return sticky if sticky is not None and inputs.available[sticky.arm] else None

    def _keep(self, subject: bytes | None, choice: Choice, at: float) -> None:
        """A subject keeps the arm that was drawn for it."""
        length, drawn = self.settings.sticky, choice.group <= DecisionGroup.CONTROL
        if length is not None and subject is not None and drawn and not choice.sticky:
            sticky = KeptArm(choice.arm, choice.propensity, choice.group, at + length)
            self.sticky.keep(subject, sticky, at)

    def group(self, inputs: DecisionInputs) -> DecisionGroup:
        """Who chooses in the coming decision."""
        if self.learning.in_warmup:
            return DecisionGroup.WARMUP
        if inputs.imported:
            return DecisionGroup.IMPORTED
        if self.settings.control == 0.0:
            return DecisionGroup.POLICY
        subject = inputs.subject
        of = ("decision", self.decisions) if subject is None else ("subject", subject.hex())
        in_control = unit(self._salt, "group", *of) < self.settings.control
        return DecisionGroup.CONTROL if in_control else DecisionGroup.POLICY

    def chances(
        self, group: DecisionGroup, shares: FloatArray, available: BoolArray, baseline: int = -1
    ) -> FloatArray:
        """What each arm's chance is, given who chooses, how often each came out best in the
        policy's draws, and the arm of the present rule (-1: none)."""
        if group is DecisionGroup.CONTROL:
            return control_chances(available, baseline if baseline >= 0 else self.control_place)
        least = self.settings.min_share
        if least is None:
            shares = floor_chances(shares, available)
        if self._unbounded:
            return shares
        return bound_chances(shares, available, least or 0.0, self._least, self._most)

    def learn(self, seq: int, choice: Choice, decided_at: float, reward: float) -> bool:
        """The reward of decision `seq`; False where it is not learnt: frozen, or the decision was
        taken back."""
        learns = not self.frozen and not is_within(seq, self.erased)
        if learns:
            if self.learning.schemas and choice.group is not DecisionGroup.WARMUP:
                choice = self.learning.refit(choice, decided_at, seq)
            self.learning.learn(choice, decided_at, reward)
        return learns

    def note_reward(self, record: Record, decision: Record) -> None:
        """A reward that is not learnt when it comes: what its delay tells. It came by the clock of
        the latest decision if that is ahead, as a reward may say when it was earned."""
        learn_at = LearnAt.of(record.body)
        if learn_at is LearnAt.ARRIVAL:
            return
        self.late_rewards += learn_at is LearnAt.NEVER
        choice, now = Choice.unpack(decision.body), max(record.at, self.latest)
        draw, delay = unit(self._salt, "delay", choice.round), now - decision.at
        self.delays.add(choice.arm, decided_at=decision.at, delay=delay, draw=draw, now=now)

    @property
    def learning_window(self) -> float:
        """Seconds after which a decision is learnt, where missing rewards count."""
        settings = self.settings
        return self.delays.window if settings.holds_rewards else settings.reward_within or 0.0

    def slice(self) -> bool:
        """One slice of upkeep, counted; True while more is pending."""
        self.slices, self.owed_slices = self.slices + 1, max(0, self.owed_slices - 1)
        return self.learning.slice()

    def rebuild(self, arms: Arms, settings: AgentSettings) -> Rebuild:
        """A fresh policy with these arms and settings, to be brought up to date from the ledger."""
        return Rebuild(self.learning, settings, arms, self.erased)

    def change_arms(
        self,
        change: Mapping[str, Any],
        ledger: Ledger,
        upto: int,
        slices: int,
        rebuild: Rebuild | None = None,
    ) -> None:
        """Arms come and go; where there is no room, the policy is built anew from the ledger up to
        a record: by `rebuild` where that has begun. `slices` of upkeep were done since it."""
        arms = self.arms.apply(change)
        if self.stale or not self.arms.needs_rebuild(change, arms):
            self.learning.with_arms(arms)
        else:
            rebuild = rebuild or self.rebuild(arms, self.settings)
            rebuild.advance(ledger, upto)
            self.learning = rebuild.finish(self.learning, self.decisions, slices)
        self.arms = arms
        if change["op"] == "replace":
            self.sticky.drop_arm(self.arms.place(change["to"]))
        if change["op"] == "rename":
            self.settings = self.settings.renamed(change["label"], change["to"])
        self._bounds()

    @property
    def founders(self) -> list[str]:
        """The first labels of the arms with which the agent was made."""
        return [arm[0] for arm in self.settings.arms]

    def prepare_context(self, settings: AgentSettings) -> Rebuild:
        """A fresh policy for other fields of contexts; records that come meanwhile have the fields
        of now."""
        learning = copy.copy(self.learning)
        learning.change_schema(settings, LAST)
        return Rebuild(learning, settings, self.arms, self.erased)

    def change_settings(
        self,
        change: Mapping[str, Any],
        ledger: Ledger,
        seq: int,
        slices: int,
        rebuild: Rebuild | None = None,
    ) -> None:
        """Settings change by record `seq`: {name: [before, after]}. Where fields of contexts come
        and go, the policy is built anew."""
        before = self.settings
        self.settings = replace(before, **{name: pair[1] for name, pair in change.items()})
        if self.settings.counts_missing and not before.counts_missing:
            self.due = max(self.due, seq)  # decisions until now were promised no default
        if "context" in change:
            self.learning.change_schema(self.settings, seq)
            if not self.stale:
                rebuild = rebuild or self.rebuild(self.arms, self.settings)
                rebuild.advance(ledger, seq - 1)
                self.learning = rebuild.finish(self.learning, self.decisions, slices)
        else:
            self.learning.with_settings(self.settings)
        if not before.has_candidate_of(self.settings):
            self._change_candidate(rebuild, ledger, seq, slices)
        self._bounds()

    def _change_candidate(self, rebuild: Rebuild | None, ledger: Ledger, seq: int, n: int) -> None:
        """Another candidate has a share of the decisions from record `seq` on, or none has."""
        settings = self.settings.of_candidate
        if settings is None or self.stale or self.learning.policy is None:
            self.learning.join(None)
            return
        rebuild = rebuild or self.rebuild(self.arms, settings)
        rebuild.advance(ledger, seq - 1)
        self.learning.join(rebuild.finish(self.learning, self.decisions, n))

    def upgrade(
        self,
        settings: AgentSettings,
        ledger: Ledger,
        upto: int,
        slices: int,
        rebuild: Rebuild | None = None,
    ) -> int:
        """Make the policy of some settings anew from the ledger up to a record; how many decisions
        it has lived through. `slices` of upkeep were done since that record."""
        self.settings = settings
        self.upgrading = rebuild = rebuild or self.rebuild(self.arms, settings)
        try:
            rebuild.advance(ledger, upto)
        finally:
            self.upgrading = None
        self.learning = rebuild.finish(self.learning, self.decisions, slices)
        self.stale = False
        return rebuild.count

    def apply(self, record: Record, ledger: Ledger) -> None:
        """Make the step that a record is of, and compare with what it says."""
        if record.kind is Kind.UPGRADE:
            body = unpack_json(record.body)
            self.settings = self.settings.without_promoted(body["policy"], body["parameters"])
            if record.seq == self.rebuild_at:
                self.upgrade(self.settings, ledger, record.seq - 1, record.slices)
            return
        if record.kind is Kind.REWARD and LearnAt.of(record.body) is not LearnAt.ARRIVAL:
            decision = ledger.decision(record.ref or 0)
            if decision is not None:
                self.note_reward(record, decision)
        if is_within(record.seq, self.erased):
            self._apply_erased(record, ledger)
            return
        if self.stale:
            self._follow(record, ledger)
            return
        for _ in range(record.slices):
            self.slice()
        self.slices = 0
        if record.kind is Kind.DECISION:
            self._repeat(record)
        elif record.kind in (Kind.REWARD, Kind.DUE):
            self._learn_again(record, ledger)
        elif record.kind is Kind.SNAPSHOT:
            self.learning.take()
        else:
            self._apply_plain(record, ledger, record.slices)
        if record.kind in (Kind.DECISION, Kind.REWARD):
            self.owed_slices = SLICES_OF_A_CALL

    def _follow(self, record: Record, ledger: Ledger) -> None:
        """Of a record before an upgrade: all but what the policy made of it."""
        if record.kind is Kind.DECISION:
            self.learning.follow(Choice.unpack(record.body), record.context, record.at)
        elif (
            record.kind in (Kind.REWARD, Kind.DUE)
            and teaches(record, self.settings)
            and not self.frozen
        ):
            decision = ledger.decision(record.ref or 0)
            if decision is not None:
                choice = Choice.unpack(decision.body)
                self.learning.pay_early(choice, unpack_reward(record.body))
        self._apply_erased(record, ledger)

    def _apply_erased(self, record: Record, ledger: Ledger) -> None:
        """Of what was taken back, only arms, counts and the clock remain."""
        if record.kind is Kind.DECISION:
            self.latest, self.decisions = record.at, self.decisions + 1
            self._keep(record.subject, Choice.unpack(record.body), record.at)
        elif record.kind in (Kind.REWARD, Kind.DUE):
            self._passed(record)
        elif record.kind is not Kind.SNAPSHOT:
            self._apply_plain(record, ledger, 0)

    def _apply_plain(self, record: Record, ledger: Ledger, slices: int) -> None:
        if record.kind is Kind.ARMS:
            self.change_arms(unpack_json(record.body), ledger, record.seq - 1, slices)
        elif record.kind in (Kind.FREEZE, Kind.UNFREEZE):
            self.frozen = record.kind is Kind.FREEZE
        elif record.kind is Kind.SETTINGS:
            self.change_settings(unpack_json(record.body), ledger, record.seq, slices)
        elif record.kind is Kind.NOTE:
            self.latest = record.at

    def _repeat(self, record: Record) -> None:
        choice = Choice.unpack(record.body)
        if record.context is None:
            raise LedgerError(
                f"decision {record.seq} cannot be repeated: its context was dropped; a newer "
                "snapshot is needed"
            )
        imported = choice.group is DecisionGroup.IMPORTED
        available = self.arms.widened(choice.available)
        cleaned = unpack_json(record.context)
        inputs = DecisionInputs(
            cleaned, record.at, available, record.subject, choice.arm, imported,
            choice.baseline, choice.propensity,
        )  # fmt: skip
        decided = self.decide(inputs)
        if not choice.is_same(decided):
            self.differences += 1
            if self.differences == 1:
                _LOG.warning(
                    "decision %d came out otherwise when it was repeated (another machine or "
                    "version?); "
                    "what the ledger says counts (said once)",
                    record.seq,
                )

    def _learn_again(self, record: Record, ledger: Ledger) -> None:
        decision = ledger.decision(record.ref or 0)
        if decision is None:
            raise LedgerError(
                f"record {record.seq} belongs to decision {record.ref}, which is not there"
            )
        if teaches(record, self.settings):
            self.learn(
                decision.seq, Choice.unpack(decision.body), decision.at, unpack_reward(record.body)
            )
        self._passed(record)

    def _passed(self, record: Record) -> None:
        self.rewards += counts(record, self.settings)
        if record.kind is Kind.DUE:
            self.due = max(self.due, record.ref or 0)

    def _bounds(self) -> None:
        self._least, self._most = np.zeros(self.arms.room), np.ones(self.arms.room)
        for label, bounds in self.settings.share_bounds.items():
            place = self._place(label)
            self._least[place], self._most[place] = bounds
        self._unbounded = not self.settings.min_share and not self.settings.share_bounds
        wanted = self.settings.control_arm
        self.control_place = None if wanted is None else self._place(wanted)

    def _place(self, label: str) -> int:
        founders = self.founders
        return founders.index(label) if label in founders else self.arms.place(label)

    def take(self) -> Callable[[], Snapshot]:
        """The whole state as it is now, made ready for saving by the call that is returned; work
        under way starts anew, here too."""
        learning = self.learning.take()
        taken = {
            "format": FORMAT,
            "arms": self.arms.plain(),
            "frozen": self.frozen,
            "latest": self.latest,
            "decisions": self.decisions,
            "rewards": self.rewards,
            "due": self.due,
            "erased": [list(span) for span in self.erased],
            "delays": self.delays.snapshot(),
            "late_rewards": self.late_rewards,
        }
        if len(self.sticky):
            taken["sticky"] = self.sticky.plain()
        if changed := self.settings.changed_since(self.founding):
            taken["settings"] = changed
        return lambda: {**taken, "learning": learning()}

    def restore(self, snapshot: Snapshot) -> bool:
        """Continue from a snapshot. False: all but the policy, which is another one."""
        if snapshot.get("format") != FORMAT:
            raise SnapshotError(
                f"the agent's snapshot has the format {snapshot.get('format')}, not {FORMAT}"
            )
        self.settings = replace(self.settings, **snapshot.get("settings", {}))
        self.arms = Arms.restored(snapshot["arms"])
        self.learning = Learning(self.settings, self.clock, self.arms)
        fits = self.learning.restore(snapshot["learning"])
        self.frozen, self.latest = bool(snapshot["frozen"]), float(snapshot["latest"])
        self.decisions, self.rewards = int(snapshot["decisions"]), int(snapshot["rewards"])
        self.due = int(snapshot["due"])
        if "sticky" in snapshot:
            self.sticky = StickyArms.restored(snapshot["sticky"])
        self.erased = [(int(after), int(upto)) for after, upto in snapshot["erased"]]
        if "delays" in snapshot:  # not before 0.3
            self.delays.restore(snapshot["delays"])
            self.late_rewards = int(snapshot["late_rewards"])
        self._bounds()
        return fits
