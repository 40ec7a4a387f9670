"""What a linear policy regresses on.

Where each arm shows its own vector, one model is shared by all arms and x is that vector. Elsewhere each
arm has a model of its own, and all of them see x = [1, observation] (x = [1] when there is none).
"""

from __future__ import annotations

import numpy as np

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
        if context.arm_features is not None:
            return context.arm_features
        row: FloatArray = np.ones((1, self.dim))
        if context.observation is not None:
            row[0, 1:] = context.observation
        return row

    def chosen(self, context: Context, arm: int) -> tuple[int, FloatArray]:
        """Model and row of an arm."""
        rows = self.rows(context)
        return (0, rows[arm]) if self.shared else (arm, rows[0])
