"""The quantities of the paper's regret analysis and its finite-time bound, constants included.

The setting: K arms have true contexts x*_k and observed contexts x_k in the unit ball of R^d with
||x_k - x*_k|| <= epsilon; the reward is w . x* plus sigma-sub-Gaussian noise, ||w|| <= 1. The agent draws
w~ from N(w^_t, nu_t^2 B_t^-1) and plays argmax_k w~ . x_k. Every function takes a round t (or an
array of rounds) counted from 1. Logarithms of products are taken as sums, so nothing overflows.

Where the printed text slips, the code follows what the proofs need:
- the sub-Gaussian definition has exp(+lambda^2 sigma^2 / 2), and a sub-martingale's increments have
  mean >= 0;
- the likelihood's mean is w . x with the observed x (the agent never sees x*);
- Lemma 1 passes through sum_i ||x_i||_{B_i^-1}, to which the potential lemma does not apply (one
  round with d = 1 refutes it); with B_{i+1} the chain holds, and so does p_t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Branch: TypeAlias = Literal["dimension", "arms", "smaller"]

LEMMA_4 = 44.0 * math.e * math.sqrt(math.pi)
"""44 e sqrt(pi) = 211.99..., the price of Lemma 4; its proof holds from t = 5 on."""

LIMIT = 10**15
"""The longest horizon that is searched; beyond it floats do not separate neighbouring rounds."""

OPTIMISM = 1.0 / (4.0 * math.e * math.sqrt(math.pi))
"""Lemma 2's lower bound on P(Theta_{t,a*} + epsilon >= x*_{a*} . w): 0.0519."""


@dataclass(frozen=True, kw_only=True)
class LinearSetting(Parameters):
    """What the bound depends on, besides the horizon.

    `tight` replaces p_t = sqrt(t d log((t + d) / d)) by sqrt(t - 1), which is smaller and as valid:
    with v_i = (x_i - x*_i) . w, B = I + X'X gives X B^-1 X' <= I, hence ||X'v||_{B^-1} <= ||v|| <=
    epsilon sqrt(t - 1).
    """

    d: int = parameter(description="dimension of the contexts", ge=1)
    k: int = parameter(description="number of arms", ge=1)
    epsilon: float = parameter(
        0.0, "largest distance between observed and true context", ge=0, le=1e9
    )
    delta: float = parameter(0.05, "probability with which the bound may fail", gt=0, lt=1)
    sigma: float = parameter(0.05, "sub-Gaussian scale of the reward noise", ge=0, le=1e9)
    tight: bool = parameter(False, "use the smaller p_t = sqrt(t - 1)")


def rounds(t: ArrayLike, name: str = "t") -> Floats:
    """Rounds as floats; refused by name when below 1 or not finite."""
    try:
        values = np.asarray(t, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"{name} must be a number of at least 1, got {type(t).__name__}"
        ) from None
    if not np.all(np.isfinite(values)) or np.any(values < 1):
        raise ParameterError(f"{name} must be a finite number of at least 1, got {t!r}")
    return values


def p(t: ArrayLike, setting: LinearSetting) -> Floats:
    """p_t = sqrt(t d log((t + d) / d)), the weight of epsilon in nu_t and l_t."""
    t = rounds(t)
    if setting.tight:
        return np.asarray(np.sqrt(t - 1.0))
    return np.asarray(np.sqrt(t * setting.d * np.log1p(t / setting.d)))


def nu(t: ArrayLike, setting: LinearSetting) -> Floats:
    """nu_t = 3 sigma sqrt(d log(t / delta)) + epsilon p_t, the posterior's inflated scale."""
    log_t = np.log(rounds(t))
    spread = 3.0 * setting.sigma * np.sqrt(setting.d * (log_t - math.log(setting.delta)))
    return np.asarray(spread + setting.epsilon * p(t, setting))


def l(t: ArrayLike, setting: LinearSetting) -> Floats:  # noqa: E743 - the paper's name
    """l_t = sigma sqrt(d log(t^3 / delta)) + 1 + epsilon p_t, how far the estimate may stray."""
    log_t = np.log(rounds(t))
    stray = setting.sigma * np.sqrt(setting.d * (3.0 * log_t - math.log(setting.delta)))
    return np.asarray(stray + 1.0 + setting.epsilon * p(t, setting))


def c(t: ArrayLike, setting: LinearSetting, branch: Branch = "smaller") -> Floats:
    """c_t = min(2 sqrt(d log t), 2 sqrt(log(t K))), or one branch of it; c_1 = 0."""
    log_t = np.log(rounds(t))
    by_dimension = np.asarray(2.0 * np.sqrt(setting.d * log_t))
    by_arms = np.asarray(2.0 * np.sqrt(log_t + math.log(setting.k)))
    if branch == "smaller":
        return np.asarray(np.minimum(by_dimension, by_arms))
    return by_dimension if branch == "dimension" else by_arms


def g(t: ArrayLike, setting: LinearSetting, branch: Branch = "smaller") -> Floats:
    """g_t = c_t nu_t + l_t."""
    return np.asarray(c(t, setting, branch) * nu(t, setting) + l(t, setting))


def active_branch(t: ArrayLike, setting: LinearSetting) -> NDArray[np.str_]:
    """Which branch of the minimum is the smaller: 'dimension' (d^(3/2) rates) or 'arms' (d sqrt(log
    K))."""
    smaller = c(t, setting, "dimension") <= c(t, setting, "arms")
    return np.where(smaller, "dimension", "arms")


def widths(contexts: Floats, precision: Floats) -> Floats:
    """s_{t,k} = ||x_{t,k}||_{B_t^-1} for contexts (..., K, d) and precisions B_t (..., d, d)."""
    factor = np.linalg.cholesky(precision)
    white = np.linalg.solve(factor, np.swapaxes(contexts, -1, -2))
    return np.asarray(np.sqrt(np.sum(white * white, axis=-2)))


def saturated(means: Floats, s: Floats, g_t: float, epsilon: float) -> Bools:
    """C_t = {k : x*_{a*} . w - x*_k . w > s_{t,k} g_t + 2 epsilon}, over the last axis."""
    return np.asarray(means.max(axis=-1, keepdims=True) - means > s * g_t + 2.0 * epsilon)


def event_w(estimates: Floats, means: Floats, s: Floats, l_t: float, epsilon: float) -> Bools:
    """E^w_t: |x_k . w^_t - x*_k . w| <= l_t s_{t,k} + epsilon for all k; P >= 1 - delta / t^2."""
    return np.asarray(np.all(np.abs(estimates - means) <= l_t * s + epsilon, axis=-1))


def event_theta(theta: Floats, estimates: Floats, s: Floats, nu_t: float, c_t: float) -> Bools:
    """E^Theta_t: |Theta_{t,k} - x_k . w^_t| <= nu_t s_{t,k} c_t for all k; P >= 1 - 1 / t^2.

    At t = 1, c_1 = 0 where the dimension branch is active: the event then fails surely, as its
    promise of probability 0 allows.
    """
    return np.asarray(np.all(np.abs(theta - estimates) <= nu_t * s * c_t, axis=-1))


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """The theorem's bound at one horizon or an array of them, term by term.

    `total` = `mismatch` + `exploration` + `rare` + `luck`; the same total split the other way is
    `base` (what remains at epsilon = 0, growing like sqrt(T)) + `linear` (proportional to epsilon,
    growing like T). Both splits ignore polylogarithmic factors in their names only.
    """

    horizon: Floats
    branch: NDArray[np.str_]
    mismatch: Floats
    exploration: Floats
    rare: float
    luck: Floats
    base: Floats
    linear: Floats

    @property
    def total(self) -> Floats:
        """With probability 1 - delta, the regret after `horizon` rounds is at most this."""
        return np.asarray(self.mismatch + self.exploration + self.rare + self.luck)


def regret_bound(horizon: ArrayLike, setting: LinearSetting, branch: Branch = "smaller") -> Bound:
    """4 eps T + M g_T 5 sqrt(d T log T) + pi^2 / 3 + (4 + 4 eps + M g_T) sqrt(2 T log(2 / delta)),
    M = 44 e sqrt(pi).

    Notes on the proof: Azuma-Hoeffding needs |Z_t| <= K_T = 4 + 4 eps + M g_T and a conditional
    mean <= 0 (the text has E(Z_t) <= K_T); Lemma 2 needs l_t <= nu_t (see `premise_sigma`); the
    union of E^w over t costs delta pi^2 / 6 = 1.645 delta, not delta / 2, so the confidence 1 -
    delta is strictly 1 - 2.145 delta (1 - 1.145 delta, as E^w_1 is sure); and Lemma 4's constant
    holds for t >= 5, which a further 8 (four rounds at regret 2) would make good. The heading of
    case 2 in the appendix says T^(3/2); its conclusion, T, is right.
    """
    T = rounds(horizon, "horizon")
    d, epsilon = setting.d, setting.epsilon
    potential = 5.0 * np.sqrt(d * T * np.log(T))  # at least the sum of s_{t,A_t}, for T >= 2
    deviation = np.sqrt(2.0 * T * (math.log(2.0) - math.log(setting.delta)))
    rare = math.pi**2 / 3.0  # the sum of 2 / t^2
    g_T = g(T, setting, branch)
    g_free = g(T, replace(setting, epsilon=0.0), branch)
    g_slope = (c(T, setting, branch) + 1.0) * p(T, setting)  # g_T = g_free + epsilon g_slope
    return Bound(
        horizon=T,
        branch=active_branch(T, setting) if branch == "smaller" else np.full(T.shape, branch),
        mismatch=np.asarray(4.0 * epsilon * T),
        exploration=np.asarray(LEMMA_4 * g_T * potential),
        rare=rare,
        luck=np.asarray((4.0 + 4.0 * epsilon + LEMMA_4 * g_T) * deviation),
        base=np.asarray(LEMMA_4 * g_free * (potential + deviation) + rare + 4.0 * deviation),
        linear=np.asarray(
            epsilon * (4.0 * T + LEMMA_4 * g_slope * (potential + deviation) + 4.0 * deviation)
        ),
    )


def linear_from(setting: LinearSetting) -> int | None:
    """The first T at which the part of the bound proportional to epsilon is at least the rest; None
    if never."""

    def leads(T: Floats) -> Bools:
        bound = regret_bound(T, setting)
        return np.asarray(bound.linear >= bound.base)

    return None if setting.epsilon == 0 else _first(leads)


def below_trivial_from(setting: LinearSetting) -> int | None:
    """The first T at which the bound is below 2 T, which any policy meets; None if not before
    `LIMIT`."""
    return _first(lambda T: np.asarray(regret_bound(T, setting).total < 2.0 * T))


def premise_from(setting: LinearSetting) -> int | None:
    """The first t with l_t <= nu_t, without which Lemma 2 (hence the theorem) is not proved; None
    if never.

    nu_t - l_t grows with t, so the premise holds from there on.
    """
    return _first(lambda t: np.asarray(l(t, setting) <= nu(t, setting)))


def premise_sigma(setting: LinearSetting) -> float:
    """The smallest sigma that gives l_t <= nu_t in every round: 1 / (2 sqrt(d log(1 / delta))).

    Noise that is sigma-sub-Gaussian is so for any larger sigma: raising sigma to this value is
    always allowed.
    """
    return 1.0 / (2.0 * math.sqrt(-setting.d * math.log(setting.delta)))


def _first(holds: Callable[[Floats], Bools]) -> int | None:
    """The first whole number with the property: the first on a fine geometric grid, then
    bisection."""
    grid = np.unique(np.round(np.geomspace(1, LIMIT, 3001)))
    reached = holds(grid)
    if not reached.any():
        return None
    index = int(np.argmax(reached))
    low, high = int(grid[max(index - 1, 0)]), int(grid[index])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(np.asarray(float(middle))) else (middle, high)
    return high
