"""What a linear policy regresses on.

Where each arm shows its own vector, one model is shared by all arms and x is that vector. Elsewhere each
arm has a model of its own, and all of them see x = [1, observation] (x = [1] when there is none).
"""

from __future__ import annotations

import numpy as np

from tidepull.policies.checks import checked_features
from tidepull.types import Context, FloatArray, ProblemShape


class LinearInputs:
    """Contexts as rows of features, and which of `n_models` models each arm belongs to."""

    def __init__(self, shape: ProblemShape) -> None:
        self.n_arms = shape.n_arms
        self.shared = shape.arm_dim > 0
        self.n_models = 1 if self.shared else shape.n_arms
        self.dim = shape.arm_dim if self.shared else 1 + shape.observation_dim

    def rows(self, context: Context) -> FloatArray:
        """The rows that every model must score: one for each arm when shared, else a single one."""
        if self.shared:
            return checked_features("arm_features", context.arm_features, (self.n_arms, self.dim))
        row: FloatArray = np.ones((1, self.dim))
        if self.dim > 1:
            row[0, 1:] = checked_features("observation", context.observation, (self.dim - 1,))
        return row

    def chosen(self, context: Context, arm: int) -> tuple[int, FloatArray]:
        """Model and row of an arm."""
        rows = self.rows(context)
        return (0, rows[arm]) if self.shared else (arm, rows[0])
