"""From contexts and events to the rows that a network reads.

An arm is described by its own feature vector where the problem has one, else by its one-hot code.
The recurrent network reads `[previous reward, observation, arm]`. The feedforward one reads
`[observation, arm]`, the last n triplets `(observation, arm, reward)`, and the time. Where rewards come late,
"previous" and "last" mean the latest that had arrived when the round was decided, in the order of arrival.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.errors import ArmError, ContextError, RewardError
from tidepull.types import Context, FloatArray, ProblemShape

LARGEST_REWARD = 1e15
"""Its square still fits well into float32, in which networks are trained."""


class ContextReader:
    """Reads the parts of a context as vectors of one dtype, and says what does not fit the shape."""

    def __init__(self, shape: ProblemShape, dtype: Any) -> None:
        self.shape = shape
        self.arm_width = shape.arm_dim or shape.n_arms
        self._dtype = dtype
        self._nothing = np.empty(0, dtype)
        self._codes = np.eye(shape.n_arms, dtype=dtype)

    @property
    def width(self) -> int:
        """Length of observation and arm together."""
        return self.shape.observation_dim + self.arm_width

    def observation(self, context: Context) -> FloatArray:
        """The vector shared by all arms; empty where the problem has none."""
        expected = self.shape.observation_dim
        if not expected:
            return self._nothing
        if context.observation is None:
            raise ContextError(
                f"the context has no observation; this policy expects one of length {expected}"
            )
        vector = np.ascontiguousarray(context.observation, self._dtype).reshape(-1)
        if vector.size != expected:
            raise ContextError(f"the observation has length {vector.size}; this policy expects {expected}")
        return vector

    def arms(self, context: Context) -> FloatArray:
        """A row for each arm: its features, or its one-hot code."""
        if not self.shape.arm_dim:
            return self._codes
        expected = (self.shape.n_arms, self.shape.arm_dim)
        if context.arm_features is None:
            raise ContextError(
                f"the context has no arm_features; this policy expects a {expected[0]} x {expected[1]} matrix"
            )
        rows = np.ascontiguousarray(context.arm_features, self._dtype)
        if rows.shape != expected:
            raise ContextError(f"arm_features has the shape {rows.shape}; this policy expects {expected}")
        return rows

    def chosen(self, context: Context, arm: int) -> tuple[FloatArray, FloatArray]:
        """Observation and chosen arm; refuses what would poison the history."""
        if not 0 <= arm < self.shape.n_arms:
            raise ArmError(f"arm {arm} is outside 0 to {self.shape.n_arms - 1}")
        observation: FloatArray = self.observation(context)
        features: FloatArray = self.arms(context)[arm]
        if self.shape.observation_dim and not np.isfinite(observation).all():
            raise ContextError("the observation must hold finite numbers only")
        if self.shape.arm_dim and not np.isfinite(features).all():
            raise ContextError(f"the features of arm {arm} must be finite numbers")
        return observation, features


def checked_reward(reward: float) -> float:
    """The reward; refuses one that would poison the history."""
    if not abs(reward) <= LARGEST_REWARD:
        raise RewardError(f"the reward must be finite and at most {LARGEST_REWARD:g} in size, got {reward}")
    return reward
