"""What a family of models is: everything about it stands in the family's own file.

A family says how likely it is before anything is seen, which members it begins with and how many
more may be born, how candidates are looked for, what it remembers of the past, and how all this is
said and drawn.
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
    """What all models have in common. `shared`: arms are told apart by their vectors alone.
    `products`: how many multiplications the models of one family may cost in a round, beyond
    the first few. `most_blocks`: with more weight vectors a model would not live to learn
    anything. `wide_dim`: where arms have more numbers than directions are kept (`context_dim`), all
    of them stand behind these, for who believes that nothing changes; else 0.
    """

    n_arms: int
    context_dim: int
    shared: bool
    products: int = 150_000
    most_blocks: int = _LARGEST_SLOT
    wide_dim: int = 0

    @property
    def mixed(self) -> bool:
        """Whether arms have weights of their own on an observation, so that some models see it and
        others do not. There a hidden state tells good rounds from bad ones by which model decided
        them: it predicts the arms that others chose well, itself chooses badly, and explains the
        errors of a rule that is not quite linear as changes."""
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
    """Slots of one family: those filled at the start, `spare` ones for births, and what each must
    have room for."""

    family: str
    contextual: bool
    initial: tuple[Spec, ...]
    spare: int
    room: tuple[Spec, ...]


class Window(NamedTuple):
    """Finished rounds in the order in which their rewards came: what a model needs to live
    through them."""

    t: IntArray  # the round of the decision
    # (n, columns) what was noted then, as it concerns the arm; NaN where that is forgotten
    covariates: FloatArray
    arm: IntArray
    x: FloatArray  # (n, q) the chosen arm's context vector
    y: FloatArray  # standardised reward


class Rounds(NamedTuple):
    """The same one after the other without gaps, for scans: rounds t0, t0 + 1, ...; arm -1 where no
    reward came."""

    t0: int
    arm: IntArray
    y: FloatArray


class Search(Protocol):
    """What a family may ask when it looks for candidates."""

    @property
    def layout(self) -> Layout:
        """What all models have in common."""

    @property
    def contextual(self) -> bool:
        """Whether candidates see the context."""

    @property
    def window(self) -> Window:
        """The past that candidates will live through."""

    @property
    def rounds(self) -> Rounds:
        """The same for scans."""

    def heaviest(self) -> list[Spec]:
        """The two heaviest of the pool, however light they are."""

    def sines(self) -> Job[list[float]]:
        """Periods of the three strongest sines, without context."""

    def spectral_peaks(self, count: int) -> Job[list[tuple[float, float]]]:
        """The strongest rhythms in the products of reward and context: periods, and offsets of
        square waves."""

    def heaviest_of(self, families: Sequence[str]) -> Spec | None:
        """The heaviest of these families that sees no context; None when there is none."""

    def ridge(self, spec: Spec) -> float:
        """lam0 of a model in a spare slot."""


class Candidate(NamedTuple):
    """A model worth a try, and from how many candidates it was chosen."""

    spec: Spec
    n_candidates: float


Candidates: TypeAlias = Iterator[Candidate | int]
"""Candidates one by one, and between them the steps that looking for them took."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that happened or holds, in words and as JSON values."""

    words: str
    facts: dict[str, Any]


class Filter(Protocol):
    """One model with a hidden state and a kernel of its own; it sits beside the bank and is
    weighed like a slot of it. Rewards come standardised, contexts as (1, z) for each arm."""

    @property
    def family(self) -> str:
        """The name of the family it belongs to."""

    @property
    def words(self) -> str:
        """One line that a person understands."""

    def observe(self, t: int, arm: int, x: FloatArray, y: float, binary: bool) -> float:
        """Log likelihood of the reward of round t, which is then learnt; NaN when that round is
        forgotten."""

    def replay(self, window: Window, binary: bool) -> Job[FloatArray]:
        """Live through a window of past rounds; log likelihoods round by round."""

    def draw(self, t: int, X: FloatArray, binary: bool, rng: np.random.Generator) -> FloatArray:
        """One draw of every arm's expected reward in round t: of the hidden state, then of the
        weights."""

    def reset_copy(self, units: float | None) -> Filter:
        """The same model that knows nothing; lam0 from the noise as it sees it now, in new
        units of which `units` make an old one (None: as it is)."""

    def refresh_ridge(self) -> None:
        """lam0 from the noise as it sees it now, where that needs no living through the past
        again."""

    def findings(self, centre: float, spread: float) -> list[Finding]:
        """What it can say about the past and the present, oldest first, with rewards as they were
        paid."""

    def snapshot(self) -> Snapshot:
        """All that it learnt."""

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """A way in which rewards may depend on time. `gated` builds filters that must first show what
    their own decisions earn."""

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
    """A pool for each model that is there from the start and for ever, unless it would be too
    large."""
    return [Pool(s.family, s.contextual, (s,), 0, (s,)) for s in specs if not too_large(layout, s)]


def too_large(layout: Layout, spec: Spec) -> bool:
    """Whether a model would take more memory than any should."""
    blocks = layout.blocks(spec)
    return blocks > layout.most_blocks or blocks * layout.dim(spec) ** 2 > _LARGEST_SLOT


def growing(
    layout: Layout, contextual: bool, initial: Sequence[Spec], room: Sequence[Spec]
) -> list[Pool]:
    """One pool with spare slots for the structure search; `room` are the largest that it may
    find."""
    spare = 8 if contextual else 16 if layout.mixed else 24
    return [Pool(room[0].family, contextual, tuple(initial), spare, tuple(room))]


def affordable(layout: Layout, dim: int) -> int:
    """How many models of so many features may be kept up in every round."""
    return max(8, layout.products // (dim * dim))
