"""Decisions: what a caller gets, and pending ones by their ids, from memory or from the ledger."""

from __future__ import annotations

import numbers
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from hashlib import blake2b
from typing import Any, NamedTuple, Self, TypeAlias
from uuid import UUID

from tidepull._internal.validation import is_unicode, shown
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.records import Choice, Kind, Record
from tidepull.errors import DecisionError, ExpiredError
from tidepull.types import BoolArray


@dataclass(frozen=True, slots=True)
class Decision:
    """An arm that an agent chose.

    Parameters
    ----------
    id : str
        Name of the decision, for its reward.
    arm : str
        Label of the chosen arm.
    propensity : float
        Exact probability with which the arm was chosen, given the group. Where a subject keeps
        its arm (`sticky`), it is the one with which that was drawn.
    group : str
        "policy", "control" (the baseline, the control arm, or drawn uniformly), "warmup" (drawn
        uniformly while the schema is guessed), "imported" (learnt from a log) or "fallback" (chosen
        by a client whose service did not answer).
    at : datetime
        Moment of the decision, with a time zone: the agent's, or UTC from a service.
    timestamp : float
        The same moment in seconds since 1970, exactly as it is in the ledger.

    Examples
    --------
    >>> import tidepull
    >>> agent = tidepull.Agent.memory(arms=["a", "b"], context={}, policy="random", seed=1)
    >>> decision = agent.choose(at="2026-07-01T12:00")
    >>> str(decision.at)
    '2026-07-01 12:00:00+00:00'
    >>> agent.reward(decision, 1.0)
    True
    """

    id: str
    arm: str
    propensity: float
    group: str
    at: datetime
    timestamp: float = field(repr=False)

    @property
    def is_fallback(self) -> bool:
        """Whether a client returned it for want of an answer; no agent knows of it."""
        return self.group == "fallback"

    @classmethod
    def from_seconds(
        cls, id: str, arm: str, propensity: float, group: str, at: float, timezone: tzinfo = UTC
    ) -> Self:
        """Make a decision from a moment in seconds since 1970, as in HTTP.

        Parameters
        ----------
        id : str
            Name of the decision.
        arm : str
            Label of the chosen arm.
        propensity : float
            Exact probability with which the arm was chosen.
        group : str
            Group of the decision.
        at : float
            Moment of the decision in seconds since 1970.
        timezone : tzinfo, default: UTC
            Time zone of the attribute `at`.

        Returns
        -------
        Decision
            The decision.
        """
        return cls(id, arm, propensity, group, datetime.fromtimestamp(at, timezone), at)


DecisionId: TypeAlias = str | int | UUID | Decision
"""What names a decision: its id as text, whole number or UUID, or the decision itself."""


def id_of(value: Any) -> Any:
    """The id as text; what cannot be one is left for the check."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Decision):
        return value.id
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if is_whole and int(value).bit_length() > _BITS:
        return value
    return str(value) if is_whole or isinstance(value, UUID) else value


_BITS = 850
"""Bits of a whole number of 256 digits, about."""

OURS = "\x1f"
"""Names that begin so are of the agent's own making, and no decision's."""


def is_name(name: Any) -> bool:
    """Whether something can be the name that a caller gives a decision."""
    fits = isinstance(name, str) and 0 < len(name) <= 256 and not name.startswith(OURS)
    return fits and is_unicode(name)


REMEMBERED = 2048
"""Decisions that are kept in memory while their reward may come; also all that may not be on disk
yet."""


class DecisionInputs(NamedTuple):
    """A decision to make: the clean context, when, and which places may be chosen."""

    cleaned: Mapping[str, Any]
    at: float
    available: BoolArray
    subject: bytes | None = None
    played: int | None = (
        None  # the arm that is played whatever the policy says: a ledger or a log has it
    )
    imported: bool = False
    baseline: int = -1  # the arm that the caller's present rule takes; -1: none
    propensity: float = 1.0  # of an imported decision


@dataclass(slots=True)
class PendingDecision:
    """A decision and what has come for it so far; `over`: nothing can come any more. `deferred`:
    nothing counts until it is activated; rewards are `held`. `latest` is the number of the last
    record about it."""

    record: Record
    latest: int
    paid: tuple[Record, ...] = ()
    over: bool = False
    deferred: bool = False
    held: tuple[Record, ...] = ()

    @property
    def choice(self) -> Choice:
        """What was chosen; made anew each time, as it takes four times the room of its bytes."""
        return Choice.unpack(self.record.body)


class Decisions:
    """An id is the number of the record and a check that only this agent's salt gives; or the
    caller's own name."""

    def __init__(self, ledger: Ledger, salt: bytes) -> None:
        self._ledger = ledger
        self._salt = salt
        self._pending: OrderedDict[int, PendingDecision] = OrderedDict()
        self._names: dict[str, int] = {}
        self._done: deque[int] = deque()  # in the order of their last records

    def id(self, seq: int) -> str:
        """The id of the decision of that number."""
        return f"{seq}-{blake2b(str(seq).encode(), key=self._salt, digest_size=4).hexdigest()}"

    def number(self, id: str) -> int | None:
        """The number in an id of this agent's making."""
        number, _, _ = id.partition("-")
        mine = number.isdecimal() and len(number) < 19 and id == self.id(int(number))
        return int(number) if mine else None

    def find(self, id: Any) -> PendingDecision:
        """The decision of an id; an error that names it where there is none, or where it was
        archived."""
        id = id_of(id)
        if not isinstance(id, str):
            raise DecisionError(
                f"a decision id is text, a whole number, a UUID or a decision, got {shown(id)}"
            )
        pending = self.named(id)
        if pending is None:
            number = self.number(id)
            if number is not None and number <= int(self._ledger.read("archived") or 0):
                raise ExpiredError(f"decision {id} has expired: it was archived")
            raise DecisionError(f"there is no decision {id!r} of this agent")
        return pending

    def named(self, name: Any) -> PendingDecision | None:
        """The decision that its caller named so, or whose id it is."""
        name = id_of(name)
        if not is_name(name):
            raise DecisionError(f"an id must be text of 1 to 256 characters, got {shown(name)}")
        number = self.number(name)
        if number is not None:
            return self._load(number)
        seq = self._names.get(name)
        if seq is not None and seq in self._pending:
            return self._pending[seq]
        record = self._ledger.named(name)
        return None if record is None or record.kind is not Kind.DECISION else self.load(record)

    def load(self, record: Record) -> PendingDecision:
        """A decision of the ledger with what has come for it."""
        if record.seq in self._pending:
            return self._pending[record.seq]
        about = self._ledger.about(record.seq)
        kinds = {other.kind for other in about}
        return self.remember(
            PendingDecision(
                record,
                about[-1].seq if about else record.seq,
                tuple(other for other in about if other.kind is Kind.REWARD),
                Kind.DUE in kinds,
                deferred=Kind.DEFERRED in kinds and Kind.ACTIVATED not in kinds,
                held=tuple(other for other in about if other.kind is Kind.HELD),
            )
        )

    def remember(self, pending: PendingDecision) -> PendingDecision:
        """Keep a decision in memory; those that are done leave, and if there are too many the
        oldest."""
        record = pending.record
        if record.name is None:  # only what has a name can be asked for again
            pending.record = Record(*record[:5], seq=record.seq)
        else:
            self._names[record.name] = record.seq
        self._pending[record.seq] = pending
        self._leave()
        return pending

    def done(self, pending: PendingDecision) -> None:
        """No reward is expected of it any more: it leaves when all about it is safe."""
        self._done.append(pending.record.seq)

    def _leave(self) -> None:
        safe = self._ledger.safe
        while self._done:
            pending = self._pending.get(self._done[0])
            if pending is not None and pending.latest > safe:
                break
            self._forget(self._done.popleft())
        # One more than came, so that a flood ebbs away.
        for _ in range(min(2, len(self._pending) - REMEMBERED)):
            seq, oldest = next(iter(self._pending.items()))
            if oldest.latest > safe:
                self._pending.move_to_end(seq)
            else:
                self._forget(seq)

    def _forget(self, seq: int) -> None:
        pending = self._pending.pop(seq, None)
        if pending is not None and pending.record.name is not None:
            self._names.pop(pending.record.name, None)

    def clear(self) -> None:
        """Forget what is in memory; everything must be on disk."""
        self._pending.clear()
        self._names.clear()
        self._done.clear()

    def _load(self, seq: int) -> PendingDecision | None:
        if seq in self._pending:
            return self._pending[seq]
        record = self._ledger.decision(seq)
        return None if record is None else self.load(record)
