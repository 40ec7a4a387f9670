"""What an agent's ledger is made of: records in one order, from which everything that the agent
knows follows.

A record says what happened, when, and how many slices of upkeep had been done since the record
before it. Its hash covers the record and the hash of the one before it, so that damage shows.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from tidepull import __version__
from tidepull.errors import LedgerError, NewerStoreError
from tidepull.types import BoolArray, FloatArray, IntArray


class Kind(IntEnum):
    """What a record is about; the numbers are on disk."""

    DECISION = 1
    REWARD = 2
    DUE = 3  # the time for a decision's reward is over
    ARMS = 4
    FREEZE = 5
    UNFREEZE = 6
    ROLLBACK = 7
    SNAPSHOT = 8
    NOTE = 9
    REST = 10  # only upkeep
    UPGRADE = 11  # the policy is made anew by replaying the ledger up to here
    DEFERRED = 12  # a decision that counts for nothing until it is activated
    ACTIVATED = 13
    HELD = 14  # a reward that came before its decision was activated
    REMOVED = 15  # the last of some records that were deleted on purpose; only its hash is left
    SETTINGS = 16  # settings that change: {name: [before, after]}


class DecisionGroup(IntEnum):
    """Who chose the arm of a decision; the numbers are on disk."""

    POLICY = 0
    CONTROL = 1
    WARMUP = 2  # drawn uniformly while the schema was being guessed
    IMPORTED = 3


class Record(NamedTuple):
    """One line of a ledger. `ref` is the decision that it is about, `context` JSON, `subject` a
    salted hash, `name` the caller's own id of a decision. `hash` is empty in records of ledgers
    before 0.3."""

    kind: Kind
    at: float
    slices: int = 0
    ref: int | None = None
    body: bytes = b""
    context: bytes | None = None
    subject: bytes | None = None
    name: str | None = None
    seq: int = 0
    hash: bytes = b""


def record_of(row: Sequence[Any]) -> Record:
    """A record from a row of a store, in the order of its fields."""
    try:
        kind, *rest, hash = row
        return Record(Kind(kind), *rest)._replace(hash=hash or b"")
    except (ValueError, TypeError):
        raise LedgerError(
            f"a record in the ledger is damaged: it is of kind {row[0]!r}; restore a copy"
        ) from None


def unpack_json(data: bytes) -> Any:
    """What a record has as JSON."""
    try:
        return json.loads(data)
    except ValueError as error:
        raise LedgerError(f"a record in the ledger is damaged ({error}); restore a copy") from None


_LINKED = struct.Struct("<qBdqqqqq")
_NO_CONTEXT = bytes(4)


def link(
    previous: bytes,
    kind: Kind,
    at: float,
    slices: int,
    ref: int | None,
    body: bytes,
    context: bytes | None,
    subject: bytes | None,
    name: str | None,
    seq: int,
    hash: bytes = b"",
) -> bytes:
    """The hash of a record after one of that hash: 8 bytes, and 4 of its context alone, so that a
    record can be checked whose context was dropped."""
    about = hash[8:] or _NO_CONTEXT
    if context is not None:
        about = blake2b(context, digest_size=4).digest()
    label = None if name is None else name.encode(errors="surrogatepass")
    head = _LINKED.pack(
        seq,
        kind,
        at,
        slices,
        -1 if ref is None else ref,
        len(body),
        -1 if subject is None else len(subject),
        -1 if label is None else len(label),
    )
    text = previous + head + body + (subject or b"") + (label or b"") + about
    return blake2b(text, digest_size=8).digest() + about


class Chain:
    """Follows the hashes of a ledger's records, in order; `previous` is that of the record before
    the first."""

    def __init__(self, previous: bytes = b"") -> None:
        self.previous = previous

    def fits(self, record: Record) -> bool:
        """Whether a record is as it was written, and comes after the one that it came after."""
        previous, self.previous = self.previous, record.hash
        if record.kind is Kind.REMOVED:
            return True
        if not record.hash:  # of a ledger before 0.3
            return not previous
        try:
            return record.hash == link(previous, *record)
        except (TypeError, AttributeError, struct.error):  # a value is of another type
            return False


_HEAD = struct.Struct("<HBdqHH")
_BASELINE = struct.Struct("<H")
_HAS_BASELINE = 0x80
"""Bit of the group's byte: the place of the baseline's arm follows the available arms."""
_IS_STICKY = 0x40
"""Bit of the group's byte: the subject kept an arm that was drawn earlier."""
_HAS_CANDIDATE = 0x20
"""Bit of the group's byte: a candidate decided too; its share follows, and its own counts."""
_SHARE = struct.Struct("<d")
_GROUP = 0x0F


class Choice(NamedTuple):
    """What is kept of a decision: the arm, who chose it and with which chance, the policy's round
    (-1: none), how often each arm came out best in the policy's draws, what the policy saw, and
    which arms could be chosen. `baseline` is the arm that the caller's present rule takes (-1: it
    said none). `sticky`: the subject kept an arm that was drawn earlier, with that propensity.
    Where a candidate has a share of the decisions, `counts` are those of both together, and
    `candidate` its own."""

    arm: int
    group: DecisionGroup
    propensity: float
    round: int
    counts: IntArray
    x: FloatArray
    available: BoolArray
    baseline: int = -1
    sticky: bool = False
    share: float = 0.0
    candidate: IntArray | None = None

    def pack(self) -> bytes:
        """As bytes."""
        compared = self.baseline >= 0
        head = _HEAD.pack(
            self.arm,
            self.group
            | _HAS_BASELINE * compared
            | _IS_STICKY * self.sticky
            | _HAS_CANDIDATE * (self.candidate is not None),
            self.propensity,
            self.round,
            len(self.available),
            len(self.counts),
        )
        mask = np.packbits(self.available).tobytes()
        mask += _BASELINE.pack(self.baseline) if compared else b""
        counts = self.counts.astype("<u2").tobytes()
        if self.candidate is not None:
            mask += _SHARE.pack(self.share)
            counts += self.candidate.astype("<u2").tobytes()
        return head + mask + counts + self.x.astype("<f4").tobytes()

    def is_same(self, other: Choice) -> bool:
        """Whether a choice that was repeated came out as this one."""
        return (
            self.arm == other.arm
            and self.group == other.group
            and self.propensity == other.propensity
            and self.round == other.round
            and self.sticky == other.sticky
            and np.array_equal(self.counts, other.counts)
            and self._same_candidate(other)
            and np.array_equal(self.x, other.x)
        )

    def _same_candidate(self, other: Choice) -> bool:
        if self.candidate is None or other.candidate is None:
            return self.candidate is other.candidate
        return self.share == other.share and np.array_equal(self.candidate, other.candidate)

    @staticmethod
    def head(data: bytes) -> tuple[int, int, float]:
        """Arm, group and propensity from bytes."""
        arm, group, propensity, *_ = _head(data)
        return arm, group & _GROUP, propensity

    @staticmethod
    def baseline_in(data: bytes) -> int:
        """The arm of the caller's present rule from bytes; -1: none was given."""
        if not data[2] & _HAS_BASELINE:
            return -1
        n_arms = _HEAD.unpack_from(data)[4]
        return int(_BASELINE.unpack_from(data, _HEAD.size + (n_arms + 7) // 8)[0])

    @staticmethod
    def counts_in(data: bytes) -> IntArray:
        """How often each arm came out best, from bytes."""
        try:
            start, n_counts = _counts_at(data)
            return np.frombuffer(data, "<u2", n_counts, start).astype(np.int64)
        except ValueError as error:
            raise LedgerError(f"a decision in the ledger is damaged ({error})") from None

    @staticmethod
    def x_in(data: bytes, most: int) -> Any:
        """The first numbers of what the policy saw, in single precision, from bytes."""
        try:
            start, n_counts = _counts_at(data)
            start += 2 * n_counts * (2 if data[2] & _HAS_CANDIDATE else 1)
            return np.frombuffer(data, "<f4", min(most, (len(data) - start) // 4), start)
        except ValueError as error:
            raise LedgerError(f"a decision in the ledger is damaged ({error})") from None

    @classmethod
    def unpack(cls, data: bytes) -> Choice:
        """From bytes."""
        try:
            arm, group, propensity, round, n_arms, n_counts = _head(data)
            start = _HEAD.size
            mask = np.frombuffer(data, np.uint8, (n_arms + 7) // 8, start)
            start += len(mask)
            baseline, share, candidate = -1, 0.0, None
            if group & _HAS_BASELINE:
                (baseline,) = _BASELINE.unpack_from(data, start)
                start += _BASELINE.size
            if group & _HAS_CANDIDATE:
                (share,) = _SHARE.unpack_from(data, start)
                start += _SHARE.size
            counts = np.frombuffer(data, "<u2", n_counts, start).astype(np.int64)
            start += 2 * n_counts
            if group & _HAS_CANDIDATE:
                candidate = np.frombuffer(data, "<u2", n_counts, start).astype(np.int64)
                start += 2 * n_counts
            x = np.frombuffer(data, "<f4", -1, start).astype(np.float64)
            available = np.unpackbits(mask, count=n_arms).view(np.bool_)
            return cls(
                arm, DecisionGroup(group & _GROUP), propensity, round, counts, x, available,
                baseline, bool(group & _IS_STICKY), share, candidate,
            )  # fmt: skip
        except (struct.error, ValueError) as error:
            raise LedgerError(f"a decision in the ledger is damaged ({error})") from None


def _head(data: bytes) -> tuple[int, int, float, int, int, int]:
    """Arm, group, propensity, round, number of arms and of counts, checked."""
    try:
        arm, group, propensity, round, n_arms, n_counts = _HEAD.unpack_from(data)
    except struct.error as error:
        raise LedgerError(f"a decision in the ledger is damaged ({error})") from None
    if arm >= n_arms:
        raise LedgerError(
            f"a decision in the ledger is damaged: it has arm {arm} of {n_arms}; restore a copy"
        )
    return arm, group, propensity, round, n_arms, n_counts


def _counts_at(data: bytes) -> tuple[int, int]:
    """Where the counts of a decision begin in its bytes, and how many there are."""
    _, group, _, _, n_arms, n_counts = _head(data)
    start = _HEAD.size + (n_arms + 7) // 8
    start += _BASELINE.size if group & _HAS_BASELINE else 0
    return start + (_SHARE.size if group & _HAS_CANDIDATE else 0), n_counts


_REWARD = struct.Struct("<d")


class LearnAt(IntEnum):
    """When a reward is learnt; the numbers are on disk."""

    ARRIVAL = 0
    CLOSE = 1  # of its decision's learning window, by the record `DUE`
    NEVER = 2  # the default reward was learnt in its place

    @classmethod
    def of(cls, data: bytes) -> LearnAt:
        """From the bytes of a reward; those of releases that knew no learning windows are short."""
        try:
            return cls(data[8]) if len(data) > 8 else cls.ARRIVAL
        except ValueError as error:
            raise LedgerError(f"a reward in the ledger is damaged ({error})") from None


def pack_reward(
    reward: float, learn_at: LearnAt = LearnAt.ARRIVAL, also: Mapping[str, float] | None = None
) -> bytes:
    """A reward, when it is learnt, and further outcomes as bytes."""
    when = bytes([learn_at]) if learn_at or also else b""
    return (
        _REWARD.pack(reward) + when + (json.dumps(also, sort_keys=True).encode() if also else b"")
    )


def unpack_reward(data: bytes) -> float:
    """A reward from bytes."""
    try:
        value: float = _REWARD.unpack_from(data)[0]
    except struct.error as error:
        raise LedgerError(f"a reward in the ledger is damaged ({error})") from None
    return value


def unpack_outcomes(data: bytes) -> dict[str, float]:
    """The outcomes that were reported beside a reward, from bytes."""
    try:
        also: dict[str, float] = json.loads(data[_REWARD.size + 1 :] or b"{}")
    except ValueError as error:
        raise LedgerError(f"a reward in the ledger is damaged ({error})") from None
    return also


RELEASE_KEY = "release"
"""The text of a ledger that names the newest release that has written to it."""


def is_newer(release: str) -> bool:
    """Whether a release may have written what this one cannot read; a patch release changes no
    format.

    >>> is_newer(__version__), is_newer("999.0.1")
    (False, True)
    """
    return _numbers(release) > _numbers(__version__)


def is_older(release: str) -> bool:
    """Whether a release is an earlier one, but for patches."""
    return _numbers(release) < _numbers(__version__)


def newer_store(where: str, release: str | None, detail: str = "") -> NewerStoreError:
    """The refusal of what a newer release wrote (None: it left no name)."""
    named = "a newer tidepull" if release is None else f"tidepull {release}"
    wanted = "that one" if release is None else f"tidepull {release} or newer"
    return NewerStoreError(
        f"{where} was written by {named}{detail}, and this is {__version__}: install {wanted}"
    )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release)[:2])
