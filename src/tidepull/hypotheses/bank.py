"""The bank: slots for hypotheses of any family, their shared prior, and what may be asked of them.

A slot is as large as the largest hypothesis it may hold, so births and deaths move no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidepull.errors import SnapshotError
from tidepull.hypotheses import kernels
from tidepull.hypotheses.kernels import Bank, Window
from tidepull.hypotheses.spec import TURNS, Moment, Spec
from tidepull.types import BoolArray, FloatArray, Snapshot

_LARGEST_REFACTORED = 3
"""Blocks of up to so many features are factored afresh in every round; it is cheaper than rotating."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What all hypotheses have in common. `shared`: arms are told apart by their vectors alone."""

    n_arms: int
    context_dim: int
    shared: bool

    def dim(self, spec: Spec) -> int:
        """Length of phi."""
        return spec.width * (self.context_dim if spec.contextual else 1) + (spec.memory == TURNS)

    def blocks(self, spec: Spec) -> int:
        """Number of weight vectors."""
        return spec.cells(self.n_arms) * (1 if self.shared else self.n_arms)


@dataclass(frozen=True, slots=True)
class NoisePrior:
    """Inverse gamma prior (a0, b0) of the noise, how much of what was learnt of it is kept in each round,
    and the prior standard deviation of an arm's expected reward, all in units of standardised reward.

    It is smaller where every arm has weights of its own on the context: each of arms x coordinates weights
    asks to be tried out, and with a wide prior most rounds would go into that. For the same reason draws of
    weights on the context have `boldness` times the posterior's standard deviation: contexts that vary
    try weights out by themselves."""

    a0: float = 1.0
    b0: float = 0.1
    memory: float = 0.995
    reward_std: float = 1.0
    own_context_std: float = 0.7
    boldness: float = 0.5
    least_noise: float = 0.003
    most_noise: float = 1.0

    def ridge(self, noise: FloatArray, own_context: BoolArray) -> FloatArray:
        """lam0 = s2 / tau^2, so that an arm never seen has the prior variance tau^2 whatever the noise."""
        return np.asarray(np.clip(noise, self.least_noise, self.most_noise) / self.variance(own_context))

    def variance(self, own_context: BoolArray) -> FloatArray:
        """tau^2."""
        return np.where(own_context, self.own_context_std, self.reward_std) ** 2


class HypothesisBank:
    """Conjugate models of many hypotheses; each of `slots` lists the specs it must have room for."""

    def __init__(self, layout: Layout, slots: Sequence[Sequence[Spec]], prior: NoisePrior) -> None:
        self.layout = layout
        self.prior = prior
        self.size = len(slots)
        blocks = [max(layout.blocks(s) for s in room) for room in slots]
        vectors = [max(layout.blocks(s) * layout.dim(s) for s in room) for room in slots]
        matrices = [max(layout.blocks(s) * layout.dim(s) ** 2 for s in room) for room in slots]
        self._room = [(b, v, m) for b, v, m in zip(blocks, vectors, matrices, strict=True)]
        n = self.size
        self.arrays = Bank(
            active=np.zeros(n, bool),
            shapes=np.zeros((n, 2), np.int64),
            periods=np.ones((n, 2)),
            offsets=np.zeros((n, 2)),
            memory=np.zeros(n, np.int64),
            discount=np.ones(n),
            contextual=np.zeros(n, bool),
            dim=np.ones(n, np.int64),
            root=np.zeros(n, bool),
            block_at=_starts(blocks),
            vec_at=_starts(vectors),
            mat_at=_starts(matrices),
            ridge=np.ones(n),
            a=np.full(n, prior.a0),
            b=np.full(n, prior.b0),
            stamp=np.zeros(sum(blocks), np.int64),
            vec=np.zeros(sum(vectors)),
            mat=np.zeros(sum(matrices)),
            settings=np.array(
                [prior.a0, prior.b0, prior.memory, layout.n_arms, 1 if layout.shared else layout.n_arms]
            ),
        )

    def assign(self, m: int, spec: Spec, noise: float | None = None) -> None:
        """Put a hypothesis that knows nothing yet, or just the noise, into slot m."""
        layout, dim = self.layout, self.layout.dim(spec)
        need = (layout.blocks(spec), layout.blocks(spec) * dim, layout.blocks(spec) * dim**2)
        if any(n > room for n, room in zip(need, self._room[m], strict=True)):
            raise ValueError(f"slot {m} has no room for {spec}")
        bank = self.arrays
        bank.active[m] = True
        bank.shapes[m], bank.periods[m], bank.offsets[m] = spec.shapes, spec.periods, spec.offsets
        bank.memory[m], bank.discount[m], bank.contextual[m] = spec.memory, spec.discount, spec.contextual
        bank.dim[m] = dim
        bank.root[m] = dim > _LARGEST_REFACTORED and spec.discount == 1
        noise = self.prior.b0 / self.prior.a0 if noise is None else noise
        bank.ridge[m] = self._ridges(np.full(self.size, noise))[m]
        self.reset(m)

    def reset(self, m: int) -> None:
        """Slot m forgets all it learnt; its hypothesis and its ridge stay."""
        bank, (blocks, vectors, matrices) = self.arrays, self._room[m]
        bank.a[m], bank.b[m] = self.prior.a0, self.prior.b0
        bank.stamp[bank.block_at[m] : bank.block_at[m] + blocks] = 0
        bank.vec[bank.vec_at[m] : bank.vec_at[m] + vectors] = 0.0
        mat = bank.mat[bank.mat_at[m] : bank.mat_at[m] + matrices]
        mat[:] = 0.0
        if bank.root[m]:
            d = int(bank.dim[m])
            whole = mat[: matrices // (d * d) * d * d].reshape(-1, d * d)
            whole[:, :: d + 1] = np.sqrt(bank.ridge[m])

    def spec(self, m: int) -> Spec:
        """The hypothesis in slot m."""
        bank = self.arrays
        return Spec(
            shapes=(int(bank.shapes[m, 0]), int(bank.shapes[m, 1])),
            periods=(float(bank.periods[m, 0]), float(bank.periods[m, 1])),
            offsets=(float(bank.offsets[m, 0]), float(bank.offsets[m, 1])),
            memory=int(bank.memory[m]),
            discount=float(bank.discount[m]),
            contextual=bool(bank.contextual[m]),
        )

    def adapt_ridge(self, m: int, units: float) -> None:
        """lam0 from the noise as slot m sees it now, in new units of which `units` make an old one; to be
        followed by `reset` and `replay`."""
        bank = self.arrays
        bank.ridge[m] = self._ridges(units**2 * bank.b / bank.a)[m]

    def refresh_ridges(self) -> None:
        """The same for all slots that are kept as moments, which need not live through anything again."""
        bank = self.arrays
        bank.ridge[:] = np.where(bank.root, bank.ridge, self._ridges(bank.b / bank.a))

    def assumed_noise(self, m: int) -> float:
        """s2 = lam0 tau^2, from which the ridge of slot m was made."""
        return float((self.arrays.ridge * self.prior.variance(self._own_context()))[m])

    def _ridges(self, noise: FloatArray) -> FloatArray:
        return self.prior.ridge(noise, self._own_context())

    def _own_context(self) -> BoolArray:
        return self.arrays.contextual & (not self.layout.shared)

    def observe(self, moment: Moment, arm: int, x: FloatArray, y: float, binary: bool) -> FloatArray:
        """Log likelihood of a standardised reward under every slot, each of which then learns it."""
        scores = np.empty(self.size)
        kernels.observe(self.arrays, moment.t, recent(moment, arm), arm, x, y, binary, scores)
        return scores

    def replay(self, m: int, window: Window, binary: bool) -> FloatArray:
        """Slot m lives through a window of past rounds; its log likelihoods round by round."""
        scores = np.empty(len(window.t))
        kernels.replay(self.arrays, m, window, binary, scores)
        return scores

    def outlook(self, m: int, moment: Moment, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean phi.mu and leverage phi' Lam^-1 phi of every arm (not for shared layouts)."""
        means, leverages = np.empty(self.layout.n_arms), np.empty(self.layout.n_arms)
        beliefs = np.array(moment.beliefs) if moment.beliefs else np.zeros(self.layout.n_arms)
        kernels.outlook(self.arrays, m, moment.t, recent(moment), beliefs, X, means, leverages)
        return means, leverages

    def draw(
        self, m: int, moment: Moment, X: FloatArray, binary: bool, rng: np.random.Generator
    ) -> FloatArray:
        """One posterior draw of every arm's expected reward under slot m.

        s2 = b / Gamma(a, 1) and theta ~ N(mu, k^2 s2 Lam^-1), k the boldness where there is a context;
        Beta-Bernoulli for one feature and binary rewards.
        """
        bank, n_arms = self.arrays, self.layout.n_arms
        if binary and bank.dim[m] == 1 and not self.layout.shared:
            won, lost = np.empty(n_arms), np.empty(n_arms)
            kernels.counts(bank, m, moment.t, recent(moment), won, lost)
            return 2 * rng.beta(1 + np.maximum(won, 0), 1 + np.maximum(lost, 0)) - 1
        std = float(np.sqrt(bank.b[m] / rng.gamma(bank.a[m])))
        std *= self.prior.boldness if bank.contextual[m] else 1.0
        if self.layout.shared:
            draws = np.empty(len(X))
            noise = std * rng.standard_normal(int(bank.dim[m]))
            kernels.shared_draw(bank, m, moment.t, recent(moment), X, noise, draws)
            return draws
        means, leverages = self.outlook(m, moment, X)
        return means + std * np.sqrt(leverages) * rng.standard_normal(n_arms)

    def snapshot(self) -> Snapshot:
        """Every array that changes."""
        return {name: array.copy() for name, array in self.arrays._asdict().items() if name != "settings"}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a bank of the same layout."""
        live = self.arrays._asdict()
        for name, array in live.items():
            saved = snapshot.get(name)
            if name != "settings" and (not isinstance(saved, np.ndarray) or saved.shape != array.shape):
                raise SnapshotError(f"the snapshot's bank of hypotheses does not fit in '{name}'")
        for name, array in live.items():
            if name != "settings":
                array[...] = snapshot[name]


def recent(moment: Moment, arm: int = 0) -> FloatArray:
    """The recent events as the kernels read them."""
    belief = moment.beliefs[arm] if moment.beliefs else 0.0
    return np.array([moment.last_arm, moment.last_reward, moment.last_success, belief])


def _starts(sizes: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
