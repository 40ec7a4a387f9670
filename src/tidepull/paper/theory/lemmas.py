"""Every step of the proof beside its promise, measured while trials are played.

Lemma 2 is computed exactly in every round: Theta_{t,a*} is Gaussian given the past. Lemmas 3 and 4
speak of the agent's choice given the past, which has no closed form: in rounds 8, 16, 32, ... and
the last one `DRAWS` further samples of w~ are drawn for every trial, and the choices that they
would lead to are counted. Lemmas 2 to 4 are conditional on E^w.

The elliptical potential lemma is measured for any lambda:

    sum_t ||u_t||_{V_{t+1}^-1} <= sqrt(T d log((T + d lambda) / (d lambda))),    V_t = lambda I + sum_{i<t} u_i u_i'

for any vectors u_t of length at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from tidepull.paper.theory import bound as theory
from tidepull.paper.theory.bound import LEMMA_4, OPTIMISM, Bools, Floats, LinearSetting
from tidepull.paper.theory.measurement_error import Round, Scenario
from tidepull.random import Streams
from tidepull.types import IntArray

DRAWS = 2000
"""Samples of w~ for each trial and round that is looked at: chance is then well below what Lemma 3
promises."""

FIRST = 5
"""Lemma 3 promises something from this round on, and Lemma 4's constant holds from it."""

RIDGES = (0.01, 0.1, 1.0, 10.0)
"""Values of lambda that are measured."""


@dataclass(frozen=True, slots=True)
class Promise:
    """`measured` must be at most `allowed` (at least, where `at_least`), give or take `margin` of
    chance.

    `promised` is False where the lemma's premise does not hold: then it is measured, and nothing
    hangs on it. `nearest` says how near the worst trial came to the limit inside a promise of
    probability, as a share of it.
    """

    lemma: str
    what: str
    measured: float
    allowed: float
    at_least: bool = False
    margin: float = 0.0
    promised: bool = True
    nearest: float | None = None

    @property
    def kept(self) -> bool:
        """Whether it was kept, or was not promised."""
        if not self.promised:
            return True
        if self.at_least:
            return self.measured >= self.allowed - self.margin
        return self.measured <= self.allowed + self.margin


class Potential:
    """Running sums for many trials and several lambdas at once (lambdas x trials)."""

    def __init__(self, trials: int, d: int, ridges: tuple[float, ...] = RIDGES) -> None:
        self._ridges = np.array(ridges)
        self._inverse: Floats = np.tile(np.eye(d), (len(ridges), trials, 1, 1))
        self._inverse /= self._ridges[:, None, None, None]
        self.sums: Floats = np.zeros((len(ridges), trials))
        self._d = d

    def add(self, u: Floats) -> None:
        """One vector of every trial (trials x d).

        With q = u'V_t^-1 u, the inverse after it is V_t^-1 - (V_t^-1 u)(V_t^-1 u)' / (1 + q), and
        u'V_{t+1}^-1 u = q / (1 + q).
        """
        turned = np.einsum("lsde,se->lsd", self._inverse, u)
        q = np.einsum("lsd,sd->ls", turned, u)
        self.sums += np.sqrt(q / (1.0 + q))
        self._inverse -= turned[..., :, None] * turned[..., None, :] / (1.0 + q)[..., None, None]

    def shares(self, T: int) -> Floats:
        """The largest sum of any trial after T vectors, as a share of the limit, for each
        lambda."""
        limit = np.sqrt(T * self._d * np.log1p(T / (self._d * self._ridges)))
        return np.asarray(self.sums.max(axis=1) / limit)


class Lemmas:
    """Running measurements of one simulation."""

    def __init__(
        self,
        setting: LinearSetting,
        scenario: Scenario,
        checkpoints: IntArray,
        *,
        draws: int = DRAWS,
    ) -> None:
        self._setting, self._scenario, self._draws = setting, scenario, draws
        self._checkpoints = frozenset(checkpoints.tolist())
        trials, t = scenario.seeds, np.arange(1, scenario.horizon + 1)
        self._nu = theory.nu(t, setting) if scenario.inflate else np.full(len(t), setting.sigma)
        self._g = theory.g(t, setting)
        seeds = range(scenario.seed, scenario.seed + trials)
        self._generators = [Streams(seed).child("theory").generator("lemmas") for seed in seeds]
        self._precision = np.tile(np.eye(setting.d), (trials, 1, 1))  # B_t
        self._xi = np.zeros((trials, setting.d))
        self._Y, self._luck = np.zeros(trials), np.zeros(trials)
        self._potential = Potential(trials, setting.d)
        self._least_z = math.inf
        # (share - promise, share, promise) where the first is smallest
        self._unsaturated = (math.inf, 1.0, 0.0)
        self._regret_share = self._increment = -math.inf
        # Of each: the largest share of trials above the limit, and how near the worst trial came.
        self._xi_worst = self._Y_worst = self._luck_worst = (0.0, -math.inf)
        self._potential_shares = np.zeros(len(RIDGES))

    def add(self, played: Round, holds_w: Bools) -> None:
        """Take in one round of every trial; `holds_w` says in which E^w holds."""
        self._add_optimism(played, holds_w)
        t = played.t
        if t >= FIRST and (t & (t - 1) == 0 or t == self._scenario.horizon):
            white = np.linalg.solve(
                np.linalg.cholesky(self._precision), np.swapaxes(played.observed, 1, 2)
            )
            for trial in np.flatnonzero(holds_w):
                self._add_choices(played, int(trial), white[trial])
        self._add_increment(played, holds_w)
        every = np.arange(len(played.arms))
        chosen = played.observed[every, played.arms]
        eta = played.rewards - played.means[every, played.arms]
        self._precision += chosen[:, :, None] * chosen[:, None, :]
        self._xi += eta[:, None] * chosen
        self._potential.add(chosen)
        best = played.means.argmax(axis=1)
        self._luck += np.where(played.arms == best, 0.0, played.best_noise - eta)
        if played.t in self._checkpoints:
            self._look_back(played.t)

    def _add_optimism(self, played: Round, holds_w: Bools) -> None:
        """Lemma 2: P(Theta_{t,a*} + epsilon >= x*_{a*} . w) = Phi(z), z = (x . w^_t + epsilon - x*
        . w) / (nu_t s)."""
        every, best = np.arange(len(played.arms)), played.means.argmax(axis=1)
        gap = played.look.estimates[every, best] + self._setting.epsilon - played.means[every, best]
        scale = self._nu[played.t - 1] * played.look.s[every, best]
        known = holds_w & (scale > 0)
        if known.any():
            self._least_z = min(self._least_z, float(np.min(gap[known] / scale[known])))

    def _add_choices(self, played: Round, trial: int, white: Floats) -> None:
        """Lemmas 3 and 4 in one trial, by fresh samples of w~ given the same past; `white` is L^-1
        x', B_t = L L'."""
        t, epsilon, g_t = played.t, self._setting.epsilon, float(self._g[played.t - 1])
        means, look = played.means[trial], played.look
        s, estimates = look.s[trial], look.estimates[trial]
        normals = self._generators[trial].standard_normal((self._draws, self._setting.d))
        arms = np.argmax(estimates + self._nu[t - 1] * (normals @ white), axis=1)
        chances = np.bincount(arms, minlength=len(means)) / self._draws
        outside = 1.0 - float(chances[theory.saturated(means, s, g_t, epsilon)].sum())
        promised = OPTIMISM - 1.0 / t**2
        self._unsaturated = min(self._unsaturated, (outside - promised, outside, promised))
        regret = float(chances @ (means.max() - means))
        limit = 4.0 * epsilon + LEMMA_4 * g_t * float(chances @ s) + 2.0 / t**2
        self._regret_share = max(self._regret_share, regret / limit)

    def _add_increment(self, played: Round, holds_w: Bools) -> None:
        """Z_t = regret 1{E^w} - 4 epsilon - M g_t s - 2 / t^2, and |Z_t| as a share of K_t."""
        i, every = played.t - 1, np.arange(len(played.arms))
        regret = played.means.max(axis=1) - played.means[every, played.arms]
        width = LEMMA_4 * self._g[i] * played.look.s[every, played.arms]
        Z = regret * holds_w - 4.0 * self._setting.epsilon - width - 2.0 / played.t**2
        self._Y += Z
        share = float(np.max(np.abs(Z)) / self._largest_step(played.t))
        self._increment = max(self._increment, share)

    def _largest_step(self, t: int) -> float:
        """K_t = 4 + 4 epsilon + M g_t, which |Z_t| never exceeds."""
        return 4.0 + 4.0 * self._setting.epsilon + LEMMA_4 * float(self._g[t - 1])

    def _look_back(self, T: int) -> None:
        """What is promised of sums over the first T rounds."""
        setting = self._setting
        deviation = math.sqrt(2.0 * T * math.log(2.0 / setting.delta))
        self._Y_worst = _worst(self._Y_worst, self._Y / (self._largest_step(T) * deviation))
        if setting.sigma > 0:
            luck = self._luck / (2.0 * setting.sigma * deviation)
            self._luck_worst = _worst(self._luck_worst, luck)
            white = np.linalg.solve(self._precision, self._xi[..., None])[..., 0]
            norms = np.einsum("sd,sd->s", self._xi, white)
            limit = setting.sigma * math.sqrt(setting.d * math.log((T + 1) / setting.delta))
            self._xi_worst = _worst(self._xi_worst, np.sqrt(norms) / limit)
        self._potential_shares = np.maximum(self._potential_shares, self._potential.shares(T))

    def promises(self, *, premise_holds: bool) -> tuple[Promise, ...]:
        """Everything measured beside what is promised; `premise_holds` says whether l_t <= nu_t in
        every round."""
        delta, sure = self._setting.delta, premise_holds and self._scenario.inflate
        _, unsaturated, promised = self._unsaturated
        optimistic = 1.0 if math.isinf(self._least_z) else float(norm.cdf(self._least_z))
        least, chance = {"at_least": True, "promised": sure}, _chance(OPTIMISM, self._draws)
        regret, outside = max(self._regret_share, 0.0), "P(a_t outside C_t), least"
        noise = "trials with Σ (R_a* - R_A) - regret above its limit"
        return (
            Promise("Lemma 2", "P(Θ + ε ≥ x* · w), least", optimistic, OPTIMISM, **least),
            Promise("Lemma 3", outside, unsaturated, promised, margin=chance, **least),
            Promise("Lemma 4", "E(regret of a round) / limit, most", regret, 1.0, promised=sure),
            Promise("Theorem", "|Z_t| / K_t, most", self._increment, 1.0),
            self._rarely("Azuma", "trials with Y_T above its limit", self._Y_worst, delta / 2),
            self._rarely("Lemma 8", "trials with ξ above its limit", self._xi_worst, delta),
            *(
                Promise("Potential", f"sum / limit, λ = {ridge:g}", float(share), 1.0)
                for ridge, share in zip(RIDGES, self._potential_shares, strict=True)
            ),
            self._rarely("Realised", noise, self._luck_worst, delta / 2),
        )

    def _rarely(self, lemma: str, what: str, worst: tuple[float, float], allowed: float) -> Promise:
        """A limit that may be passed with so small a probability at each T."""
        margin = _chance(allowed, self._scenario.seeds)
        nearest = worst[1] if math.isfinite(worst[1]) else None  # without noise there is no limit
        return Promise(lemma, what, worst[0], allowed, margin=margin, nearest=nearest)


def _chance(probability: float, trials: int) -> float:
    """Four standard errors of a share of so many trials."""
    return 4.0 * math.sqrt(probability * (1.0 - probability) / trials)


def _worst(so_far: tuple[float, float], shares: Floats) -> tuple[float, float]:
    """The largest share of trials above 1 at any checkpoint, and the largest value of all."""
    return max(so_far[0], float(np.mean(shares > 1.0))), max(so_far[1], float(shares.max()))
