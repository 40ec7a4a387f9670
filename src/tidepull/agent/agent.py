"""The agent: choose an arm, say later what it was worth, and lose nothing in between.

A call takes its step under one lock (`commands.py`) and returns when the record of it is safe. A
step that fails leaves the state dirty: the next call reads it from the ledger again.
"""

from __future__ import annotations

import inspect
import json
import logging
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from tidepull._internal.validation import shown
from tidepull.agent import promotion, table
from tidepull.agent.arms import features_of, label_of
from tidepull.agent.background import Background
from tidepull.agent.clock import Clock, SteadyTime
from tidepull.agent.commands import Caller, CommandHandler, Request, Stamp
from tidepull.agent.decisions import OURS, Decision, DecisionId, PendingDecision, id_of, is_name
from tidepull.agent.insight import AgentReport, AgentStatus, Insight, status_of
from tidepull.agent.ledger import is_new_file, ledger_at
from tidepull.agent.ledger.base import Ledger
from tidepull.agent.lift import Lift
from tidepull.agent.limits import require_affordable_settings
from tidepull.agent.log import LogReader
from tidepull.agent.point_in_time import PointInTime, last_record
from tidepull.agent.promotion import Promotion
from tidepull.agent.records import Choice, DecisionGroup, Kind, Record
from tidepull.agent.replay import LedgerCheck, check_ledger
from tidepull.agent.settings import (
    CHANGEABLE,
    SETTINGS,
    UNSET,
    AgentSettings,
    load_settings,
    new_settings,
    plain_settings,
)
from tidepull.agent.shadow import OwnPolicy, Shadow, ShadowReport, basis_of, evaluate
from tidepull.errors import InputError, LedgerError, ParameterError, RewardError, TidepullError
from tidepull.protocols import HasDecisions
from tidepull.registry import Named

if TYPE_CHECKING:
    from tidepull.agent.ledger.postgres import Place

T = TypeVar("T")
P = ParamSpec("P")

SETTLED_AT_A_TIME = 8
"""Overdue decisions that are settled in one piece of work, about 3 ms with `tide`."""

_LOG = logging.getLogger("tidepull")
_LARGEST = 1e15
_GROUPS = {int(group): group.name.lower() for group in DecisionGroup}


def _one_at_a_time(
    method: Callable[Concatenate[Agent, P], T],
) -> Callable[Concatenate[Agent, P], T]:
    """A change of an agent that may replay its ledger beside the steps, while no other such change
    is under way."""

    @wraps(method)
    def change(self: Agent, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._changing:
            return method(self, *args, **kwargs)

    return change


class Agent:
    """An agent that chooses between named arms and learns from their rewards.

    Rewards may come late, twice or never. Every decision and reward is durable in a ledger before
    a call returns. Opening the ledger again continues exactly where the agent stopped.

    `snapshot_every`, `training`, `read_only` and `now` apply to this process. All other settings
    are stored in the ledger, and need not be given again. Given to an agent that is there, further
    arms and fields of the context are added, and `control`, `control_arm`, `min_share`,
    `share_bounds`, `reward_within`, `default_reward` and `retention` are changed; the others must
    be as they are.

    Parameters
    ----------
    path : str, os.PathLike or Place
        Where the ledger is: a file, or "postgresql://user@host/database?agent=NAME".
    arms : iterable of str, or mapping of str to features, optional
        Labels of the arms, or labels with their features. Required for a new agent.
    context : mapping of str to kind, optional
        Fields of a context: a type (float, str, bool, list, datetime), a list of values, or one
        of `tidepull.fields`. Without it, the schema is guessed from the first 16 decisions, the
        group "warmup".
    policy : str or (str, mapping), default: "tide"
        Id of a policy, or its id and parameters (`tidepull list policies`).
    seed : int, optional
        With a seed, all choices are reproducible. By default it is random.
    timezone : str or ZoneInfo, default: "UTC"
        Time zone of hours, weekdays and naive datetimes.
    time_features : bool, optional
        Whether seven numbers of the calendar are added to contexts. By default they are added
        unless the policy reads the time itself.
    capacity : int, optional
        Number of arms for which the policy is built. By default it is the next power of two
        above the number of arms.
    propensity_draws : int, default: 32
        Number of posterior draws from which the probabilities of the arms are computed.
    control : float, default: 0.05
        Share of decisions in the control group, against which `lift` is measured.
    control_arm : str, optional
        Arm of the control group where `choose` names no baseline. By default an arm is drawn
        uniformly.
    min_share : float, optional
        Share of the policy's decisions that is spread evenly over all available arms. By
        default every available arm has a chance of at least 0.001; among more than 50 arms, 5%
        are spread.
    share_bounds : mapping of str to (float, float), optional
        Smallest and largest share of some arms.
    reward_within : float or timedelta, optional
        Seconds within which a reward must come.
    default_reward : float, optional
        Reward of a decision for which none came within `reward_within`.
    on_duplicate : {"refuse", "add", "replace"}, default: "refuse"
        What a second, different reward of a decision does. "add" and "replace" need
        `reward_within`.
    retention : float or timedelta, optional
        Age, in seconds, after which raw contexts are deleted.
    sticky : float or timedelta, optional
        Seconds for which a subject keeps the arm that was drawn for it, unless that cannot be
        chosen.
    shadow : sequence of policies, optional
        Candidates that see every decision and reward; see `shadows`.
    snapshot_every : int, default: 5000
        Number of records between two snapshots. Snapshots make opening quick.
    training : {"background", "inline", "manual"}, default: "background"
        Where training happens. "background": a thread does the work that a call leaves, in
        slices; what it has not done, the next call does. "inline": all of it inside calls.
        "manual": when `work` is called.
    read_only : bool, default: False
        Whether the ledger is opened without write access, beside the process that writes it.
    now : callable, optional
        Clock that returns seconds since 1970. By default it is the clock of the ledger's
        machine, without its jumps.
    retire_missing : bool, default: False
        Whether arms are retired that `arms` does not have.

    Raises
    ------
    ParameterError
        If a setting is invalid, or differs from one in the ledger that cannot change.
    HeldError
        If another process has the ledger open for writing.
    WrongStoreError
        If the path holds no agent, and `arms` is missing.

    Examples
    --------
    >>> import tidepull
    >>> agent = tidepull.Agent.memory(
    ...     arms=["blue", "red"], context={"age": float}, policy="bernoulli-ts", seed=1
    ... )
    >>> decision = agent.choose({"age": 31})
    >>> agent.reward(decision.id, 1.0), agent.reward(decision.id, 1.0)
    (True, False)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Place,
        *,
        arms: Iterable[str] | Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        policy: Named | None = None,
        seed: int | None = None,
        timezone: str | ZoneInfo | None = None,
        time_features: bool | None = None,
        capacity: int | None = None,
        propensity_draws: int | None = None,
        control: float | None = None,
        control_arm: str | None = None,
        min_share: float | None = None,
        share_bounds: Mapping[str, tuple[float, float]] | None = None,
        reward_within: float | timedelta | None = None,
        default_reward: float | None = None,
        on_duplicate: Literal["refuse", "add", "replace"] | None = None,
        retention: float | timedelta | None = None,
        sticky: float | timedelta | None = None,
        shadow: Sequence[Named] | None = None,
        snapshot_every: int = 5000,
        training: Literal["background", "inline", "manual"] = "background",
        read_only: bool = False,
        now: Callable[[], float] | None = None,
        retire_missing: bool = False,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name in SETTINGS}
        if training not in ("background", "inline", "manual"):
            raise ParameterError(
                f"training must be 'background', 'inline' or 'manual', got {training!r}"
            )
        if (
            isinstance(snapshot_every, bool)
            or not isinstance(snapshot_every, int)
            or snapshot_every < 1
        ):
            raise ParameterError(
                f"snapshot_every must be a whole number of at least 1, got {snapshot_every!r}"
            )
        self._shadows: dict[str, Shadow | OwnPolicy] = {}
        self._shadow_reader: LogReader | None = None
        self._lock = threading.Lock()
        self._changing = threading.Lock()  # held by changes that replay beside the steps
        self._owner = os.getpid()
        self._closed = False
        self._every, self._mode = snapshot_every, training
        self._background = Background(self)
        if arms is not None and isinstance(path, str | os.PathLike) and is_new_file(path):
            require_affordable_settings(new_settings(_without_none(arguments), str(path)))
        ledger, self._where = ledger_at(path, read_only=read_only, create=arms is not None)
        try:
            settings, salt = load_settings(
                ledger,
                arguments,
                self._where,
                read_only=read_only,
                require=require_affordable_settings,
            )
            clock = Clock(settings.timezone, SteadyTime(ledger.now) if now is None else now)
            self._commands = CommandHandler(
                ledger, settings, salt, clock, self._where, read_only=read_only
            )
        except BaseException:
            ledger.close()
            raise
        self._commands.pays_slices = training == "background"
        self._release = weakref.finalize(self, _release_dropped, ledger, self._owner)
        if not read_only:
            try:
                follow_settings(self, arguments, retire_missing=retire_missing)
            except BaseException:
                self.close()
                raise
        if training == "inline":
            self._work_all()
        elif training == "background" and self.upgrading is not None:
            self._background.wake()

    @classmethod
    def memory(cls, **settings: Any) -> Self:
        """Make an agent without a file, for tests and notebooks.

        Returns
        -------
        Agent
            An agent that chooses as one with a file does. It is lost when the process ends.

        Examples
        --------
        >>> Agent.memory(arms=["a", "b"], policy="random").arms
        ['a', 'b']
        """
        return cls(":memory:", **settings)

    # ---- deciding

    def choose(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        arms: Iterable[str] | None = None,
        subject: str | int | UUID | None = None,
        at: float | datetime | str | None = None,
        id: str | int | UUID | None = None,
        baseline: str | None = None,
    ) -> Decision:
        """Choose an arm.

        Parameters
        ----------
        context : mapping of str to value, optional
            Values of the context's fields. None, NaN, NA and NaT are missing.
        arms : iterable of str, optional
            Labels among which to choose. By default these are all arms that are not retired.
        subject : str, int or UUID, optional
            Person or thing that the decision concerns. Only a salted hash is stored. A subject
            stays in one group, and with `sticky` keeps its arm.
        at : float, datetime or str, optional
            Moment of the decision: seconds since 1970, a datetime or ISO text. By default it is
            now.
        id : str, int or UUID, optional
            Name of the decision. The same id again returns the same decision.
        baseline : str, optional
            Arm that your present rule takes in this decision. The control group gets it, so that
            `lift` compares with your rule.

        Returns
        -------
        Decision
            The arm with its exact propensity. The decision is durable.

        Raises
        ------
        ContextError
            If a value does not fit its field.
        ArmError
            If there is no such arm, or it is retired.

        Examples
        --------
        >>> agent = Agent.memory(arms=["a", "b"], context={}, policy="random", seed=1, control=0)
        >>> agent.choose(arms=["b"]).arm
        'b'
        """
        decision, seq = self._decide(context, arms, subject, at, id, baseline)
        self._commands.flush(seq)
        self._afterwards()
        return decision

    def _decide(
        self, context: Any, arms: Any, subject: Any, at: Any, id: Any, baseline: Any
    ) -> tuple[Decision, int]:
        id = id_of(id)
        with self._lock:
            commands = self._ready()
            pending = None if id is None else commands.decisions.named(id)
            if pending is None:
                inputs = commands.check_inputs(context, arms, subject, at, baseline=baseline)
                pending = commands.decide(*inputs, id)
            return self._decision_of(pending), commands.number_to_wait_for(pending.record.seq)

    def choose_many(self, contexts: Sequence[Mapping[str, Any] | None]) -> list[Decision]:
        """Make one decision for each context, all or none, in one commit.

        Parameters
        ----------
        contexts : sequence of mapping
            One context for each decision.

        Returns
        -------
        list of Decision
            The decisions, in the order of the contexts.

        Raises
        ------
        ContextError
            If a value does not fit its field; the message names the decision.

        Examples
        --------
        >>> agent = Agent.memory(arms=["a", "b"], context={"age": float}, policy="random")
        >>> len(agent.choose_many([{"age": 31}, {"age": 52}]))
        2
        """
        decisions, seq = self._choose_all([Request(context) for context in contexts])
        self._commands.flush(seq)
        self._afterwards()
        return decisions

    def _choose_all(self, requests: Sequence[Request]) -> tuple[list[Decision], int]:
        """Make several decisions, all or none, before they are durable: the decisions, and the
        number of the record to wait for."""
        with self._lock:
            batch = self._ready().decide_all(requests)
            last = max((pending.latest for pending in batch), default=0)
            decisions = [self._decision_of(pending) for pending in batch]
            return decisions, self._commands.number_to_wait_for(last)

    def _choose_each(self, requests: Sequence[Request]) -> list[tuple[Decision, int] | InputError]:
        """Make decisions of several callers before they are durable: each with the number of the
        record to wait for, or why it is refused."""
        with self._lock:
            made = self._ready().decide_each(requests)
            number = self._commands.number_to_wait_for
            return [
                one if isinstance(one, InputError) else (self._decision_of(one), number(one.latest))
                for one in made
            ]

    # ---- rewards

    def reward(
        self,
        id: DecisionId,
        reward: float | Decimal,
        *,
        at: float | datetime | str | None = None,
        key: str | None = None,
        also: Mapping[str, float] | None = None,
    ) -> bool:
        """Report the reward of a decision.

        Parameters
        ----------
        id : str, int, UUID or Decision
            The decision.
        reward : float or Decimal
            Its reward.
        at : float, datetime or str, optional
            Moment of the reward. By default it is now.
        key : str, optional
            Name of the reward. With `on_duplicate="add"`, a second reward with the same key is a
            duplicate.
        also : mapping of str to float, optional
            Further outcomes of the decision by name, such as its cost. They are not learnt;
            `lift(outcome=...)` compares them. An outcome that is not named counts as 0.

        Returns
        -------
        bool
            True if the reward is new, False if it is a duplicate, which has no effect.

        Raises
        ------
        DecisionError
            If there is no such decision.
        ExpiredError
            If the time for the reward is over.
        OtherRewardError
            If the decision has another reward, and `on_duplicate` is "refuse".
        RewardError
            If the reward is not a finite number, or the policy does not accept it.

        Examples
        --------
        >>> agent = Agent.memory(arms=["a", "b"], context={}, policy="random")
        >>> agent.reward(agent.choose(), 1.0)
        True
        """
        news, seq = self._record_reward(id, reward, at=at, key=key, also=also)
        self._commands.flush(seq)
        self._afterwards()
        return news

    def _record_reward(
        self,
        id: DecisionId,
        reward: float | Decimal,
        *,
        at: float | datetime | str | None = None,
        key: str | None = None,
        caller: Caller = Caller.PROCESS,
        also: Mapping[str, float] | None = None,
    ) -> tuple[bool, int]:
        """Report a reward before it is durable: whether it is new, and the number of the record to
        wait for. `caller` gives `at`, which decides how far that may be from the present."""
        value = _finite_reward(reward)
        outcomes = None if also is None else _outcomes(also)
        with self._lock:
            pending = self._ready().decisions.find(id)
            if key is not None:
                if not is_name(key):
                    raise RewardError(f"key must be text of 1 to 256 characters, got {shown(key)}")
                key = f"{OURS}{pending.record.seq}/{key}"
            record, news = self._commands.reward(
                id_of(id), pending, value, at, key, caller, outcomes
            )
            return news, self._commands.number_to_wait_for(record.seq)

    def chances(self, id: DecisionId) -> dict[str, float]:
        """Return the probability that each arm had in a decision.

        Parameters
        ----------
        id : str, int, UUID or Decision
            The decision.

        Returns
        -------
        dict of str to float
            Probabilities by label, for all arms that were available.

        Raises
        ------
        DecisionError
            If there is no such decision.
        """
        with self._lock:
            self._ready()
            return self._commands.chances(self._commands.decisions.find(id))

    # ---- arms

    @property
    def arms(self) -> list[str]:
        """Labels of the arms that can be chosen."""
        return self._commands.state.arms.labels

    def add(
        self, label: str, features: Any = None, *, at: float | datetime | str | None = None
    ) -> None:
        """Add an arm, or a retired one again.

        If the capacity is exceeded, the policy is rebuilt from the ledger with twice the capacity.
        That takes as long as a replay; other threads decide meanwhile.

        Parameters
        ----------
        label : str
            Label of the arm.
        features : float or mapping, optional
            Its features, where arms have them.
        at : float, datetime or str, optional
            Moment of the change. By default it is now.

        Raises
        ------
        ArmError
            If there is such an arm already, or its features do not fit.
        """
        change: dict[str, Any] = {"op": "add", "label": label_of(label)}
        if features is not None:
            change["features"] = features_of(label, features)
        self._change(change, at)

    def retire(self, label: str, *, at: float | datetime | str | None = None) -> None:
        """Retire an arm: it is not chosen any more.

        Rewards for earlier decisions are still learnt.

        Parameters
        ----------
        label : str
            Label of the arm.
        at : float, datetime or str, optional
            Moment of the change. By default it is now.

        Raises
        ------
        ArmError
            If there is no such arm, it is retired already, or it is the only one left.
        """
        self._change({"op": "retire", "label": label}, at)

    def features(self, label: str) -> Mapping[str, Any] | None:
        """Return the features of an arm.

        Parameters
        ----------
        label : str
            Label of the arm.

        Returns
        -------
        mapping or None
            The features; None if the arm has none.

        Raises
        ------
        ArmError
            If there is no such arm.
        """
        return self._commands.state.arms.features(label)

    def rename(self, label: str, to: str, *, at: float | datetime | str | None = None) -> None:
        """Give an arm another label.

        Parameters
        ----------
        label : str
            Present label of the arm.
        to : str
            New label of the arm.
        at : float, datetime or str, optional
            Moment of the change. By default it is now.

        Raises
        ------
        ArmError
            If there is no such arm, or the new label is taken.
        """
        self._change({"op": "rename", "label": label, "to": label_of(to)}, at)

    def replace(
        self, label: str, to: str, features: Any = None, *, at: float | datetime | str | None = None
    ) -> None:
        """Give the place of an arm to a new one, so that an agent does not grow for ever.

        Earlier decisions keep their label. Nothing that was learnt of the arm is believed of the
        new one: unless arms have free-form features, the policy is rebuilt from the ledger.

        Parameters
        ----------
        label : str
            Label of the arm that goes.
        to : str
            Label of the arm that comes.
        features : float or mapping, optional
            Its features, where arms have them.
        at : float, datetime or str, optional
            Moment of the change. By default it is now.

        Raises
        ------
        ArmError
            If there is no such arm, the new label is taken, or its features do not fit.
        """
        last = self._commands.ledger.last
        change = {"op": "replace", "label": label, "to": label_of(to), "after": last}
        if features is not None:
            change["features"] = features_of(to, features)
        self._change(change, at)

    def describe(
        self, label: str, features: Mapping[str, Any], *, at: float | datetime | str | None = None
    ) -> None:
        """Replace the features of an arm whose features are a free-form object.

        Parameters
        ----------
        label : str
            Label of the arm.
        features : mapping
            The new features, as `{"features": {...}}`.
        at : float, datetime or str, optional
            Moment of the change. By default it is now.

        Raises
        ------
        ArmError
            If there is no such arm, or its features are not a free-form object.
        """
        self._change(
            {"op": "describe", "label": label, "features": features_of(label, features)}, at
        )

    @_one_at_a_time
    def _change(self, change: dict[str, Any], at: Any) -> None:
        commands = self._commands
        with self._lock:
            rebuild = self._ready().prepare_arms(change)
        if rebuild is not None:
            rebuild.catch_up(commands.ledger)
        with self._lock:
            record = self._ready().change_arms(change, at, rebuild)
        commands.flush(record.seq)

    # ---- other settings

    def change(
        self,
        *,
        control: float | None = None,
        control_arm: str | None = None,
        min_share: float | None = None,
        share_bounds: Mapping[str, tuple[float, float]] | None = None,
        reward_within: float | timedelta | None = None,
        default_reward: float | None = None,
        retention: float | timedelta | None = None,
        sticky: float | timedelta | None = None,
        shadow: Sequence[Named] | None = None,
        context: Mapping[str, Any] | None = None,
        unset: Iterable[str] = (),
    ) -> dict[str, Any]:
        """Change settings of the agent, as a record in its ledger; see `Agent` for what they mean.

        Decisions that wait for a reward are judged by the new settings, but a new `default_reward`
        holds for later decisions only.

        Parameters
        ----------
        control : float, optional
            Share of decisions in the control group.
        control_arm : str, optional
            Arm of the control group.
        min_share : float, optional
            Share that is spread evenly over all arms.
        share_bounds : mapping of str to (float, float), optional
            Smallest and largest share of some arms, instead of all earlier bounds.
        reward_within : float or timedelta, optional
            Seconds within which a reward must come.
        default_reward : float, optional
            Reward of a decision for which none came in time.
        retention : float or timedelta, optional
            Age after which raw contexts are deleted.
        sticky : float or timedelta, optional
            Seconds for which a subject keeps the arm that is drawn for it from now on.
        shadow : sequence of policies, optional
            Candidates that see every decision and reward, instead of the earlier ones.
        context : mapping of str to kind, optional
            All fields of a context. Fields that it does not have are dropped: `choose` ignores
            them. A field that is new, or of another kind, is learnt from now on. The policy is
            made anew from the ledger, while other threads decide.
        unset : iterable of str, default: ()
            Settings to take back: "control_arm", "min_share", "reward_within", "default_reward",
            "retention" or "sticky".

        Returns
        -------
        dict of str to (before, after)
            What changed.

        Raises
        ------
        ParameterError
            If a setting is invalid.

        Examples
        --------
        >>> agent = Agent.memory(arms=["a", "b"], context={}, policy="random")
        >>> agent.change(control=0.2)
        {'control': (0.05, 0.2)}
        """
        arguments = {name: value for name, value in locals().items() if name in SETTINGS}
        wanted = plain_settings(_without_none(arguments))
        for name in unset:
            if name not in UNSET:
                raise ParameterError(f"unset: {name!r} cannot be taken back")
            wanted[name] = None
        return self._change_settings(wanted)

    @_one_at_a_time
    def _change_settings(self, wanted: dict[str, Any]) -> dict[str, Any]:
        commands = self._commands
        with self._lock:
            change, rebuild = self._ready().prepare_settings(wanted)
        if rebuild is not None:
            rebuild.catch_up(commands.ledger)
        with self._lock:
            record = self._ready().change_settings(wanted, rebuild)
        if record is not None:
            commands.flush(record.seq)
        return {name: (before, after) for name, (before, after) in change.items()}

    # ---- another policy, or another release of it

    @_one_at_a_time
    def upgrade(self, policy: Named | None = None) -> None:
        """Make the policy anew by replaying the ledger: in its newest form, or another policy.

        Ids, pending rewards, arms and the control group stay. Decisions whose records are gone
        (`forget`, `compact`) are not learnt again; `explain` says how many. An agent of an earlier
        release does this by itself at its first call. It takes as long as a replay; unless the
        agent is of an earlier release, other threads decide meanwhile.

        Parameters
        ----------
        policy : str or (str, mapping), optional
            Id of a policy, or its id and parameters. By default it is the agent's own.

        Raises
        ------
        ParameterError
            If there is no such policy, or a parameter is invalid.
        """
        commands = self._commands
        with self._lock:
            self._ready(upgrade=False)
            rebuild = commands.prepare_upgrade(policy)
        try:
            rebuild.catch_up(commands.ledger)
            with self._lock:
                self._ready(upgrade=False)
                record = commands.upgrade(policy, rebuild)
        finally:
            commands.state.upgrading = None
        if record is not None:
            commands.flush(record.seq)
        self.save()

    def promote(self, policy: Named, share: float | None = None) -> Promotion:
        """Give a candidate a share of the decisions, in steps.

        A candidate of `shadow` takes decisions over from the agent's policy: the arm is drawn from
        the chances of both together, and both see every decision and reward. Its first step
        replays the ledger, while other threads decide; further ones take effect at once. The
        agent's own policy takes decisions over from the control group. Each step is a record in
        the ledger.

        Parameters
        ----------
        policy : str or (str, mapping)
            Id of the candidate, or its id and parameters.
        share : float, optional
            Share of the decisions, from 0 to 1; of those that are not the control's for a
            candidate of `shadow`. 0 takes all back. 1 puts a candidate in the policy's place, by
            `upgrade`. By default it is the next step of the recipe: 5% first, then at most twice
            as much, as far as the loss stays within 2% at the worst end of the confidence
            sequence of `shadows`; beyond 25% only with a significant gain, and less than 5% where
            the estimated gain is negative; 0 where the gain is less than 2%.

        Returns
        -------
        Promotion
            The share before and after, and why.

        Raises
        ------
        ParameterError
            If there is no such candidate, or another one has a share.

        Examples
        --------
        >>> agent = Agent.memory(arms=["a", "b"], context={}, policy="random", shadow=["ucb"])
        >>> print(agent.promote("ucb", share=0.1))
        ucb has 10% of decisions (0% before): as was asked for.
        """
        with self._lock:
            self._ready()
            candidate = promotion.find_candidate(self.settings, policy)
            before = promotion.share_before(self.settings, candidate)
            own = promotion.is_own(self.settings, *candidate)
        if own and before == 1 and share in (None, 1):
            return Promotion(candidate[0], 1.0, 1.0, "it has all of them already")
        if share is None:
            (report,) = self.shadows([(candidate[0], candidate[1])])
            share, why = promotion.next_share(report, own=own)
        else:
            share, why = promotion.require_share(share), "as was asked for"
        if own:
            self._change_settings({"control": round(1 - share, 9)})
        elif share == 1:
            self.upgrade((candidate[0], candidate[1]))
        else:
            self._change_settings({"promotion": [*candidate, share] if share else None})
        return Promotion(candidate[0], before, share, why)

    @property
    def upgrading(self) -> tuple[int, int] | None:
        """Records replayed by an upgrade that is due or under way, and of all; None: none is."""
        state = self._commands.state
        if state.upgrading is not None:
            return state.upgrading.position, self._commands.ledger.last
        return (0, self._commands.ledger.last) if state.stale else None

    # ---- holding still, going back

    def freeze(self) -> None:
        """Stop learning; decisions continue, and rewards are recorded."""
        self._hold(Kind.FREEZE)

    def unfreeze(self) -> None:
        """Learn again; rewards that came while the agent was frozen are not learnt."""
        self._hold(Kind.UNFREEZE)

    @property
    def frozen(self) -> bool:
        """Whether learning is stopped."""
        return self._commands.state.frozen

    @_one_at_a_time
    def rollback(self, to: float | datetime | str | Decision) -> None:
        """Undo what was learnt after a moment or a decision.

        Arms do not change, and nothing is deleted. Rewards of decisions that were undone are
        recorded but not learnt.

        Parameters
        ----------
        to : float, datetime, str or Decision
            A moment, or a decision or its id.
        """
        with self._lock:
            rollback = self._ready().prepare_rollback(to)
        state = self._commands.replay_rollback(rollback)
        with self._lock:
            self._ready().roll_back(rollback, state)
        self.save()

    def _hold(self, kind: Kind) -> None:
        with self._lock:
            record = self._ready().hold(kind)
        self._commands.flush(record.seq)

    # ---- looking

    def explain(self, *, at: float | datetime | str | None = None) -> AgentReport:
        """Report in plain words what the agent has learnt; `print` shows it.

        Parameters
        ----------
        at : float, datetime or str, optional
            Moment for which to report what was known then. This takes as long as a replay of the
            ledger from the nearest snapshot. By default it is now.

        Returns
        -------
        AgentReport
            The report.

        Raises
        ------
        InputError
            If what was known then cannot be rebuilt.
        """
        if at is None:
            return self._look(Insight.report)
        moment = self._commands.clock.read(at)

        def report(now: Insight) -> AgentReport:
            point = PointInTime(self._commands, last_record(now, moment))
            point.advance(math.inf)
            return point.insight().report()

        return self._look(report)

    def lift(
        self,
        *,
        since: float | datetime | str | None = None,
        level: float = 0.95,
        outcome: str | None = None,
    ) -> Lift:
        """Estimate the gain in reward over the control group.

        Parameters
        ----------
        since : float, datetime or str, optional
            First moment of the decisions that count. By default all decisions count.
        level : float, default: 0.95
            Level of the intervals.
        outcome : str, optional
            Name of a further outcome (`reward(..., also=...)`) to compare instead of the reward.

        Returns
        -------
        Lift
            The gain. `low` to `high` is a confidence sequence, which stays valid however often it
            is looked at, `fixed_low` to `fixed_high` an interval for a single planned look;
            `print` shows it in words.

        Raises
        ------
        ParameterError
            If `level` does not lie between 0 and 1.
        """
        _require_level(level)
        moment = None if since is None else self._commands.clock.read(since, "since")
        return self._look(lambda insight: insight.lift(moment, level, outcome))

    def history(self, kind: Literal["pandas", "polars", "rows"] = "pandas") -> Any:
        """Return all decisions as a table, one row each, with their rewards.

        Subjects are salted hashes.

        Parameters
        ----------
        kind : {"pandas", "polars", "rows"}, default: "pandas"
            What to return.

        Returns
        -------
        DataFrame or list of dict
            The table.
        """
        return self._look(lambda insight: table.frame(self._rows(insight), kind, insight.moments))

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all decisions to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The .parquet, .jsonl or .csv file.

        Returns
        -------
        int
            Number of decisions.
        """
        return self._look(lambda insight: table.write(Path(path), self._rows(insight)))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw traffic, rewards by hour and weekday, and the gain over the control group.

        The extra `experiments` is needed.

        Parameters
        ----------
        path : str or os.PathLike
            The image file to write.
        """
        draw = import_module("tidepull.reporting.agent_figures").draw
        self._look(lambda insight: draw(insight, Path(path)))

    def check(self) -> LedgerCheck:
        """Read the whole ledger and compare a replay from its start with what is recorded."""
        commands = self._commands
        return self._look(
            lambda _: check_ledger(commands.fresh_state(), commands.ledger, commands.erased())
        )

    def _rows(
        self, insight: Insight, before: float | datetime | str | None = None
    ) -> Iterator[dict[str, Any]]:
        """The decisions of a view; `before`: those that `compact` would move."""
        upto = None
        if before is not None:
            upto = insight.last_before(self._commands.clock.read(before, "before"))
        return table.rows(insight, self._commands.ledger, self._commands.decisions.id, upto)

    def _look(self, question: Callable[[Insight], T]) -> T:
        with self._lock:
            self._ready()
            self._commands.flush()
            return question(Insight(self._commands.state, self._commands.ledger))

    def state(self) -> AgentStatus:
        """Return the settings of the agent, its arms and its counts."""
        with self._lock:
            self._ready()
            return status_of(self._commands)

    @_one_at_a_time
    def shadows(
        self, candidates: Sequence[Named] | None = None, *, level: float = 0.95
    ) -> list[ShadowReport]:
        """Report what candidates would have chosen and earned in the agent's decisions.

        A candidate lives through the ledger beside the agent, as it would have lived. The first
        call takes as long as a replay, later ones read what is new. `promote` gives one a share of
        the decisions.

        Parameters
        ----------
        candidates : sequence of policies, optional
            Ids of policies, or ids and parameters. By default these are the ones of `shadow`, and
            the agent's own policy where the control has most decisions. The own policy is compared
            with the control, others with the agent's own choices.
        level : float, default: 0.95
            Level of the confidence sequences.

        Returns
        -------
        list of ShadowReport
            One report for each candidate; `print` shows it in words.

        Examples
        --------
        >>> agent = Agent.memory(
        ...     arms=["a", "b"], context={}, policy="random", shadow=["bernoulli-ts"], control=0
        ... )
        >>> print(agent.shadows()[0])
        bernoulli-ts: no decisions with a reward yet.
        """
        _require_level(level)
        commands, reports = self._commands, list[ShadowReport]()
        plain = plain_settings(
            {"shadow": promotion.shadowed(self.settings) if candidates is None else candidates}
        )
        for policy, parameters in plain["shadow"]:
            with self._lock:
                self._ready()
                commands.flush()
                key, state = json.dumps([policy, parameters]), commands.state
                shadow = self._shadows.get(key)
                own = (
                    promotion.is_own(state.settings, policy, parameters)
                    and state.settings.control > 0
                )
                basis = basis_of(state, own=own)
                if shadow is None or shadow.basis != basis:
                    shadow = OwnPolicy(state) if own else Shadow(state, (policy, parameters))
                self._shadow_reader = self._shadow_reader or LogReader(state.settings, state.clock)
                insight = Insight(state, commands.ledger, self._shadow_reader)
            shadow.advance(commands.ledger, commands.ledger.safe)
            self._shadows[key] = shadow
            reports.append(evaluate(shadow, insight, level))
        return reports

    # ---- logs of others

    def record(
        self,
        context: Mapping[str, Any] | None,
        arm: str,
        *,
        reward: float | Decimal | None = None,
        propensity: float | None = None,
        subject: str | int | UUID | None = None,
        at: float | datetime | str | None = None,
        id: str | int | UUID | None = None,
    ) -> Decision:
        """Learn from a decision that was made elsewhere, such as by your present rule.

        Parameters
        ----------
        context : mapping of str to value, or None
            Values of the context's fields.
        arm : str
            Arm that was played.
        reward : float or Decimal, optional
            Its reward. By default it is reported later, with `reward`.
        propensity : float, optional
            Probability with which the arm was chosen. By default the choice was not random.
        subject : str, int or UUID, optional
            Person or thing that the decision concerned.
        at : float, datetime or str, optional
            Moment of the decision. By default it is now.
        id : str, int or UUID, optional
            Name of the decision. The same id again returns the same decision.

        Returns
        -------
        Decision
            The decision, in the group "imported".

        Raises
        ------
        ArmError
            If there is no such arm.

        Examples
        --------
        >>> agent = Agent.memory(arms=["a", "b"], context={}, policy="bernoulli-ts")
        >>> agent.record({}, "b", reward=1.0).group
        'imported'
        """
        chance = 1.0 if propensity is None else propensity
        if isinstance(chance, bool) or not isinstance(chance, int | float) or not 0 < chance <= 1:
            raise ParameterError(
                f"propensity must be a number above 0 and at most 1, got {propensity!r}"
            )
        name = id_of(id)
        with self._lock:
            commands = self._ready()
            pending = None if name is None else commands.decisions.named(name)
            if pending is None:
                inputs, now = commands.check_inputs(context, None, subject, at)
                place = commands.state.arms.place(arm)
                inputs = inputs._replace(played=place, imported=True, propensity=float(chance))
                pending = commands.decide(inputs, now, name)
            decision = self._decision_of(pending)
            seq = commands.number_to_wait_for(pending.record.seq)
        self._commands.flush(seq)
        if reward is not None:
            self.reward(decision, reward, at=decision.timestamp)
        self._afterwards()
        return decision

    def learn_from(self, log: str | os.PathLike[str] | HasDecisions) -> int:
        """Learn from a log of decisions.

        Parameters
        ----------
        log : str, os.PathLike or HasDecisions
            A .parquet, .jsonl or .csv file with `context`, `arm`, `reward` and if possible `at`,
            such as `export` writes; or what `tidepull.logs.read` returned, of any format. Arms
            must be the agent's. Decisions without a reward are skipped.

        Returns
        -------
        int
            Number of decisions learnt.
        """
        if isinstance(log, str | os.PathLike):
            return self._learn_all(table.read(Path(log)))
        return self._learn_all(log.decisions())

    def _learn_all(self, rows: Iterable[Mapping[str, Any]]) -> int:
        count, steps = 0, list[int]()
        for row in rows:
            if not {"arm", "reward"} <= set(row):
                continue
            with self._lock:
                self._ready()
                commands, value = self._commands, _finite_reward(row["reward"])
                inputs, now = commands.check_inputs(row.get("context"), None, None, row.get("at"))
                place = commands.state.arms.place(row["arm"])
                inputs = inputs._replace(played=place, imported=True)
                pending = commands.decide(inputs, now, None)
                steps.append(commands.pay(pending, value, Stamp(inputs.at, now)).seq)
            count += 1
            if len(steps) == 100:
                self._commit_all(steps)
            if self._mode == "inline":
                self._work_all()
        self._commit_all(steps)
        self._afterwards()
        return count

    def _commit_all(self, steps: list[int]) -> None:
        """The last one first: one commit does for all of them, and each is waited for by its own
        number."""
        while steps:
            self._commands.flush(steps.pop())

    # ---- what is kept, and for how long

    @_one_at_a_time
    def forget(self, subject: str | int | UUID) -> int:
        """Delete all decisions about a subject, for good.

        What was learnt from them stays. The agent cannot be rolled back to before this call.

        Parameters
        ----------
        subject : str, int or UUID
            The subject, as `choose` got it.

        Returns
        -------
        int
            Number of deleted decisions.
        """
        with self._lock:
            hashed = self._ready().hash(id_of(subject))
            self._commands.state.sticky.forget(hashed)
        return self._erase(lambda commands: commands.ledger.remove(subject=hashed))

    @_one_at_a_time
    def compact(self, path: str | os.PathLike[str] | None, before: float | datetime | str) -> int:
        """Move old decisions from the ledger to a file.

        What was learnt stays. Later rewards for these decisions are refused. `lift` and `history`
        no longer include them.

        Parameters
        ----------
        path : str, os.PathLike or None
            The .parquet, .jsonl or .csv file to write. None deletes the decisions.
        before : float, datetime or str
            Moment before which decisions are moved.

        Returns
        -------
        int
            Number of moved decisions.
        """
        moment = self._commands.clock.read(before, "before")
        if path is not None:
            table.require_ending(Path(path))

        def move(commands: CommandHandler) -> int:
            insight = Insight(commands.state, commands.ledger)
            upto = insight.last_before(moment)
            if not upto:
                return 0
            if path is not None:
                table.write(Path(path), self._rows(insight, before=moment))
            commands.ledger.write({"archived": str(upto)})
            return commands.ledger.remove(upto=upto)

        return self._erase(move)

    def _erase(self, remove: Callable[[CommandHandler], int]) -> int:
        """Delete records; how many decisions."""
        self.save()
        self.save()  # whatever happens to the newer one, no restart needs what is deleted
        with self._lock:
            commands = self._ready()
            commands.flush()
            count = remove(commands)
            commands.decisions.clear()
            self._shadow_reader = None
        return count

    # ---- work that nobody waits for

    def work(self) -> bool:
        """Do one slice of pending work, or take a snapshot that is due.

        Returns
        -------
        bool
            True while there is more to do.
        """
        with self._lock:
            if self._closed:
                return False
            self._ready()
            if self._has_work:
                self._work_a_little()
                return self._has_work or self._snapshot_is_due
        self._save_if_due()
        return False

    def _work_a_little(self) -> None:
        if not self._has_work:
            return
        if self._commands.state.learning.pending:
            self._commands.slice()
        else:
            self._commands.settle(SETTLED_AT_A_TIME)

    @property
    def _has_work(self) -> bool:
        """Whether there is work to do before the next call.

        With `training="background"` it is what the latest call left, else all that is
        pending, and decisions that are overdue.
        """
        commands = self._commands
        if self._mode == "background":
            return commands.owes_slices
        return commands.state.learning.pending or commands.is_settling

    @property
    def _snapshot_is_due(self) -> bool:
        """Whether `snapshot_every` records were written since the last snapshot.

        One that could not be written is due again after a twentieth of them. With
        `training="background"` a piece of work that is under way is finished first: a snapshot
        would start it anew.
        """
        commands = self._commands
        if commands.read_only or (self._mode == "background" and commands.state.learning.under_way):
            return False
        waits = commands.tried > commands.saved
        if waits and commands.ledger.last - commands.tried <= self._every // 20:
            return False
        return commands.unsaved or commands.ledger.last - commands.saved >= self._every

    def save(self) -> None:
        """Take a snapshot now, so that opening need not replay earlier records."""
        with self._lock:
            taken = self._ready().take()
        self._store(*taken)

    def _save_if_due(self) -> bool:
        """Take a snapshot if one is due and no work is left to do before it; whether it was."""
        with self._lock:
            self._ready()
            if self._has_work or not self._snapshot_is_due:
                return False
            taken = self._commands.take()
        self._store(*taken)
        return True

    def _store(self, record: Record, written: Callable[[], bytes]) -> None:
        self._commands.flush(record.seq)
        self._commands.ledger.save(record.seq, record.at, written())
        with self._lock:
            self._commands.mark_saved(record.seq)
            if self.settings.retention is not None:
                self._commands.drop_old_contexts()

    def _work_all(self) -> None:
        while self.work():
            pass

    def _afterwards(self) -> None:
        if self._mode == "inline":
            self._work_all()
        elif self._mode == "background" and (self._has_work or self._snapshot_is_due):
            self._background.wake()
        elif self._mode == "manual" and self._snapshot_is_due:
            self.save()

    def close(self, *, save: bool = True) -> None:
        """Take a snapshot and close the ledger, so that other processes can open it.

        All records are durable before that. An agent that is no longer referenced closes its ledger
        without a snapshot.

        Parameters
        ----------
        save : bool, default: True
            Whether to take a snapshot if there are records since the last one.
        """
        if self._closed or self._owner != os.getpid():
            return
        self._background.close()
        if save and self._is_worth_saving:
            try:
                self.save()
            except TidepullError as error:
                _LOG.warning("%s was closed without a snapshot: %s", self._where, error)
        with self._lock:
            self._closed = True
            self._release.detach()
            self._commands.ledger.close()

    @property
    def _is_worth_saving(self) -> bool:
        commands = self._commands
        if commands.read_only or commands.dirty or commands.state.stale:
            return False
        return commands.ledger.last > commands.saved and self._where != "memory"

    def __repr__(self) -> str:
        return f"<Agent at {self._where}: {self.settings.policy}, arms {', '.join(self.arms)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside

    def _ready(self, *, upgrade: bool = True) -> CommandHandler:
        """The commands, when the state is sound; the caller has the lock."""
        if self._owner != os.getpid():
            raise LedgerError(
                f"this agent was opened in process {self._owner}, this is process {os.getpid()}: "
                "open it after the fork"
            )
        if self._closed:
            raise LedgerError(f"the agent at {self._where} is closed; open it again")
        self._commands.ensure_recovered(upgrade=upgrade)
        return self._commands

    def _decision_of(self, pending: PendingDecision) -> Decision:
        record, commands = pending.record, self._commands
        arm, group, propensity = Choice.head(record.body)
        id = record.name or commands.decisions.id(record.seq)
        label = commands.state.arms.label(arm, record.seq)
        return Decision(
            id, label, propensity, _GROUPS[group], commands.clock.datetime(record.at), record.at
        )

    @property
    def settings(self) -> AgentSettings:
        """Settings with which the agent was made."""
        return self._commands.settings


def _describe_memory() -> None:
    """Let `Agent.memory` show the parameters that it takes: all of `Agent` but the path."""
    memory: Any = Agent.memory.__func__  # type: ignore[attr-defined]
    whole = inspect.signature(Agent.__init__)
    parameters = [one for one in whole.parameters.values() if one.name != "path"]
    memory.__signature__ = whole.replace(parameters=parameters, return_annotation="Agent")
    if Agent.__doc__ and memory.__doc__:  # both are gone with python -OO
        section = inspect.getdoc(Agent).partition("\narms :")[2].partition("\nRaises\n")[0]  # type: ignore[union-attr]
        start, returns, end = inspect.cleandoc(memory.__doc__).partition("Returns\n")
        memory.__doc__ = f"{start}Parameters\n----------\narms :{section}\n{returns}{end}\n"


_describe_memory()


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def follow_settings(agent: Agent, arguments: Mapping[str, Any], *, retire_missing: bool) -> None:
    """Change an agent that is there as the arguments of `Agent` say: arms and fields that are
    missing stay, so that programs of two versions can open it in turn."""
    wanted = plain_settings(_without_none(arguments))
    state = agent._commands.state
    labels = {arm.label: arm for arm in state.arms}
    arms = dict(wanted.pop("arms", ()))
    for label, features in arms.items():
        if label not in labels:
            agent.add(label, features)
        elif features != labels[label].features and not state.arms.described:
            raise ParameterError(f"{agent._where}: the arm '{label}' has other features")
    if retire_missing and arms:
        for label in agent.arms:
            if label not in arms:
                agent.retire(label)
    changes = {name: value for name, value in wanted.items() if name in CHANGEABLE}
    fields = changes.pop("context", None)
    if fields is not None:
        schema = state.learning.schema
        stored = {} if schema is None else schema.plain()
        other = [name for name in fields if name in stored and fields[name] != stored[name]]
        if schema is None or other:
            raise ParameterError(
                f"{agent._where} was made with other context"
                + (f" (field '{other[0]}')" if other else "")
                + ": leave context out, or change it with change(context=...)"
            )
        if fields.keys() - stored.keys():
            changes["context"] = {**stored, **fields}
    if agent._commands.settings_change(changes)[0]:
        agent.change(**changes)


def _require_level(level: object) -> None:
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise ParameterError(f"level must lie between 0 and 1, such as 0.95, got {level!r}")


def _release_dropped(ledger: Ledger, owner: int) -> None:
    """Close the ledger of an agent that is not referenced any more, but not in the child of a fork:
    its files are its parent's."""
    if os.getpid() == owner:
        ledger.close()


MOST_OUTCOMES = 16
"""Further outcomes of one reward."""


def _outcomes(also: Any) -> dict[str, float]:
    """Further outcomes, checked."""
    if not isinstance(also, Mapping) or len(also) > MOST_OUTCOMES:
        raise RewardError(
            f"also must be a dictionary of at most {MOST_OUTCOMES} names and numbers, got {also!r}"
        )
    for name in also:
        if not isinstance(name, str) or not 0 < len(name) <= 64 or name == "reward":
            raise RewardError(
                "also: the name of an outcome must be text of 1 to 64 characters other than "
                f"'reward', got {name!r}"
            )
    return {name: _finite_reward(value, f"also: {name}") for name, value in also.items()}


def _finite_reward(reward: Any, what: str = "reward") -> float:
    if isinstance(reward, bool):
        return float(reward)
    try:
        value = float(reward) if not isinstance(reward, str) else math.nan
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not abs(value) <= _LARGEST:
        raise RewardError(
            f"{what} must be a finite number of at most {_LARGEST:g} in size, got {shown(reward)}"
        )
    return value
