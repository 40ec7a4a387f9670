"""The agent: choose an arm, say later what it was worth, and lose nothing in between.

A call takes its step under one lock (`desk.py`) and returns when the record of it is safe. What goes wrong while a step
is taken leaves the agent to be read from its ledger again, at the next call.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from tidepull.agent import table
from tidepull.agent.answers import Decision
from tidepull.agent.arms import features_of, label_of
from tidepull.agent.check import Condition, checked
from tidepull.agent.clock import Clock, SteadyTime
from tidepull.agent.decisions import OURS, Known
from tidepull.agent.desk import Caller, Desk, Request, When
from tidepull.agent.explain import Report
from tidepull.agent.insight import Insight
from tidepull.agent.lift import Lift
from tidepull.agent.log import LogReader
from tidepull.agent.making import settings_in
from tidepull.agent.places import ledger_at
from tidepull.agent.records import Choice, Group, Kind
from tidepull.agent.settings import Settings
from tidepull.agent.state import State, state_of
from tidepull.agent.upkeep import Background
from tidepull.errors import (
    LedgerError,
    ParameterError,
    RewardError,
)
from tidepull.protocols import HasDecisions
from tidepull.registry import Named

if TYPE_CHECKING:
    from tidepull.agent.postgres import Place

T = TypeVar("T")

SETTLED_AT_A_TIME = 8
"""Overdue decisions that are settled in one piece of work, about 3 ms with `tide`."""

_LARGEST = 1e15
_GROUPS = {int(group): group.name.lower() for group in Group}


class Agent:
    """Learns which arm is best, by the hour and the weekday and for whom, from rewards that come when they come.

    >>> agent = Agent.memory(arms=["blue", "red"], context={"age": float}, policy="bernoulli-ts", seed=1)
    >>> decision = agent.choose({"age": 31})
    >>> agent.reward(decision.id, 1.0), agent.reward(decision.id, 1.0)
    (True, False)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Place | None,
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
        now: Callable[[], float] | None = None,
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
        self._owner = os.getpid()
        self._closed = False
        self._every, self._mode = snapshot_every, upkeep
        self._background = Background(self)
        ledger, self._where = ledger_at(path, read_only=read_only)
        try:
            settings, salt = settings_in(ledger, given, self._where, read_only=read_only)
            clock = Clock(settings.zone, SteadyTime(ledger.now) if now is None else now)
            self._desk = Desk(ledger, settings, salt, clock, self._where, read_only=read_only)
        except BaseException:
            ledger.close()
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
        decision, seq = self._decided(context, arms, subject, at, id)
        self._desk.flush(seq)
        self._afterwards()
        return decision

    def _decided(self, context: Any, arms: Any, subject: Any, at: Any, id: Any) -> tuple[Decision, int]:
        with self._lock:
            self._ready()
            desk = self._desk
            known = None if id is None else desk.decisions.named(id)
            if known is None:
                known = desk.decide(*desk.asked(context, arms, subject, at), id)
            return self._shown(known), known.record.seq

    # ---- rewards

    def reward(
        self, id: str, reward: float, *, at: float | datetime | str | None = None, key: str | None = None
    ) -> bool:
        """What a decision was worth: now, tomorrow, twice, or never. True if it is news, False if it was known.

        With `again="add"`, every reward counts but those whose `key` came before.
        """
        seq, news = self._paid(id, reward, at, key)
        self._desk.flush(seq)
        self._afterwards()
        return news

    def _paid(
        self, id: str, reward: float, at: Any, key: str | None, caller: Caller = Caller.PROCESS
    ) -> tuple[int, bool]:
        value = _checked(reward)
        with self._lock:
            self._ready()
            known = self._desk.decisions.find(id)
            if key is not None:
                key = f"{OURS}{known.record.seq}/{key}"
            record, news = self._desk.reward(id, known, value, at, key, caller)
            return record.seq, news

    # ---- for servers: many steps, one commit

    def choose_ahead(self, asked: Sequence[Request]) -> tuple[list[Decision], int]:
        """Make decisions that are safe only when `commit` has returned for the number that comes with them: nobody may
        be told of them before. If one cannot be made, none is. A request whose id was used for another one is a
        `ConflictError`."""
        with self._lock:
            self._ready()
            made = self._desk.decide_all(asked)
            return [self._shown(known) for known in made], max((known.latest for known in made), default=0)

    def reward_ahead(
        self,
        id: str,
        reward: float,
        *,
        at: float | datetime | str | None = None,
        key: str | None = None,
        caller: Caller = Caller.PROCESS,
    ) -> tuple[bool, int]:
        """Like `reward`, but safe only when `commit` has returned for the number."""
        seq, news = self._paid(id, reward, at, key, caller)
        return news, seq

    def activate_ahead(self, id: str) -> tuple[bool, int]:
        """A decision that was asked for as deferred counts from now on; False if it does already. Safe only when
        `commit` has returned for the number."""
        with self._lock:
            self._ready()
            known = self._desk.decisions.find(id)
            return self._desk.activate(id, known), known.latest

    def chances(self, id: str) -> dict[str, float]:
        """The chance that every arm had which could be chosen in a decision, by label."""
        with self._lock:
            self._ready()
            return self._desk.chances(self._desk.decisions.find(id))

    def commit(self, seq: int) -> None:
        """Return when the step of that number is safe; a `LedgerError` if its commit failed, whoever has recovered
        since. Any thread may call it while others take steps."""
        self._desk.flush(seq)

    # ---- arms

    @property
    def arms(self) -> list[str]:
        """The arms that can be chosen."""
        return self._desk.mind.arms.labels

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

    def features(self, label: str) -> Mapping[str, Any] | None:
        """What is known of an arm; None: nothing."""
        return self._desk.mind.arms.features(label)

    @property
    def describes(self) -> bool:
        """Whether its arms are described by free-form objects."""
        return self._desk.mind.arms.described

    def rename(self, label: str, to: str, *, at: float | datetime | str | None = None) -> None:
        """An arm has another name from now on."""
        self._change({"op": "rename", "label": label, "to": label_of(to)}, at)

    def describe(
        self, label: str, features: Mapping[str, Any], *, at: float | datetime | str | None = None
    ) -> None:
        """An arm that is described by a free-form object (`{"features": {...}}`) has become another one."""
        self._change({"op": "describe", "label": label, "features": features_of(label, features)}, at)

    def _change(self, change: dict[str, Any], at: Any) -> None:
        with self._lock:
            self._ready()
            record = self._desk.change_arms(change, at)
        self._desk.flush(record.seq)

    # ---- holding still, going back

    def freeze(self) -> None:
        """From now on nothing is learnt; decisions go on, rewards are recorded."""
        self._hold(Kind.FREEZE)

    def unfreeze(self) -> None:
        """From now on rewards are learnt again; those that came in between are not."""
        self._hold(Kind.UNFREEZE)

    @property
    def frozen(self) -> bool:
        """Whether nothing is learnt now."""
        return self._desk.mind.frozen

    def rollback(self, to: float | datetime | str) -> None:
        """Forget all that was learnt after a moment, or after the decision of that id. Arms stay as they are, and
        nothing is deleted: rewards of decisions that were taken back are recorded, and not learnt."""
        with self._lock:
            self._ready()
            self._desk.roll_back(to)
        self.save()

    def _hold(self, kind: Kind) -> None:
        with self._lock:
            self._ready()
            record = self._desk.hold(kind)
        self._desk.flush(record.seq)

    # ---- looking

    def explain(self) -> Report:
        """What it believes, in plain words: print it."""
        return self._look(Insight.report)

    def lift(self, *, since: float | datetime | str | None = None, level: float = 0.95) -> Lift:
        """The gain in reward over the control group, with an interval; of decisions since a moment, if given."""
        moment = None if since is None else self._desk.clock.read(since)
        return self._look(lambda insight: insight.lift(moment, level))

    def history(self, kind: Literal["pandas", "polars", "rows"] = "pandas") -> Any:
        """Every decision as a table, a row each, with what it was worth."""
        return self._look(lambda insight: table.frame(self._rows(insight), kind))

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write every decision to a .parquet, .jsonl or .csv file; how many there were."""
        return self._look(lambda insight: table.write(Path(path), self._rows(insight)))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """A picture of traffic, rewards by hour and weekday, and the gain over the control (extra `bench`)."""
        draw = import_module("tidepull.reporting.agent_figures").draw
        self._look(lambda insight: draw(insight, Path(path)))

    def check(self) -> Condition:
        """Read the whole ledger and repeat it from the start: is everything as it was?"""
        desk = self._desk
        return self._look(lambda _: checked(desk.fresh_mind(), desk.ledger, desk.erased()))

    def _rows(self, insight: Insight) -> Iterator[dict[str, Any]]:
        return table.rows(insight, self._desk.ledger, self._desk.decisions.id)

    def _look(self, question: Callable[[Insight], T]) -> T:
        with self._lock:
            self._ready()
            self._desk.flush()
            return question(Insight(self._desk.mind, self._desk.ledger))

    def aside(self, reader: LogReader | None = None) -> Insight:
        """A view that can be questioned while the agent goes on, by another thread; a `reader` that was used before
        reads only what is new."""
        with self._lock:
            self._ready()
            insight = Insight(self._desk.mind, self._desk.ledger, reader)
            insight.told()
            return insight

    def reader(self) -> LogReader:
        """For `aside`; one thread at a time may use it."""
        return LogReader(self.settings, self._desk.clock)

    def rows_aside(self, insight: Insight) -> Iterator[dict[str, Any]]:
        """Every decision as `export` writes it, from a view."""
        return self._rows(insight)

    def state(self) -> State:
        """Where it stands: what was chosen at its making, its arms, and how much has happened."""
        with self._lock:
            self._ready()
            return state_of(self._desk)

    # ---- logs of others

    def learn_from(self, path: str | os.PathLike[str]) -> int:
        """Learn from a log: a .parquet, .jsonl or .csv file with `context`, `arm`, `reward` and if possible `at`, such
        as `export` writes. What has no reward is passed over. How many decisions were learnt."""
        return self._learn_all(table.read(Path(path)))

    def warm_start(self, log: HasDecisions) -> int:
        """Learn from a log that `tidepull.logs.read` has read, whatever its format; its arms must be the agent's. What
        has no reward is passed over. How many decisions were learnt."""
        return self._learn_all(log.decisions())

    def _learn_all(self, rows: Iterable[Mapping[str, Any]]) -> int:
        count, steps = 0, list[int]()
        for row in rows:
            if not {"arm", "reward"} <= set(row):
                continue
            with self._lock:
                self._ready()
                desk, value = self._desk, _checked(row["reward"])
                asked, now = desk.asked(row.get("context"), None, None, row.get("at"))
                asked = replace(asked, played=desk.mind.arms.place(row["arm"]), imported=True)
                known = desk.decide(asked, now, None)
                steps.append(desk.pay(known, value, When(asked.at, now)).seq)
            count += 1
            if len(steps) == 100:
                self._commit_all(steps)
            if self._mode == "inline":
                self._work_all()
        self._commit_all(steps)
        self._afterwards()
        return count

    def _commit_all(self, steps: list[int]) -> None:
        """The last one first: one commit does for all of them, and each is asked for its own."""
        while steps:
            self.commit(steps.pop())

    # ---- what is kept, and for how long

    def forget(self, subject: str) -> int:
        """Delete all decisions that concern a subject, for good; how many there were. What was learnt of them stays
        learnt, as one voice among all others; the agent cannot be rolled back to before this call."""
        with self._lock:
            self._ready()
            hashed = self._desk.hash(subject)
        self.save()
        self.save()  # whatever happens to the newer one, no restart needs what is deleted
        with self._lock:
            self._ready()
            self._desk.flush()
            count = self._desk.ledger.remove(subject=hashed)
            self._desk.decisions.clear()
        return count

    def compact(self, path: str | os.PathLike[str], before: float | datetime | str) -> int:
        """Move decisions before a moment to a .parquet, .jsonl or .csv file and out of the ledger; how many. What was
        learnt stays; rewards for them are refused as expired, and `lift` and `history` know the rest."""
        moment = self._desk.clock.read(before)
        self.save()
        self.save()
        with self._lock:
            self._ready()
            self._desk.flush()
            ledger = self._desk.ledger
            insight = Insight(self._desk.mind, ledger)
            log = insight.log()
            old = log.seq[log.at < moment]
            if not len(old):
                return 0
            upto = int(old[-1])
            chosen = (row for row, seq in zip(self._rows(insight), log.seq, strict=True) if seq <= upto)
            table.write(Path(path), chosen)
            ledger.write({"archived": str(upto)})
            count = ledger.remove(upto=upto)
            self._desk.decisions.clear()
        return count

    # ---- work that nobody waits for

    def work(self) -> bool:
        """One slice of upkeep, or a snapshot that is due; True while there is more to do."""
        with self._lock:
            if self._closed:
                return False
            self._ready()
            if self.has_work:
                self._work_a_little()
                return self.has_work or self._snapshot_is_due()
            if not self._snapshot_is_due():
                return False
        self.save()
        return False

    def slice(self) -> bool:
        """One slice of upkeep, if one is pending; True while there is more."""
        with self._lock:
            self._ready()
            self._work_a_little()
            return self.has_work

    def _work_a_little(self) -> None:
        if self._desk.mind.learning.pending:
            self._desk.slice()
        else:
            self._desk.settle(SETTLED_AT_A_TIME)

    @property
    def has_work(self) -> bool:
        """Whether a slice of upkeep is pending, or decisions are overdue."""
        return self._desk.mind.learning.pending or self._desk.is_settling

    @property
    def snapshot_is_due(self) -> bool:
        """Whether so many records came since the last snapshot that it is time for another."""
        return self._snapshot_is_due()

    @property
    def is_unsure(self) -> bool:
        """Whether something failed, so that the next call reads the state from the ledger again."""
        return self._desk.unsure

    def recover(self) -> None:
        """Read the state from the ledger again, if something failed; the next call would do so too."""
        with self._lock:
            self._ready()

    def save(self) -> None:
        """Take a snapshot now, so that a restart need not repeat what came before."""
        with self._lock:
            self._ready()
            record, written = self._desk.take()
        self._desk.flush(record.seq)
        self._desk.ledger.save(record.seq, record.at, written())
        if self.settings.retain is not None:
            with self._lock:
                self._desk.drop_old_contexts()

    def _snapshot_is_due(self) -> bool:
        desk = self._desk
        return not desk.read_only and desk.ledger.last - desk.saved >= self._every

    def _work_all(self) -> None:
        while self.work():
            pass

    def _afterwards(self) -> None:
        if self._mode == "inline":
            self._work_all()
        elif self._mode == "thread" and (self.has_work or self._snapshot_is_due()):
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
            self._desk.ledger.close()

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
        self._desk.sit_down()

    def _shown(self, known: Known) -> Decision:
        record, desk = known.record, self._desk
        arm, group, propensity = Choice.head(record.body)
        return Decision(
            desk.decisions.id(record.seq), desk.mind.arms.label(arm), propensity, _GROUPS[group], record.at
        )

    @property
    def where(self) -> str:
        """What its place is called, without any password."""
        return self._where

    @property
    def settings(self) -> Settings:
        """What was chosen when the agent was made."""
        return self._desk.settings


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
