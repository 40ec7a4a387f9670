"""Policies of other libraries as tidepull policies, one file for each library, found by the prefix
of their ids.

An external policy plays at the settings that its own documentation recommends, if nothing is set.
It decides and learns as its library does, bugs included; `docs/integrations.md` says what each one
sees of a context. With `calendar` it also sees [1, waves of the day, the weekend] of `Context.time`
in front of the observation, the inputs of `hand-ts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from tidepull._internal.extras import Package
from tidepull.errors import RewardError, SnapshotError
from tidepull.parameters import Parameters, parameter
from tidepull.policies.checks import TRAIL
from tidepull.policies.controls import calendar_waves
from tidepull.policies.exploration import decided_round
from tidepull.random import Streams
from tidepull.registry import Entry, policies
from tidepull.types import Context, Event, IntArray, ProblemShape, Snapshot


class LibraryAdapter(Protocol):
    """The two calls that another library must answer."""

    def choose(self, context: Context) -> tuple[int, Any]:
        """The arm, and a memo that the library needs again with the reward (None: nothing)."""

    def learn(self, event: Event, memo: Any) -> None:
        """One finished round; `memo` is None where there is none, or the round was not decided
        here."""


@dataclass(frozen=True, kw_only=True)
class ContextualParameters(Parameters):
    """What external policies that look at observations have in common."""

    calendar: bool = parameter(False, "also see the time: waves of the day and the weekend")


class WithCalendar:
    """An adapter that sees the calendar in front of the observation."""

    def __init__(self, adapter: LibraryAdapter) -> None:
        self._adapter = adapter

    def choose(self, context: Context) -> tuple[int, Any]:
        """The library's choice."""
        return self._adapter.choose(with_calendar(context))

    def learn(self, event: Event, memo: Any) -> None:
        """The round, with the calendar of its time."""
        self._adapter.learn(replace(event, context=with_calendar(event.context)), memo)


def with_calendar(context: Context) -> Context:
    """The context with [1, `calendar_waves`] in front of its observation.

    >>> with_calendar(Context(time=0.0)).observation
    array([1., 1., 0., 1., 0., 0., 0., 0.])
    """
    seen = () if context.observation is None else context.observation
    return replace(context, observation=np.r_[1.0, calendar_waves(context.time), seen])


class ExternalPolicy:
    """An adapter with tidepull's methods; memos are remembered for the last `TRAIL` rounds."""

    def __init__(self, id: str, package: Package, adapter: LibraryAdapter) -> None:
        self._id = id
        self._package = package
        self._adapter = adapter
        self._rounds = 0
        self._memos: dict[int, Any] = {}

    def choose(self, context: Context) -> int:
        """The arm that the library chooses."""
        arm, memo = self._adapter.choose(context)
        if memo is not None:
            self._memos[self._rounds] = memo
            self._memos.pop(self._rounds - TRAIL, None)
        self._rounds += 1
        return int(arm)

    def learn(self, event: Event) -> None:
        """Pass the round on."""
        decided = decided_round(event)
        self._adapter.learn(event, self._memos.get(decided))
        self._memos.pop(decided, None)
        self._rounds = max(self._rounds, decided + 1)

    def snapshot(self) -> Snapshot:
        """Always an error: what the library holds is not JSON and arrays."""
        raise SnapshotError(
            f"{self._id} has no snapshots: its state lies inside {self._package.name}, which "
            "tidepull cannot save"
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Always an error, as there are no snapshots."""
        self.snapshot()


def add_external(
    package: Package,
    id: str,
    description: str,
    parameters: type[Parameters],
    adapt: Callable[[str, Any, ProblemShape, Streams], LibraryAdapter],
) -> None:
    """Register a policy of another library; `adapt(id, parameters, shape, streams)` makes its
    adapter."""

    def build(values: Parameters, shape: ProblemShape, streams: Streams) -> ExternalPolicy:
        if not getattr(values, "calendar", False):
            return ExternalPolicy(id, package, adapt(id, values, shape, streams))
        wider = replace(shape, observation_dim=shape.observation_dim + 1 + len(calendar_waves(0.0)))
        return ExternalPolicy(id, package, WithCalendar(adapt(id, values, wider, streams)))

    policies.add(Entry(id, description, parameters, build, library=package))


def own_values(values: Parameters) -> dict[str, Any]:
    """The parameters that the library itself knows: all but `calendar`."""
    return {f.name: getattr(values, f.name) for f in fields(values) if f.name != "calendar"}


def seed_for(streams: Streams) -> int:
    """A seed for the library's own generator, from the policy's stream."""
    return int(streams.generator("guest").integers(2**31))


def open_arms(context: Context, n_arms: int) -> IntArray:
    """The arms that may be chosen now."""
    return np.arange(n_arms) if context.available is None else np.flatnonzero(context.available)


def require_binary(id: str, reward: float, hint: str) -> None:
    """Refuse a reward that is neither 0 nor 1."""
    if reward not in (0.0, 1.0):
        raise RewardError(f"reward must be 0 or 1 for {id}, got {reward:g}; {hint}")
