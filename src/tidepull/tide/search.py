"""Structure search: candidates with new periods replace models of low weight.

A candidate is replayed through the window of past rounds in a spare slot. Its weight is then what
Bayes' rule would have given it, had it been there since the window began with the prior pi:

    log w = log pi + (its log likelihood of the window) - (the gain in log evidence over the window)

Evidence is that of all present models, as if each had been there from the start: a candidate that
is accepted adds to it. (The mixture's own record of predictions would not do. It contains the
losses of models that were removed.) The prior pi is the family's prior divided by the number of
candidates that were compared, which corrects for multiple comparisons. A candidate replaces the
lightest model of its family, if that is lighter.

Each family proposes its own candidates (`tide/models/*.py`). The search runs in slices; a candidate
also replays the rewards that arrive between slices before it is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidepull.state import Stateful
from tidepull.tide.jobs import Job
from tidepull.tide.mixture import Mixture
from tidepull.tide.models import period_search, phase
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Candidate, Layout, Pool, Rounds, Window
from tidepull.tide.models.spec import ADDED_SINE, SINE, SQUARE, Spec
from tidepull.tide.scale import Units
from tidepull.tide.window import RecentRounds, one_by_one
from tidepull.types import BoolArray, FloatArray

_SHORTEST_WINDOW = 24
_SAME = 0.005
_SINES = 3


def pools(layout: Layout, families: Sequence[str]) -> list[Pool]:
    """Pools of these families that suit the problem. Context-free models are kept with contextual
    ones, because they learn faster where contexts do not matter. Arms known by vectors alone need
    the vectors."""
    views = [True] if layout.shared else [False, True] if layout.context_dim > 1 else [False]
    kept = [FAMILIES[name] for name in FAMILIES if name in families]
    return [
        pool for contextual in views for family in kept for pool in family.pools(layout, contextual)
    ]


class Slots:
    """Slots of each pool in the bank, and the prior of each pool. `alone` names the families of
    single models after the bank's slots."""

    def __init__(self, bank: ModelBank, pools: Sequence[Pool], alone: Sequence[str]) -> None:
        self.pools = pools
        self.families = tuple(dict.fromkeys([*(pool.family for pool in pools), *alone]))
        sizes = [len(pool.initial) + pool.spare for pool in pools]
        stops = np.cumsum(sizes)
        self.of = [
            range(int(stop) - size, int(stop)) for size, stop in zip(sizes, stops, strict=True)
        ]
        family_of = [self.families.index(pool.family) for pool in pools]
        self.family_of = np.repeat(family_of, sizes)
        self.family_of = np.append(
            self.family_of, [self.families.index(name) for name in alone]
        ).astype(int)
        self._alone = alone
        for pool, slots in zip(pools, self.of, strict=True):
            for m, spec in zip(slots, pool.initial, strict=False):
                bank.assign(m, spec)
        self._unit = sum(self._share(pool) for pool in pools if pool.initial)
        self._unit += sum(self._share_alone(name) for name in alone)

    def mass(self, pool: Pool) -> float:
        """The prior of a pool."""
        return self._share(pool) / self._unit

    def initial_prior(self) -> FloatArray:
        """The prior of every slot that is filled at the start."""
        prior = np.zeros(len(self.family_of))
        for i, name in enumerate(self._alone):
            prior[len(prior) - len(self._alone) + i] = self._share_alone(name)
        for pool, slots in zip(self.pools, self.of, strict=True):
            if pool.initial:
                prior[slots.start : slots.start + len(pool.initial)] = self._share(pool) / len(
                    pool.initial
                )
        return prior / self._unit

    def _share_alone(self, name: str) -> float:
        return FAMILIES[name].prior / self._alone.count(name)

    def _share(self, pool: Pool) -> float:
        return FAMILIES[pool.family].prior / sum(
            other.family == pool.family for other in self.pools
        )


@dataclass(frozen=True)
class _PoolSearch:
    """One search of one pool: what a family may ask (`models.family.Search`)."""

    of: StructureSearch
    pool: int
    window: Window
    rounds: Rounds

    @property
    def layout(self) -> Layout:
        return self.of.bank.layout

    @property
    def contextual(self) -> bool:
        return self.of.slots.pools[self.pool].contextual

    def heaviest(self) -> list[Spec]:
        bank, slots = self.of.bank, self.of.slots.of[self.pool]
        log_weights = self.of.mixture.log_weights
        order = slots.start + np.argsort(-log_weights[slots.start : slots.stop], kind="stable")
        return [bank.spec(int(m)) for m in order[:2] if bank.arrays.active[m]]

    def sines(self) -> Job[list[float]]:
        if self.of.sines is None:  # computed at the first call of a search
            self.of.sines = yield from period_search.best_sines(
                self.rounds, self.layout.n_arms, _SINES
            )
        return self.of.sines

    def spectral_peaks(self, count: int) -> Job[list[tuple[float, float]]]:
        if not self.of.peaks:  # computed at the first call of a search
            self.of.peaks = yield from period_search.spectral_peaks(
                self.window, self.rounds, self.layout, period_search.MOST_PEAKS
            )
        return self.of.peaks[:count]

    def heaviest_of(self, families: Sequence[str]) -> Spec | None:
        found = [
            m
            for pool, slots in zip(self.of.slots.pools, self.of.slots.of, strict=True)
            for m in slots
            if pool.family in families and not pool.contextual and self.of.bank.arrays.active[m]
        ]
        log_weights = self.of.mixture.log_weights
        return self.of.bank.spec(max(found, key=lambda m: float(log_weights[m]))) if found else None

    def ridge(self, spec: Spec) -> float:
        return float(self.of.bank.arrays.ridge[self.of.settle(self.pool, spec)])


class StructureSearch(Stateful):
    """Search of every pool that has spare slots; accepts the candidates of enough weight."""

    state = ("count", "evidence_gain")

    def __init__(
        self, bank: ModelBank, slots: Slots, mixture: Mixture, recent: RecentRounds
    ) -> None:
        self.bank, self.slots, self.mixture = bank, slots, mixture
        self.peaks: list[tuple[float, float]] = []  # spectral peaks of the running search
        self.sines: list[float] | None = None  # strongest sines of the running search
        self._recent = recent
        self._noise = 1.0
        # Of the search under way: the gain in log evidence over the window, log evidence and what
        # rewards had added to it when the search began, and what candidates have added since.
        self._gain = self._evidence = self._reward_gain = self._added = 0.0
        self.count = 0
        self.evidence_gain = 0.0  # log evidence that candidates have added so far

    def search(self, units: Units) -> Job[None]:
        """Look for better periods in the rounds of the window."""
        recent = self._recent
        if len(recent) < _SHORTEST_WINDOW:
            return
        self._gain = self.mixture.evidence - recent.evidence_before(recent.start)
        self._evidence, self._reward_gain, self._added = (
            self.mixture.evidence,
            self.mixture.reward_gain,
            0.0,
        )
        self.peaks, self.sines = [], None
        begins = recent.start
        window = recent.window(units)
        if self.bank.layout.wide_dim:  # candidates see what is narrow
            window = window._replace(
                x=np.ascontiguousarray(window.x[:, : self.bank.layout.context_dim])
            )
        rounds = one_by_one(window)
        self._noise = self.bank.assumed_noise(
            int(np.argmax(self.mixture.log_weights[: self.bank.size]))
        )
        for i, pool in enumerate(self.slots.pools):
            candidates = FAMILIES[pool.family].candidates
            if not pool.spare or candidates is None:
                continue
            for candidate in candidates(_PoolSearch(self, i, window, rounds)):
                if isinstance(candidate, int):
                    yield candidate
                else:
                    yield from self._try(i, candidate, window, begins + len(window.t), units)
        if self.bank.layout.context_dim == 1:
            self._keep_time(window)

    def _keep_time(self, window: Window) -> None:
        """Where the phase of the leading season has drifted, a copy with a corrected period shares
        its weight."""
        log_weights, prior, bank = self.mixture.log_weights, self.mixture.prior, self.bank
        incumbent = int(np.argmax(log_weights))
        found = phase.corrected(bank, incumbent, window) if incumbent < bank.size else None
        if found is None:
            return
        slots = next(slots for slots in self.slots.of if incumbent in slots)
        empty = [m for m in slots if not bank.arrays.active[m]]
        successor = (
            empty[0]
            if len(empty) > 1
            else min(set(slots) - {incumbent, *empty}, key=lambda m: log_weights[m])
        )
        if bank.arrays.active[successor]:
            prior[incumbent] += prior[successor]
        phase.copy_turned(bank, incumbent, successor, found)
        log_weights[successor] = log_weights[incumbent] = log_weights[incumbent] - math.log(2)
        log_weights -= np.logaddexp.reduce(log_weights)
        prior[successor] = prior[incumbent] = prior[incumbent] / 2
        self.count += 1

    def settle(self, pool: int, spec: Spec, *, reset: bool = True) -> int:
        """Put a model into a spare slot, inactive; without `reset` it is still to be reset."""
        spare = next(m for m in self.slots.of[pool] if not self.bank.arrays.active[m])
        self.bank.assign(spare, spec, self._noise, reset=reset)
        self.bank.arrays.active[spare] = False
        return spare

    def _incumbent(self, i: int, spec: Spec, window: Window) -> int | None:
        """The heaviest model of the pool on the same peak, from which n rounds hardly distinguish
        the candidate."""
        slots, bank = slice(self.slots.of[i].start, self.slots.of[i].stop), self.bank.arrays
        n, centre = len(window.t), float(window.t[len(window.t) // 2])
        alike = bank.active[slots] & (bank.discount[slots] == spec.discount)
        alike &= (bank.regime_by[slots] == spec.regime_by) & (bank.phases[slots] == spec.phases)
        for j in range(2):
            period, offset = bank.periods[slots, j], bank.offsets[slots, j]
            alike &= bank.shapes[slots, j] == spec.shapes[j]
            if spec.shapes[j] in (SINE, ADDED_SINE):
                alike &= same_peak(period, spec.periods[j], n)
            elif spec.shapes[j] == SQUARE:
                phase = (centre + offset) / period - (centre + spec.offsets[j]) / spec.periods[j]
                alike &= np.abs(phase - np.round(phase)) < 0.25
                alike &= same_peak(period, spec.periods[j], n)
        kin = np.flatnonzero(alike) + slots.start
        return int(kin[np.argmax(self.mixture.log_weights[kin])]) if len(kin) else None

    def _is_known(self, i: int, spec: Spec, n: int) -> bool:
        """Whether a model of the pool differs from the candidate by less than a hundredth of a
        peak."""
        slots, bank = slice(self.slots.of[i].start, self.slots.of[i].stop), self.bank.arrays
        alike = bank.active[slots] & (bank.discount[slots] == spec.discount)
        alike &= (bank.regime_by[slots] == spec.regime_by) & (bank.phases[slots] == spec.phases)
        for j in range(2):
            alike &= (bank.shapes[slots, j] == spec.shapes[j]) & (
                bank.offsets[slots, j] == spec.offsets[j]
            )
            alike &= np.abs(1 / bank.periods[slots, j] - 1 / spec.periods[j]) < _SAME / n
        return bool(alike.any())

    def _total(self, scores: FloatArray, since: int) -> float:
        """Log likelihood of rewards from the n-th on; NaN entries are replaced by the mixture's log
        likelihood."""
        silent = np.flatnonzero(np.isnan(scores))
        if len(silent):
            evidence = [self._recent.evidence_before(since + i) for i in range(len(scores))]
            follows = since + len(scores)
            more = follows < self._recent.count
            last = self._recent.evidence_before(follows) if more else self.mixture.evidence
            scores[silent] = np.diff([*evidence, last])[silent]
        return float(scores.sum())

    def _try(
        self, i: int, candidate: Candidate, window: Window, upto: int, units: Units
    ) -> Job[None]:
        """Replay the window and later rewards; then accept the candidate, if its weight is large
        enough."""
        bank, slots = self.bank, self.slots.of[i]
        spec = candidate.spec
        if self._is_known(i, spec, len(window.t)):
            return
        spare = self.settle(i, spec, reset=False)
        yield from bank.resetting(spare)
        scores = yield from bank.replay(spare, window, units.binary)
        likelihood = self._total(scores, upto - len(scores))
        while upto < self._recent.count:
            if upto < self._recent.start:
                return  # more rewards arrived than the window holds: another search will follow
            more = self._recent.window(units, upto)
            likelihood += self._total((yield from bank.replay(spare, more, units.binary)), upto)
            upto += len(more.t)
        log_weights, prior = self.mixture.log_weights, self.mixture.prior
        incumbent = self._incumbent(i, spec, window)
        pi = self.slots.mass(self.slots.pools[i]) / candidate.n_candidates
        pi = pi if incumbent is None else max(pi, float(prior[incumbent]))
        since = (
            self.mixture.reward_gain - self._reward_gain
        )  # from rewards that came after the search began
        log_weight = math.log(pi) + likelihood - (self._gain + self._added + since)
        empty = [m for m in slots if not bank.arrays.active[m] and m != spare]
        # A better period on the same peak replaces the incumbent.
        leaving = incumbent
        if incumbent is None and not empty:
            leaving = min((m for m in slots if m != spare), key=lambda m: float(log_weights[m]))
        if leaving is not None:
            if log_weights[leaving] >= log_weight:
                return
            bank.arrays.active[leaving] = False
            log_weights[leaving], prior[leaving] = -np.inf, 0.0
        bank.arrays.active[spare] = True
        log_weights[spare], prior[spare] = log_weight, pi
        top = float(log_weights.max())
        added = top + math.log(float(np.exp(log_weights - top).sum()))
        log_weights -= added
        prior /= prior.sum()
        self._added += added
        self.evidence_gain += added
        self.mixture.evidence = self._evidence + self._added + since
        self.count += 1


def same_peak(period: FloatArray, other: float, n: float) -> BoolArray:
    """Whether n rounds can hardly tell the periods apart."""
    return np.asarray(np.abs(1 / period - 1 / other) < 0.5 / max(n, 1e-300))
