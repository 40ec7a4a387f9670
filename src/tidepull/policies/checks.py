"""What policies refuse: one sentence that names the field, before any state has changed."""

from __future__ import annotations

import numpy as np

from tidepull.errors import ArmError, ContextError, RewardError
from tidepull.types import BoolArray, Context, Event, FloatArray

LARGEST = 1e100
"""Rewards and features beyond this size would overflow when squared and summed."""


def checked_arm(arm: int, n_arms: int) -> int:
    """The arm as a plain int in 0 ... n_arms - 1."""
    if isinstance(arm, bool | np.bool_) or not isinstance(arm, int | np.integer) or not 0 <= arm < n_arms:
        raise ArmError(f"arm must be a whole number from 0 to {n_arms - 1}, got {arm!r}")
    return int(arm)


def checked_reward(reward: float) -> float:
    """The reward as a plain finite float."""
    try:
        value = float(reward)
    except (TypeError, ValueError):
        raise RewardError(f"reward must be a number, got {reward!r}") from None
    if not abs(value) <= LARGEST:
        raise RewardError(f"reward must be finite and at most {LARGEST:g} in size, got {reward!r}")
    return value


def checked_event(event: Event, n_arms: int) -> tuple[int, float]:
    """Arm and reward of an event, both in order."""
    return checked_arm(event.arm, n_arms), checked_reward(event.reward)


def checked_available(context: Context, n_arms: int) -> BoolArray | None:
    """The mask of available arms, or None when all are."""
    if context.available is None:
        return None
    mask = np.asarray(context.available, dtype=bool)
    if mask.shape != (n_arms,) or not mask.any():
        raise ContextError(f"available must mark at least one of {n_arms} arms, got {mask.tolist()}")
    return mask


def checked_features(name: str, values: FloatArray | None, shape: tuple[int, ...]) -> FloatArray:
    """`observation` or `arm_features` as finite float64 of the expected shape (not necessarily a copy)."""
    if values is None:
        raise ContextError(f"{name} is missing from the context; its shape must be {shape}")
    array: FloatArray = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ContextError(f"{name} must have the shape {shape}, got {array.shape}")
    if not np.abs(array).max(initial=0.0) <= LARGEST:
        raise ContextError(f"{name} must be finite and at most {LARGEST:g} in size")
    return array
