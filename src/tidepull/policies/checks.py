"""Validation of contexts, events and rounds; whatever a policy cannot use is refused in one
sentence.

Only the guard asks. A policy behind it sees float64 arrays of the right shape, masks of booleans,
whole arms, finite rewards and rounds that have begun, and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull._internal.validation import shown
from tidepull.errors import ArmError, ContextError, EventError, RewardError, SnapshotError
from tidepull.types import BoolArray, Context, Event, FloatArray, IntArray, ProblemShape

TRAIL = 8192
"""Rounds back for which it is remembered whether their reward has come; an older event is taken on
trust."""


class RoundCounter:
    """A count of rounds, and the unfinished ones among the last `TRAIL`.

    >>> rounds = RoundCounter()
    >>> rounds.begin()
    >>> rounds.decided(None), rounds.begun
    (0, 1)
    """

    def __init__(self, begun: int = 0, unfinished: tuple[int, ...] = ()) -> None:
        self.begun = begun
        # The latest round; apart from the others, as most finish at once.
        self._waiting = begun - 1 in unfinished
        self._late = set(unfinished) - {begun - 1}

    def begin(self) -> None:
        """One more round."""
        if self._waiting:
            self._late.add(self.begun - 1)
        if self._late:
            self._late.discard(self.begun - TRAIL)
        self._waiting = True
        self.begun += 1

    def decided(self, named: int | None) -> int:
        """The round that an event finishes. Without a name: the latest one or, where that is
        finished or there is none, a new one, whose number is `begun`."""
        latest = self.begun - 1
        if named is None:
            return latest if self._waiting else self.begun
        if named == latest and self._waiting:
            return named
        if not 0 <= named < self.begun:
            known = f"rounds 0 to {latest} have begun" if self.begun else "no round has begun"
            raise EventError(
                f"decided must be the number of a round that has begun, got {named}; {known}"
            )
        if named >= self.begun - TRAIL and named not in self._late:
            raise EventError(
                f"decided is {named}, but the reward of round {named} has been learnt already"
            )
        return named

    def finish(self, decided: int) -> None:
        """The reward of that round has been learnt."""
        if decided == self.begun:
            self.begin()
        if decided == self.begun - 1:
            self._waiting = False
        else:
            self._late.discard(decided)

    @property
    def unfinished(self) -> IntArray:
        """The unfinished rounds, in order."""
        latest = [self.begun - 1] if self._waiting else []
        return np.array([*sorted(self._late), *latest], np.int64)

    @classmethod
    def restored(cls, begun: Any, unfinished: Any) -> RoundCounter:
        """Rounds as a snapshot has them, checked."""
        if type(begun) is not int or begun < 0:
            raise SnapshotError(
                "the snapshot's 'rounds' must be a whole number that is not negative"
            )
        if (
            not isinstance(unfinished, np.ndarray)
            or unfinished.dtype != np.int64
            or unfinished.ndim != 1
        ):
            raise SnapshotError("the snapshot's 'unfinished' must be a list of rounds")
        in_order = (np.diff(unfinished) > 0).all()
        if len(unfinished) and not (
            in_order and max(0, begun - TRAIL) <= unfinished[0] and unfinished[-1] < begun
        ):
            raise SnapshotError(
                "the snapshot's 'unfinished' must be rounds that have begun, in order"
            )
        return cls(begun, tuple(unfinished.tolist()))


LARGEST = 1e15
"""Rewards and features beyond this size are refused: one of them would drown all others, and
squares of squares must still be finite."""

LATEST = 1e20
"""`Context.time` beyond this size is refused; nanoseconds since 1970 are below it."""

_SQUARED = LARGEST**2
_FLOAT64 = np.dtype(np.float64)
# A frozen dataclass sets its fields the long way; through its slots a new event takes half the
# time.
_SET_CONTEXT, _SET_ARM, _SET_REWARD, _SET_DECIDED = (
    getattr(Event, name).__set__ for name in ("context", "arm", "reward", "decided")
)


class Checks:
    """Clean contexts and events for problems of one shape. What is clean already passes as it is,
    uncopied."""

    def __init__(self, shape: ProblemShape) -> None:
        self.n_arms = shape.n_arms
        self._observation = (shape.observation_dim,) if shape.observation_dim else None
        self._arm_features = (shape.n_arms, shape.arm_dim) if shape.arm_dim else None

    def context(self, context: Context) -> Context:
        """The context with float64 arrays (None where the shape has none), a mask of booleans and a
        float time."""
        if not isinstance(context, Context):
            raise ContextError(f"context must be a tidepull.Context, got {shown(context)}")
        observation, arm_features = context.observation, context.arm_features
        available, time = context.available, context.time
        clean_observation = clean_features = clean_available = clean_time = None
        if observation is not None or self._observation is not None:
            clean_observation = features("observation", observation, self._observation)
        if arm_features is not None or self._arm_features is not None:
            clean_features = features("arm_features", arm_features, self._arm_features)
        if available is not None:
            clean_available = mask(available, self.n_arms)
        if time is not None:
            clean_time = _time(time)
        if (
            clean_observation is observation
            and clean_features is arm_features
            and clean_available is available
            and clean_time is time
        ):
            return context
        return Context(clean_observation, clean_features, clean_available, clean_time)

    def event(self, event: Event, rounds: RoundCounter) -> tuple[Event, int]:
        """The event with a clean context, a plain arm and reward, and the round that it finishes;
        that round."""
        if not isinstance(event, Event):
            raise EventError(f"event must be a tidepull.Event, got {shown(event)}")
        context, arm, reward = self.context(event.context), event.arm, event.reward
        if type(arm) is not int or not 0 <= arm < self.n_arms:
            arm = self._arm(arm)
        if type(reward) is not float or not -LARGEST <= reward <= LARGEST:
            reward = _reward(reward)
        named = event.decided
        if named is not None and type(named) is not int:
            named = _named_round(named)
        decided = rounds.decided(named)
        if (
            context is event.context
            and arm is event.arm
            and reward is event.reward
            and decided is event.decided
        ):
            return event, decided
        clean = object.__new__(Event)
        _SET_CONTEXT(clean, context)
        _SET_ARM(clean, arm)
        _SET_REWARD(clean, reward)
        _SET_DECIDED(clean, decided)
        return clean, decided

    def means(self, means: Any) -> FloatArray:
        """The true means of all arms, for the oracle."""
        clean = features("means", means, (self.n_arms,))
        assert clean is not None
        return clean

    def _arm(self, arm: Any) -> int:
        if not _is_whole(arm) or not 0 <= arm < self.n_arms:
            raise ArmError(
                f"arm must be a whole number from 0 to {self.n_arms - 1}, got {shown(arm)}"
            )
        return int(arm)


def count_true(flags: BoolArray) -> int:
    """How many of a few booleans are true, in a third of the time of `np.count_nonzero`.

    >>> count_true(np.array([True, False, True]))
    2
    """
    return flags.tobytes().count(1)


def mask(available: Any, n_arms: int) -> BoolArray:
    """The mask of available arms; numbers are no mask, since a list of arms would look the same."""
    try:
        array = np.asarray(available)
    except Exception:  # ragged, or an object that cannot become an array
        array = np.empty(0)
    if array.dtype != np.bool_ or array.shape != (n_arms,) or not count_true(array):
        raise ContextError(
            f"available must be {n_arms} booleans of which at least one is true, got "
            f"{shown(available)}"
        )
    return array


def features(name: str, values: Any, shape: tuple[int, ...] | None) -> FloatArray | None:
    """Finite numbers of that shape as contiguous float64; None (or an empty array) where there is
    no shape."""
    if shape is None:
        if values is None or (isinstance(values, np.ndarray) and values.size == 0):
            return None
        raise ContextError(f"{name} must be None: this policy was built for a problem without it")
    if type(values) is np.ndarray and values.dtype is _FLOAT64 and values.flags.c_contiguous:
        array = values
    else:
        array = _converted(name, values, shape)
    if array.shape != shape:
        raise ContextError(f"{name} must have the shape {shape}, got {array.shape}")
    flat = array if array.ndim == 1 else array.reshape(-1)
    # The sum of squares is quick, and below the bound only if every number is; vdot never warns.
    if not np.vdot(flat, flat) <= _SQUARED and not np.abs(flat).max() <= LARGEST:
        raise ContextError(f"{name} must hold finite numbers of at most {LARGEST:g} in size")
    return array


def _reward(reward: Any) -> float:
    if not _is_number(reward):
        raise RewardError(f"reward must be a number, got {shown(reward)}")
    if not -LARGEST <= reward <= LARGEST:
        raise RewardError(
            f"reward must be finite and at most {LARGEST:g} in size, got {shown(reward)}"
        )
    return float(reward)


def _named_round(decided: Any) -> int:
    if not _is_whole(decided):
        raise EventError(
            f"decided must be the whole number of a round, or None, got {shown(decided)}"
        )
    return int(decided)


def _time(time: Any) -> float:
    if type(time) is float and -LATEST <= time <= LATEST:
        return time
    if not _is_number(time) or not -LATEST <= time <= LATEST:
        raise ContextError(
            f"time must be None or a finite number of at most {LATEST:g} in size, got {shown(time)}"
        )
    return float(time)


def _converted(name: str, values: Any, shape: tuple[int, ...]) -> FloatArray:
    if values is None:
        raise ContextError(f"{name} is missing from the context; it must have the shape {shape}")
    try:
        array = np.asarray(values)
    except Exception:  # ragged, or an object that cannot become an array
        raise ContextError(
            f"{name} must be an array of the shape {shape}, got {shown(values)}"
        ) from None
    if array.dtype.kind not in "fiu" or (
        not isinstance(values, np.ndarray) and _has_boolean(values)
    ):
        raise ContextError(f"{name} must hold numbers only, got {shown(values)}")
    # A longdouble that does not fit is infinite, and refused as such.
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, np.float64).reshape(array.shape)


def _has_boolean(values: Any) -> bool:
    if isinstance(values, list | tuple):
        return any(_has_boolean(value) for value in values)
    return isinstance(values, bool | np.bool_) or (
        isinstance(values, np.ndarray) and values.dtype == np.bool_
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or isinstance(value, float | np.floating)
