"""A ledger as columns: one row for each decision, with what it was worth."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidepull.agent.clock import Clock
from tidepull.agent.late import LateShares
from tidepull.agent.ledger import Ledger
from tidepull.agent.records import Choice, Group, Kind, Record, unpack_reward
from tidepull.agent.settings import Settings
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


class LogReader:
    """Reads a ledger into columns, and goes on where it stopped when it reads again."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._upto = 0
        self._whole = {name: array("q") for name in ("seq", "arm", "group", "subject")}
        self._real = {name: array("d") for name in ("at", "propensity", "reward", "paid_at")}
        self._subjects: dict[bytes, int] = {}
        self._clock = clock
        self._erased: list[tuple[int, int]] = []
        self.late = LateShares(clock)

    def read(self, ledger: Ledger) -> Log:
        """All decisions that a ledger has by now, and what each was worth in the end."""
        for record in ledger.tail(self._upto):
            self._upto = record.seq
            if record.kind is Kind.DECISION:
                self._decided(record)
            elif record.kind is Kind.ROLLBACK:
                self._rolled_back(record, ledger)
            elif record.ref is not None and record.body and record.kind in (Kind.REWARD, Kind.DUE):
                self._paid(record, record.ref)
        columns: dict[str, Any] = {name: np.array(column, np.int64) for name, column in self._whole.items()}
        return Log(**columns, **{name: np.array(column, float) for name, column in self._real.items()})

    def _decided(self, record: Record) -> None:
        arm, group, chance = Choice.head(record.body)
        whole, real = self._whole, self._real
        whole["seq"].append(record.seq)
        whole["arm"].append(arm)
        whole["group"].append(group)
        known = record.subject
        whole["subject"].append(
            -len(whole["seq"]) if known is None else self._subjects.setdefault(known, len(self._subjects))
        )
        real["at"].append(record.at)
        real["propensity"].append(chance)
        real["reward"].append(np.nan)
        real["paid_at"].append(np.nan)
        self._shared(record, group)

    def _shared(self, record: Record, group: int) -> None:
        if group in (Group.POLICY, Group.CONTROL):
            self.late.add(record.at, Choice.counts_in(record.body))

    def _rolled_back(self, record: Record, ledger: Ledger) -> None:
        """What was believed in between is believed no more."""
        self._erased.append((int(json.loads(record.body)["to"]), record.seq))
        self.late = LateShares(self._clock)
        for before in ledger.tail(0, record.seq):
            erased = any(after < before.seq <= upto for after, upto in self._erased)
            if before.kind is Kind.DECISION and not erased:
                self._shared(before, Choice.head(before.body)[1])

    def _paid(self, record: Record, decision: int) -> None:
        seqs = self._whole["seq"]
        n = bisect_left(seqs, decision)
        if n < len(seqs) and seqs[n] == decision:
            reward = self._real["reward"]
            reward[n] = _worth(record, reward[n], self._settings)
            self._real["paid_at"][n] = record.at


def _worth(record: Record, before: float, settings: Settings) -> float:
    """What a decision is worth after one more record."""
    value = unpack_reward(record.body)
    adds = record.kind is Kind.REWARD and settings.on_duplicate == "add" and not np.isnan(before)
    return before + value if adds else value
