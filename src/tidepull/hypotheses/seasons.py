"""Two seasons at once: the product of two periodic hypotheses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.hypotheses.fourier import Fourier
from tidepull.hypotheses.spec import Moment, Spec
from tidepull.hypotheses.square import Square
from tidepull.types import FloatArray


@dataclass(frozen=True)
class Seasons:
    """tau = tau_1 (x) tau_2, and a cell for every pair of cells."""

    first: Fourier | Square
    second: Fourier | Square
    group = "seasons"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return f"{self.first.words}; at once {self.second.words}"

    def spec(self) -> Spec:
        """The same as numbers."""
        one, two = self.first.spec(), self.second.spec()
        return Spec(
            shapes=(one.shapes[0], two.shapes[0]),
            periods=(one.periods[0], two.periods[0]),
            offsets=(one.offsets[0], two.offsets[0]),
            contextual=one.contextual,
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cells and features multiply."""
        cell_1, tau_1 = self.first.locate(moment, n_arms)
        cell_2, tau_2 = self.second.locate(moment, n_arms)
        return cell_1 * self.second.spec().cells(n_arms) + cell_2, np.kron(tau_1, tau_2)
