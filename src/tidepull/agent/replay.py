"""The state of an agent from its ledger: the newest sound snapshot, and the records after it; and
whether a ledger is sound: hashes of its records, snapshots, and a replay from its start."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np

from tidepull import state as snapshots
from tidepull.agent.clock import LEAST, MOST, Clock
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.rebuild import Pace, Spans, is_within
from tidepull.agent.records import Chain, Kind, Record
from tidepull.agent.settings import AgentSettings
from tidepull.agent.state import AgentState
from tidepull.errors import LedgerError, SnapshotError, TidepullError
from tidepull.types import Snapshot

_LOG = logging.getLogger("tidepull")


def load_state(
    settings: AgentSettings,
    salt: bytes,
    clock: Clock,
    ledger: Ledger,
    erased: Spans,
    upto: int | None = None,
    pace: Pace | None = None,
) -> AgentState:
    """The state after the records of a ledger up to a number (None: all): the newest sound
    snapshot, and what came after it once more. Where the policy is another one than it was, or of
    another release, the state is `stale`: it must be upgraded before it decides."""
    state, seq = newest_state(settings, salt, clock, ledger, erased)
    return replay(state, ledger, seq, upto, pace)


def newest_state(
    settings: AgentSettings, salt: bytes, clock: Clock, ledger: Ledger, erased: Spans
) -> tuple[AgentState, int]:
    """The state of the newest sound snapshot that is not in one of the spans `erased`, and its
    record; a fresh state and 0 where there is none."""
    seqs = ledger.snapshots()
    if seqs and seqs[0] > ledger.safe:
        raise LedgerError(
            f"the ledger ends at record {ledger.safe:,}, and has a snapshot of record {seqs[0]:,}: "
            "its end is missing; restore a copy"
        )
    for seq in seqs:
        if is_within(seq, erased):
            continue
        state = AgentState(settings, salt, clock)
        try:
            fits = state.restore(snapshots.load(ledger.snapshot(seq)))
        except (SnapshotError, LedgerError, KeyError, TypeError, ValueError) as error:
            _LOG.warning(
                "the snapshot at record %d cannot be used (%s); the one before it is tried",
                seq,
                error,
            )
            continue
        begin(state, ledger, seq)
        state.stale |= not fits
        if not fits and state.rebuild_at <= seq:
            state.rebuild_at = 0
        state.erased = list(erased)
        return state, seq
    if ledger.read("whole") == "no":
        raise LedgerError(
            "no snapshot can be used, and early records are not there any more: restore a copy"
        )
    state = AgentState(settings, salt, clock)
    begin(state, ledger, 0)
    state.erased = list(erased)
    return state, 0


def begin(state: AgentState, ledger: Ledger, seq: int) -> None:
    """Say of a state after record `seq` whether its policy is made by an upgrade that follows, or
    must be made by one to come."""
    upgrades = ledger.of_kind(Kind.UPGRADE)
    current, latest = state.settings.is_current, upgrades[-1].seq if upgrades else 0
    state.stale = not current or seq < latest
    state.rebuild_at = latest if current else 0


def replay(
    state: AgentState, ledger: Ledger, after: int, upto: int | None = None, pace: Pace | None = None
) -> AgentState:
    """Make the steps of some records; `pace`: beside other threads. A record that is not as it was
    written is named in the log."""
    chain = Chain(next((record.hash for record in ledger.tail(after - 1, after)), b""))
    damaged = False
    for record in ledger.tail(after, upto):
        if not chain.fits(record) and not damaged:
            damaged = True
            _LOG.error(
                "record %d is not as it was written, or one before it is missing: `tidepull agent "
                "FILE check` says more, and a copy should be restored (said once)",
                record.seq,
            )
        state.apply(record, ledger)
        if pace is not None:
            pace.rest()
    return state


@dataclass(frozen=True, slots=True)
class LedgerCheck:
    """What was found in a ledger. `differences` are decisions that come out otherwise when
    repeated, `damaged_records` those whose hash does not fit, or that do not come after the one
    that they came after. `last` is the number of the last record, and `last_at` its moment: what a
    copy of the file without its log lacks is behind it."""

    records: int
    decisions: int
    rewards: int
    doubled: int
    orphans: int
    differences: int | None
    damaged_records: int
    damaged_snapshots: int
    faults: list[str]
    last: int = 0
    last_at: float | None = None

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not (
            self.doubled
            or self.orphans
            or self.differences
            or self.damaged_records
            or self.damaged_snapshots
            or self.faults
        )

    def __str__(self) -> str:
        lines = [
            f"{self.records:,} records: {self.decisions:,} decisions, {self.rewards:,} rewards."
        ]
        if self.last_at is not None and LEAST < self.last_at < MOST:
            moment = datetime.fromtimestamp(self.last_at, UTC)
            lines.append(
                f"The last one is record {self.last:,}, of {moment:%Y-%m-%d %H:%M:%S} UTC."
            )
        if self.differences is None:
            lines.append("It was not repeated: early records or contexts are not there any more.")
        elif not self.differences:
            lines.append("Repeated from the start, every decision comes out as it was.")
        else:
            lines.append(f"{self.differences:,} decisions come out otherwise when repeated.")
        lines += [f"{self.doubled:,} decisions have two rewards."] if self.doubled else []
        lines += [f"{self.orphans:,} rewards belong to no decision."] if self.orphans else []
        lines += [f"{self.damaged_records:,} records are damaged."] if self.damaged_records else []
        lines += (
            [f"{self.damaged_snapshots:,} snapshots are damaged."] if self.damaged_snapshots else []
        )
        return "\n".join([*lines, *self.faults])


def check_ledger(fresh: AgentState, ledger: Ledger, erased: list[tuple[int, int]]) -> LedgerCheck:
    """The condition of a ledger; `fresh` is a state that knows nothing yet."""
    faults, survey = ledger.faults(), _Survey()
    saved, unreadable = _readable_snapshots(ledger)
    for record in ledger.tail(0):
        survey.add(record, saved)
    if survey.damaged:
        faults.append(
            f"Record {survey.damaged[0]:,} is not as it was written, or one before it is missing."
        )
    faults += [
        f"The snapshot of record {seq:,} is of another ledger: the hash of that record differs."
        for seq, snapshot in saved.items()
        if snapshot.get("record", survey.hashes.get(seq)) != survey.hashes.get(seq)
    ]
    differences = None
    if survey.whole:
        fresh.erased = list(erased)
        begin(fresh, ledger, 0)
        try:
            for record in ledger.tail(0):
                fresh.apply(record, ledger)
                if record.seq in saved and not _agrees(fresh, record.seq, saved[record.seq]):
                    faults.append(
                        f"The snapshot of record {record.seq:,} is not what a replay makes."
                    )
            differences = None if fresh.stale else fresh.differences
        except TidepullError as error:
            faults.append(f"Repeating it failed: {error}.")
    once, rewards = fresh.settings.on_duplicate == "refuse", survey.rewards
    orphans = sum(count for ref, count in rewards.items() if ref not in survey.decisions)
    return LedgerCheck(
        sum(survey.kinds.values()),
        len(survey.decisions),
        survey.kinds[Kind.REWARD],
        sum(count > 1 for count in rewards.values()) if once else 0,
        orphans if survey.whole else 0,
        differences,
        len(survey.damaged),
        unreadable,
        faults,
        survey.last,
        survey.last_at,
    )


@dataclass
class _Survey:
    """What one reading of all records finds. `whole`: nothing was deleted, so that it can be
    repeated."""

    kinds: Counter[Kind] = field(default_factory=Counter)
    rewards: Counter[int] = field(default_factory=Counter)
    decisions: set[int] = field(default_factory=set)
    damaged: list[int] = field(default_factory=list)
    hashes: dict[int, str] = field(default_factory=dict)
    whole: bool = True
    last: int = 0
    last_at: float | None = None
    _chain: Chain = field(default_factory=Chain)

    def add(self, record: Record, saved: dict[int, Snapshot]) -> None:
        """The next record; hashes of those in `saved` are kept."""
        if not self.kinds:
            self.whole = record.seq == 1
        self.kinds[record.kind] += 1
        self.last, self.last_at = record.seq, record.at
        self.whole &= record.kind is not Kind.REMOVED
        if record.kind is Kind.DECISION:
            self.decisions.add(record.seq)
            self.whole &= record.context is not None
        elif record.kind is Kind.REWARD and record.ref is not None:
            self.rewards[record.ref] += 1
        if not self._chain.fits(record):
            self.damaged.append(record.seq)
        if record.seq in saved:
            self.hashes[record.seq] = record.hash.hex()


def _readable_snapshots(ledger: Ledger) -> tuple[dict[int, Snapshot], int]:
    """The snapshots by their records, and how many are damaged."""
    readable, seqs = dict[int, Snapshot](), ledger.snapshots()
    for seq in seqs:
        try:
            readable[seq] = snapshots.load(ledger.snapshot(seq))
        except TidepullError:
            continue
    return readable, len(seqs) - len(readable)


def _agrees(fresh: AgentState, seq: int, saved: Snapshot) -> bool:
    """Whether a replay up to record `seq` leads to the state that was saved then, but for rounding
    on another machine. What is not used is not compared: policies of another release, and what a
    rollback took back."""
    used = seq > fresh.rebuild_at and not is_within(seq, fresh.erased)
    if not used or fresh.stale or fresh.differences:
        return True
    there = snapshots.load(snapshots.dump(fresh.take()()))
    return all(
        _alike(there[name], saved[name]) for name in there.keys() & saved.keys() - {"due", "erased"}
    )


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        names = a.keys() - {"checksum"}
        return a.keys() == b.keys() and all(_alike(a[name], b[name]) for name in names)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, np.ndarray | float) and isinstance(b, np.ndarray | float):
        return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, 1e-6, 1e-9, equal_nan=True))
    return bool(a == b)


class Scrub:
    """Reads a ledger from its start to its end, a few records at a time, and then again, to find
    damage that no call would meet."""

    def __init__(self) -> None:
        self._chain = Chain()
        self.position = 0  # the last record that was checked

    def step(self, ledger: Ledger, count: int) -> tuple[int, list[int]]:
        """Check the next `count` records: how many there were, and which are damaged."""
        read, damaged = 0, list[int]()
        for record in islice(ledger.tail(self.position, ledger.safe), count):
            read, self.position = read + 1, record.seq
            if not self._chain.fits(record):
                damaged.append(record.seq)
        if read < count:
            self._chain, self.position = Chain(), 0
        return read, damaged
