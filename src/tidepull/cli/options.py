"""Options that several commands share, and values in one word."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from tidepull.errors import ParameterError
from tidepull.experiments.grid import MOST_SEEDS, parse_seeds
from tidepull.parameters import Parameters
from tidepull.registry import Named

SEEDS = "a list such as 0-9 or 0,3,5; a number alone counts: 10 is 0-9, and only seed 7 is 7-7."
"""The end of the help of every `--seeds`."""

DELAY = Option(
    "0",
    help="Rounds until a reward comes: N, or geometric:MEAN[:LOST] (LOST: share that never comes).",
)
JSON = Option(False, "--json", help="Print only JSON.")
SET = Option([], "--set", metavar="NAME=VALUE", help="Set a parameter; may be repeated.")
PARTIAL_HELP = "Leave out trials whose data or extras are missing here, and run the others."

# Options of commands that other commands call: with usual defaults.
Out = Annotated[Path | None, Option(help="Store to write to. Default: out/NAME.")]
Known = Annotated[
    list[Path] | None,
    Option(
        help="CSV file or folder of finished trials, which are not played again; may be repeated."
    ),
]
Workers = Annotated[int | None, Option(help="Number of processes. Default: one for each core.")]
On = Annotated[
    Literal["local", "here", "ray"],
    Option(help="Where trials run: local processes, this process (here), or a Ray cluster."),
]
Address = Annotated[str | None, Option(help="Ray cluster address. Default: the local cluster.")]
Only = Annotated[
    list[str] | None,
    Option(
        metavar="PATTERN",
        help="Only trials whose id matches, such as '*/rnlps*/*'; may be repeated.",
    ),
]
DryRun = Annotated[bool, Option("--dry-run", help="Count and estimate; run nothing.")]
RetryFailed = Annotated[bool, Option("--retry-failed", help="Also run failed trials again.")]
Partial = Annotated[bool, Option("--partial", help=PARTIAL_HELP)]
Json = Annotated[bool, Option("--json", help="Print only JSON.")]


def seeds_of(text: str, option: str = "--seeds") -> tuple[int, ...]:
    """Parse the seeds of an option, in rising order."""
    try:
        if not text.strip().isdecimal():
            return parse_seeds(text)
        count = int(text)
        if not 1 <= count <= MOST_SEEDS:
            raise ValueError(f"there must be 1 to {MOST_SEEDS:,} of them, got {count:,}")
        return tuple(range(count))
    except ValueError as error:
        raise ParameterError(f"{option}: {error}") from None


def parse_budget(text: str) -> float:
    """Convert `90s`, `30m` or `2h` to seconds; a bare number is minutes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise ParameterError(f"--budget {text}: write a time such as 90s, 30m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600, "": 60}[match[2]]


def split_settings(problem: str, policy: str, assignments: list[str]) -> tuple[Named, Named]:
    """Give each `name=value` to the one of the two that has such a parameter.

    Where both have one, `policy.name=value` or `problem.name=value` says which is meant.
    """
    from tidepull.policies import policies
    from tidepull.problems import problems

    problem_names = _parameter_names(problems.entry(problem).parameters)
    policy_names = _parameter_names(policies.entry(policy).parameters)
    for_problem: dict[str, Any] = {}
    for_policy: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise ParameterError(f"--set {assignment}: write name=value")
        name = name.strip()
        owner, dot, plain = name.partition(".")
        if dot and owner in ("policy", "problem"):
            target, name = (for_policy if owner == "policy" else for_problem), plain
        elif name in policy_names and name in problem_names:
            raise ParameterError(
                f"--set {name}: both {policy} and {problem} have it; "
                f"write policy.{name}=... or problem.{name}=..."
            )
        else:
            target = for_problem if name in problem_names else for_policy
        if name in target:
            raise ParameterError(f"--set {name} is given twice; say it once")
        target[name] = _parse_value(text)
    problems.resolve((problem, for_problem))
    policies.resolve((policy, for_policy))
    return (problem, for_problem), (policy, for_policy)


def policy_of(text: str) -> Named:
    """Parse a policy with its parameters in one word.

    >>> policy_of("d-ucb:discount=0.99:xi=0.1")
    ('d-ucb', {'discount': 0.99, 'xi': 0.1})
    """
    from tidepull.policies import policies

    id, *assignments = text.split(":")
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise ParameterError(
                f"{text}: write parameters as id:name=value, several with colons between them"
            )
        if name.strip() in values:
            raise ParameterError(f"{text}: {name.strip()} is given twice; say it once")
        values[name.strip()] = _parse_value(value)
    policies.resolve((id, values))
    return (id, values) if values else id


def _parameter_names(parameters: type[Parameters]) -> set[str]:
    return {f.name for f in fields(parameters)}


def _parse_value(text: str) -> Any:
    """Parse JSON where it is JSON; "32,32,32" is a list; anything else is text."""
    text = text.strip().strip("()")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    if "," in text:
        return [_parse_value(part) for part in text.split(",")]
    return {"none": None, "True": True, "False": False}.get(text, text)
