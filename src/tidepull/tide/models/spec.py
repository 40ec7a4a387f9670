"""The specification of a linear model: the row of numbers that the kernel reads.

A model is a composition of up to two clocks, which run by the round, lagged covariates and a
discount. It says of a round t

    cell   which of finitely many regimes holds now (each regime has weights of its own), and
    tau    the basis of time, tau[0] = 1 first.

The features of arm k are phi = tau (x) x_k, where x_k is the context's vector (1 first) or just
(1), and behind them, where a model asks for it, one number that was noted of arm k.
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
    """A linear model as numbers; `periods` of a square clock is the length of one of its two phases.

    Of the notes, column `cell_by` names a regime, column `times` multiplies tau by (1, note), and
    column `beside` comes behind the features of each arm.
    """

    family: str
    shapes: tuple[int, int] = (NO_CLOCK, NO_CLOCK)
    periods: tuple[float, float] = (1.0, 1.0)
    offsets: tuple[float, float] = (0.0, 0.0)
    cell_by: int = NO_COVARIATE
    times: int = NO_COVARIATE
    beside: int = NO_COVARIATE
    discount: float = 1.0
    contextual: bool = False

    @property
    def width(self) -> int:
        """Length of tau."""
        width = 1
        for shape in self.shapes:
            width = 3 * width if shape == SINE else width + 2 if shape == ADDED_SINE else width
        return width * (1 if self.times == NO_COVARIATE else 2)

    @property
    def steady(self) -> bool:
        """Whether time does not count at all."""
        unnoted = self.cell_by == self.times == self.beside == NO_COVARIATE
        return unnoted and self.shapes == (NO_CLOCK, NO_CLOCK) and self.discount == 1

    @property
    def longest_period(self) -> float:
        """The longest period of its clocks; 0 where there is none."""
        clocks = zip(self.shapes, self.periods, strict=True)
        return max(
            period * (2 if shape == SQUARE else 1) if shape != NO_CLOCK else 0.0
            for shape, period in clocks
        )

    def noted_cells(self, n_arms: int) -> int:
        """Number of regimes that covariates tell apart."""
        if self.cell_by == NO_COVARIATE:
            return 1
        cells = all_covariates()[self.cell_by].cells
        if cells is None:
            raise ValueError(
                f"the covariate '{all_covariates()[self.cell_by].name}' names no regimes"
            )
        return cells(n_arms)

    def cells(self, n_arms: int) -> int:
        """Number of regimes."""
        squares = sum(shape == SQUARE for shape in self.shapes)
        return int(2**squares * self.noted_cells(n_arms))

    def locate(self, state: RoundState, n_arms: int) -> tuple[int, FloatArray]:
        """The cell and tau of a moment; the plain reference that the kernel is tested against."""
        cell = 0
        tau: FloatArray = np.ones(1)
        for shape, period, offset in zip(self.shapes, self.periods, self.offsets, strict=True):
            angle = 2 * math.pi * (state.t / period % 1.0)
            if shape == SINE:
                tau = np.kron(tau, [1.0, math.cos(angle), math.sin(angle)])
            elif shape == ADDED_SINE:
                tau = np.append(tau, [math.cos(angle), math.sin(angle)])
            elif shape == SQUARE:
                cell = 2 * cell + math.floor((state.t + offset) / period) % 2
        if self.cell_by != NO_COVARIATE:
            cell = cell * self.noted_cells(n_arms) + int(state.covariates[self.cell_by])
        if self.times != NO_COVARIATE:
            tau = np.kron(tau, [1.0, state.covariates[self.times]])
        return cell, tau
