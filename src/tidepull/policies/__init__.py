"""The policies by id, and how one is built; the module of a policy is imported when its id is asked
for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast, overload

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters
from tidepull.protocols import AsksProblem, Learner, Problem
from tidepull.random import Streams
from tidepull.registry import Declared, Named, is_named, policies, require_members
from tidepull.types import ProblemShape

if TYPE_CHECKING:
    from tidepull.policies.guard import Guarded

__all__ = ["build_policy", "policies", "settled"]


_DECLARED: tuple[Declared, ...] = (
    ("random", "policies.baselines", "NoParameters", "RandomPolicy", {},
     "every arm equally likely"),
    ("fixed", "policies.baselines", "FixedParameters", "FixedPolicy", {},
     "one arm for ever"),
    ("oracle", "policies.baselines", "NoParameters", "OraclePolicy", {},
     "the best arm by the true means (the loop's privilege)"),
    ("specialist", "policies.baselines", "NoParameters", "Specialist", {},
     "told which rounds pay alike, with only the values to learn (the loop's privilege)"),
    ("ucb", "policies.arms", "UcbParameters", "ucb", {},
     "UCB1: mean plus confidence width"),
    ("d-ucb", "policies.arms", "DiscountedUcbParameters", "discounted_ucb", {},
     "UCB with discounted rounds"),
    ("sw-ucb", "policies.arms", "SlidingUcbParameters", "sliding_ucb", {},
     "UCB on a sliding window"),
    ("bernoulli-ts", "policies.arms", "BernoulliThompsonParameters", "BernoulliThompson", {},
     "Thompson sampling for rewards of 0 and 1"),
    ("lin-ucb", "policies.linear", "LinearUcbParameters", "linear_ucb", {},
     "linear UCB (also known as OFUL)"),
    ("lin-ts", "policies.linear", "LinearThompsonParameters", "LinearThompson", {},
     "linear Thompson sampling"),
    ("d-lin-ucb", "policies.linear", "DiscountedLinearUcbParameters", "discounted_linear_ucb", {},
     "linear UCB with discounted rounds"),
    ("sw-lin-ucb", "policies.linear", "SlidingLinearUcbParameters", "sliding_linear_ucb", {},
     "linear UCB on a sliding window"),
    ("hour-table", "policies.controls", "TableParameters", "CounterTable", {},
     "counters for each hour of the day, 5% random arms"),
    ("hour-weekend-table", "policies.controls", "TableParameters", "CounterTable",
     {"defaults": {"cells": "hour-weekend"}},
     "counters for each hour of weekdays and weekends, 5% random arms"),
    ("hour-weekday-table", "policies.controls", "TableParameters", "CounterTable",
     {"defaults": {"cells": "hour-weekday"}},
     "counters for each hour of the week, 5% random arms"),
    ("last-best", "policies.controls", "GreedyParameters", "LastBest", {},
     "the arm whose latest reward is the highest, 5% random arms"),
    ("hand-ts", "policies.controls", "NoParameters", "HandThompson", {},
     "linear Thompson sampling on two waves of the day, the weekend and the context"),
    ("hurdle-ts", "policies.controls", "NoParameters", "HurdleThompson", {},
     "hand-ts for money: the chance of a payment times its size"),
    ("rnlps", "policies.presets", "RnlpsParameters", "rnlps", {},
     "recurrent neural-linear posterior sampling"),
    ("nlps", "policies.presets", "NlpsParameters", "nlps", {},
     "feedforward neural-linear posterior sampling"),
    ("structural-ts", "tide.structural", "NoParameters", "StructuralThompson", {"version": 5},
     "Thompson sampling over structural time-series models: hours, weekdays, context, deviations"),
    ("tide", "tide", "TideParameters", "Tide", {"version": 9},
     "posterior sampling over models of time: hours, weekdays, context, and patterns in rounds"),
)  # fmt: skip
policies.declare(_DECLARED, "tidepull")


@overload
def build_policy(policy: Named, shape: ProblemShape, *, seed: int) -> Guarded: ...
@overload
def build_policy(policy: Learner, shape: ProblemShape, *, seed: int) -> Learner: ...
def build_policy(policy: Named | Learner, shape: ProblemShape, *, seed: int) -> Learner:
    """Build a policy from its id behind its guard, on its own stream of a seed.

    Parameters
    ----------
    policy : str, (str, dict) or Learner
        An id, an `(id, {parameters})` pair, or an object, which is returned as it is.
    shape : ProblemShape
        What the policy may know of the problem in advance; see `shape_of`.
    seed : int
        The trial's seed; the policy draws from the stream "policy" of it.

    Returns
    -------
    Learner
        The policy; one that is built from an id checks its input and can be saved.

    Raises
    ------
    UnknownIdError
        If there is no policy of that id.
    ParameterError
        If a parameter does not exist, or its value is out of range.
    MissingExtraError
        If the policy needs a package that is not installed.

    Examples
    --------
    >>> import tidepull
    >>> policy = build_policy("ucb", tidepull.ProblemShape(n_arms=2), seed=0)
    >>> arm = policy.choose(tidepull.Context())
    >>> policy.learn(tidepull.Event(tidepull.Context(), arm, reward=1.0))
    """
    if is_named(policy):
        from tidepull.policies.guard import guarded

        entry, parameters = policies.resolve(policy)
        if entry.library is not None:
            entry.library.require(entry.id)
        return guarded(entry, parameters, shape, Streams(seed).child("policy"))
    require_members(policy, "policy", ("choose", "learn"))
    return cast(Learner, policy)


def settled(
    policy: Named, problem: Problem, *, horizon: int, shape: ProblemShape
) -> tuple[str, Mapping[str, Any]]:
    """Fill in the parameters that are left to the problem by the problem's own values."""
    entry, parameters = policies.resolve(policy)
    if not isinstance(parameters, AsksProblem) or not parameters.asks:
        return (policy, {}) if isinstance(policy, str) else policy
    try:
        filled = parameters.settled(problem, horizon=horizon, dim=shape.arm_dim)
    except ParameterError as error:
        raise ParameterError(f"{entry.id}: {error}") from None
    return entry.id, cast(Parameters, filled).to_mapping()
