"""How large an agent may be: numbers for one decision, and memory, estimated from two small copies of
its policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tidepull.agent.arms import Arm, Arms
from tidepull.agent.clock import Clock
from tidepull.agent.learning import shape_of
from tidepull.agent.schema import Schema
from tidepull.agent.settings import AgentSettings
from tidepull.errors import ParameterError
from tidepull.policies import build_policy, policies
from tidepull.types import Context, ProblemShape

MEMORY = 2_000_000_000
"""Bytes of the arrays that an agent's policy may have."""

DRAWN = 20_000_000
"""Numbers that may be drawn for a decision: arms x draws x columns of the context."""

COLUMNS, ARM_COLUMNS = 2048, 4096
"""Columns into which a context may be encoded, and an arm with features in a context."""

_A_TIME = 1.8e9
"""Agents give their policies the time, in seconds since 1970."""
_SMALL, _FEW_ARMS = 50_000_000, 64
"""Agents of so few arms, and so few bytes for a covariance matrix each, are not estimated."""


def require_affordable_settings(settings: AgentSettings) -> None:
    """A `ParameterError` where a new agent would be too large."""
    arms = Arms([Arm(*arm) for arm in settings.arms], settings.capacity)
    schema = None if settings.context is None else Schema(settings.context, Clock())
    require_affordable(settings, shape_of(settings, arms, schema))


def require_affordable(settings: AgentSettings, shape: ProblemShape) -> None:
    """A `ParameterError` where a policy would be too large for a shape."""
    columns, most = shape.observation_dim, COLUMNS
    drawn = settings.propensity_draws * shape.n_arms * (1 + columns)
    if shape.arm_dim:
        columns, most = shape.arm_dim, ARM_COLUMNS
        drawn = settings.propensity_draws * (shape.n_arms + columns)
    fewer = "arms (capacity), fields or tags"
    if columns > most:
        raise ParameterError(
            f"context: {columns:,} columns are more than {most:,}, the most that an agent takes: "
            f"take fewer {fewer}"
        )
    if drawn > DRAWN:
        raise ParameterError(
            f"propensity_draws: {settings.propensity_draws:,} draws for {shape.n_arms:,} arms and "
            f"{columns:,} columns of the context are {drawn:,} numbers for a decision, and an agent "
            f"draws {DRAWN:,} at most: take fewer draws, {fewer}"
        )
    needed = _memory(settings, shape, columns)
    if needed > MEMORY:
        raise ParameterError(
            f"{settings.policy} would take about {needed / 1e9:.1f} GB of memory for "
            f"{shape.n_arms:,} arms and {columns:,} columns of the context, and an agent may take "
            f"{MEMORY / 1e9:g}: take fewer {fewer}, a smaller window, or another policy, such as bernoulli-ts"
        )


def _memory(settings: AgentSettings, shape: ProblemShape, columns: int) -> float:
    """Bytes that a policy takes, about."""
    _, parameters = policies.resolve((settings.policy, settings.parameters))
    window = getattr(parameters, "window", 0)
    remembered = 8.0 * (columns + 3) * window if isinstance(window, int) else 0.0
    if remembered > MEMORY:
        return remembered
    square = (1 if shape.arm_dim else shape.n_arms) * (1 + columns) ** 2 * 8.0
    if shape.n_arms <= _FEW_ARMS and square < _SMALL:
        return remembered
    few = max(2, min(20, shape.n_arms // 4))
    first, second = (_built_size(settings, replace(shape, n_arms=n)) for n in (few, 2 * few))
    return remembered + first + (shape.n_arms - few) * max(0.0, second - first) / few


def _built_size(settings: AgentSettings, shape: ProblemShape) -> int:
    """Bytes of all arrays of a policy of some shape after its first decision, before which some
    build nothing."""
    policy = build_policy((settings.policy, settings.parameters), shape, seed=0)
    seen_first = Context(
        observation=np.zeros(shape.observation_dim) if shape.observation_dim else None,
        arm_features=np.zeros((shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
        time=_A_TIME,
    )
    policy.choose(seen_first)
    left: list[Any] = [policy]
    total, seen = 0, set[int]()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            if isinstance(one.base, np.ndarray):
                left.append(one.base)
            else:
                total += one.nbytes
        elif isinstance(one, Mapping):
            left += one.values()
        elif isinstance(one, list | tuple | set | deque):
            left += one
        elif type(one).__module__.startswith("tidepull"):
            left += getattr(one, "__dict__", {}).values()
            names = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
            left += [getattr(one, name, None) for name in names]
    return total
