"""`--set name=value` on the command line becomes parameters of the policy or of the problem."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters
from tidepull.policies import policies
from tidepull.problems import problems
from tidepull.registry import Named


def split_settings(problem: str, policy: str, assignments: list[str]) -> tuple[Named, Named]:
    """Give each assignment to the one of the two that has such a parameter.

    Where both have one, `policy.name=value` or `problem.name=value` says which is meant.
    """
    problem_names = _names(problems.entry(problem).parameters)
    policy_names = _names(policies.entry(policy).parameters)
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
        target[name] = _value(text)
    problems.resolve((problem, for_problem))
    policies.resolve((policy, for_policy))
    return (problem, for_problem), (policy, for_policy)


def policy_of(text: str) -> Named:
    """A policy with its parameters in one word.

    >>> policy_of("d-ucb:discount=0.99:xi=0.1")
    ('d-ucb', {'discount': 0.99, 'xi': 0.1})
    """
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
        values[name.strip()] = _value(value)
    policies.resolve((id, values))
    return (id, values) if values else id


def _names(parameters: type[Parameters]) -> set[str]:
    return {f.name for f in fields(parameters)}


def _value(text: str) -> Any:
    """JSON where it is JSON; "32,32,32" is a list; anything else is text."""
    text = text.strip().strip("()")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    if "," in text:
        return [_value(part) for part in text.split(",")]
    return {"none": None, "True": True, "False": False}.get(text, text)
