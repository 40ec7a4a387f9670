"""From ids to objects: a problem and a policy, each on its own stream of a seed, and the shape between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, cast, overload

import numpy as np

from tidepull.errors import ParameterError, ProblemError
from tidepull.parameters import Parameters
from tidepull.policies import policies
from tidepull.policies.guard import Guarded, guarded
from tidepull.problems import problems
from tidepull.protocols import AsksProblem, Learner, Problem
from tidepull.random import Streams
from tidepull.registry import Named
from tidepull.types import Context, ProblemShape


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
        if entry.guest is not None:
            entry.guest.require(entry.id)
        return guarded(entry, parameters, shape, Streams(seed).child("policy"))
    _require(policy, "policy", ("choose", "learn"))
    return cast(Learner, policy)


def settled(policy: Named, problem: Problem, *, horizon: int) -> tuple[str, Mapping[str, Any]]:
    """The policy with the problem's own values for the parameters that are left to the problem."""
    entry, parameters = policies.resolve(policy)
    if not isinstance(parameters, AsksProblem) or not parameters.asks:
        return (policy, {}) if isinstance(policy, str) else policy
    try:
        made = parameters.settled(problem, horizon=horizon, dim=shape_of(problem).arm_dim)
    except ParameterError as error:
        raise ParameterError(f"{entry.id}: {error}") from None
    return entry.id, cast(Parameters, made).to_mapping()


def shape_of(problem: Problem) -> ProblemShape:
    """What a policy may know in advance, read off the problem's first context."""
    context = problem.context()
    if not isinstance(context, Context):
        raise ProblemError(
            f"the problem's context() must return a tidepull.Context, got a {type(context).__name__}"
        )
    observed, shown = _shape(context.observation), _shape(context.arm_features)
    try:
        plain = ProblemShape(problem.n_arms)
    except ProblemError as error:
        raise ProblemError(f"the problem's {error}") from None
    if observed is not None and len(observed) != 1:
        raise ProblemError(
            f"the problem's observation must be one vector, got the shape {observed}; flatten it"
        )
    if shown is not None and (len(shown) != 2 or shown[0] != plain.n_arms):
        raise ProblemError(
            f"the problem's arm_features must be a matrix with a row for each of {plain.n_arms} arms, "
            f"got the shape {shown}"
        )
    return ProblemShape(plain.n_arms, observed[0] if observed else 0, shown[1] if shown else 0)


def _shape(values: Any) -> tuple[int, ...] | None:
    try:
        return None if values is None else np.shape(values)
    except ValueError:
        raise ProblemError("the problem's contexts must hold arrays whose rows are equally long") from None


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
