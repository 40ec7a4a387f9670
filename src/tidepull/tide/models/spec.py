"""The specification of a linear model: the row of numbers that the kernel reads.

A model is a composition of up to two clocks, which run by the round, lagged covariates and a
discount. For a round t it has

    regime   an index: each regime has weights of its own, and
    basis    the basis of time, basis[0] = 1 first.

The features of arm k are phi = basis (x) x_k, where x_k is the context vector (1 first) or (1), and
after them, where a model has one, the appended covariate of arm k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidepull.tide.models.covariates import RoundState, all_covariates
from tidepull.types import FloatArray

NO_CLOCK, SINE, SQUARE, ADDED_SINE = 0, 1, 2, 3
NO_COVARIATE = -1


class Spec(NamedTuple):
    """A linear model as numbers; `periods` of a square clock is the length of one of its `phases`.

    The covariate `regime_by` names a regime, `interaction` is multiplied into the basis as (1,
    covariate), and `appended` is appended to the features of each arm.
    """

    family: str
    shapes: tuple[int, int] = (NO_CLOCK, NO_CLOCK)
    periods: tuple[float, float] = (1.0, 1.0)
    offsets: tuple[float, float] = (0.0, 0.0)
    regime_by: int = NO_COVARIATE
    interaction: int = NO_COVARIATE
    appended: int = NO_COVARIATE
    discount: float = 1.0
    contextual: bool = False
    phases: int = 2

    @property
    def width(self) -> int:
        """Length of the basis."""
        width = 1
        for shape in self.shapes:
            width = 3 * width if shape == SINE else width + 2 if shape == ADDED_SINE else width
        return width * (1 if self.interaction == NO_COVARIATE else 2)

    @property
    def steady(self) -> bool:
        """Whether the model ignores time."""
        uses_no_covariate = self.regime_by == self.interaction == self.appended == NO_COVARIATE
        return uses_no_covariate and self.shapes == (NO_CLOCK, NO_CLOCK) and self.discount == 1

    @property
    def longest_period(self) -> float:
        """The longest period of its clocks; 0 where there is none."""
        clocks = zip(self.shapes, self.periods, strict=True)
        return max(
            period * (self.phases if shape == SQUARE else 1) if shape != NO_CLOCK else 0.0
            for shape, period in clocks
        )

    def n_lagged_regimes(self, n_arms: int) -> int:
        """Number of regimes that covariates tell apart."""
        if self.regime_by == NO_COVARIATE:
            return 1
        n_regimes = all_covariates()[self.regime_by].n_regimes
        if n_regimes is None:
            raise ValueError(
                f"the covariate '{all_covariates()[self.regime_by].name}' names no regimes"
            )
        return n_regimes(n_arms)

    def n_regimes(self, n_arms: int) -> int:
        """Number of regimes."""
        squares = sum(shape == SQUARE for shape in self.shapes)
        return int(self.phases**squares * self.n_lagged_regimes(n_arms))

    def basis(self, state: RoundState, n_arms: int) -> tuple[int, FloatArray]:
        """The regime and the basis of a round: the plain reference of the kernel."""
        regime = 0
        basis: FloatArray = np.ones(1)
        for shape, period, offset in zip(self.shapes, self.periods, self.offsets, strict=True):
            angle = 2 * math.pi * (state.t / period % 1.0)
            if shape == SINE:
                basis = np.kron(basis, [1.0, math.cos(angle), math.sin(angle)])
            elif shape == ADDED_SINE:
                basis = np.append(basis, [math.cos(angle), math.sin(angle)])
            elif shape == SQUARE:
                regime = (
                    self.phases * regime + math.floor((state.t + offset) / period) % self.phases
                )
        if self.regime_by != NO_COVARIATE:
            regime = regime * self.n_lagged_regimes(n_arms) + int(state.covariates[self.regime_by])
        if self.interaction != NO_COVARIATE:
            basis = np.kron(basis, [1.0, state.covariates[self.interaction]])
        return regime, basis
