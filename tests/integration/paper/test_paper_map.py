"""`docs/paper.md` names code, commands, suites and results: all of them must be there."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from tidepull.cli.app import app
from tidepull.cli.options import split_settings
from tidepull.experiments.suite import find_suite
from tidepull.policies import policies
from tidepull.problems import problems
from tidepull.reporting import published

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
TEXT = (DOCS / "paper.md").read_text()
QUOTED = sorted(set(re.findall(r"`([^`]+)`", TEXT)))
CODE = [text for text in QUOTED if re.fullmatch(r"[\w/]+\.py(:[\w.]+)?", text)]
COMMANDS = [text for text in QUOTED if text.startswith("tidepull ")]
LINKS = sorted(set(re.findall(r"\]\(([^)]+)\)", TEXT)))


@cache
def names_in(path: Path) -> frozenset[str]:
    """Everything that a module defines, with the members of its classes behind a dot."""
    return frozenset(_defined(ast.parse(path.read_text()).body))


def _defined(body: list[ast.stmt], before: str = "") -> list[str]:
    found: list[str] = []
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(before + node.name)
        if isinstance(node, ast.ClassDef):
            found += _defined(node.body, f"{before}{node.name}.")
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        found += [before + target.id for target in targets if isinstance(target, ast.Name)]
    return found


def missing_code(named: str) -> bool:
    path, _, name = named.partition(":")
    file = ROOT / "src" / "tidepull" / path
    return not file.is_file() or (bool(name) and name not in names_in(file))


def understood(command: str) -> None:
    """Parse a command as the command line does, and look up the ids and suites in it."""
    words = shlex.split(command)[1:]
    found: Any = typer.main.get_command(app)
    while hasattr(found, "commands"):
        _, found, words = found.resolve_command(typer.Context(found), words)
    given = found.make_context(found.name, list(words)).params
    if found.name in ("sweep", "search"):
        assert find_suite(given["suite"]).is_file()
    if found.name == "run":
        problem, policy = split_settings(given["problem"], given["policy"], given["set_"])
        problems.resolve(problem)
        policies.resolve(policy)


def missing_heading(link: str) -> bool:
    file, _, anchor = link.partition("#")
    if file.startswith("http"):
        return False
    file = file or "paper.md"
    headings = re.findall(r"(?m)^#+ (.+)$", (DOCS / file).read_text())
    slugs = [
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower()) for text in headings
    ]
    return bool(anchor) and anchor not in slugs


def test_code_and_headings_that_the_page_names_are_there() -> None:
    assert [named for named in CODE if missing_code(named)] == []
    assert [link for link in LINKS if missing_heading(link)] == []


def test_commands_that_the_page_names_are_understood() -> None:
    for command in COMMANDS:
        understood(command)


@pytest.mark.parametrize(
    "command",
    [
        "tidepull reproduce everything",
        "tidepull reproduce --no-such-option",
        "tidepull sweep paper-nothing",
        "tidepull run flipping-gaussian nobody",
        "tidepull run flipping-gaussian rnlps --set init=unheard-of",
    ],
)
def test_commands_that_do_not_exist_are_noticed(command: str) -> None:
    with pytest.raises(Exception, match=r"."):
        understood(command)


def test_page_has_all_parts_of_the_paper() -> None:
    assert (len(CODE) > 90, len(COMMANDS) > 45, len(LINKS) > 20) == (True, True, True)
    for words in (
        "2.1",
        "2.2",
        "2.3",
        "2.4",
        "3.1",
        "3.2",
        "4.1.4",
        "4.2",
        "4.3",
        "4.4.5",
        "4.5",
        "A.5",
        "Table 1",
        "Table 2",
    ):
        assert words in TEXT
    more = ("criteo-partial-flip", "criteo-flipping", "stationary-bernoulli", "stationary-vector")
    assert [
        problem for problem in (*published.HORIZONS, *more) if f"run {problem} " not in TEXT
    ] == []


def test_names_and_headings_that_do_not_exist_are_noticed() -> None:
    assert not missing_code("experiments/loop.py:Trial.regret")
    assert missing_code("experiments/loop.py:Trial.nothing")
    assert missing_code("bench/nothing.py")
    assert missing_heading("results.md#nothing")
