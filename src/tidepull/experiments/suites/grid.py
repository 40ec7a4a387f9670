"""Grids: lists of candidates become settings, each with a readable text of what varies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tidepull.errors import InputError, SuiteError
from tidepull.policies import settled
from tidepull.problems import build_problem, shape_of
from tidepull.protocols import AsksProblem, HasVariationBudget, Problem
from tidepull.registry import Entry, Named


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of a grid: all its parameters, and those that vary as text (`epochs=16,units=32x32x32`).

    `asks` says whether some of the parameters are left to the problem.
    """

    parameters: Mapping[str, Any]
    text: str = ""
    asks: bool = False


def settings_of(parameters: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]) -> list[Setting]:
    """The product of the grid's lists, beside the fixed parameters."""
    if twice := [name for name in grid if name in parameters]:
        raise SuiteError(f"'{twice[0]}' is both in parameters and in grid; keep it in one of them")
    return [
        Setting({**parameters, **point}, setting_text(point))
        for values in product(*grid.values())
        for point in [dict(zip(grid, values, strict=True))]
    ]


def check_kept(keep: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]) -> None:
    """What is to be kept must be one setting of the grid."""
    if not keep:
        return
    if set(keep) != set(grid):
        raise SuiteError(f"keep must name every parameter of the grid and no other: {', '.join(grid)}")
    for name, value in keep.items():
        if value not in grid[name]:
            raise SuiteError(f"keep: {name} = {value} is no candidate of the grid, which has {grid[name]}")


def count_settings(grid: Mapping[str, Sequence[Any]]) -> int:
    """How many settings the grid has, without making them."""
    return math.prod(len(values) for values in grid.values())


def setting_text(point: Mapping[str, Any]) -> str:
    """`epochs=16,units=32x32x32`."""
    return ",".join(f"{name}={_text(value)}" for name, value in point.items())


def asks(entry: Entry[Any], parameters: Mapping[str, Any]) -> bool:
    """Whether some of a policy's parameters are left to the problem."""
    parsed = entry.parse(parameters)
    return isinstance(parsed, AsksProblem) and bool(parsed.asks)


def from_problem(
    entry: Entry[Any], setting: Setting, problem: Named, *, horizon: int, seed: int, budgeted: bool
) -> Setting:
    """The setting with what the world says of itself; `budgeted` leaves discount or window to it as well."""
    world = build_problem(problem, seed=seed)
    chosen = setting.parameters
    if budgeted:
        chosen = _from_budget(entry, chosen, world, problem[0], horizon)
    _, values = settled((entry.id, chosen), world, horizon=horizon, shape=shape_of(world))
    return Setting(dict(values), setting.text)


def _from_budget(
    entry: Entry[Any], parameters: Mapping[str, Any], world: Problem, problem: str, horizon: int
) -> Mapping[str, Any]:
    from_budget = getattr(entry.parameters, "from_variation_budget", None)
    if from_budget is None:
        raise SuiteError(f"{entry.id} does not know from_variation_budget; remove it or give the parameters")
    if not isinstance(world, HasVariationBudget):
        raise SuiteError(f"{problem} states no variation budget, which {entry.id} is to be set from")
    budget, dim = world.variation_budget(horizon), shape_of(world).arm_dim
    try:
        chosen = from_budget(budget=budget, horizon=horizon, dim=dim, **parameters)
    except (InputError, TypeError) as error:
        raise SuiteError(f"{entry.id}: {error}") from None
    values: Mapping[str, Any] = chosen.to_mapping()
    return values


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(_text(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
