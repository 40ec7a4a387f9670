"""The guard around every registered policy: the one place where input is checked and rounds are counted.

A policy behind the guard sees clean input only (`checks.py`), and events that say which round they finish. What is
refused changes nothing. A second thread that comes while the first is inside is refused too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial, wraps
from threading import Lock
from types import MethodType
from typing import Any

from tidepull.errors import BusyError
from tidepull.parameters import Parameters
from tidepull.policies.checks import Checks, clean_decided, event_parts
from tidepull.policies.rounds import Rounds
from tidepull.policies.seal import Seal
from tidepull.protocols import HasDiagnostics, HasUpkeep, Policy, Privileged
from tidepull.registry import Entry
from tidepull.seeds import Streams
from tidepull.types import Context, Diagnostics, Event, FloatArray, ProblemShape, Snapshot

_LOG = logging.getLogger("tidepull")
_PATIENCE = 1000
"""Events with pending work after which a guard warns that nobody calls `upkeep`."""


class Guarded:
    """A policy whose input is checked. Beside the methods below it has whatever the policy has (`explain`, ...)."""

    def __init__(self, build: Callable[[], Policy], inner: Policy, shape: ProblemShape, seal: Seal) -> None:
        self._build = build
        self._inner = inner
        self._seal = seal
        self._checks = Checks(shape)
        self._rounds = Rounds()
        self._alone = _Alone(seal.id)
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
        with self._alone:
            arm = self._inner.choose(self._checks.context(context))
            self._rounds.begin()
            return arm

    def learn(self, event: Event) -> None:
        """Take in one finished round."""
        with self._alone:
            context, arm, reward = event_parts(event, self._checks)
            decided = self._rounds.decided(clean_decided(event.decided))
            clean = context is event.context and arm is event.arm and reward is event.reward
            same = clean and decided is event.decided
            self._inner.learn(event if same else Event(context, arm, reward, decided))
            self._rounds.finish(decided)
            if self._neglected is not None:
                self._watch_upkeep()

    def upkeep(self) -> bool:
        """One slice of the policy's pending work; False where there is none."""
        with self._alone:
            self._neglected = None
            return self._inner.upkeep() if isinstance(self._inner, HasUpkeep) else False

    def diagnostics(self) -> Diagnostics:
        """What the policy tells about itself."""
        with self._alone:
            return self._inner.diagnostics() if isinstance(self._inner, HasDiagnostics) else {}

    def snapshot(self) -> Snapshot:
        """The whole state, sealed: with what it belongs to and a checksum."""
        with self._alone:
            return self._seal.close(self._inner, self._rounds)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a policy with the same id, version, parameters and shape; a refused one
        changes nothing."""
        with self._alone:
            state, rounds = self._seal.open(snapshot)
            fresh = self._build()
            self._seal.fill(fresh, state)
            self._inner, self._rounds = fresh, rounds

    def _watch_upkeep(self) -> None:
        if self._neglected is None or not getattr(self._inner, "pending", False):
            return
        self._neglected += 1
        if self._neglected >= _PATIENCE:
            self._neglected = None
            _LOG.warning(
                "%s has had work pending for %d events and nobody calls upkeep(): it learns less than it could",
                self._seal.id,
                _PATIENCE,
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_inner" not in self.__dict__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        value = getattr(self._inner, name)
        return _shut_in(value, self._alone) if isinstance(value, MethodType) else value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._inner)})


class GuardedOracle(Guarded):
    """The guard of a policy that is told the truth."""

    def choose_knowing(self, context: Context, means: FloatArray) -> int:
        """The arm to play, given every arm's true expected reward; a new round begins."""
        with self._alone:
            assert isinstance(self._inner, Privileged)
            arm = self._inner.choose_knowing(self._checks.context(context), self._checks.means(means))
            self._rounds.begin()
            return arm


def guarded(entry: Entry[Policy], parameters: Parameters, shape: ProblemShape, streams: Streams) -> Guarded:
    """The policy of that entry, built and put behind its guard."""

    build = partial(entry.build, parameters, shape, streams)
    inner = build()
    kind = GuardedOracle if isinstance(inner, Privileged) else Guarded
    return kind(build, inner, shape, Seal(entry.id, entry.version, parameters, shape))


class _Alone:
    """Lets one thread in at a time, and sends others away at once."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._lock = Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            raise BusyError(
                f"{self._id} is in use by another thread; a policy serves one call at a time, so put a lock around it"
            )

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Alone, (self._id,)


def _shut_in(method: MethodType, alone: _Alone) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with alone:
            return method(*args, **kwargs)

    return call
