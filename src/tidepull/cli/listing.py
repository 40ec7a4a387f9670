"""`tidepull list problems|policies|external|suites`: every id, what it is, and what can be set."""

from __future__ import annotations

from dataclasses import asdict, replace
from enum import StrEnum
from typing import Any

from rich.markup import escape
from typer import Argument, Option

from tidepull.cli.console import out, print_json
from tidepull.cli.options import JSON
from tidepull.errors import ParameterError
from tidepull.experiments.suite import own_suites, read_table
from tidepull.parameters import ParameterDoc, describe
from tidepull.policies import policies
from tidepull.problems import problems
from tidepull.registry import Entry


class Listed(StrEnum):
    """What can be listed."""

    problems = "problems"
    policies = "policies"
    external = "external"
    suites = "suites"


def list_registered(
    kind: Listed = Argument(help="What to list. External policies are those of other libraries."),
    all_: bool = Option(False, "--all", help="With policies: also list those of other libraries."),
    json: bool = JSON,
) -> None:
    """List problems or policies with their parameters, or the suites of tidepull."""
    if kind is Listed.suites:
        _list_suites(json=json)
        return
    entries = _entries(kind, external=all_)
    if json:
        print_json([_as_json(entry, kind) for entry in entries])
        return
    for entry in entries:
        out.print(
            f"[bold cyan]{entry.id}[/]  {escape(entry.description + _needed(entry))}",
            soft_wrap=True,
        )
        for doc in _documented(entry):
            limits = f" \\[{doc.range}]" if doc.range else ""
            out.print(
                f"    [green]{doc.name}[/] = {doc.default}  [dim]{doc.description} "
                f"({doc.kind}{limits})[/]",
                soft_wrap=True,
            )


def _entries(kind: Listed, *, external: bool) -> list[Entry[Any]]:
    if external and kind is not Listed.policies:
        raise ParameterError(
            "--all shows external policies beside ours: tidepull list policies --all"
        )
    if kind is Listed.problems:
        return list(problems)
    if kind is Listed.external:
        return [*policies.external()]
    return [*policies, *(policies.external() if external else ())]


def _needed(entry: Entry[Any]) -> str:
    library = entry.library
    if library is None:
        return ""
    missing = f"is not installed: pip install 'tidepull[{library.extra}]'"
    return f" ({library.name} {library.version or missing})"


def _list_suites(*, json: bool) -> None:
    tables = [read_table(path) for path in sorted(own_suites().glob("*.toml"))]
    if json:
        print_json([{"id": table.name, "description": table.description} for table in tables])
        return
    for table in tables:
        out.print(f"[bold cyan]{table.name}[/]  {escape(table.description)}", soft_wrap=True)


def _documented(entry: Entry[Any]) -> list[ParameterDoc]:
    return [
        replace(doc, default=str(entry.defaults.get(doc.name, doc.default)))
        for doc in describe(entry.parameters)
    ]


def _as_json(entry: Entry[Any], kind: Listed) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": entry.id, "description": entry.description}
    if kind is Listed.problems:
        shown["horizon"] = entry.horizon
    if (library := entry.library) is not None:
        shown |= {"package": library.name, "extra": library.extra, "installed": library.version}
    return {**shown, "parameters": [asdict(doc) for doc in _documented(entry)]}
