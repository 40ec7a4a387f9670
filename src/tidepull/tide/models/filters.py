"""State-space models (`family.Filter`): a block of conjugate weights for each arm (or one,
where arms are known by vectors) in every state, and the noise of all blocks.

The state of a filter is a tuple of arrays, among them those of its blocks, with three indices i, j
and k: rewards `n` and their sum `s`, and where there is a context mu and P = Lam^-1 (`vec`, `mat`);
and `noise`, see `A` and its neighbours. A block whose j is -1 has learnt nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tidepull.tide.models.algebra import compiled, inlined, log_binary, log_student, log_two_point
from tidepull.tide.models.boxed import BoxCache
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.inverse import (
    begin_inverse,
    draw_inverse,
    learn_inverse,
    weigh_inverse,
    weigh_prior,
)
from tidepull.tide.models.noise import NoisePrior
from tidepull.types import FloatArray, IntArray, Snapshot

NOISE = NoisePrior()
A, B, RIDGE = 0, 1, 5
"""Places in the array `noise`: (a, b, a0, b0, what is kept of them in a round, lam0)."""
NONE = -1


@inlined
def predict_block(
    known: Any, i: int, j: int, k: int, x: FloatArray, v: FloatArray
) -> tuple[float, float]:
    """Mean and leverage of a block; fills v with P x where there is a context."""
    ridge = known.noise[5]
    d = x.shape[0]
    if d == 1:
        precision = ridge + (0.0 if j == NONE else known.n[i, j, k])
        return 0.0 if j == NONE else known.s[i, j, k] / precision, 1 / precision
    if j == NONE or known.n[i, j, k] == 0.0:
        return 0.0, weigh_prior(x, ridge, d, v)
    mean, leverage = weigh_inverse(known.mat[i, j, k], known.vec[i, j, k], x, d, v)
    return mean, leverage


@inlined
def learn(
    known: Any, i: int, j: int, k: int, y: float, mean: float, leverage: float, v: FloatArray
) -> None:
    """Learn a reward, given mean, leverage and v of `predict_block`; v is overwritten."""
    d = v.shape[0]
    if d > 1:
        if known.n[i, j, k] == 0.0:
            begin_inverse(known.mat[i, j, k], known.vec[i, j, k], known.noise[5], d)
        learn_inverse(known.mat[i, j, k], known.vec[i, j, k], v, y - mean, leverage, d)
    known.n[i, j, k] += 1.0
    known.s[i, j, k] += y


@inlined
def likelihood(
    known: Any, i: int, j: int, k: int, y: float, binary: bool, by_density: bool, mean: float,
    leverage: float, d: int,
) -> float:  # fmt: skip
    """The likelihood of a reward of 0 or 1, else its logarithm, as the bank has it
    (`kernels.observe_one`)."""
    score: float
    if not binary:
        scale2 = known.noise[1] / known.noise[0] * (1 + leverage)
        score = log_student(y - mean, known.noise[0], scale2)
    elif d > 1 and by_density:
        scale2 = known.noise[1] / known.noise[0] * (1 + leverage)
        score = math.exp(log_two_point(y, mean, known.noise[0], scale2))
    elif d > 1:
        score = math.exp(log_binary(y, 0.5 * (1 + mean), leverage))
    else:
        n = 0.0 if j == NONE else known.n[i, j, k]
        s = 0.0 if j == NONE else known.s[i, j, k]
        chance = (1 + 0.5 * (n + s)) / (2 + n)  # Beta-Bernoulli: successes are (n + s) / 2
        score = chance if y > 0 else 1 - chance
    return score


@compiled
def predict(
    known: Any, places: IntArray, X: FloatArray, means: FloatArray, leverages: FloatArray
) -> None:
    """Mean and leverage of every arm, whose block is in its row of `places`."""
    v = np.empty(X.shape[1])
    for arm in range(means.shape[0]):
        i, j, k = places[arm]
        means[arm], leverages[arm] = predict_block(known, i, j, k, X[arm], v)


@compiled
def predict_shared(
    known: Any, i: int, j: int, X: FloatArray, z: FloatArray, means: FloatArray,
    errors: FloatArray, leverages: FloatArray,
) -> None:  # fmt: skip
    """Mean, error of one draw of the weights and leverage of every arm, where arms share a
    block."""
    d = X.shape[1]
    v, error = np.empty(d), np.empty(d)
    if j == NONE or known.n[i, j, 0] == 0.0:
        error[:] = z / math.sqrt(known.noise[5])
    else:
        draw_inverse(known.mat[i, j, 0], z, d, np.empty((d, d)), error)
    for arm in range(means.shape[0]):
        means[arm], leverages[arm] = predict_block(known, i, j, 0, X[arm], v)
        errors[arm] = 0.0
        for m in range(d):
            errors[arm] += X[arm, m] * error[m]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Arms and contexts of a filter, and its noise prior."""

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

    def array_sizes(self) -> tuple[int, ...]:
        """Numbers of the vectors and matrices of a block: none without context."""
        return (self.dim, self.dim**2) if self.contextual else (0, 0)

    def seen(self, X: FloatArray) -> FloatArray:
        """The columns of context rows that the filter uses."""
        return X[..., : self.dim]

    def noise(self) -> FloatArray:
        """The prior of the noise."""
        ridge = self.ridge(self.prior.b0 / self.prior.a0)
        return np.array(
            [self.prior.a0, self.prior.b0, self.prior.a0, self.prior.b0, self.prior.memory, ridge]
        )

    def ridge(self, noise: float) -> float:
        """lam0 as the bank has it."""
        own = self.contextual and not self.layout.shared
        return float(self.prior.ridge(np.array(noise), np.array(own)))

    def sample(
        self,
        noise: FloatArray,
        prediction: tuple[FloatArray, FloatArray, FloatArray],
        rng: np.random.Generator,
    ) -> FloatArray:
        """mean + k s error of every arm, s2 = b / Gamma(a, 1), k the draw scale where there is a
        context, as in the bank; `prediction` is means, errors of a draw for s2 = 1, and leverages."""
        means, errors, leverages = prediction
        std = float(np.sqrt(noise[B] / rng.gamma(noise[A])))
        factor = (
            self.prior.context_scale(leverages)
            if self.contextual
            else self.prior.plain_scale(leverages, forgets=True)
        )
        return np.asarray(means + std * errors * factor)

    def beta_draw(self, n: FloatArray, s: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Expected rewards of arms (-1 to 1) from numbers and sums of rewards of -1 and 1."""
        return self.prior.beta_draw(0.5 * (n + s), 0.5 * (n - s), rng, forgets=True)


class ConjugateFilter:
    """Base of filters of conjugate blocks; `arrays` is their state."""

    fixed: ClassVar[tuple[str, ...]] = ()

    def __init__(self, blocks: Blocks, arrays: Any) -> None:
        self._blocks, self.arrays = blocks, arrays
        self._state_names = tuple(name for name in arrays._fields if name not in self.fixed)
        self._box = BoxCache()

    def refresh_ridge(self) -> None:
        """Set lam0 from the present noise; with a context only `reset_copy` can do it."""
        if not self._blocks.contextual:
            noise = self.arrays.noise
            noise[RIDGE] = self._blocks.ridge(float(noise[B] / noise[A]))

    def _adopt_ridge(self, of: ConjugateFilter, units: float | None) -> None:
        """Copy lam0 of another filter, in new units of which `units` make an old one."""
        noise = of.arrays.noise
        self.arrays.noise[RIDGE] = (
            noise[RIDGE] if units is None else self._blocks.ridge(units**2 * noise[B] / noise[A])
        )

    def _seen(self, window: Window) -> tuple[FloatArray, IntArray]:
        """Contexts and blocks of the rounds of a window."""
        shared = self._blocks.layout.shared
        blocks = np.zeros_like(window.arm) if shared else window.arm
        return np.ascontiguousarray(self._blocks.seen(window.x)), blocks

    def _draw(
        self, places: IntArray, X: FloatArray, binary: bool, rng: np.random.Generator
    ) -> FloatArray:
        """One draw of every arm's expected reward from the blocks in `places`, a row an arm."""
        known, blocks = self.arrays, self._blocks
        if binary and blocks.dim == 1:
            i, j, k = places.T
            n, s = (np.where(j != NONE, array[i, j, k], 0.0) for array in (known.n, known.s))
            return blocks.beta_draw(n, s, rng)
        X = np.ascontiguousarray(blocks.seen(X))
        means, errors, leverages = np.empty((3, len(X)))
        if blocks.layout.shared:
            z: FloatArray = rng.standard_normal(X.shape[1:])
            i, j, _ = (int(place) for place in places[0])
            predict_shared(known, i, j, X, z, means, errors, leverages)
        else:
            predict(known, places, X, means, leverages)
            errors = np.sqrt(leverages) * rng.standard_normal(len(X))
        return blocks.sample(known.noise, (means, errors, leverages), rng)

    def snapshot(self) -> Snapshot:
        """The state of the model."""
        return {name: getattr(self.arrays, name).copy() for name in self._state_names}

    def _restore(self, snapshot: Snapshot, places: dict[str, tuple[int, int]]) -> None:
        """Continue from a snapshot; `places` has the least and the largest value of arrays that
        kernels use as an index."""
        require_fit(self._state_names, snapshot, self.arrays)
        for name, (least, most) in places.items():
            if ((snapshot[name] < least) | (snapshot[name] > most)).any():
                raise ValueError(f"a model with a hidden state that points nowhere in '{name}'")
        if not (snapshot["noise"] > 0).all():
            raise ValueError("the noise of a model with a hidden state must be positive")
        for name in self._state_names:
            getattr(self.arrays, name)[...] = snapshot[name]


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
            raise ValueError(f"a model with a hidden state that does not fit in '{name}'")
        if saved.dtype == np.float64 and not np.isfinite(saved).all():
            raise ValueError(f"a model with a hidden state that is not finite in '{name}'")
