"""Families of models: everything about a family is in its own file.

A family has a prior, initial members and spare slots, a search for candidates, lagged covariates,
and a description in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from tidepull.tide.jobs import Job
from tidepull.tide.models.covariates import CovariateTracker
from tidepull.tide.models.spec import Spec
from tidepull.types import FloatArray, IntArray, Snapshot

if TYPE_CHECKING:
    from tidepull.tide.models.noise import NoisePrior

_LARGEST_SLOT = 2_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Common properties of all models. `shared`: arms differ by their vectors alone.
    `products`: multiplications that the models of one family may cost in a round, beyond the first
    few. `most_blocks`: with more weight vectors a model would learn too slowly. `wide_dim`: where
    arms have more numbers than the context map has directions (`context_dim`), all of them are
    appended, for models of constant rewards; else 0.
    """

    n_arms: int
    context_dim: int
    shared: bool
    products: int = 150_000
    most_blocks: int = _LARGEST_SLOT
    wide_dim: int = 0

    @property
    def mixed(self) -> bool:
        """Whether arms have weights of their own on an observation, so that some models use it and
        others do not. There a hidden state separates good from bad rounds by the model that decided
        them: it predicts the arms that others chose well, chooses badly itself, and explains the
        errors of a nearly linear rule as changes."""
        return self.context_dim > 1 and not self.shared

    def dim(self, spec: Spec) -> int:
        """Length of phi."""
        if self.wide_dim and spec.contextual and spec.steady:
            return self.wide_dim
        return spec.width * (self.context_dim if spec.contextual else 1) + (spec.appended >= 0)

    def blocks(self, spec: Spec) -> int:
        """Number of weight vectors."""
        return spec.n_regimes(self.n_arms) * (1 if self.shared else self.n_arms)


@dataclass(frozen=True)
class Pool:
    """Slots of one family: those filled at the start, `spare` ones for candidates, and the specs
    that each must have room for."""

    family: str
    contextual: bool
    initial: tuple[Spec, ...]
    spare: int
    room: tuple[Spec, ...]


class Window(NamedTuple):
    """Finished rounds in the order in which their rewards arrived: the input of a replay."""

    t: IntArray  # the round of the decision
    # (n, columns) covariates of the arm; NaN if forgotten
    covariates: FloatArray
    arm: IntArray
    x: FloatArray  # (n, q) the chosen arm's context vector
    y: FloatArray  # standardised reward


class Rounds(NamedTuple):
    """Finished rounds t0, t0 + 1, ... without gaps, for scans; arm -1 without a reward."""

    t0: int
    arm: IntArray
    y: FloatArray


class Search(Protocol):
    """Data and services for a family's search for candidates."""

    @property
    def layout(self) -> Layout:
        """Common properties of all models."""

    @property
    def contextual(self) -> bool:
        """Whether candidates use the context."""

    @property
    def window(self) -> Window:
        """The window that candidates replay."""

    @property
    def rounds(self) -> Rounds:
        """The window as rounds without gaps."""

    def heaviest(self) -> list[Spec]:
        """The two heaviest models of the pool, whatever their weights."""

    def sines(self) -> Job[list[float]]:
        """Periods of the three strongest sines, without context."""

    def spectral_peaks(self, count: int) -> Job[list[tuple[float, float]]]:
        """The strongest spectral peaks of the products of reward and context: periods, and offsets
        of square waves."""

    def heaviest_of(self, families: Sequence[str]) -> Spec | None:
        """The heaviest context-free model of these families; None if there is none."""

    def ridge(self, spec: Spec) -> float:
        """lam0 of a model in a spare slot."""


class Candidate(NamedTuple):
    """A proposed model, and the number of candidates from which it was chosen."""

    spec: Spec
    n_candidates: float


Candidates: TypeAlias = Iterator[Candidate | int]
"""Candidates, and between them the steps of the search."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about past or present, in words and as JSON values."""

    words: str
    facts: dict[str, Any]


class Filter(Protocol):
    """A state-space model with a kernel of its own, which is weighed like a slot of the bank.
    Rewards are standardised, contexts are (1, z) for each arm."""

    @property
    def family(self) -> str:
        """The name of the family it belongs to."""

    @property
    def words(self) -> str:
        """One line that a person understands."""

    def observe(self, t: int, arm: int, x: FloatArray, y: float, binary: bool) -> float:
        """Log likelihood of the reward of round t, which is then learnt; NaN if that round is
        forgotten."""

    def replay(self, window: Window, binary: bool) -> Job[FloatArray]:
        """Replay a window of past rounds; log likelihoods by round."""

    def draw(self, t: int, X: FloatArray, binary: bool, rng: np.random.Generator) -> FloatArray:
        """One draw of every arm's expected reward in round t: of the hidden state, then of the
        weights."""

    def reset_copy(self, units: float | None) -> Filter:
        """An untrained copy; lam0 from the present noise, in new units of which `units` make an old
        one (None: unchanged)."""

    def refresh_ridge(self) -> None:
        """Set lam0 from the present noise, where that needs no replay."""

    def findings(self, centre: float, spread: float) -> list[Finding]:
        """Findings about past and present, oldest first, in units of rewards."""

    def snapshot(self) -> Snapshot:
        """The state of the model."""

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """A way in which rewards may depend on time. `gated` builds gated models (`tide/gated.py`)."""

    name: str
    words: str
    prior: float
    colour: str
    pools: Callable[[Layout, bool], list[Pool]] = lambda *_: []
    describe: Callable[[Spec], str] | None = None
    candidates: Callable[[Search], Candidates] | None = None
    tracker: Callable[[int], CovariateTracker] | None = None
    filters: Callable[[Layout, NoisePrior, int], list[Filter]] | None = None
    gated: Callable[[Layout, NoisePrior, int], list[Filter]] | None = None


def fixed(layout: Layout, *specs: Spec) -> list[Pool]:
    """A pool for each permanent model, unless it would be too large."""
    return [Pool(s.family, s.contextual, (s,), 0, (s,)) for s in specs if not too_large(layout, s)]


def too_large(layout: Layout, spec: Spec) -> bool:
    """Whether a model would take more memory than any should."""
    blocks = layout.blocks(spec)
    return blocks > layout.most_blocks or blocks * layout.dim(spec) ** 2 > _LARGEST_SLOT


def growing(
    layout: Layout, contextual: bool, initial: Sequence[Spec], room: Sequence[Spec]
) -> list[Pool]:
    """One pool with spare slots for the structure search; `room` are the largest models that may be
    found."""
    spare = 8 if contextual else 16 if layout.mixed else 24
    return [Pool(room[0].family, contextual, tuple(initial), spare, tuple(room))]


def affordable(layout: Layout, dim: int) -> int:
    """Number of models of `dim` features that may be updated in every round."""
    return max(8, layout.products // (dim * dim))
