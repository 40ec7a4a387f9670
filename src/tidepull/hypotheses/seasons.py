"""Two seasons at once: the product of two periodic hypotheses, or the sum of two sines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.hypotheses.fourier import Fourier
from tidepull.hypotheses.spec import ADDED_SINE, Moment, Spec
from tidepull.hypotheses.square import Square
from tidepull.types import FloatArray


@dataclass(frozen=True)
class Seasons:
    """tau = tau_1 (x) tau_2, and a cell for every pair of cells.

    `added`: the second, a sine, only adds its cos and sin to tau_1, which takes fewer weights.
    """

    first: Fourier | Square
    second: Fourier | Square
    added: bool = False
    group = "seasons"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return f"{self.first.words}; {'on top' if self.added else 'at once'} {self.second.words}"

    def spec(self) -> Spec:
        """The same as numbers."""
        one, two = self.first.spec(), self.second.spec()
        return Spec(
            shapes=(one.shapes[0], ADDED_SINE if self.added else two.shapes[0]),
            periods=(one.periods[0], two.periods[0]),
            offsets=(one.offsets[0], two.offsets[0]),
            contextual=one.contextual,
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cells and features multiply, or a sine is added."""
        cell_1, tau_1 = self.first.locate(moment, n_arms)
        cell_2, tau_2 = self.second.locate(moment, n_arms)
        if self.added:
            return cell_1, np.concatenate([tau_1, tau_2[1:]])
        return cell_1 * self.second.spec().cells(n_arms) + cell_2, np.kron(tau_1, tau_2)
