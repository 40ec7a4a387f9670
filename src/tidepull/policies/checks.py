"""What a policy may be told: contexts and events of the right kind, and one sentence for everything else.

Only the guard asks. A policy behind it sees float64 arrays of the right shape, masks of booleans, whole arms and
finite rewards, and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.errors import ArmError, ContextError, EventError, RewardError
from tidepull.types import BoolArray, Context, Event, FloatArray, ProblemShape

LARGEST = 1e15
"""Rewards and features beyond this size are refused: one of them would drown all others, and squares of squares
must still be finite."""

LATEST = 1e20
"""`Context.time` beyond this size is refused; nanoseconds since 1970 are below it."""

_SQUARED = LARGEST**2
_FLOAT64 = np.dtype(np.float64)


class Checks:
    """Clean contexts and events for problems of one shape. What is clean already passes as it is, uncopied."""

    def __init__(self, shape: ProblemShape) -> None:
        self.n_arms = shape.n_arms
        self._observation = (shape.observation_dim,) if shape.observation_dim else None
        self._arm_features = (shape.n_arms, shape.arm_dim) if shape.arm_dim else None
        self._plain = self._observation is None and self._arm_features is None

    def context(self, context: Context) -> Context:
        """The context with float64 arrays (None where the shape has none), a mask of booleans and a float time."""
        if not isinstance(context, Context):
            raise ContextError(f"context must be a tidepull.Context, got {_shown(context)}")
        observation, arm_features = context.observation, context.arm_features
        available, time = context.available, context.time
        if (
            self._plain
            and observation is None
            and arm_features is None
            and available is None
            and time is None
        ):
            return context
        clean = (
            _features("observation", observation, self._observation),
            _features("arm_features", arm_features, self._arm_features),
            self._mask(available),
            _time(time),
        )
        same = clean[0] is observation and clean[1] is arm_features and clean[2] is available
        return context if same and clean[3] is time else Context(*clean)

    def arm(self, arm: Any) -> int:
        """The arm as a plain int in 0 ... n_arms - 1."""
        if (type(arm) is not int and not isinstance(arm, np.integer)) or not 0 <= arm < self.n_arms:
            raise ArmError(f"arm must be a whole number from 0 to {self.n_arms - 1}, got {_shown(arm)}")
        return int(arm)

    def means(self, means: Any) -> FloatArray:
        """The true means of all arms, for the oracle."""
        clean = _features("means", means, (self.n_arms,))
        assert clean is not None
        return clean

    def _mask(self, available: Any) -> BoolArray | None:
        if available is None:
            return None
        try:
            mask = np.asarray(available)
        except Exception:
            mask = np.empty(0)
        if mask.dtype != np.bool_ or mask.shape != (self.n_arms,) or not mask.any():
            raise ContextError(
                f"available must be {self.n_arms} booleans of which at least one is true, got {_shown(available)}"
            )
        return mask


def event_parts(event: Event, checks: Checks) -> tuple[Context, int, float]:
    """Context, arm and reward of an event, all clean."""
    if not isinstance(event, Event):
        raise EventError(f"event must be a tidepull.Event, got {_shown(event)}")
    return checks.context(event.context), checks.arm(event.arm), clean_reward(event.reward)


def clean_reward(reward: Any) -> float:
    """The reward as a plain finite float."""
    if type(reward) is float and -LARGEST <= reward <= LARGEST:
        return reward
    if not _is_number(reward):
        raise RewardError(f"reward must be a number, got {_shown(reward)}")
    if not -LARGEST <= reward <= LARGEST:
        raise RewardError(f"reward must be finite and at most {LARGEST:g} in size, got {_shown(reward)}")
    return float(reward)


def clean_decided(decided: Any) -> int | None:
    """The number of a round as a plain int, or None."""
    if decided is None or type(decided) is int:
        return decided
    if not isinstance(decided, np.integer):
        raise EventError(f"decided must be the whole number of a round, or None, got {_shown(decided)}")
    return int(decided)


def _time(time: Any) -> float | None:
    if time is None or (type(time) is float and -LATEST <= time <= LATEST):
        return time
    if not _is_number(time) or not -LATEST <= time <= LATEST:
        raise ContextError(
            f"time must be None or a finite number of at most {LATEST:g} in size, got {_shown(time)}"
        )
    return float(time)


def _features(name: str, values: Any, shape: tuple[int, ...] | None) -> FloatArray | None:
    if shape is None:
        if values is not None:
            raise ContextError(f"{name} must be None: this policy was built for a problem without it")
        return None
    if type(values) is np.ndarray and values.dtype is _FLOAT64 and values.flags.c_contiguous:
        array = values
    else:
        array = _converted(name, values, shape)
    if array.shape != shape:
        raise ContextError(f"{name} must have the shape {shape}, got {array.shape}")
    # The sum of squares is quick, and below the bound only if every number is.
    if not np.vdot(array, array) <= _SQUARED and not np.abs(array).max(initial=0.0) <= LARGEST:
        raise ContextError(f"{name} must hold finite numbers of at most {LARGEST:g} in size")
    return array


def _converted(name: str, values: Any, shape: tuple[int, ...]) -> FloatArray:
    if values is None:
        raise ContextError(f"{name} is missing from the context; it must have the shape {shape}")
    try:
        array = np.asarray(values)
    except Exception:  # ragged, or an object that cannot become an array
        raise ContextError(f"{name} must be an array of the shape {shape}, got {_shown(values)}") from None
    if array.dtype.kind not in "fiu" or (not isinstance(values, np.ndarray) and _has_boolean(values)):
        raise ContextError(f"{name} must hold numbers only, got {_shown(values)}")
    with np.errstate(over="ignore"):  # a longdouble that does not fit is infinite, and refused as such
        return np.ascontiguousarray(array, np.float64).reshape(array.shape)


def _has_boolean(values: Any) -> bool:
    if isinstance(values, list | tuple):
        return any(_has_boolean(value) for value in values)
    return isinstance(values, bool | np.bool_) or (
        isinstance(values, np.ndarray) and values.dtype == np.bool_
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """A value as it is shown in a sentence: short, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
