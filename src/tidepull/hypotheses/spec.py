"""The seam between a hypothesis that a person understands and the row of numbers that the kernel reads.

Every hypothesis is a composition of up to two clocks, a memory and a discount. It says of a round t

    cell   which of finitely many regimes holds now (each regime has weights of its own), and
    tau    features of time, tau[0] = 1 first.

The features of arm k are phi = tau (x) x_k, where x_k is the context's vector (1 first) or just (1). Where arms
take turns, the belief that it is the arm's turn comes behind them, times `BELIEF_SCALE`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tidepull.types import FloatArray

NO_CLOCK, SINE, SQUARE, ADDED_SINE = 0, 1, 2, 3
NO_MEMORY, LAST_EVENT, LAST_SUCCESS, TURNS = 0, 1, 2, 3
BELIEF_SCALE = 3.0
"""The prior standard deviation of a belief's weight is so many times that of another weight."""


class Moment(NamedTuple):
    """All that a hypothesis may look at besides the context: the round and the recent events.

    `last_arm` and `last_success` (the arm of the latest successful round) are -1 before there is one;
    `beliefs` say of every arm how likely it is its turn (empty: nobody asked).
    """

    t: int = 0
    last_arm: int = -1
    last_reward: float = 0.0
    last_success: int = -1
    beliefs: tuple[float, ...] = ()


class Spec(NamedTuple):
    """A hypothesis as numbers; `period` of a square clock is the length of one of its two phases."""

    shapes: tuple[int, int] = (NO_CLOCK, NO_CLOCK)
    periods: tuple[float, float] = (1.0, 1.0)
    offsets: tuple[float, float] = (0.0, 0.0)
    memory: int = NO_MEMORY
    discount: float = 1.0
    contextual: bool = False

    @property
    def width(self) -> int:
        """Length of tau."""
        width = 1
        for shape in self.shapes:
            width = 3 * width if shape == SINE else width + 2 if shape == ADDED_SINE else width
        return width * (2 if self.memory == LAST_EVENT else 1)

    def cells(self, n_arms: int) -> int:
        """Number of regimes."""
        squares = sum(shape == SQUARE for shape in self.shapes)
        return int(2**squares * (n_arms + 1 if self.memory in (LAST_EVENT, LAST_SUCCESS) else 1))


class Hypothesis(Protocol):
    """One guess about what time is doing."""

    @property
    def group(self) -> str:
        """The family it belongs to."""

    @property
    def words(self) -> str:
        """One line that a person understands."""

    def spec(self) -> Spec:
        """The same as numbers, for the kernel."""

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """The cell and tau of a moment; the plain reference that the kernel is tested against."""
