"""Births and deaths: new periods near what proves good, at the expense of what does not.

A newborn lives through the window of past rounds in a spare slot. Its weight is then what Bayes' rule
would have given it, had it been there since the window began with the prior pi:

    log w = log pi + (its log likelihood of the window) - (the gain in log evidence over the window)

Evidence is that of all present hypotheses, as if each had been there from the start: a birth adds to it.
(The mixture's own record of predictions would not do. It contains the losses of hypotheses that are gone,
and newborns would be measured against those.) Here pi is its family's prior over the number of candidates
that were looked at, so that looking at many costs what it should. It takes the place of the lightest of
its family, if that is lighter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tidepull.hypotheses import seek
from tidepull.hypotheses.bank import HypothesisBank
from tidepull.hypotheses.fourier import Fourier
from tidepull.hypotheses.kernels import Window
from tidepull.hypotheses.naming import hypothesis_of
from tidepull.hypotheses.scan import contextual_square_evidence
from tidepull.hypotheses.seasons import Seasons
from tidepull.hypotheses.spec import ADDED_SINE, SINE, SQUARE, Hypothesis, Moment, Spec
from tidepull.hypotheses.square import Square
from tidepull.policies.tide_families import DRIFTING_SEASON, GROUP_PRIOR, Pool
from tidepull.types import FloatArray, Snapshot

_PRODUCTS_PER_SEARCH = 40_000_000
_SHORTEST_WINDOW = 24
_LARGEST_DRIFTING = 27
_RHYTHMS = 12


class Births:
    """Who sits in which slot of the bank, and who may come."""

    def __init__(self, bank: HypothesisBank, pools: Sequence[Pool], *, network: bool) -> None:
        self._bank, self._pools = bank, pools
        self.count = 0
        self._searches = 0
        self._noise = 1.0
        self.groups = tuple(dict.fromkeys(pool.group for pool in pools))
        sizes = [len(pool.initial) + pool.spare for pool in pools]
        stops = np.cumsum(sizes)
        self._slots = [range(int(stop) - size, int(stop)) for size, stop in zip(sizes, stops, strict=True)]
        self.group_of = np.repeat([self.groups.index(pool.group) for pool in pools], sizes)
        if network:  # it sits behind the bank's last slot
            self.group_of = np.append(self.group_of, len(self.groups))
            self.groups += ("network",)
        for pool, slots in zip(pools, self._slots, strict=True):
            for m, spec in zip(slots, pool.initial, strict=False):
                bank.assign(m, spec)
        self._unit = sum(self._mass(pool) for pool in pools if pool.initial)
        self._unit += GROUP_PRIOR["network"] if network else 0.0

    def initial_prior(self) -> FloatArray:
        """The prior of every slot that is filled at the start."""
        prior = np.zeros(len(self.group_of))
        if len(prior) > self._bank.size:
            prior[-1] = GROUP_PRIOR["network"]
        for pool, slots in zip(self._pools, self._slots, strict=True):
            if pool.initial:
                prior[slots.start : slots.start + len(pool.initial)] = self._mass(pool) / len(pool.initial)
        return prior / self._unit

    def seek(
        self, window: Window, binary: bool, gain: float, log_weights: FloatArray, prior: FloatArray
    ) -> float:
        """Look for better periods; `gain` is what the log evidence gained over the window.

        Changes weights and priors in place; returns what newborns add to the log evidence."""
        if len(window.t) < _SHORTEST_WINDOW:
            return 0.0
        added = 0.0
        self._searches += 1
        self._noise = self._bank.assumed_noise(int(np.argmax(log_weights[: self._bank.size])))
        for i, pool in enumerate(self._pools):
            if not pool.spare:
                continue
            for hypothesis, looked_at in self._candidates(i, window, binary, log_weights):
                pi = self._mass(pool) / self._unit / looked_at
                added += self._try(i, hypothesis, pi, window, binary, gain + added, log_weights, prior)
        return added

    def snapshot(self) -> Snapshot:
        """What the bank itself does not hold."""
        return {"count": self.count, "searches": self._searches}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self.count, self._searches = int(snapshot["count"]), int(snapshot["searches"])

    def _mass(self, pool: Pool) -> float:
        return GROUP_PRIOR[pool.group] / sum(other.group == pool.group for other in self._pools)

    def _candidates(
        self, i: int, window: Window, binary: bool, log_weights: FloatArray
    ) -> Iterator[tuple[Hypothesis, float]]:
        """Hypotheses worth a try, each with the number of candidates it was chosen from."""
        pool = self._pools[i]
        t0, n, n_arms = int(window.t[0]), len(window.t), self._bank.layout.n_arms
        if pool.contextual and pool.group == "fourier":
            yield from self._contextual_sines(i, window, binary, log_weights)
        elif pool.contextual:
            yield from self._contextual_squares(i, window, log_weights)
        elif pool.group == "fourier":
            for sine in seek.best_sines(t0, window.arm, window.y, n_arms, 3):
                yield sine, n / 3
                yield Fourier(sine.period, DRIFTING_SEASON), n
        elif pool.group == "square":
            for square in seek.best_squares(t0, window.arm, window.y, n_arms, 3):
                yield square, float(len(seek.squares(n)[0]))
        elif pool.group == "seasons":
            yield from self._pairs(window, log_weights)

    def _rhythms(self, window: Window, count: int) -> list[tuple[Fourier, Square]]:
        """What swings in the products of reward and context (of each arm apart, unless arms share)."""
        n = len(window.t)
        moments = window.y[:, None] * window.x
        if not self._bank.layout.shared:
            by_arm = np.zeros((n, self._bank.layout.n_arms, moments.shape[1]))
            by_arm[np.arange(n), window.arm] = moments
            moments = by_arm.reshape(n, -1)
        return seek.spectral(moments, int(window.t[0]), count)

    def _contextual_sines(
        self, i: int, window: Window, binary: bool, log_weights: FloatArray
    ) -> Iterator[tuple[Hypothesis, float]]:
        """Rhythms, and the heaviest of the pool with its period climbed to the top."""
        slots, n = self._slots[i], len(window.t)
        for sine, _ in self._rhythms(window, 3):
            yield Fourier(sine.period, 1.0, contextual=True), n / 3
        dim = int(self._bank.arrays.dim[slots.start])
        tries = max(2, _PRODUCTS_PER_SEARCH // (n * dim * dim))
        for hypothesis in self._heaviest(i, log_weights):
            assert isinstance(hypothesis, Fourier)
            best = self._climb(i, hypothesis, window, binary, tries)
            yield best, float(n)
            if dim <= _LARGEST_DRIFTING:
                yield Fourier(best.period, DRIFTING_SEASON, contextual=True), float(n)

    def _contextual_squares(
        self, i: int, window: Window, log_weights: FloatArray
    ) -> Iterator[tuple[Hypothesis, float]]:
        """Rhythms and the heaviest of the pool; those of the most evidence climbed to the top."""
        n, centre = len(window.t), float(window.t[len(window.t) // 2])
        block = np.zeros(n, np.int64) if self._bank.layout.shared else window.arm
        cradle = self._settle(i, Square(2.0, contextual=True).spec())
        ridge = float(self._bank.arrays.ridge[cradle])

        def score(halves: FloatArray, offsets: FloatArray) -> FloatArray:
            return contextual_square_evidence(halves, offsets, window.t, block, window.x, window.y, ridge)

        proposed = [square for _, square in self._rhythms(window, _RHYTHMS)]
        proposed += [h for h in self._heaviest(i, log_weights) if isinstance(h, Square)]
        evidence = score(np.array([s.half_period for s in proposed]), np.array([s.offset for s in proposed]))
        for best in np.argsort(-evidence, kind="stable")[:2]:
            top = seek.climb(proposed[best], centre, score)
            yield from ((near, 8.0 * n) for near in _whole(top, centre))

    def _heaviest(self, i: int, log_weights: FloatArray) -> list[Hypothesis]:
        """The two heaviest of a pool, however light they are."""
        slots = self._slots[i]
        order = slots.start + np.argsort(-log_weights[slots.start : slots.stop], kind="stable")
        return [hypothesis_of(self._bank.spec(int(m))) for m in order[:2] if self._bank.arrays.active[m]]

    def _climb(self, i: int, sine: Fourier, window: Window, binary: bool, tries: int) -> Fourier:
        """Move the frequency uphill in likelihood, by steps from a third of 1/n down to a thousandth."""
        f, step = 1 / sine.period, 0.3 / len(window.t)
        best = self._likelihood(i, Fourier(1 / f, 1.0, contextual=True), window, binary)
        for _ in range(min(8, tries // 2)):
            for g in (f - step, f + step):
                found = -math.inf
                if g > 0.25 / len(window.t):
                    found = self._likelihood(i, Fourier(1 / g, 1.0, contextual=True), window, binary)
                if found > best:
                    f, best = g, found
                    break
            else:
                step /= 2.5
        return Fourier(1 / f, 1.0, contextual=True)

    def _likelihood(self, i: int, hypothesis: Hypothesis, window: Window, binary: bool) -> float:
        """What a hypothesis makes of the window, tried out in a spare slot."""
        cradle = self._settle(i, hypothesis.spec())
        return float(self._bank.replay(cradle, window, binary).sum())

    def _settle(self, i: int, spec: Spec) -> int:
        """Put a hypothesis into a spare slot, where it does not count yet."""
        bank = self._bank
        cradle = next(m for m in self._slots[i] if not bank.arrays.active[m])
        bank.assign(cradle, spec, self._noise)
        bank.arrays.active[cradle] = False
        return cradle

    def _pairs(self, window: Window, log_weights: FloatArray) -> Iterator[tuple[Hypothesis, float]]:
        """The heaviest season, and a second one in what it leaves unexplained."""
        periodic = [
            m
            for pool, slots in zip(self._pools, self._slots, strict=True)
            for m in slots
            if pool.group in ("fourier", "square") and not pool.contextual and self._bank.arrays.active[m]
        ]
        if not periodic:
            return
        spec = self._bank.spec(max(periodic, key=lambda m: float(log_weights[m])))
        first = hypothesis_of(spec._replace(discount=1.0))
        assert isinstance(first, Fourier | Square)
        rest = _residuals(first, window, self._bank.layout.n_arms)
        t0, n_arms = int(window.t[0]), self._bank.layout.n_arms
        others: list[Fourier | Square] = []
        others += seek.best_sines(t0, window.arm, rest, n_arms, 2)
        others += seek.best_squares(t0, window.arm, rest, n_arms, 2)
        for second in others:
            if isinstance(first, Fourier) and isinstance(second, Fourier):
                yield Seasons(first, second, added=True), 0.25 * len(rest) ** 2
            yield Seasons(first, second), 0.25 * len(rest) ** 2  # both were looked for

    def _elder(self, i: int, spec: Spec, window: Window, log_weights: FloatArray) -> int | None:
        """The heaviest of the pool on the same peak: n rounds can hardly tell the two apart."""
        slots, bank = slice(self._slots[i].start, self._slots[i].stop), self._bank.arrays
        n, centre = len(window.t), float(window.t[len(window.t) // 2])
        alike = bank.active[slots] & (bank.discount[slots] == spec.discount)
        for j in range(2):
            period, offset = bank.periods[slots, j], bank.offsets[slots, j]
            alike &= bank.shapes[slots, j] == spec.shapes[j]
            if spec.shapes[j] in (SINE, ADDED_SINE):
                alike &= np.abs(1 / period - 1 / spec.periods[j]) < 0.5 / n
            elif spec.shapes[j] == SQUARE:
                phase = (centre + offset) / period - (centre + spec.offsets[j]) / spec.periods[j]
                alike &= np.abs(phase - np.round(phase)) < 0.25
                alike &= np.abs(1 / period - 1 / spec.periods[j]) < 0.5 / n
        kin = np.flatnonzero(alike) + slots.start
        return int(kin[np.argmax(log_weights[kin])]) if len(kin) else None

    def _try(
        self,
        i: int,
        hypothesis: Hypothesis,
        pi: float,
        window: Window,
        binary: bool,
        gain: float,
        log_weights: FloatArray,
        prior: FloatArray,
    ) -> float:
        bank, slots = self._bank, self._slots[i]
        spec = hypothesis.spec()
        elder = self._elder(i, spec, window, log_weights)
        pi = pi if elder is None else max(pi, float(prior[elder]))
        cradle = self._settle(i, spec)
        log_weight = math.log(pi) + float(bank.replay(cradle, window, binary).sum()) - gain
        empty = [m for m in slots if not bank.arrays.active[m] and m != cradle]
        # A better place on the same peak is no further hypothesis: it inherits.
        leaving = elder
        if elder is None and not empty:
            leaving = min((m for m in slots if m != cradle), key=lambda m: float(log_weights[m]))
        if leaving is not None:
            if log_weights[leaving] >= log_weight:
                return 0.0
            bank.arrays.active[leaving] = False
            log_weights[leaving], prior[leaving] = -np.inf, 0.0
        bank.arrays.active[cradle] = True
        log_weights[cradle], prior[cradle] = log_weight, pi
        top = float(log_weights.max())
        added = top + math.log(float(np.exp(log_weights - top).sum()))
        log_weights -= added
        prior /= prior.sum()
        self.count += 1
        return added


def _whole(square: Square, centre: float) -> list[Square]:
    """A square wave as found, and with a whole half period and offset, the boundary at the centre kept."""
    half, offset = square.half_period, square.offset
    whole = max(1, round(half))
    moved = round((centre + offset) * whole / half - centre) % (2 * whole)
    return [Square(half, offset, contextual=True), Square(float(whole), float(moved), contextual=True)]


def _residuals(first: Fourier | Square, window: Window, n_arms: int) -> FloatArray:
    """What a season leaves of the rewards, by least squares with a little ridge."""
    located = [first.locate(Moment(int(t)), n_arms) for t in window.t]
    tau = np.array([features for _, features in located])
    block = np.array([cell for cell, _ in located]) * n_arms + window.arm
    rest = window.y.copy()
    for b in np.unique(block):
        rows = block == b
        A = tau[rows].T @ tau[rows] + 0.1 * np.eye(tau.shape[1])
        rest[rows] -= tau[rows] @ np.linalg.solve(A, tau[rows].T @ window.y[rows])
    return rest
