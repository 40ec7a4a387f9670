"""A ledger as columns: one row for each decision, with what it was worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidepull.online.ledger import Ledger
from tidepull.online.records import Choice, Group, Kind, Record, unpack_reward
from tidepull.online.settings import Settings
from tidepull.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Columns of equal length, in the order of decisions. `reward` and `paid_at` are NaN where none has come; `subject`
    numbers the subjects, and decisions without one have numbers of their own."""

    seq: IntArray
    at: FloatArray
    arm: IntArray
    group: IntArray
    propensity: FloatArray
    reward: FloatArray
    paid_at: FloatArray
    subject: IntArray

    def __len__(self) -> int:
        return len(self.seq)

    def since(self, at: float) -> Log:
        """Decisions from a moment on."""
        return self.where(self.at >= at)

    def where(self, rows: Any) -> Log:
        """Some of the rows."""
        return Log(*(getattr(self, name)[rows] for name in self.__slots__))


def read_log(ledger: Ledger, settings: Settings) -> Log:
    """All decisions that a ledger has, and what each was worth in the end."""
    rows: list[tuple[int, float, int, int, float]] = []
    place: dict[int, int] = {}
    subjects: dict[bytes, int] = {}
    subject: list[int] = []
    reward: list[float] = []
    paid: list[float] = []
    for record in ledger.tail(0):
        if record.kind is Kind.DECISION:
            arm, group, chance = Choice.head(record.body)
            place[record.seq] = len(rows)
            rows.append((record.seq, record.at, arm, group, chance))
            reward.append(np.nan)
            paid.append(np.nan)
            known = record.subject
            subject.append(-len(rows) if known is None else subjects.setdefault(known, len(subjects)))
        elif record.ref in place and record.body and record.kind in (Kind.REWARD, Kind.DUE):
            n = place[record.ref]
            reward[n], paid[n] = _worth(record, reward[n], settings), record.at
    columns = list(zip(*rows, strict=True)) or [(), (), (), (), ()]
    return Log(
        np.array(columns[0], np.int64), np.array(columns[1], float), np.array(columns[2], np.int64),
        np.array(columns[3], np.int64), np.array(columns[4], float), np.array(reward, float), np.array(paid, float),
        np.array(subject, np.int64),
    )  # fmt: skip


def _worth(record: Record, before: float, settings: Settings) -> float:
    """What a decision is worth after one more record."""
    value = unpack_reward(record.body)
    adds = record.kind is Kind.REWARD and settings.again == "add" and not np.isnan(before)
    return before + value if adds else value


def shares_of(ledger: Ledger, after: int, room: int) -> Iterator[tuple[float, FloatArray]]:
    """When each decision of the policy after record `after` was made, and each arm's share of its draws."""
    for record in ledger.tail(after):
        if record.kind is Kind.DECISION:
            choice = Choice.unpack(record.body)
            if choice.group in (Group.POLICY, Group.CONTROL):
                shares = np.zeros(room)
                shares[: len(choice.counts)] = choice.counts / 65535
                yield record.at, shares
