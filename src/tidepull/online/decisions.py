"""Decisions by their ids: those of late from memory, others from the ledger, with what has come for each."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from tidepull.errors import DecisionError, ExpiredError
from tidepull.online.ledger import Ledger
from tidepull.online.records import Choice, Kind, Record

OURS = "\x1f"
"""Names that begin so are of the agent's own making, and no decision's."""

REMEMBERED = 8192
"""Decisions that are kept in memory: all that may not be on disk yet, and those whose reward is likely to come."""


@dataclass(slots=True)
class Known:
    """A decision and what has come for it so far; `over`: nothing can come any more. `deferred`: nothing counts until
    it is activated; rewards are `held`."""

    record: Record
    choice: Choice
    paid: list[Record] = field(default_factory=list)
    over: bool = False
    id: str | None = None
    deferred: bool = False
    held: list[Record] = field(default_factory=list)


class Decisions:
    """An id is the number of the record and a check that only this agent's salt gives; or the caller's own name."""

    def __init__(self, ledger: Ledger, salt: bytes) -> None:
        self._ledger = ledger
        self._salt = salt
        self._known: OrderedDict[int, Known] = OrderedDict()
        self._names: dict[str, int] = {}
        self._ids: dict[str, Known] = {}  # of those whose id was shown

    def shown(self, known: Known) -> str:
        """The id of a decision that its caller is about to see."""
        if known.id is None:
            known.id = self.id(known.record.seq)
            if known.record.seq in self._known:
                self._ids[known.id] = known
        return known.id

    def id(self, seq: int) -> str:
        """The id of the decision of that number."""
        return f"{seq}-{blake2b(str(seq).encode(), key=self._salt, digest_size=4).hexdigest()}"

    def number(self, id: str) -> int | None:
        """The number in an id of this agent's making."""
        number, _, _ = id.partition("-")
        mine = number.isdecimal() and len(number) < 19 and id == self.id(int(number))
        return int(number) if mine else None

    def find(self, id: Any) -> Known:
        """The decision of an id; an error that names it where there is none, or where it was archived."""
        if not isinstance(id, str):
            raise DecisionError(f"a decision id is text, got {id!r}")
        if (shown := self._ids.get(id)) is not None:
            return shown
        number = self.number(id)
        known = self.named(id) if number is None else self._load(number)
        if known is None:
            if number is not None and number <= int(self._ledger.read("archived") or 0):
                raise ExpiredError(f"decision {id} has expired: it was archived")
            raise DecisionError(f"there is no decision {id!r} of this agent")
        return known

    def named(self, name: Any) -> Known | None:
        """The decision that its caller named so."""
        if not isinstance(name, str) or not 0 < len(name) <= 256 or name.startswith(OURS):
            raise DecisionError(f"an id must be text of 1 to 256 characters, got {name!r}")
        seq = self._names.get(name)
        if seq is not None and seq in self._known:
            return self._known[seq]
        record = self._ledger.named(name)
        return None if record is None or record.kind is not Kind.DECISION else self.loaded(record)

    def loaded(self, record: Record) -> Known:
        """A decision of the ledger with what has come for it."""
        if record.seq in self._known:
            return self._known[record.seq]
        about = self._ledger.about(record.seq)
        kinds = {other.kind for other in about}
        return self.remember(
            Known(
                record,
                Choice.unpack(record.body),
                [other for other in about if other.kind is Kind.REWARD],
                Kind.DUE in kinds,
                deferred=Kind.DEFERRED in kinds and Kind.ACTIVATED not in kinds,
                held=[other for other in about if other.kind is Kind.HELD],
            )
        )

    def remember(self, known: Known) -> Known:
        """Keep a decision in memory; the oldest leaves."""
        self._known[known.record.seq] = known
        if known.record.name is not None:
            self._names[known.record.name] = known.record.seq
        if len(self._known) > REMEMBERED:
            _, old = self._known.popitem(last=False)
            if old.id is not None:
                self._ids.pop(old.id, None)
            if old.record.name is not None:
                self._names.pop(old.record.name, None)
        return known

    def clear(self) -> None:
        """Forget what is in memory; everything must be on disk."""
        self._known.clear()
        self._names.clear()
        self._ids.clear()

    def _load(self, seq: int) -> Known | None:
        if seq in self._known:
            return self._known[seq]
        record = self._ledger.decision(seq)
        return None if record is None else self.loaded(record)
