"""The agent: choose an arm, say later what it was worth, and lose nothing in between.

A call takes its step under one lock, hands the record of it to the ledger, and returns when the record is safe. What
goes wrong while a step is taken leaves the agent to be read from its ledger again, at the next call.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from tidepull import snapshots
from tidepull.errors import (
    ExpiredError,
    InputError,
    LedgerError,
    ParameterError,
    RewardError,
)
from tidepull.online import table
from tidepull.online.arms import features_of, label_of
from tidepull.online.check import Condition, checked
from tidepull.online.clock import Clock
from tidepull.online.decisions import OURS, Decisions, Known
from tidepull.online.explain import Report
from tidepull.online.guess import plain_context, require_same_kind
from tidepull.online.insight import Insight
from tidepull.online.ledger import Ledger, MemoryLedger
from tidepull.online.lift import Lift
from tidepull.online.making import settings_in
from tidepull.online.mind import Asked, Mind, recalled
from tidepull.online.records import Group, Kind, Record, pack_reward, unpack_reward
from tidepull.online.settings import Settings
from tidepull.online.sqlite import SqliteLedger
from tidepull.online.upkeep import Background
from tidepull.registry import Named

T = TypeVar("T")

_LARGEST = 1e15


@dataclass(frozen=True, slots=True)
class Decision:
    """An arm that was chosen. `propensity` is the exact chance that it had, given its group ("policy", "control",
    "guessing"); `at` is in seconds since 1970."""

    id: str
    arm: str
    propensity: float
    group: str
    at: float


class Agent:
    """Learns which arm is best, by the hour and the weekday and for whom, from rewards that come when they come.

    >>> agent = Agent.memory(arms=["blue", "red"], context={"age": float}, policy="bernoulli-ts", seed=1)
    >>> decision = agent.choose({"age": 31})
    >>> agent.reward(decision.id, 1.0), agent.reward(decision.id, 1.0)
    (True, False)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        *,
        arms: Iterable[str] | Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        policy: Named | None = None,
        seed: int | None = None,
        zone: str | None = None,
        calendar: bool | None = None,
        room: int | None = None,
        draws: int | None = None,
        control: float | None = None,
        control_arm: str | None = None,
        floor: float | None = None,
        shares: Mapping[str, tuple[float, float]] | None = None,
        reward_within: float | timedelta | None = None,
        default_reward: float | None = None,
        again: Literal["refuse", "add", "replace"] | None = None,
        retain: float | timedelta | None = None,
        snapshot_every: int = 5000,
        upkeep: Literal["thread", "inline", "manual"] = "thread",
        read_only: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        if upkeep not in ("thread", "inline", "manual"):
            raise ParameterError(f"upkeep must be 'thread', 'inline' or 'manual', got {upkeep!r}")
        if isinstance(snapshot_every, bool) or not isinstance(snapshot_every, int) or snapshot_every < 1:
            raise ParameterError(
                f"snapshot_every must be a whole number of at least 1, got {snapshot_every!r}"
            )
        given = {
            "arms": arms, "context": context, "policy": policy, "seed": seed, "zone": zone, "calendar": calendar,
            "room": room, "draws": draws, "control": control, "control_arm": control_arm, "floor": floor,
            "shares": shares, "reward_within": reward_within, "default_reward": default_reward, "again": again,
            "retain": retain,
        }  # fmt: skip
        self._lock = threading.Lock()
        self._next_due = -math.inf
        self._owner = os.getpid()
        self._closed = False
        self._every, self._mode, self._read_only = snapshot_every, upkeep, read_only
        self._where = "memory" if path is None else str(path)
        self._ledger = _ledger_at(path, read_only)
        try:
            self._settings, self._salt = settings_in(self._ledger, given, self._where)
            self._clock = Clock(self._settings.zone, now)
            self._background = Background(self)
            self._recall()
        except BaseException:
            self._ledger.close()
            raise
        if upkeep == "inline":
            self._work_all()

    @classmethod
    def memory(cls, **given: Any) -> Self:
        """An agent that dies with its process, for tests and notebooks; the same choices as for one with a file."""
        return cls(None, **given)

    # ---- deciding

    def choose(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        arms: Iterable[str] | None = None,
        subject: str | None = None,
        at: float | datetime | str | None = None,
        id: str | None = None,
    ) -> Decision:
        """Choose an arm, among `arms` if given. `subject` is whom it concerns: one subject stays in one group. `at` is
        when, if not now. The same `id` again gives the same decision again."""
        with self._lock:
            self._ready()
            if id is not None and (earlier := self._decisions.named(id)) is not None:
                seq, decision = earlier.record.seq, self._shown(earlier)
            else:
                asked = self._asked(context, arms, subject, at)
                known = self._decide(asked, id)
                seq, decision = known.record.seq, self._shown(known)
        self._flush(seq)
        self._afterwards()
        return decision

    def _asked(self, context: Any, arms: Any, subject: Any, at: Any) -> Asked:
        """A decision to make, everything checked; nothing has changed yet."""
        mind = self._mind
        schema = mind.learning.schema
        if schema is not None:
            cleaned = schema.clean(context)
        else:
            cleaned = plain_context(context)
            require_same_kind([early["context"] for early in mind.learning.early], cleaned)
        cleaned = self._hidden(cleaned)
        available = mind.arms.available(arms)
        if subject is not None and not isinstance(subject, str):
            raise InputError(f"subject must be text, got {subject!r}")
        return Asked(cleaned, self._stamp(at), available, None if subject is None else self._hash(subject))

    def _decide(self, asked: Asked, name: str | None) -> Known:
        with self._step():
            self._pay_due(asked.at)
            choice = self._mind.decide(asked)
            text = json.dumps(asked.cleaned, separators=(",", ":")).encode()
            record = self._append(
                Kind.DECISION, asked.at, body=choice.pack(), context=text, subject=asked.subject, name=name
            )
            known = Known(record, choice)
            self._decisions.remember(known)
            if self._settings.reward_within is not None:
                self._next_due = min(self._next_due, asked.at + self._settings.reward_within)
            return known

    # ---- rewards

    def reward(
        self, id: str, reward: float, *, at: float | datetime | str | None = None, key: str | None = None
    ) -> bool:
        """What a decision was worth: now, tomorrow, twice, or never. True if it is news, False if it was known.

        With `again="add"`, every reward counts but those whose `key` came before.
        """
        value = _checked(reward)
        with self._lock:
            self._ready()
            known = self._decisions.find(id)
            moment = self._stamp(at)
            if key is not None:
                key = f"{OURS}{known.record.seq}/{key}"
            earlier = self._repeated(id, known, value, key)
            if earlier is None:
                self._require_in_time(id, known, moment)
                earlier, news = self._pay(known, value, moment, key), True
            else:
                news = False
        self._flush(earlier.seq)
        self._afterwards()
        return news

    def _repeated(self, id: str, known: Known, value: float, key: str | None) -> Record | None:
        """The record that says the same already; another reward is an error, unless it may be added or replace."""
        again = self._settings.again
        if key is not None:
            return next((record for record in known.paid if record.name == key), None)
        if not known.paid or again == "add":
            return None
        latest = known.paid[-1]
        if unpack_reward(latest.body) == value:
            return latest
        if again == "replace":
            return None
        raise RewardError(
            f"decision {id} has the reward {unpack_reward(latest.body):g} already, and {value:g} is another; "
            "make the agent with again='add' or 'replace' if rewards may change"
        )

    def _require_in_time(self, id: str, known: Known, moment: float) -> None:
        within = self._settings.reward_within
        if known.over or (within is not None and moment - known.record.at > within):
            raise ExpiredError(f"decision {id} has expired: its reward had to come within {within:g} seconds")

    def _pay(self, known: Known, value: float, moment: float, key: str | None) -> Record:
        with self._step():
            self._pay_due(moment)
            if not self._settings.learns_when_due:
                self._mind.learn(known.record.seq, known.choice, known.record.at, value)
            record = self._append(
                Kind.REWARD, moment, ref=known.record.seq, body=pack_reward(value), name=key
            )
            known.paid.append(record)
            return record

    def _pay_due(self, now: float, most: int = 32) -> None:
        """Decisions whose time is over: their default reward, or what came in the meantime."""
        within = self._settings.reward_within
        if within is None or not self._settings.counts_missing or now < self._next_due:
            return
        looked = 0
        for record in self._ledger.tail(self._mind.due):
            if record.kind is not Kind.DECISION:
                continue
            if record.at + within >= now or looked == most:
                self._next_due = record.at + within
                return
            looked += 1
            self._settle(self._decisions.loaded(record), now)
        self._next_due = math.inf

    def _settle(self, known: Known, now: float) -> None:
        seq = known.record.seq
        if not known.over and (self._settings.learns_when_due or not known.paid):
            rewards = [unpack_reward(record.body) for record in known.paid]
            final = self._settings.default_reward
            if rewards:
                final = sum(rewards) if self._settings.again == "add" else rewards[-1]
            if final is not None:
                self._mind.learn(seq, known.choice, known.record.at, final)
            self._append(Kind.DUE, now, ref=seq, body=b"" if final is None else pack_reward(final))
            known.over = True
        self._mind.due = seq

    # ---- arms

    @property
    def arms(self) -> list[str]:
        """The arms that can be chosen."""
        return self._mind.arms.labels

    def add(self, label: str, features: Any = None, *, at: float | datetime | str | None = None) -> None:
        """A new arm, or a retired one again. Where the policy has no room left, it is built anew from the ledger with
        twice the room, which takes as long as replaying it."""
        change: dict[str, Any] = {"op": "add", "label": label_of(label)}
        if features is not None:
            change["features"] = features_of(label, features)
        self._change(change, at)

    def retire(self, label: str, *, at: float | datetime | str | None = None) -> None:
        """An arm is not chosen any more; rewards for it are still learnt."""
        self._change({"op": "retire", "label": label}, at)

    def rename(self, label: str, to: str, *, at: float | datetime | str | None = None) -> None:
        """An arm has another name from now on."""
        self._change({"op": "rename", "label": label, "to": label_of(to)}, at)

    def _change(self, change: dict[str, Any], at: Any) -> None:
        with self._lock:
            self._ready()
            self._mind.arms.changed(change)
            self._ledger.flush(self._ledger.last)
            with self._step():
                self._mind.change_arms(change, self._ledger, self._ledger.last, self._mind.slices)
                record = self._append(Kind.ARMS, self._stamp(at), body=json.dumps(change).encode())
        self._flush(record.seq)

    # ---- holding still, going back

    def freeze(self) -> None:
        """From now on nothing is learnt; decisions go on, rewards are recorded."""
        self._plain(Kind.FREEZE)

    def unfreeze(self) -> None:
        """From now on rewards are learnt again; those that came in between are not."""
        self._plain(Kind.UNFREEZE)

    @property
    def frozen(self) -> bool:
        """Whether nothing is learnt now."""
        return self._mind.frozen

    def rollback(self, to: float | datetime | str) -> None:
        """Forget all that was learnt after a moment, or after the decision of that id. Arms stay as they are, and
        nothing is deleted: rewards of decisions that were taken back are recorded, and not learnt."""
        with self._lock:
            self._ready()
            self._ledger.flush(self._ledger.last)
            after = self._last_before(to)
            if not self._can_return_to(after):
                raise InputError("rollback: what was known then cannot be rebuilt; its records were archived")
            with self._step():
                record = self._append(
                    Kind.ROLLBACK, self._stamp(None), body=json.dumps({"to": after}).encode()
                )
                self._ledger.flush(record.seq)
                self._ledger.drop_snapshots(after)
                self._recall()
        self.save()

    def _last_before(self, to: Any) -> int:
        if isinstance(to, str) and self._decisions.number(to) is not None:
            return self._decisions.find(to).record.seq
        moment = self._clock.read(to)
        return max((record.seq for record in self._ledger.tail(0) if record.at <= moment), default=0)

    def _can_return_to(self, seq: int) -> bool:
        erased = self._erased()
        usable = [s for s in self._ledger.snapshots() if s <= seq and not _within(s, erased)]
        return bool(usable) or self._ledger.read("whole") != "no"

    def _plain(self, kind: Kind) -> None:
        with self._lock:
            self._ready()
            with self._step():
                self._mind.frozen = kind is Kind.FREEZE
                record = self._append(kind, self._stamp(None))
        self._flush(record.seq)

    # ---- looking

    def explain(self) -> Report:
        """What it believes, in plain words: print it."""
        return self._look(Insight.report)

    def lift(self, *, since: float | datetime | str | None = None, level: float = 0.95) -> Lift:
        """The gain in reward over the control group, with an interval; of decisions since a moment, if given."""
        moment = None if since is None else self._clock.read(since)
        return self._look(lambda insight: insight.lift(moment, level))

    def history(self, kind: Literal["pandas", "polars", "rows"] = "pandas") -> Any:
        """Every decision as a table, a row each, with what it was worth."""
        return self._look(lambda insight: table.frame(self._rows(insight), kind))

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write every decision to a .parquet, .jsonl or .csv file; how many there were."""
        return self._look(lambda insight: table.write(Path(path), self._rows(insight)))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """A picture of traffic, rewards by hour and weekday, and the gain over the control (extra `bench`)."""
        draw = import_module("tidepull.report.agent_plots").draw
        self._look(lambda insight: draw(insight, Path(path)))

    def check(self) -> Condition:
        """Read the whole ledger and repeat it from the start: is everything as it was?"""
        return self._look(
            lambda _: checked(Mind(self._settings, self._salt, self._clock), self._ledger, self._erased())
        )

    def _rows(self, insight: Insight) -> Iterator[dict[str, Any]]:
        return table.rows(insight, self._ledger, self._id)

    def _look(self, question: Callable[[Insight], T]) -> T:
        with self._lock:
            self._ready()
            self._ledger.flush(self._ledger.last)
            return question(Insight(self._mind, self._ledger))

    # ---- logs of others

    def learn_from(self, path: str | os.PathLike[str]) -> int:
        """Learn from a log: a .parquet, .jsonl or .csv file with `context`, `arm`, `reward` and if possible `at`, such
        as `export` writes. What has no reward is passed over. How many decisions were learnt."""
        count = 0
        for row in table.read(Path(path)):
            if not {"arm", "reward"} <= set(row):
                continue
            with self._lock:
                self._ready()
                place = self._mind.arms.place(row["arm"])
                asked = self._asked(row.get("context"), None, None, row.get("at"))
                asked = replace(asked, played=place, imported=True)
                known = self._decide(asked, None)
                record = self._pay(known, _checked(row["reward"]), asked.at, None)
            count += 1
            if count % 100 == 0:
                self._flush(record.seq)
            if self._mode == "inline":
                self._work_all()
        if count:
            self._flush(record.seq)
        self._afterwards()
        return count

    # ---- what is kept, and for how long

    def forget(self, subject: str) -> int:
        """Delete all decisions that concern a subject, for good; how many there were. What was learnt of them stays
        learnt, as one voice among all others; the agent cannot be rolled back to before this call."""
        with self._lock:
            self._ready()
            hashed = self._hash(subject)
        self.save()
        self.save()  # whatever happens to the newer one, no restart needs what is deleted
        with self._lock:
            self._ready()
            self._ledger.flush(self._ledger.last)
            count = self._ledger.remove(subject=hashed)
            self._decisions.clear()
        return count

    def compact(self, path: str | os.PathLike[str], before: float | datetime | str) -> int:
        """Move decisions before a moment to a .parquet, .jsonl or .csv file and out of the ledger; how many. What was
        learnt stays; rewards for them are refused as expired, and `lift` and `history` know the rest."""
        moment = self._clock.read(before)
        self.save()
        self.save()
        with self._lock:
            self._ready()
            self._ledger.flush(self._ledger.last)
            insight = Insight(self._mind, self._ledger)
            log = insight.log()
            old = log.seq[log.at < moment]
            if not len(old):
                return 0
            upto = int(old[-1])
            chosen = (row for row, seq in zip(self._rows(insight), log.seq, strict=True) if seq <= upto)
            table.write(Path(path), chosen)
            self._ledger.write({"archived": str(upto)})
            count = self._ledger.remove(upto=upto)
            self._decisions.clear()
        return count

    def _drop_old_contexts(self, retain: float) -> None:
        """What `retain` says, as far as no restart needs it."""
        saved = self._ledger.snapshots()
        if len(saved) >= 2:
            self._ledger.drop_contexts(saved[1], self._mind.latest - retain)

    # ---- work that nobody waits for

    def work(self) -> bool:
        """One slice of upkeep, or a snapshot that is due; True while there is more to do."""
        with self._lock:
            if self._closed:
                return False
            self._ready()
            if self._mind.learning.pending:
                with self._step():
                    self._mind.slice()
                return self._mind.learning.pending or self._snapshot_is_due()
            if not self._snapshot_is_due():
                return False
        self.save()
        return False

    def save(self) -> None:
        """Take a snapshot now, so that a restart need not repeat what came before."""
        with self._lock:
            self._ready()
            with self._step():
                taken = self._mind.snapshot()
                record = self._append(Kind.SNAPSHOT, self._stamp(None))
                self._saved = record.seq
        self._flush(record.seq)
        self._ledger.save(record.seq, record.at, snapshots.dump(taken))
        if self._settings.retain is not None:
            with self._lock:
                self._drop_old_contexts(self._settings.retain)

    def _snapshot_is_due(self) -> bool:
        return not self._read_only and self._ledger.last - self._saved >= self._every

    def _work_all(self) -> None:
        while self.work():
            pass

    def _afterwards(self) -> None:
        if self._mode == "inline":
            self._work_all()
        elif self._mode == "thread" and (self._mind.learning.pending or self._snapshot_is_due()):
            self._background.wake()
        elif self._mode == "manual" and self._snapshot_is_due():
            self.save()

    def close(self) -> None:
        """Let others have the file; everything is safe already."""
        if self._closed or self._owner != os.getpid():
            return
        self._background.close()
        with self._lock:
            self._closed = True
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside

    def _ready(self) -> None:
        if self._owner != os.getpid():
            raise LedgerError(
                f"this agent was opened in process {self._owner}, this is process {os.getpid()}: "
                "open it after the fork"
            )
        if self._closed:
            raise LedgerError(f"the agent at {self._where} is closed; open it again")
        if self._unsure:
            self._ledger.recover()
            self._recall()

    def _recall(self) -> None:
        """Read the state from the ledger."""
        self._mind: Mind = recalled(self._settings, self._salt, self._clock, self._ledger, self._erased())
        self._decisions = Decisions(self._ledger, self._salt)
        self._next_due = -math.inf
        saved = self._ledger.snapshots()
        self._saved = saved[0] if saved else 0
        self._unsure = False

    def _erased(self) -> list[tuple[int, int]]:
        return [
            (int(json.loads(record.body)["to"]), record.seq) for record in self._ledger.of_kind(Kind.ROLLBACK)
        ]

    def _step(self) -> _Step:
        if self._read_only:
            raise LedgerError(f"{self._where} was opened with read_only=True: nothing can be changed")
        return _Step(self)

    def _append(
        self,
        kind: Kind,
        at: float,
        *,
        ref: int | None = None,
        body: bytes = b"",
        context: bytes | None = None,
        subject: bytes | None = None,
        name: str | None = None,
    ) -> Record:
        slices, self._mind.slices = self._mind.slices, 0
        record = Record(kind, at, slices, ref, body, context, subject, name, self._ledger.last + 1)
        self._ledger.append(record)
        return record

    def _flush(self, seq: int) -> None:
        try:
            self._ledger.flush(seq)
        except BaseException:
            self._unsure = True
            raise

    def _stamp(self, at: Any) -> float:
        moment, back = self._clock.stamp(at, self._mind.latest)
        if back and not self._read_only:
            words = f"the clock went back by {back:.0f} seconds"
            with self._step():
                self._append(Kind.NOTE, moment, body=words.encode())
                self._mind.latest = moment
        return moment

    def _hash(self, text: str) -> bytes:
        return blake2b(text.encode(), key=self._salt, digest_size=8).digest()

    def _hidden(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """Private fields as salted hashes."""
        schema = self._mind.learning.schema
        if schema is None:
            return cleaned
        for name, kind in schema.fields.items():
            if kind.private and name in cleaned:
                value = cleaned[name]
                cleaned[name] = (
                    sorted(self._hash(tag).hex() for tag in value)
                    if isinstance(value, list)
                    else self._hash(value).hex()
                )
        return cleaned

    def _id(self, seq: int) -> str:
        return self._decisions.id(seq)

    def _shown(self, known: Known) -> Decision:
        choice, record = known.choice, known.record
        label = self._mind.arms.label(choice.arm)
        group = Group(choice.group).name.lower()
        return Decision(self._id(record.seq), label, choice.propensity, group, record.at)

    @property
    def settings(self) -> Settings:
        """What was chosen when the agent was made."""
        return self._settings


class _Step:
    """Around everything that changes the state: what goes wrong inside makes the state unsure, unless it was the
    caller's mistake, which changes nothing."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, InputError):
            self._agent._unsure = True


def _ledger_at(path: str | os.PathLike[str] | None, read_only: bool) -> Ledger:
    if path is None:
        return MemoryLedger()
    return SqliteLedger(Path(path), read_only=read_only)


def _checked(reward: Any) -> float:
    if isinstance(reward, bool):
        return float(reward)
    try:
        value = float(reward) if not isinstance(reward, str) else math.nan
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not abs(value) <= _LARGEST:
        raise RewardError(f"reward must be a finite number of at most {_LARGEST:g} in size, got {reward!r}")
    return value


def _within(seq: int, spans: list[tuple[int, int]]) -> bool:
    return any(after < seq <= upto for after, upto in spans)
