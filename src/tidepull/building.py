"""From ids to objects: a problem and a policy, each on its own stream of a seed, and the shape between them."""

from __future__ import annotations

from typing import Any, TypeGuard, cast, overload

import numpy as np

from tidepull.errors import ProblemError
from tidepull.policies import policies
from tidepull.policies.guard import Guarded, guarded
from tidepull.problems import problems
from tidepull.protocols import Learner, Problem
from tidepull.registry import Named
from tidepull.seeds import Streams
from tidepull.types import ProblemShape


def build_problem(problem: Named | Problem, *, seed: int) -> Problem:
    """The problem itself when given an object, else built from its id on its own stream."""
    if is_named(problem):
        entry, parameters = problems.resolve(problem)
        return entry.build(parameters, Streams(seed).child("problem"))
    _require(problem, "problem", ("n_arms", "context", "means", "step"))
    return cast(Problem, problem)


@overload
def build_policy(policy: Named, shape: ProblemShape, *, seed: int) -> Guarded: ...
@overload
def build_policy(policy: Learner, shape: ProblemShape, *, seed: int) -> Learner: ...
def build_policy(policy: Named | Learner, shape: ProblemShape, *, seed: int) -> Learner:
    """The policy itself when given an object, else built from its id on its own stream, behind its guard."""
    if is_named(policy):
        entry, parameters = policies.resolve(policy)
        return guarded(entry, parameters, shape, Streams(seed).child("policy"))
    _require(policy, "policy", ("choose", "learn"))
    return cast(Learner, policy)


def shape_of(problem: Problem) -> ProblemShape:
    """What a policy may know in advance, read off the problem's first context."""
    context = problem.context()
    n_arms = problem.n_arms
    if not isinstance(n_arms, int | np.integer) or n_arms < 1:
        raise ProblemError(f"the problem's n_arms must be a whole number of at least 1, got {n_arms!r}")
    return ProblemShape(
        n_arms=int(n_arms),
        observation_dim=0 if context.observation is None else int(np.size(context.observation)),
        arm_dim=0 if context.arm_features is None else int(np.shape(context.arm_features)[1]),
    )


def is_named(value: Any) -> TypeGuard[Named]:
    """Whether it is an id or an `(id, {parameters})` pair."""
    return isinstance(value, str) or (
        isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)
    )


def _require(value: Any, noun: str, members: tuple[str, ...]) -> None:
    missing = [name for name in members if not hasattr(value, name)]
    if missing:
        raise ProblemError(
            f"a {noun} is an id, an (id, {{parameters}}) pair, or an object with {', '.join(members)}; "
            f"{type(value).__name__} has no {missing[0]}"
        )
