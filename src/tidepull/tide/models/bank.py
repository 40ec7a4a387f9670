"""The bank: slots for linear models of any family, and their shared prior.

A slot is as large as the largest model it may hold, so a change of model moves no memory.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidepull.errors import SnapshotError
from tidepull.tide.jobs import Job, finish, ranges
from tidepull.tide.models import kernels, pages
from tidepull.tide.models.boxed import BoxCache
from tidepull.tide.models.calibration import BINS, KEPT
from tidepull.tide.models.covariates import RoundState, all_covariates
from tidepull.tide.models.draws import sample_many
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.kernels import Bank
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.small import LARGEST
from tidepull.tide.models.spec import ADDED_SINE, NO_CLOCK, NO_COVARIATE, SINE, SQUARE, Spec
from tidepull.types import BoolArray, FloatArray, Snapshot

_STEPS_OF_A_ROUND = 30
_STEPS_OF_A_NUMBER = 2
"""Steps of a number that is filled for the first time: a page of memory takes as long as a thousand
products."""
_FILLED_AT_ONCE = 30_000
_LEAST_LEVERAGE = 1e-12
_LEARNT = ("ridge", "a", "b", "stamp", "vec", "mat")
"""Learnt arrays; all others follow from the specs."""
_LONG = {"stamp": "block_at", "vec": "vec_at", "mat": "mat_at"}
"""Arrays that are stored slot after slot, and the index of each slot's beginning."""


class ModelBank:
    """Conjugate models; each of `slots` lists the specs it must have room for."""

    def __init__(
        self,
        layout: Layout,
        slots: Sequence[Sequence[Spec]],
        prior: NoisePrior,
        *,
        calibrated: bool = False,
    ) -> None:
        self.layout = layout
        self._state_names = (*_LEARNT, "bins", "odds") if calibrated else _LEARNT
        self.prior, self._draw_scales = prior, prior.draw_scales
        self.size = len(slots)
        blocks = [max(layout.blocks(s) for s in room) for room in slots]
        vectors = [max(layout.blocks(s) * layout.dim(s) for s in room) for room in slots]
        matrices = [max(layout.blocks(s) * layout.dim(s) ** 2 for s in room) for room in slots]
        self._room = [(b, v, m) for b, v, m in zip(blocks, vectors, matrices, strict=True)]
        n = self.size
        recalibrate = n if calibrated else 0
        self._need = [(0, 0, 0)] * n  # how much of its room a slot's model uses
        self._families = [""] * n
        self._box, self._rng_box = BoxCache(), BoxCache()
        self.arrays = Bank(
            active=np.zeros(n, bool),
            shapes=np.zeros((n, 2), np.int64),
            periods=np.ones((n, 2)),
            offsets=np.zeros((n, 2)),
            regime_by=np.full(n, NO_COVARIATE),
            n_regimes=np.ones(n, np.int64),
            phases=np.full(n, 2),
            interaction=np.full(n, NO_COVARIATE),
            appended=np.full(n, NO_COVARIATE),
            discount=np.ones(n),
            contextual=np.zeros(n, bool),
            dim=np.ones(n, np.int64),
            inverse=np.zeros(n, bool),
            block_at=_starts(blocks),
            vec_at=_starts(vectors),
            mat_at=_starts(matrices),
            ridge=np.ones(n),
            a=np.full(n, prior.a0),
            b=np.full(n, prior.b0),
            stamp=pages.zeros(sum(blocks), np.int64),
            vec=pages.zeros(sum(vectors)),
            mat=pages.zeros(sum(matrices)),
            bins=np.zeros((recalibrate, BINS, KEPT)),
            odds=np.zeros((recalibrate, 1)),
            settings=np.array(
                [
                    prior.a0,
                    prior.b0,
                    prior.memory,
                    1 if layout.shared else layout.n_arms,
                    prior.by_density,
                    layout.context_dim,
                    layout.wide_dim,
                ]
            ),
        )

    def assign(self, m: int, spec: Spec, noise: float | None = None, *, reset: bool = True) -> None:
        """Put an untrained model into slot m, with a noise if one is known; without `reset` it is
        still to be reset."""
        self._seat(m, spec)
        self.arrays.active[m] = True
        noise = self.prior.b0 / self.prior.a0 if noise is None else noise
        self.arrays.ridge[m] = self._ridges(np.full(self.size, noise))[m]
        if reset:
            self.reset(m)

    def _seat(self, m: int, spec: Spec) -> None:
        layout, dim = self.layout, self.layout.dim(spec)
        need = (layout.blocks(spec), layout.blocks(spec) * dim, layout.blocks(spec) * dim**2)
        if any(n > room for n, room in zip(need, self._room[m], strict=True)):
            raise ValueError(f"slot {m} has no room for {spec}")
        bank = self.arrays
        self._families[m], self._need[m] = spec.family, need
        bank.shapes[m], bank.periods[m], bank.offsets[m] = spec.shapes, spec.periods, spec.offsets
        bank.regime_by[m], bank.n_regimes[m] = spec.regime_by, spec.n_lagged_regimes(layout.n_arms)
        bank.interaction[m], bank.appended[m] = spec.interaction, spec.appended
        bank.phases[m] = spec.phases
        bank.discount[m], bank.contextual[m] = spec.discount, spec.contextual
        bank.dim[m] = dim
        bank.inverse[m] = dim > LARGEST and spec.discount == 1

    def reset(self, m: int) -> None:
        """Reset slot m; its model and its ridge stay."""
        finish(self.resetting(m))

    def resetting(self, m: int) -> Job[None]:
        """Reset slot m in slices."""
        bank, (blocks, vectors, matrices), d = self.arrays, self._need[m], int(self.arrays.dim[m])
        bank.a[m], bank.b[m] = self.prior.a0, self.prior.b0
        bank.bins[m : m + 1], bank.odds[m : m + 1] = 0.0, 0.0
        bank.stamp[bank.block_at[m] : bank.block_at[m] + blocks] = 0
        bank.vec[bank.vec_at[m] : bank.vec_at[m] + vectors] = 0.0
        mat = bank.mat[bank.mat_at[m] : bank.mat_at[m] + matrices].reshape(-1, d * d)
        size = max(1, _FILLED_AT_ONCE // (d * d))
        for first in range(0, blocks, size):
            part = mat[first : first + size]
            part[:] = 0.0
            if bank.inverse[m]:
                part[:, :: d + 1] = 1 / bank.ridge[m]
            yield _STEPS_OF_A_NUMBER * 2 * part.size

    def spec(self, m: int) -> Spec:
        """The model in slot m."""
        bank = self.arrays
        return Spec(
            family=self._families[m],
            shapes=(int(bank.shapes[m, 0]), int(bank.shapes[m, 1])),
            periods=(float(bank.periods[m, 0]), float(bank.periods[m, 1])),
            offsets=(float(bank.offsets[m, 0]), float(bank.offsets[m, 1])),
            regime_by=int(bank.regime_by[m]),
            interaction=int(bank.interaction[m]),
            appended=int(bank.appended[m]),
            discount=float(bank.discount[m]),
            contextual=bool(bank.contextual[m]),
            phases=int(bank.phases[m]),
        )

    def adapt_ridge(self, m: int, units: float) -> None:
        """Set lam0 from the present noise of slot m, in new units of which `units` make an old one;
        `reset` and `replay` must follow."""
        bank = self.arrays
        bank.ridge[m] = self._ridges(units**2 * bank.b / bank.a)[m]

    def refresh_ridges(self) -> None:
        """Set lam0 from the present noise in all slots that are kept as moments, which need no
        replay."""
        bank = self.arrays
        bank.ridge[:] = np.where(bank.inverse, bank.ridge, self._ridges(bank.b / bank.a))

    def noise(self, m: int) -> float:
        """s2 = b / a of slot m."""
        return float(self.arrays.b[m] / self.arrays.a[m])

    def assumed_noise(self, m: int) -> float:
        """s2 = lam0 tau^2, from which the ridge of slot m was made."""
        return float((self.arrays.ridge * self.prior.variance(self._own_context()))[m])

    def _ridges(self, noise: FloatArray) -> FloatArray:
        return self.prior.ridge(noise, self._own_context())

    def _own_context(self) -> BoolArray:
        return self.arrays.contextual & (not self.layout.shared)

    def observe(
        self, state: RoundState, arm: int, x: FloatArray, y: float, binary: bool
    ) -> FloatArray:
        """Log likelihoods of a standardised reward under all slots, which then learn it."""
        scores = np.empty(self.size)
        self.score(state.t, state.row(arm), arm, x, y, binary, scores)
        return scores

    def score(
        self,
        t: int,
        covariates: FloatArray,
        arm: int,
        x: FloatArray,
        y: float,
        binary: bool,
        scores: FloatArray,
    ) -> None:
        """Score and learn a reward, given a row of covariates; `scores` gets the log
        likelihoods."""
        kernels.observe_boxed(self._box(self.arrays), t, covariates, arm, x, y, binary, scores)

    def replay(self, m: int, window: Window, binary: bool, start: int = 0) -> Job[FloatArray]:
        """Replay a window of past rounds in slot m from row `start` on; log likelihoods by
        round."""
        scores = np.zeros(len(window.t))
        steps = _STEPS_OF_A_ROUND + int(self.arrays.dim[m]) ** 2 // (
            4 if self.arrays.inverse[m] else 1
        )
        for first, stop, spent in ranges(len(window.t) - start, steps):
            kernels.replay(self.arrays, m, window, start + first, start + stop, binary, scores)
            yield spent
        return scores[start:]

    def copy(self) -> ModelBank:
        """Copy, for a job that works while this bank decides."""
        other = self._copy_seats()
        other.arrays = Bank._make(array.copy() for array in self.arrays)
        return other

    def reset_copy(self, units: float | None) -> ModelBank:
        """Copy of the models, to be `reset` one by one; lam0 from the present noise of each, in new
        units of which `units` make an old one (None: unchanged)."""
        other, bank = self._copy_seats(), self.arrays
        large = {name: getattr(bank, name) for name in _LONG}
        large = {name: pages.zeros(array.size, array.dtype) for name, array in large.items()}
        small = {name: array.copy() for name, array in bank._asdict().items() if name not in large}
        other.arrays = Bank(**small, **large)
        if units is not None:
            other.arrays.ridge[:] = self._ridges(units**2 * bank.b / bank.a)
        return other

    def _copy_seats(self) -> ModelBank:
        made = copy.copy(self)
        made._families, made._need = list(self._families), list(self._need)
        made._box = BoxCache()
        return made

    def replace_with(self, other: ModelBank) -> None:
        """Take the state of another bank."""
        self._families, self._need, self.arrays = other._families, other._need, other.arrays

    def predict(self, m: int, state: RoundState, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean phi.mu and leverage phi' Lam^-1 phi of every arm (not for shared layouts)."""
        means, leverages = np.empty(self.layout.n_arms), np.empty(self.layout.n_arms)
        kernels.predict(
            self.arrays, m, state.t, state.covariates, state.per_arm, X, means, leverages
        )
        return means, leverages

    def draw(
        self, m: int, state: RoundState, X: FloatArray, binary: bool, rng: np.random.Generator
    ) -> FloatArray:
        """One posterior draw of every arm's expected reward under slot m.

        s2 = b / Gamma(a, 1) and theta ~ N(mu, k^2 s2 Lam^-1), k the draw scale where there is a
        context (of each arm its own, if some may be bolder); Beta-Bernoulli for one feature and
        binary rewards.
        """
        if not self.layout.shared:
            draws: FloatArray = self.draws({m: 1}, state, X, binary, rng)[0]
            return draws
        if self._sees_all(m):
            return self._wide_draws(m, X, 1, rng)[0]
        bank = self.arrays
        std = float(np.sqrt(bank.b[m] / rng.gamma(bank.a[m])))
        noise = rng.standard_normal(int(bank.dim[m]))
        if bank.contextual[m] and self.prior.max_scale > self.prior.min_scale:
            means, errors, leverages = (np.empty(len(X)) for _ in range(3))
            kernels.predict_shared(
                bank, m, state.t, state.covariates, X, noise, means, errors, leverages
            )
            return np.asarray(means + std * self.prior.context_scale(leverages) * errors)
        std *= self.prior.min_scale if bank.contextual[m] else 1.0
        drawn = np.empty(len(X))
        kernels.shared_draw(bank, m, state.t, state.covariates, X, std * noise, drawn)
        return drawn

    def _sees_all(self, m: int) -> bool:
        """Whether contexts have two widths, and slot m uses the wide one."""
        return bool(self.layout.wide_dim) and self.spec(m).steady

    def _predict_wide(self, m: int, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means of all arms under a model that sees all of a wide context, and F Lam^-1 F' for
        their vectors F."""
        bank, d = self.arrays, int(self.arrays.dim[m])
        P = bank.mat[bank.mat_at[m] : bank.mat_at[m] + d * d].reshape(d, d)
        F = X[:, self.layout.context_dim :]
        return F @ bank.vec[bank.vec_at[m] : bank.vec_at[m] + d], F @ P @ F.T

    def _wide_draws(
        self, m: int, X: FloatArray, count: int, rng: np.random.Generator
    ) -> list[FloatArray]:
        """`count` draws of a model that uses wide contexts: errors of arms ~ N(0, F Lam^-1 F'), so
        that no factor of Lam is needed."""
        means, covariance = self._predict_wide(m, X)
        leverages = np.maximum(covariance.diagonal(), _LEAST_LEVERAGE)
        values, vectors = np.linalg.eigh(
            covariance
        )  # vectors may be alike, so that some values are 0
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        factors, made = self.prior.context_scale(leverages), []
        for _ in range(count):
            std = float(np.sqrt(self.arrays.b[m] / rng.gamma(self.arrays.a[m])))
            made.append(np.asarray(means + std * factors * (root @ rng.standard_normal(len(root)))))
        return made

    def draws(
        self,
        n_draws: Mapping[int, int],
        state: RoundState,
        X: FloatArray,
        binary: bool,
        rng: np.random.Generator,
        *,
        about: Mapping[int, int] | None = None,
    ) -> FloatArray:
        """Independent draws as in `draw`, `n_draws[m]` rows for each slot m; with `about` centred
        on the average of these slots' means (not for shared layouts)."""
        if self.layout.shared:
            made: list[FloatArray] = []
            for m, count in n_draws.items():
                if self._sees_all(m):
                    made += self._wide_draws(m, X, count, rng)
                else:
                    made += [self.draw(m, state, X, binary, rng) for _ in range(count)]
            return np.array(made)
        box, boxed_rng = self._box(self.arrays), self._rng_box(rng)
        return sample_many(
            box, self._draw_scales, n_draws, state, X, binary, boxed_rng, about=about
        )

    def snapshot(self) -> Snapshot:
        """Specs of the slots, and what each model has learnt."""
        seats = [_plain(self.spec(m)) if self._families[m] else None for m in range(self.size)]
        active = self.arrays.active
        learnt = {
            name: getattr(self.arrays, name).copy()
            for name in self._state_names
            if name not in _LONG
        }
        for name in _LONG:
            array = getattr(self.arrays, name)
            learnt[name] = np.concatenate(
                [array[:0], *(array[part] for part in self._parts(name, active))]
            )
        return {"seats": seats, "active": active.copy(), **learnt}

    def _parts(self, name: str, active: BoolArray) -> list[slice]:
        """Parts of a long array that active slots use; only these are saved."""
        at, i = getattr(self.arrays, _LONG[name]), list(_LONG).index(name)
        return [slice(int(at[m]), int(at[m]) + self._need[m][i]) for m in np.flatnonzero(active)]

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a bank of the same layout; a snapshot that does not fit is
        refused first."""
        seats = snapshot["seats"]
        if len(seats) != self.size:
            raise SnapshotError(
                f"the snapshot has {len(seats)} models, this bank has {self.size} slots"
            )
        specs = [None if seat is None else _checked(seat) for seat in seats]
        if any(
            spec is None and active for spec, active in zip(specs, snapshot["active"], strict=True)
        ):
            raise SnapshotError("the snapshot has an active slot without a model")
        for name in ("active", *self._state_names):
            saved, array = snapshot[name], getattr(self.arrays, name)
            fits = (
                isinstance(saved, np.ndarray)
                and saved.dtype == array.dtype
                and saved.ndim == array.ndim
            )
            if not fits or (saved.shape != array.shape and name not in _LONG):
                raise SnapshotError(f"the snapshot's bank of models does not fit in '{name}'")
        if not ((snapshot["ridge"] > 0) & (snapshot["a"] > 0) & (snapshot["b"] > 0)).all():
            raise SnapshotError("the snapshot's ridge and noise must be positive")
        for m, spec in enumerate(specs):
            if spec is not None:
                self._seat(m, spec)
        for name in ("active", *self._state_names):
            if name in _LONG:
                self._fill(name, snapshot[name], snapshot["active"])
            else:
                getattr(self.arrays, name)[...] = snapshot[name]

    def _fill(self, name: str, saved: FloatArray, active: BoolArray) -> None:
        array, parts, done = getattr(self.arrays, name), self._parts(name, active), 0
        if sum(part.stop - part.start for part in parts) != len(saved):
            raise SnapshotError(f"the snapshot's bank of models does not fit in '{name}'")
        for part in parts:
            size = part.stop - part.start
            array[part] = saved[done : done + size]
            done += size


def _plain(spec: Spec) -> list[Any]:
    return [list(part) if isinstance(part, tuple) else part for part in spec]


def _checked(seat: list[Any]) -> Spec:
    """A spec from JSON; unknown codes are errors."""
    spec = Spec._make(tuple(part) if isinstance(part, list) else part for part in seat)
    known = set(range(NO_COVARIATE, len(all_covariates())))
    if (
        not isinstance(spec.family, str)
        or not {spec.regime_by, spec.interaction, spec.appended} <= known
    ):
        raise SnapshotError(f"the snapshot has a model of which nothing is known: {seat}")
    clocks = len(spec.shapes) == len(spec.periods) == len(spec.offsets) == 2
    known_clocks = set(spec.shapes) <= {NO_CLOCK, SINE, SQUARE, ADDED_SINE}
    if not (clocks and known_clocks and spec.phases >= 2):
        raise SnapshotError(f"the snapshot has a model with unknown clocks: {seat}")
    if not (min(spec.periods) > 0 and 0 < spec.discount <= 1 and math.isfinite(sum(spec.offsets))):
        raise SnapshotError(
            f"the snapshot has a model with an impossible period or discount: {seat}"
        )
    return spec


def _starts(sizes: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
