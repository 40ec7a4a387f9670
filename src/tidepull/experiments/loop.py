"""THE loop: one policy plays one problem. It knows no algorithm; regret is computed here and only
here."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tidepull import protocols
from tidepull._internal.system import one_blas_thread, require_memory
from tidepull.errors import ArmError, ParameterError, ProblemError
from tidepull.experiments.delay import Delay, LateBy, late_by
from tidepull.policies import build_policy, settled
from tidepull.policies.checks import mask
from tidepull.problems import build_problem, problems, shape_of
from tidepull.protocols import Learner, Problem
from tidepull.random import Streams
from tidepull.registry import Named, is_named
from tidepull.types import Context, Diagnostics, Event, FloatArray, IntArray

OnRound: TypeAlias = Callable[[int], None]

_BYTES_A_ROUND = 64
"""What a trial keeps of a round, and the copies that are made of it at the end."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The result of one trial, round by round.

    Parameters
    ----------
    arms : array of int of shape (horizon,)
        The arm chosen in each round, counted from 0.
    rewards : array of shape (horizon,)
        The reward of each round.
    regret : array of shape (horizon,)
        Cumulative pseudo-regret: the best arm's expected reward minus the chosen arm's.
    optimal : array of shape (horizon,)
        The expected reward of the best available arm in each round.
    seconds : float
        The duration of the trial.
    remark : str, default: ""
        A remark of the problem about its results.
    diagnostics : mapping, optional
        Counts and figures of the policy.

    Examples
    --------
    >>> import tidepull
    >>> trial = tidepull.run_trial("stationary-bernoulli", "random", horizon=50, seed=0)
    >>> trial.rewards.shape
    (50,)
    >>> bool(trial.cumulative_reward[-1] == trial.rewards.sum())
    True
    """

    arms: IntArray
    rewards: FloatArray
    regret: FloatArray
    optimal: FloatArray
    seconds: float
    remark: str = ""
    diagnostics: Diagnostics = field(default_factory=dict)

    @property
    def cumulative_reward(self) -> FloatArray:
        """Sum of the rewards so far, after each round."""
        return np.cumsum(self.rewards)

    @property
    def realised_regret(self) -> FloatArray:
        """Cumulative expected reward of the oracle minus cumulative reward; has more noise."""
        return np.cumsum(self.optimal - self.rewards)


def run_trial(
    problem: Named | Problem,
    policy: Named | Learner,
    *,
    horizon: int | None = None,
    seed: int = 0,
    problem_seed: int | None = None,
    delay: Delay = 0,
    on_round: OnRound | None = None,
) -> Trial:
    """Play a policy on a problem.

    One seed drives independent streams for problem and policy, so two policies under one seed
    face the same world.

    Parameters
    ----------
    problem : str, (str, dict) or Problem
        An id, an `(id, {parameters})` pair, or an object with the methods of `Problem`.
    policy : str, (str, dict) or Learner
        An id, an `(id, {parameters})` pair, or an object with the methods of `Learner`.
    horizon : int, optional
        The number of rounds. By default it is the usual length of the problem, or 4096 for an
        object.
    seed : int, default: 0
        The seed of policy and problem.
    problem_seed : int, optional
        The seed of the problem, if it differs from `seed`.
    delay : int, str or callable, default: 0
        By how many rounds rewards are late: a number, "geometric:20:0.05" (20 rounds on average,
        5% never come), or a function of the round that returns a number, or None for never. A
        reward that is n rounds late is learnt after n further choices. 0: when the problem says
        (`HasWait`), or at once.
    on_round : callable, optional
        Function that is called after each round with the number of rounds played.

    Returns
    -------
    Trial
        Arms, rewards and regret of every round.

    Raises
    ------
    UnknownIdError
        If there is no problem or policy of that id.
    ParameterError
        If an argument or a parameter is out of range.
    ProblemError
        If the problem object breaks its contract.
    ArmError
        If the policy chooses an arm that does not exist or is not available.

    Examples
    --------
    >>> import tidepull
    >>> policy = ("d-ucb", {"discount": 0.995})
    >>> trial = tidepull.run_trial("sinusoidal-bernoulli", policy, horizon=100, seed=0)
    >>> trial.regret.shape
    (100,)
    """
    seed = _whole("seed", seed, 0)
    world_seed = seed if problem_seed is None else _whole("problem_seed", problem_seed, 0)
    rounds = _default_horizon(problem) if horizon is None else _whole("horizon", horizon, 1)
    require_memory(rounds * _BYTES_A_ROUND, f"a horizon of {rounds:,} rounds")
    world = build_problem(problem, seed=world_seed)
    if is_named(policy):
        policy = settled(policy, world, horizon=rounds, shape=shape_of(world))
    learner = build_policy(policy, shape_of(world), seed=seed)
    with one_blas_thread():
        late = late_by(delay, Streams(world_seed))
        return play(world, learner, rounds, late=late, on_round=on_round)


def play(
    problem: Problem,
    policy: Learner,
    horizon: int,
    *,
    late: LateBy | None = None,
    on_round: OnRound | None = None,
) -> Trial:
    """Play a policy object on a problem object.

    Parameters
    ----------
    problem : Problem
        The problem, from its present round on.
    policy : Learner
        The policy, in its present state.
    horizon : int
        The number of rounds.
    late : callable, optional
        Function from the round, counted from 0, to the number of rounds by which its reward is
        late, or None for never. By default rewards come when the problem says (`HasWait`), or at
        once.
    on_round : callable, optional
        Function that is called after each round with the number of rounds played.

    Returns
    -------
    Trial
        Arms, rewards and regret of every round.

    Raises
    ------
    ProblemError
        If the problem breaks its contract.
    ArmError
        If the policy chooses an arm that does not exist or is not available.

    Examples
    --------
    >>> import tidepull
    >>> problem = tidepull.build_problem("stationary-bernoulli", seed=0)
    >>> policy = tidepull.build_policy("ucb", tidepull.shape_of(problem), seed=0)
    >>> len(tidepull.play(problem, policy, horizon=20).rewards)
    20
    """
    arms = np.empty(horizon, np.int64)
    rewards, gaps, optimal = np.empty(horizon), np.empty(horizon), np.empty(horizon)
    choose = _chooser(problem, policy)
    busy = policy if isinstance(policy, protocols.HasUpkeep) else None
    wait_of = _waiting(problem, late)
    first = policy.rounds if isinstance(policy, protocols.HasRounds) else 0
    n_arms = problem.n_arms
    benchmark = problem.benchmark if isinstance(problem, protocols.HasBenchmark) else None
    # (round after which it comes, round decided, event)
    on_the_way: list[tuple[int, int, Event]] = []
    started = time.perf_counter()
    for t in range(horizon):
        context = _checked_context(problem.context(), n_arms, t)
        means = _checked_means(problem.means(), n_arms, t)
        best = benchmark() if benchmark else _best_mean(means, context)
        arm = choose(context, means)
        _check_arm(arm, context, n_arms, t)
        reward = _checked_reward(problem.step(arm), arm, t)
        wait = wait_of(t)
        if wait is not None:
            event = Event(context, int(arm), reward, decided=first + t)
            heapq.heappush(on_the_way, (t + wait, t, event))
        while on_the_way and on_the_way[0][0] <= t:
            policy.learn(heapq.heappop(on_the_way)[2])
            while busy is not None and busy.upkeep():
                pass
        arms[t], rewards[t], gaps[t], optimal[t] = arm, reward, best - means[arm], best
        if on_round is not None:
            on_round(t + 1)
    return Trial(
        arms=arms,
        rewards=rewards,
        regret=np.cumsum(gaps),
        optimal=optimal,
        seconds=time.perf_counter() - started,
        remark=problem.remark if isinstance(problem, protocols.HasRemark) else "",
        diagnostics=policy.diagnostics() if isinstance(policy, protocols.HasDiagnostics) else {},
    )


def _chooser(problem: Problem, policy: Learner) -> Callable[[Context, FloatArray], int]:
    """How the policy is asked; who is told the truth, or which rounds pay alike, is found out
    once."""
    if isinstance(policy, protocols.NeedsMeans):
        return policy.choose_knowing
    if isinstance(policy, protocols.NeedsStructure):
        if not isinstance(problem, protocols.HasStructure):
            raise ProblemError(
                f"{type(problem).__name__} does not tell its structure (structure()), which the "
                "specialist must know"
            )
        return lambda context, _: policy.choose_told(context, problem.structure())
    return lambda context, _: policy.choose(context)


def _waiting(problem: Problem, late: LateBy | None) -> LateBy:
    """From the round to the rounds by which its reward is late: as asked for, else as the problem
    says."""
    if late is not None:
        return late
    return (lambda _: problem.wait()) if isinstance(problem, protocols.HasWait) else (lambda _: 0)


def _best_mean(means: FloatArray, context: Context) -> float:
    return float((means if context.available is None else means[context.available]).max())


def _default_horizon(problem: Named | Problem) -> int:
    return problems.resolve(problem)[0].horizon if is_named(problem) else 4096


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def _checked_context(context: Any, n_arms: int, t: int) -> Context:
    if not isinstance(context, Context):
        raise ProblemError(
            f"the problem's context() must return a tidepull.Context, got {context!r} in round {t}"
        )
    if context.available is not None:
        mask(context.available, n_arms)
    return context


def _checked_means(means: Any, n_arms: int, t: int) -> FloatArray:
    try:
        values: FloatArray = np.asarray(means, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n_arms,) or not np.isfinite(values).all():
        raise ProblemError(
            f"the problem's means() must be {n_arms} finite numbers, got {means!r} in round {t}"
        )
    return values


def _checked_reward(reward: Any, arm: int, t: int) -> float:
    try:
        value = math.nan if isinstance(reward, str | bytes) else float(reward)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise ProblemError(
            f"the problem's step({arm}) returned {reward!r} in round {t}; rewards must be finite "
            "numbers"
        )
    return value


def _check_arm(arm: int, context: Context, n_arms: int, t: int) -> None:
    if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < n_arms:
        raise ArmError(
            f"the policy chose {arm!r} in round {t}; arms are whole numbers from 0 to {n_arms - 1}"
        )
    if context.available is not None and not context.available[arm]:
        raise ArmError(f"the policy chose arm {arm} in round {t}, which is not available")
