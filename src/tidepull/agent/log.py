"""The ledger as columns, one row a decision, and which arm is best at which hour."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from tidepull.agent.clock import Clock
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.records import (
    Choice,
    DecisionGroup,
    Kind,
    Record,
    unpack_json,
    unpack_outcomes,
    unpack_reward,
)
from tidepull.agent.settings import AgentSettings
from tidepull.errors import InputError
from tidepull.types import BoolArray, FloatArray, IntArray

DAYS = ("on weekdays", "on weekends")
SURE = 0.95
"""Share of draws from which on an arm is called the best."""
WIDTH = 16
"""Numbers of an encoded context that a log has."""


def best_of_week(week: IntArray, open_arms: Collection[int]) -> IntArray:
    """The arm that is usually best in every hour of weekdays and weekends (2 x 24), from that of
    every hour of the week; -1 where there is none, or it cannot be chosen.

    >>> best_of_week(np.tile([0] * 12 + [1] * 12, (7, 1)), {1})[0].tolist() == [-1] * 12 + [1] * 12
    True
    """
    usual = [
        [np.bincount(column + 1).argmax() - 1 for column in days.T] for days in (week[:5], week[5:])
    ]
    return np.where(np.isin(usual, list(open_arms)), usual, -1)


def spans(best: IntArray) -> list[tuple[int, str]]:
    """Every arm that is best at some hour, most hours first, and when: "from 18:00 to 23:00 on
    weekdays".

    >>> for arm, hours in spans(np.array([[0] * 18 + [1] * 6, [0] * 24])):
    ...     print(arm, hours)
    0 from 0:00 to 18:00 on weekdays, all day on weekends
    1 from 18:00 to 24:00 on weekdays
    >>> spans(np.array([[0] * 12 + [1] * 6 + [-1] * 6, [0] * 12 + [-1] * 12]))
    [(0, 'from 0:00 to 12:00 every day'), (1, 'from 12:00 to 18:00 on weekdays')]
    """
    arms = [int(arm) for arm in np.unique(best) if arm >= 0]
    arms.sort(key=lambda arm: -int((best == arm).sum()))
    if len(arms) == 1 and (best >= 0).all():
        return [(arms[0], "at all hours")]
    if (best[0] == best[1]).all():
        return [(arm, _ranges(best[0] == arm)) for arm in arms]
    lines = []
    for arm in arms:
        parts = [(_ranges(best[day] == arm), DAYS[day]) for day in (0, 1)]
        if parts[0][0] == parts[1][0]:
            parts = [(parts[0][0], "every day")]
        lines.append((arm, ", ".join(f"{text} {day}" for text, day in parts if text)))
    return lines


def _ranges(hours: BoolArray) -> str:
    """Hours of a day as text; a range that goes over midnight is one."""
    if hours.all():
        return "all day"
    if not hours.any():
        return ""
    starts = [h for h in range(24) if hours[h] and not hours[h - 1]]
    texts = []
    for start in starts:
        length = next(n for n in range(1, 25) if not hours[(start + n) % 24])
        end = start + length
        texts.append(f"from {start}:00 to {end if end <= 24 else end - 24}:00")
    if len(texts) > 1 and hours[0] and hours[23]:
        texts = texts[-1:] + texts[:-1]
    return " and ".join(texts)


def next_change(best: IntArray, now: datetime) -> tuple[datetime, int, int] | None:
    """When another arm becomes the best, within a week: the hour, the arm until then, and the one
    after."""
    moment = now.replace(minute=0, second=0, microsecond=0)
    present = int(best[int(moment.weekday() >= 5), moment.hour])
    for _ in range(7 * 24):
        moment += timedelta(hours=1)
        arm = int(best[int(moment.weekday() >= 5), moment.hour])
        if 0 <= present != arm >= 0:
            return moment, present, arm
        present = max(present, arm) if present < 0 else present
    return None


WEEK = 7 * 24
HOURS = 4 * WEEK
"""How far back hours are counted."""

FEWEST = 10
"""Decisions from which on the draws of an hour say something about it."""

CHANCES = 200
"""Decisions of the present hour over which "now" is averaged at most; `FEWEST` at least."""

_THURSDAY = 3  # 1 January 1970


class RecentShares:
    """Sums of shares for every hour of the last four weeks (a day begins at midnight where the user
    is), and the shares of the latest decisions."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hours: dict[int, tuple[FloatArray, int]] = {}
        self._newest = -(1 << 62)
        self._latest: deque[tuple[int, IntArray]] = deque(maxlen=CHANCES)

    def add(self, at: float, counts: IntArray) -> None:
        """A decision; `counts` has each arm's share of the draws, in 65535ths."""
        hour = int(self._clock.local(at) // 3600)
        self._latest.append((hour, counts))
        if hour <= self._newest - HOURS:
            return
        if hour > self._newest:
            self._newest = hour
            for old in [known for known in self._hours if known <= hour - HOURS]:
                del self._hours[old]
        sums, number = self._hours.get(hour, (np.zeros(len(counts)), 0))
        if len(counts) > len(sums):
            sums = np.pad(sums, (0, len(counts) - len(sums)))
        sums[: len(counts)] += counts
        self._hours[hour] = sums, number + 1

    def now(self, room: int) -> FloatArray | None:
        """Each arm's mean share in the decisions of the present hour; None: there are none."""
        if not self._latest:
            return None
        number = max(FEWEST, sum(hour == self._latest[-1][0] for hour, _ in self._latest))
        latest, mean = list(self._latest)[-number:], np.zeros(room)
        for _, counts in latest:
            mean[: len(counts)] += counts
        return mean / (65535 * len(latest))

    def week(self, room: int) -> FloatArray:
        """Each arm's mean share in every hour of every weekday (7 x 24 x arms, from Monday); NaN:
        there is none."""
        totals, numbers = self._sums(room)
        with np.errstate(invalid="ignore"):
            return np.where(numbers > 0, totals / numbers, np.nan)

    def best_hours(self, room: int) -> IntArray:
        """The arm that is surely best in every hour of weekdays and weekends (2 x 24): it is in 95%
        of the draws of the last seven days; -1 where there is none."""
        totals, numbers = (
            np.stack([table[:5].sum(axis=0), table[5:].sum(axis=0)])
            for table in self._sums(room, WEEK)
        )
        with np.errstate(invalid="ignore"):
            shares = np.where(numbers >= FEWEST, totals / numbers, 0.0)
        return np.where(shares.max(axis=2) >= SURE, np.argmax(shares, axis=2), -1)

    def decisions(self) -> IntArray:
        """How many decisions of the last four weeks fell into every hour of the week (7 x 24)."""
        return self._sums(0)[1][:, :, 0].astype(np.int64)

    def _sums(self, room: int, within: int = HOURS) -> tuple[FloatArray, FloatArray]:
        """Sums of shares and numbers of decisions in every hour of the week."""
        totals, numbers = np.zeros((7, 24, room)), np.zeros((7, 24, 1))
        for hour, (sums, number) in self._hours.items():
            if hour > self._newest - within:
                day, place = divmod(hour, 24)
                where = (day + _THURSDAY) % 7, place
                totals[where][: len(sums)] += sums[:room] / 65535
                numbers[where] += number
        return totals, numbers


@dataclass(frozen=True, slots=True, eq=False)
class DecisionLog:
    """Columns of equal length, in the order of decisions. `reward` and `paid_at` are NaN where none
    has come; `subject` numbers the subjects, and decisions without one have numbers of their
    own. `baseline` is the arm of the caller's present rule (-1: none), `control_share` the share of
    the control group when the decision was made, `x` the first `WIDTH` numbers of the context as
    the policy saw it."""

    seq: IntArray
    at: FloatArray
    arm: IntArray
    group: IntArray
    propensity: FloatArray
    reward: FloatArray
    paid_at: FloatArray
    subject: IntArray
    baseline: IntArray
    control_share: FloatArray
    x: FloatArray

    def __len__(self) -> int:
        return len(self.seq)

    def since(self, at: float) -> DecisionLog:
        """Decisions from a moment on."""
        return self.where(self.at >= at)

    def where(self, rows: Any) -> DecisionLog:
        """Some of the rows."""
        return DecisionLog(*(getattr(self, name)[rows] for name in self.__slots__))


def settings_changes(ledger: Ledger, name: str) -> list[tuple[int, list[Any]]]:
    """When a setting was changed: the number of the record, and the values before and after."""
    changes = [(record.seq, unpack_json(record.body)) for record in ledger.of_kind(Kind.SETTINGS)]
    return [(seq, change[name]) for seq, change in changes if name in change]


class LogReader:
    """Reads a ledger into columns, and goes on where it stopped when it reads again."""

    def __init__(self, settings: AgentSettings, clock: Clock) -> None:
        self._settings = settings
        self._upto = 0
        self._whole = {name: array("q") for name in ("seq", "arm", "group", "subject", "baseline")}
        names = ("at", "propensity", "reward", "paid_at")
        self._real = {name: array("d") for name in names}
        self._x = array("f")
        self._outcomes: dict[str, dict[int, float]] = {}
        self._subjects: dict[bytes, int] = {}
        self._clock = clock
        self._erased: list[tuple[int, int]] = []
        self.late = RecentShares(clock)

    def read(self, ledger: Ledger) -> DecisionLog:
        """All decisions that a ledger has by now, and what each was worth in the end."""
        for record in ledger.tail(self._upto):
            self._upto = record.seq
            if record.kind is Kind.DECISION:
                self._decided(record)
            elif record.kind is Kind.ROLLBACK:
                self._rolled_back(record, ledger)
            elif record.ref is not None and record.body and record.kind in (Kind.REWARD, Kind.DUE):
                self._paid(record, record.ref)
        columns: dict[str, Any] = {
            name: np.array(column, np.int64) for name, column in self._whole.items()
        }
        columns |= {name: np.array(column, float) for name, column in self._real.items()}
        shares = self._control_shares(ledger, columns["seq"])
        x = np.array(self._x).reshape(-1, WIDTH)
        return DecisionLog(**columns, control_share=shares, x=x)

    def _control_shares(self, ledger: Ledger, seq: IntArray) -> FloatArray:
        """The share of the control group when each decision was made."""
        shares: FloatArray = np.full(len(seq), self._settings.control)
        for n, (record, change) in enumerate(reversed(settings_changes(ledger, "control"))):
            if not n:
                shares[:] = change[1]
            shares[seq < record] = change[0]
        return shares

    def _decided(self, record: Record) -> None:
        arm, group, chance = Choice.head(record.body)
        whole, real = self._whole, self._real
        whole["seq"].append(record.seq)
        whole["arm"].append(arm)
        whole["group"].append(group)
        whole["baseline"].append(Choice.baseline_in(record.body))
        known = record.subject
        whole["subject"].append(
            -len(whole["seq"])
            if known is None
            else self._subjects.setdefault(known, len(self._subjects))
        )
        real["at"].append(record.at)
        real["propensity"].append(chance)
        x = Choice.x_in(record.body, WIDTH)
        self._x.frombytes(x.tobytes())
        self._x.frombytes(bytes(4 * (WIDTH - len(x))))
        real["reward"].append(np.nan)
        real["paid_at"].append(np.nan)
        self._shared(record, group)

    def _shared(self, record: Record, group: int) -> None:
        if group in (DecisionGroup.POLICY, DecisionGroup.CONTROL):
            self.late.add(record.at, Choice.counts_in(record.body))

    def _rolled_back(self, record: Record, ledger: Ledger) -> None:
        """What was believed in between is believed no more."""
        self._erased.append((int(unpack_json(record.body)["to"]), record.seq))
        self.late = RecentShares(self._clock)
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
            if record.kind is Kind.REWARD:
                self._reported(n, unpack_outcomes(record.body))

    def _reported(self, row: int, also: dict[str, float]) -> None:
        adds = self._settings.on_duplicate == "add"
        for name in also.keys() | (set() if adds else self._outcomes.keys()):
            values = self._outcomes.setdefault(name, {})
            values[row] = also.get(name, 0.0) + (values.get(row, 0.0) if adds else 0.0)

    @property
    def outcomes(self) -> list[str]:
        """Names of the outcomes that were reported beside rewards."""
        return sorted(self._outcomes)

    def outcomes_of(self, seq: int) -> dict[str, float]:
        """What was reported beside the reward of a decision."""
        row = bisect_left(self._whole["seq"], seq)
        return {name: v[row] for name, v in sorted(self._outcomes.items()) if row in v}

    def outcome(self, log: DecisionLog, name: str) -> DecisionLog:
        """The log that was read last, with an outcome in the place of the reward."""
        if name not in self._outcomes:
            known = ", ".join(self.outcomes)
            hint = f"outcomes: {known}" if known else "no outcome was reported with also="
            raise InputError(f"there is no outcome '{name}'; {hint}")
        worth: FloatArray = np.where(np.isnan(log.reward), np.nan, 0.0)
        rows = list(self._outcomes[name])
        worth[rows] = list(self._outcomes[name].values())
        return replace(log, reward=worth)


def _worth(record: Record, before: float, settings: AgentSettings) -> float:
    """What a decision is worth after one more record."""
    value = unpack_reward(record.body)
    adds = record.kind is Kind.REWARD and settings.on_duplicate == "add" and not np.isnan(before)
    return before + value if adds else value
