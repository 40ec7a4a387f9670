"""Linear posterior sampling with measurement error, exactly as analysed, for many seeds at once.

Ordinary linear Thompson sampling is the special case of no error and no inflation (nu_t = sigma).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidepull._internal.system import require_memory
from tidepull.paper.theory.bound import Floats, LinearSetting, nu
from tidepull.paper.theory.environment import (
    Adversary,
    AdversaryName,
    Draws,
    ErrorKind,
    Noise,
    Schedule,
    View,
    observe,
    size,
)
from tidepull.paper.theory.environment import adversary as adversary_of
from tidepull.parameters import Parameters, parameter
from tidepull.types import IntArray


@dataclass(frozen=True, kw_only=True)
class Scenario(Parameters):
    """How a setting is simulated: adversary, noise, measurement error, and number of trials."""

    horizon: int = parameter(4096, "rounds in a trial", ge=1, le=10**7)
    adversary: AdversaryName = parameter("random", "adversary that chooses the true contexts")
    noise: Noise = parameter("gaussian", "distribution of the reward noise")
    error: ErrorKind = parameter("sphere", "direction of the measurement error")
    schedule: Schedule = parameter(
        "constant", "how large the error is in each round, at most epsilon"
    )
    inflate: bool = parameter(
        True, "sample with nu_t as analysed; otherwise with sigma, as is usual"
    )
    seeds: int = parameter(100, "trials, on consecutive seeds", ge=1, le=10**5)
    seed: int = parameter(0, "seed of the first trial", ge=0)


@dataclass(frozen=True, slots=True, eq=False)
class ArmSamples:
    """One round as the agent sees it (seeds x K): x . w^_t, Theta = x . w~_t, and s =
    ||x||_{B_t^-1}."""

    estimates: Floats
    theta: Floats
    s: Floats


class PosteriorSampler:
    """Posteriors N(w^_t, nu_t^2 B_t^-1) with B_t = I + sum x x' and w^_t = B_t^-1 sum x r, one for
    each seed."""

    def __init__(self, trials: int, d: int) -> None:
        self.precision: Floats = np.tile(np.eye(d), (trials, 1, 1))
        self.response: Floats = np.zeros((trials, d))

    def mean(self) -> Floats:
        """w^_t (seeds x d)."""
        return np.asarray(np.linalg.solve(self.precision, self.response[..., None])[..., 0])

    def look(self, contexts: Floats, normals: Floats, nu_t: float) -> ArmSamples:
        """Sample w~_t = w^_t + nu_t L^-T z with B_t = L L', and judge every arm by it.

        In whitened coordinates, x . w^_t = (L^-1 x) . (L^-1 b) and x . L^-T z = (L^-1 x) . z.
        """
        factor = np.linalg.cholesky(self.precision)
        stacked = np.concatenate((contexts, self.response[:, None, :]), axis=1)
        white = np.linalg.solve(factor, np.swapaxes(stacked, 1, 2))
        x, b = white[:, :, :-1], white[:, :, -1]
        estimates = np.einsum("sdk,sd->sk", x, b)
        shift = np.einsum("sdk,sd->sk", x, normals)
        s = np.sqrt(np.einsum("sdk,sdk->sk", x, x))
        return ArmSamples(estimates, estimates + nu_t * shift, s)

    def learn(self, chosen: Floats, rewards: Floats) -> None:
        """B_{t+1} = B_t + x x', and the response grows by r x."""
        self.precision += chosen[:, :, None] * chosen[:, None, :]
        self.response += rewards[:, None] * chosen


def choose(theta: Floats, tie: Floats) -> IntArray:
    """A_t = argmax_k Theta_{t,k}, ties broken uniformly by `tie` in [0, 1)."""
    best = theta == theta.max(axis=1, keepdims=True)
    wanted = np.floor(tie * best.sum(axis=1)) + 1
    return np.asarray(np.argmax(np.cumsum(best, axis=1) >= wanted[:, None], axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """What happened in round `t` of every trial; `means` are the true expected rewards x* . w.

    `best_noise` is the noise that the best arm would have had, where another one was played.
    """

    t: int
    truth: Floats
    observed: Floats
    look: ArmSamples
    means: Floats
    arms: IntArray
    rewards: Floats
    best_noise: Floats


def require_room(setting: LinearSetting, scenario: Scenario, *, squares: int) -> None:
    """Refuse what does not fit into memory, where so many d x d matrices of every trial are held at
    once."""
    trials, d, k = scenario.seeds, setting.d, setting.k
    require_memory(
        8 * (trials * d * (squares * d + 6 * k) + 8 * scenario.horizon),
        f"{trials:,} trials of {scenario.horizon:,} rounds with {k:,} arms in {d:,} dimensions",
    )


def play(
    setting: LinearSetting,
    scenario: Scenario,
    *,
    adversary: Adversary | None = None,
    agent: PosteriorSampler | None = None,
) -> Iterator[Round]:
    """Play all trials side by side, round by round; `adversary` (your own) overrides the
    scenario's."""
    trials, epsilon = scenario.seeds, setting.epsilon
    require_room(setting, scenario, squares=4)
    draws = Draws(
        range(scenario.seed, scenario.seed + trials),
        setting.k,
        setting.d,
        scenario.noise,
        with_error=epsilon > 0,
    )
    challenge = adversary_of(scenario.adversary) if adversary is None else adversary
    agent = PosteriorSampler(trials, setting.d) if agent is None else agent
    scales = nu(np.arange(1, scenario.horizon + 1), setting) if scenario.inflate else None
    w, every = draws.parameters(), np.arange(trials)
    for t, numbers in enumerate(draws.rounds(scenario.horizon), start=1):
        epsilon_t = epsilon * size(scenario.schedule, t)
        truth = challenge(View(t, agent.precision, w, numbers.context, epsilon_t))
        observed = observe(truth, w, numbers.error, epsilon_t, scenario.error)
        look = agent.look(
            observed, numbers.posterior, setting.sigma if scales is None else float(scales[t - 1])
        )
        arms = choose(look.theta, numbers.tie)
        means = np.einsum("skd,sd->sk", truth, w)
        rewards = means[every, arms] + setting.sigma * numbers.noise
        agent.learn(observed[every, arms], rewards)
        yield Round(
            t,
            truth,
            observed,
            look,
            means,
            arms,
            rewards,
            best_noise=setting.sigma * numbers.best_noise,
        )
