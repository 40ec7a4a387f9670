"""The seam between a hypothesis that a person understands and the row of numbers that the kernel
reads.

Every hypothesis is a composition of up to two clocks, notes about the past and a discount. Its
clocks run by the round, or by the user's time where a note says it. It says of a round t

    cell   which of finitely many regimes holds now (each regime has weights of its own), and
    tau    features of time, tau[0] = 1 first.

The features of arm k are phi = tau (x) x_k, where x_k is the context's vector (1 first) or just
(1), and behind them, where a hypothesis asks for it, one number that was noted of arm k.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tidepull.tide.models.notes import Moment, columns
from tidepull.types import FloatArray

NO_CLOCK, SINE, SQUARE, ADDED_SINE, HARMONICS = 0, 1, 2, 3, 4
NO_NOTE = -1


class Spec(NamedTuple):
    """A hypothesis as numbers; `periods` of a square clock is the length of one of its two phases,
    `offsets` of harmonics how many of them there are.

    Of the notes, column `cell_by` names a regime, column `times` multiplies tau by (1, note),
    column `beside` comes behind the features of each arm, and column `reads` is what the clocks
    show instead of the round.
    """

    family: str
    shapes: tuple[int, int] = (NO_CLOCK, NO_CLOCK)
    periods: tuple[float, float] = (1.0, 1.0)
    offsets: tuple[float, float] = (0.0, 0.0)
    cell_by: int = NO_NOTE
    times: int = NO_NOTE
    beside: int = NO_NOTE
    discount: float = 1.0
    contextual: bool = False
    reads: int = NO_NOTE

    @property
    def width(self) -> int:
        """Length of tau."""
        width = 1
        for shape, offset in zip(self.shapes, self.offsets, strict=True):
            width = 3 * width if shape == SINE else width + 2 if shape == ADDED_SINE else width
            width += 2 * int(offset) if shape == HARMONICS else 0
        return width * (1 if self.times == NO_NOTE else 2)

    @property
    def steady(self) -> bool:
        """Whether time does not count at all."""
        unnoted = self.cell_by == self.times == self.beside == self.reads == NO_NOTE
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
        """How many regimes the notes can tell apart."""
        if self.cell_by == NO_NOTE:
            return 1
        cells = columns()[self.cell_by].cells
        if cells is None:
            raise ValueError(f"the column '{columns()[self.cell_by].name}' names no regimes")
        return cells(n_arms)

    def cells(self, n_arms: int) -> int:
        """Number of regimes."""
        squares = sum(shape == SQUARE for shape in self.shapes)
        return int(2**squares * self.noted_cells(n_arms))


class Hypothesis(Protocol):
    """One guess about what time is doing."""

    @property
    def family(self) -> str:
        """The name of the family it belongs to."""

    @property
    def words(self) -> str:
        """One line that a person understands."""

    def spec(self) -> Spec:
        """The same as numbers, for the kernel."""

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """The cell and tau of a moment; the plain reference that the kernel is tested against."""
