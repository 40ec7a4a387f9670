"""The state of an agent from its ledger: the newest sound snapshot, and the records after it."""

from __future__ import annotations

import logging

from tidepull import state as snapshots
from tidepull.agent.clock import Clock
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.rebuild import Pace, Spans, is_within
from tidepull.agent.records import Kind
from tidepull.agent.settings import AgentSettings
from tidepull.agent.state import AgentState
from tidepull.errors import LedgerError, SnapshotError

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
    state: AgentState,
    ledger: Ledger,
    after: int,
    upto: int | None = None,
    pace: Pace | None = None,
) -> AgentState:
    """Make the steps of some records; `pace`: beside other threads."""
    for record in ledger.tail(after, upto):
        state.apply(record, ledger)
        if pace is not None:
            pace.rest()
    return state
