"""What hypotheses with a hidden state (`family.Filter`) have in common: a block of conjugate
weights for each arm (or one, where arms are known by vectors), and the noise of all blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.tide.models.family import Layout
from tidepull.tide.models.noise import NoisePrior
from tidepull.types import FloatArray, Snapshot

NOISE = NoisePrior()
A, B, RIDGE = 0, 1, 5
"""Places in the array `noise`: (a, b, a0, b0, what is kept of them in a round, lam0)."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """How a filter sees arms and contexts, and what it assumes of noise."""

    layout: Layout
    contextual: bool
    prior: NoisePrior = NOISE

    @property
    def dim(self) -> int:
        """Weights of a block."""
        return self.layout.context_dim if self.contextual else 1

    @property
    def count(self) -> int:
        """Number of blocks."""
        return 1 if self.layout.shared else self.layout.n_arms

    def kept(self, copies: int) -> tuple[int, ...]:
        """How many numbers of vectors and matrices each of so many copies of a block needs: none
        without context."""
        return (self.dim, self.dim**2) if self.contextual else (0, 0)

    def seen(self, X: FloatArray) -> FloatArray:
        """What counts of context rows."""
        return X[..., : self.dim]

    def noise(self) -> FloatArray:
        """The noise of which nothing is known."""
        ridge = self.ridge(self.prior.b0 / self.prior.a0)
        return np.array(
            [self.prior.a0, self.prior.b0, self.prior.a0, self.prior.b0, self.prior.memory, ridge]
        )

    def ridge(self, noise: float) -> float:
        """lam0 as the bank has it."""
        own = self.contextual and not self.layout.shared
        return float(self.prior.ridge(np.array(noise), np.array(own)))

    def drawn(
        self,
        noise: FloatArray,
        outlook: tuple[FloatArray, FloatArray, FloatArray],
        rng: np.random.Generator,
    ) -> FloatArray:
        """mean + k s error of every arm, s2 = b / Gamma(a, 1), k the boldness where there is a
        context, as in the bank; `outlook` is means, errors of a draw for s2 = 1, and leverages."""
        means, errors, leverages = outlook
        std = float(np.sqrt(noise[B] / rng.gamma(noise[A])))
        factor = (
            self.prior.bold(leverages)
            if self.contextual
            else self.prior.narrow(leverages, forgets=True)
        )
        return np.asarray(means + std * errors * factor)

    def beta_draw(self, n: FloatArray, s: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Expected rewards of arms (-1 to 1) from numbers and sums of rewards of -1 and 1."""
        return self.prior.beta_draw(0.5 * (n + s), 0.5 * (n - s), rng, forgets=True)


def misled(layout: Layout) -> bool:
    """Whether arms have weights of their own on an observation. There a hidden state tells good
    rounds from bad ones by who decided them (it predicts the arms that others chose well, and
    itself chooses badly), and explains the errors of a rule that is not quite linear as changes."""
    return layout.context_dim > 1 and not layout.shared


def require_fit(names: tuple[str, ...], snapshot: Snapshot, arrays: object) -> None:
    """Refuse saved arrays of another shape or kind than those of the same names, and numbers that
    are not finite."""
    for name in names:
        saved, array = snapshot[name], getattr(arrays, name)
        if (
            not isinstance(saved, np.ndarray)
            or saved.shape != array.shape
            or saved.dtype != array.dtype
        ):
            raise ValueError(f"a hypothesis with a hidden state that does not fit in '{name}'")
        if saved.dtype == np.float64 and not np.isfinite(saved).all():
            raise ValueError(f"a hypothesis with a hidden state that is not finite in '{name}'")


def checked_arrays(
    names: tuple[str, ...], snapshot: Snapshot, arrays: object, places: dict[str, tuple[int, int]]
) -> None:
    """Put saved arrays into a tuple of arrays of the same names; what does not fit is refused
    first. `places` has the least and the largest value of those that kernels use as an index."""
    require_fit(names, snapshot, arrays)
    for name, (least, most) in places.items():
        if ((snapshot[name] < least) | (snapshot[name] > most)).any():
            raise ValueError(f"a hypothesis with a hidden state that points nowhere in '{name}'")
    if not (snapshot["noise"] > 0).all():
        raise ValueError("the noise of a hypothesis with a hidden state must be positive")
    for name in names:
        getattr(arrays, name)[...] = snapshot[name]
