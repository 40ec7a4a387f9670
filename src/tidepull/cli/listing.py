"""`tidepull list problems|policies|guests|suites`: every id, what it is, and what can be set."""

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
    guests = "guests"
    suites = "suites"


def list_registered(
    kind: Listed = Argument(help="What to list. Guests are policies of other libraries."),
    all_: bool = Option(False, "--all", help="With policies: also list guests."),
    json: bool = JSON,
) -> None:
    """List problems, policies or guests with their parameters, or the suites of tidepull."""
    if kind is Listed.suites:
        _list_suites(json=json)
        return
    entries = _entries(kind, guests=all_)
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


def _entries(kind: Listed, *, guests: bool) -> list[Entry[Any]]:
    if guests and kind is not Listed.policies:
        raise ParameterError("--all shows guests beside policies: tidepull list policies --all")
    if kind is Listed.problems:
        return list(problems)
    if kind is Listed.guests:
        return [*policies.guests()]
    return [*policies, *(policies.guests() if guests else ())]


def _needed(entry: Entry[Any]) -> str:
    guest = entry.guest
    if guest is None:
        return ""
    missing = f"is not installed: pip install 'tidepull[{guest.extra}]'"
    return f" ({guest.name} {guest.version or missing})"


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
    if (guest := entry.guest) is not None:
        shown |= {"package": guest.name, "extra": guest.extra, "installed": guest.version}
    return {**shown, "parameters": [asdict(doc) for doc in _documented(entry)]}
