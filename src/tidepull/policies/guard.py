"""The guard around every registered policy: the one place where input is checked and rounds are
counted.

A policy behind the guard sees clean input only (`checks.py`), and events that say which round they
finish. What is refused changes nothing. A second thread that comes while the first is inside is
refused too.

Snapshots are sealed: a state together with what it belongs to, and a checksum over both,

    {"format", "policy", "version", "parameters", "shape", "rounds", "unfinished", "state",
    "checksum"}

`Seal.open` says whether a snapshot is one of this very policy, `Seal.fill` whether a fresh policy
takes its state in exactly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict
from functools import partial, wraps
from threading import Lock
from types import MethodType
from typing import Any

import numpy as np

from tidepull import state as snapshots
from tidepull._internal.validation import shown
from tidepull.errors import BusyError, ParameterError, SnapshotError
from tidepull.parameters import Parameters
from tidepull.policies.checks import Checks, RoundCounter
from tidepull.protocols import (
    HasDiagnostics,
    HasNotFinite,
    HasUpkeep,
    NeedsMeans,
    NeedsStructure,
    Pick,
    Policy,
)
from tidepull.random import Streams
from tidepull.registry import Entry
from tidepull.types import (
    Context,
    Diagnostics,
    Event,
    FloatArray,
    ProblemShape,
    Snapshot,
    Structure,
)

_PARTS = ("rounds", "unfinished", "state")


class Seal:
    """What the snapshots of one policy must say of themselves."""

    def __init__(self, id: str, version: int, parameters: Parameters, shape: ProblemShape) -> None:
        self.id = id
        self._parameters = type(parameters)
        self._marks: dict[str, Any] = {
            "format": snapshots.FORMAT,
            "policy": id,
            "version": version,
            "parameters": parameters.to_mapping(),
            "shape": asdict(shape),
        }

    def take(self, policy: Policy, rounds: RoundCounter) -> Callable[[], Snapshot]:
        """A snapshot of a policy and its rounds as they are now. The call that is returned checks
        and seals it, which takes several times as long and needs the policy no more."""
        if not hasattr(policy, "snapshot"):
            raise SnapshotError(f"{self.id} has no snapshot(), so its state cannot be saved")
        content = {
            **self._marks,
            "rounds": rounds.begun,
            "unfinished": rounds.unfinished,
            "state": policy.snapshot(),
        }
        return lambda: self._close(policy, content)

    def _close(self, policy: Policy, content: Snapshot) -> Snapshot:
        if (name := _not_finite(policy, content["state"])) is not None:
            raise SnapshotError(
                f"{self.id} cannot be saved: its '{name}' holds numbers that are not finite"
            )
        return {**content, "checksum": snapshots.checksum(content)}

    def open(self, snapshot: Any) -> tuple[Snapshot, RoundCounter]:
        """State and rounds of a snapshot that is whole and belongs to this policy."""
        if not isinstance(snapshot, dict):
            raise SnapshotError(f"a snapshot is a dictionary, got a {type(snapshot).__name__}")
        if "format" not in snapshot:
            raise SnapshotError(
                "the snapshot has no format: it is not one of tidepull's, or of version 0.1; start "
                "the policy afresh"
            )
        advice = "take one with this version of tidepull"
        self._require("format", snapshot["format"], self._marks["format"], advice)
        content = {name: snapshots.read(snapshot, name) for name in (*self._marks, *_PARTS)}
        fits = snapshots.difference(snapshot.get("checksum"), snapshots.checksum(content)) is None
        if not fits or len(snapshot) != len(content) + 1:
            raise SnapshotError(
                "the snapshot was altered or damaged: its checksum does not fit; use an older one"
            )
        self._require("policy", content["policy"], self.id, "restore it into that policy")
        version = self._marks["version"]
        self._require("version", content["version"], version, "start the policy afresh")
        self._compare("parameters", self._as_now(content["parameters"]))
        self._compare("shape", content["shape"])
        return content["state"], RoundCounter.restored(content["rounds"], content["unfinished"])

    def fill(self, fresh: Policy, state: Snapshot) -> None:
        """Restore a fresh policy, and make sure that nothing was lost or altered on the way."""
        if (name := _not_finite(fresh, state)) is not None:
            raise SnapshotError(
                f"the snapshot's '{name}' holds numbers that are not finite; use an older one"
            )
        try:
            fresh.restore(state)
            difference = snapshots.difference(state, fresh.snapshot())
        except SnapshotError:
            raise
        except Exception as error:
            raise SnapshotError(
                f"the snapshot's state cannot be restored into {self.id} ({type(error).__name__}: "
                f"{error})"
            ) from None
        if difference is not None:
            raise SnapshotError(
                f"the snapshot's '{difference}' does not fit {self.id}; use an older one"
            )

    def _require(self, name: str, value: Any, expected: Any, advice: str) -> None:
        if snapshots.difference(value, expected) is not None:
            raise SnapshotError(
                f"the snapshot has the {name} {shown(value)}, this policy has {expected!r}; "
                f"{advice}"
            )

    def _as_now(self, parameters: Any) -> Any:
        """Parameters of a snapshot; with other names they are those of an earlier release."""
        if not isinstance(parameters, dict) or set(parameters) == set(self._marks["parameters"]):
            return parameters
        try:
            return self._parameters.from_earlier(parameters)
        except ParameterError as error:
            raise SnapshotError(f"the snapshot was {error}") from None

    def _compare(self, part: str, values: Any) -> None:
        expected = self._marks[part]
        if not isinstance(values, dict):
            raise SnapshotError(
                f"the snapshot's '{part}' must be a dictionary, got {shown(values)}"
            )
        for name in (*expected, *values):
            there, here = values.get(name, "nothing"), expected.get(name, "nothing")
            if snapshots.difference(there, here) is not None:
                raise SnapshotError(
                    f"the snapshot was taken with {name} = {shown(there)}, this policy has "
                    f"{shown(here)}; build it with the same {part}"
                )


def _not_finite(policy: Policy, state: Snapshot) -> str | None:
    allowed = policy.not_finite if isinstance(policy, HasNotFinite) else frozenset()
    return snapshots.first_not_finite(state, allowed)


_LOG = logging.getLogger("tidepull")

PATIENCE = 1000
"""Events with work pending, and no call of `upkeep`, after which a guard warns."""


class Guarded:
    """A policy whose input is checked. Beside the methods below it has whatever the policy has
    (`explain`, ...).

    One thread at a time: a call that comes while another is inside raises `BusyError` and changes
    nothing.
    """

    def __init__(
        self, build: Callable[[], Policy], inner: Policy, checks: Checks, seal: Seal
    ) -> None:
        self._build = build
        self._inner = inner
        self._checks = checks
        self._seal = seal
        self._rounds = RoundCounter()
        self._lock = Lock()
        self._neglected = 0 if isinstance(inner, HasUpkeep) else None

    @property
    def inner(self) -> Policy:
        """The policy behind the guard, to look at."""
        return self._inner

    @property
    def rounds(self) -> int:
        """How many rounds there have been: the number that the next `choose` will get."""
        return self._rounds.begun

    def choose(self, context: Context) -> int:
        """The arm to play; a new round begins."""
        if not self._lock.acquire(False):
            raise self._busy()
        try:
            arm = self._inner.choose(self._checks.context(context))
            self._rounds.begin()
            return arm
        finally:
            self._lock.release()

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """A round begins in which `pick` chooses, seeing each arm's share
        (`protocols.HasPropensities`). For a policy that cannot say shares, the arm that it chooses
        has them all."""
        if not self._lock.acquire(False):
            raise self._busy()
        try:
            context, inner = self._checks.context(context), self._inner
            # Asking a protocol would take longer than the choice.
            choose_by = getattr(inner, "choose_by", None)
            if choose_by is not None:
                arm = int(choose_by(context, draws, pick))
            else:
                arm = pick(np.eye(self._checks.n_arms)[inner.choose(context)])
            self._rounds.begin()
            return arm
        finally:
            self._lock.release()

    def learn(self, event: Event) -> None:
        """Take in one finished round."""
        if not self._lock.acquire(False):
            raise self._busy()
        try:
            event, decided = self._checks.event(event, self._rounds)
            self._inner.learn(event)
            self._rounds.finish(decided)
            if self._neglected is not None:
                self._watch_upkeep(self._neglected)
        finally:
            self._lock.release()

    def upkeep(self) -> bool:
        """One slice of the policy's pending work; False where there is none."""
        if self._neglected is not None:
            self._neglected = 0
        upkeep = getattr(self._inner, "upkeep", None)
        return False if upkeep is None else bool(self._alone(upkeep))

    def diagnostics(self) -> Diagnostics:
        """What the policy tells about itself."""
        inner = self._inner
        return self._alone(inner.diagnostics) if isinstance(inner, HasDiagnostics) else {}

    def snapshot(self) -> Snapshot:
        """The whole state, sealed: with what it belongs to, and a checksum."""
        return self.take()()

    def take(self) -> Callable[[], Snapshot]:
        """The same in two steps: the state is taken now, and sealed by the call that is returned,
        wherever that is made."""
        taken: Callable[[], Snapshot] = self._alone(
            lambda: self._seal.take(self._inner, self._rounds)
        )
        return taken

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a policy with the same id, version, parameters and shape; one
        that is refused changes nothing."""
        self._alone(lambda: self._restore(snapshot))

    def _restore(self, snapshot: Snapshot) -> None:
        state, rounds = self._seal.open(snapshot)
        fresh = self._build()
        self._seal.fill(fresh, state)
        self._inner, self._rounds = fresh, rounds

    def _watch_upkeep(self, neglected: int) -> None:
        if not getattr(self._inner, "pending", False):
            return
        self._neglected = neglected + 1
        if self._neglected >= PATIENCE:
            self._neglected = None
            message = "%s has had work pending for %d events without a call of upkeep()"
            _LOG.warning(message, self._seal.id, PATIENCE)

    def _choose_with(self, choose: Callable[..., int], context: Context, *truth: Any) -> int:
        """A round begins in which the policy is told more than the context."""
        arm = choose(self._checks.context(context), *truth)
        self._rounds.begin()
        return arm

    def _alone(self, call: Callable[[], Any]) -> Any:
        if not self._lock.acquire(False):
            raise self._busy()
        try:
            return call()
        finally:
            self._lock.release()

    def _busy(self) -> BusyError:
        return BusyError(
            f"{self._seal.id} is busy in another thread; let one thread at a time use it"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_inner" not in self.__dict__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        value = getattr(self._inner, name)
        if not isinstance(value, MethodType):
            return value
        return wraps(value)(lambda *args, **named: self._alone(lambda: value(*args, **named)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())


class GuardedOracle(Guarded):
    """The guard of a policy that is told the truth."""

    def choose_knowing(self, context: Context, means: FloatArray) -> int:
        """The arm to play, given every arm's true expected reward; a new round begins."""
        inner = self._inner
        assert isinstance(inner, NeedsMeans)
        clean = self._checks.means(means)
        arm: int = self._alone(lambda: self._choose_with(inner.choose_knowing, context, clean))
        return arm


class GuardedSpecialist(Guarded):
    """The guard of a policy that is told the structure."""

    def choose_told(self, context: Context, structure: Structure) -> int:
        """The arm to play, given which rounds pay alike; a new round begins."""
        inner = self._inner
        assert isinstance(inner, NeedsStructure)
        arm: int = self._alone(lambda: self._choose_with(inner.choose_told, context, structure))
        return arm


def guarded(
    entry: Entry[Policy], parameters: Parameters, shape: ProblemShape, streams: Streams
) -> Guarded:
    """The policy of that entry, built and put behind its guard."""
    build = partial(entry.build, parameters, shape, streams)
    inner = build()
    guard: type[Guarded] = Guarded
    if isinstance(inner, NeedsMeans):
        guard = GuardedOracle
    elif isinstance(inner, NeedsStructure):
        guard = GuardedSpecialist
    return guard(build, inner, Checks(shape), Seal(entry.id, entry.version, parameters, shape))
