"""What varies in a suite: seeds ("0-9", "0-4 7", or a list), settings (the product of a grid) and
rungs of a search.

A number alone is no list of seeds: it could be one seed or a count. The command line counts with
it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Annotated, Any

from tidepull._internal.extras import needs
from tidepull.errors import ParameterError, SuiteError
from tidepull.policies import settled
from tidepull.problems import build_problem, shape_of
from tidepull.protocols import AsksProblem
from tidepull.registry import Entry, Named

with needs("reading suites", "experiments"):
    from msgspec import Meta, Struct

MOST_SEEDS = 1_000_000


def parse_seeds(value: Any) -> tuple[int, ...]:
    """Seeds in rising order, each once; anything else is a `ValueError` that says what is
    allowed."""
    parts = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not parts:
        raise ValueError(_FORM)
    if isinstance(value, str) and value.strip().isdecimal():
        count = f' or "0-{int(value) - 1}"' if int(value) > 1 else ""
        raise ValueError(f'"{value}" could be one seed or a count: write "{value}-{value}"{count}')
    seeds: set[int] = set()
    for part in parts:
        match = re.fullmatch(_PART, str(part)) if not isinstance(part, bool) else None
        if match is None:
            raise ValueError(_FORM)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"the seeds '{part}' run backwards")
        if last - first + len(seeds) >= MOST_SEEDS:
            raise ValueError(f"more than {MOST_SEEDS:,} seeds")
        seeds.update(range(first, last + 1))
    return tuple(sorted(seeds))


def seeds_text(seeds: Iterable[int]) -> str:
    """`0-4 7` for 0, 1, 2, 3, 4, 7."""
    spans: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if spans and seed == spans[-1][1] + 1:
            spans[-1][1] = seed
        else:
            spans.append([seed, seed])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in spans)


_PART = r"(\d{1,18})(?:-(\d{1,18}))?"
_FORM = 'write seeds as "0-9", "0-4 7" or a list of whole numbers'


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One point of a grid: all its parameters, and those that vary as text
    (`epochs=16,units=32x32x32`).

    `asks` says whether some of the parameters are left to the problem.
    """

    parameters: Mapping[str, Any]
    text: str = ""
    asks: bool = False


def settings_of(
    parameters: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]
) -> list[GridPoint]:
    """The product of the grid's lists, beside the fixed parameters."""
    if twice := [name for name in grid if name in parameters]:
        raise SuiteError(f"'{twice[0]}' is both in parameters and in grid; keep it in one of them")
    return [
        GridPoint({**parameters, **point}, setting_text(point))
        for values in product(*grid.values())
        for point in [dict(zip(grid, values, strict=True))]
    ]


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


def budgeted(entry: Entry[Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with discount or window left to the problem's variation budget."""
    name = getattr(entry.parameters, "budgeted", "")
    if not name or name in parameters:
        raise SuiteError(
            f"{entry.id} does not know from_variation_budget; remove it or give the parameters"
            if not name
            else f"from_variation_budget sets '{name}', which is given too; remove one of them"
        )
    return {**parameters, name: "variation-budget"}


def from_problem(
    entry: Entry[Any], setting: GridPoint, problem: Named, *, horizon: int, seed: int
) -> GridPoint:
    """The setting with what the world says of itself."""
    world = build_problem(problem, seed=seed)
    policy = (entry.id, setting.parameters)
    _, values = settled(policy, world, horizon=horizon, shape=shape_of(world))
    return GridPoint(dict(values), setting.text)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(_text(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


class Rung(Struct, frozen=True, forbid_unknown_fields=True):
    """Trials of `share` of the horizon on the first `seeds` of the suite's seeds (None: on all of
    them)."""

    share: float
    seeds: Annotated[int, Meta(ge=1)] | None = None


class SearchRule(Struct, frozen=True, forbid_unknown_fields=True):
    """`[search]`, the rule by which `tidepull search` halves.

    Of every policy's settings, all play the first rung and the best 1 / eta of each problem the
    next one. `generalists` are the settings that stay on all problems of a kind for their mean
    normalised score: so many reach the last rung, eta times as many the one before. They are what
    a default can be chosen from.
    """

    eta: int = 4
    generalists: int = 2
    rungs: tuple[Rung, ...] = (Rung(0.25, 1), Rung(0.5, 1), Rung(1.0))


def check_rule(rule: SearchRule, n_seeds: int) -> SearchRule:
    """The rule, if it fits a suite with so many seeds."""
    if rule.eta < 2:
        raise ParameterError(f"eta must be at least 2, got {rule.eta}")
    if rule.generalists < 0:
        raise ParameterError(f"generalists must not be negative, got {rule.generalists}")
    if not rule.rungs or rule.rungs[-1].share != 1:
        raise ParameterError("the last rung must have the whole horizon: share = 1")
    efforts = []
    for number, rung in enumerate(rule.rungs, 1):
        seeds = n_seeds if rung.seeds is None else rung.seeds
        if not 0 < rung.share <= 1:
            raise ParameterError(
                f"rung {number}: share must be above 0 and at most 1, got {rung.share:g}"
            )
        if not 1 <= seeds <= n_seeds:
            raise ParameterError(
                f"rung {number}: the suite has {n_seeds} seeds, so seeds must be 1 to {n_seeds}, "
                f"got {seeds}"
            )
        efforts.append((rung.share, seeds))
    for number, (before, after) in enumerate(pairwise(efforts), 2):
        if after[0] < before[0] or after[1] < before[1] or after == before:
            raise ParameterError(
                f"rung {number} must be longer or on more seeds than rung {number - 1}, and "
                "neither less"
            )
    return rule


def parse_rungs(text: str) -> tuple[Rung, ...]:
    """Rungs as they are written on the command line: `1/4:1,1/2:1,1:5`; without seeds, all of the
    suite's."""
    return tuple(_rung(part.strip()) for part in text.split(","))


def _rung(text: str) -> Rung:
    share, colon, seeds = text.partition(":")
    try:
        return Rung(float(Fraction(share)), int(seeds) if colon else None)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(
            f"--rungs: '{text}' is no rung; write share or share:seeds, such as 1/4:1,1/2:1,1"
        ) from None


def rungs_text(rungs: Sequence[Rung]) -> str:
    """As `parse_rungs` reads them."""
    return ",".join(
        f"{Fraction(rung.share).limit_denominator(1000)}"
        + ("" if rung.seeds is None else f":{rung.seeds}")
        for rung in rungs
    )


_RUNG = re.compile(r"-rung-(\d+)-of-(\d+)$")


def plan_name(suite: str, number: int, rungs: int) -> str:
    """Under which name a store keeps what a rung (from 0) asked for."""
    return f"{suite}-rung-{number + 1}-of-{rungs}"


def searched_suite(plan: str) -> str:
    """The suite that a plan belongs to: its own name, without the rung."""
    return _RUNG.sub("", plan)


def rung_number(plan: str) -> int:
    """The number of the rung, from 1; 0 for a plan that is no rung's."""
    return int(match[1]) if (match := _RUNG.search(plan)) else 0


def is_last_rung(plan: str) -> bool:
    """Whether a plan is that of a search's last rung: full length, all the seeds that the rule
    gives it."""
    match = _RUNG.search(plan)
    return match is not None and match[1] == match[2]
