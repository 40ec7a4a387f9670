"""How each setting of the table was chosen and from how many trials, as the suites that played it say."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tidepull.experiments.grid import setting_text
from tidepull.reporting.published import GRIDS
from tidepull.reporting.tables import Cell, Table

SHOWN = {
    "nlps-best": "best NN",
    "rnlps-best": "best RNN",
    "nlps-default": "default NN",
    "rnlps-default": "default RNN",
    "d-ucb": "D-UCB",
    "d-ucb-best": 'D-UCB, "searched"',
    "d-lin-ucb": "D-LinUCB",
    "sw-ucb": "SW-UCB",
    "sw-ucb-best": 'SW-UCB, "searched"',
    "sw-lin-ucb": "SW-LinUCB",
}
"""Columns of the table that settings were chosen for."""
_SEARCHED = ("epsilon", "temperature", "discount", "window", *GRIDS["nlps", "contextual"])
"""Parameters that the paper's grids vary, in the order in which they are shown."""
_RULE_OF = {"epsilon": "epsilon-greedy", "temperature": "boltzmann"}
"""Those that count with one kind of exploration only."""


@dataclass(frozen=True, slots=True)
class _Choice:
    name: str
    problems: tuple[str, ...]
    setting: str
    words: str


def chosen_table(suites: Mapping[str, str]) -> Table:
    """A row for each setting that some suite says how it was chosen; `suites` are their texts by name."""
    merged: dict[tuple[str, str, str], list[str]] = {}
    for choice in _choices(suites):
        merged.setdefault((choice.name, choice.setting, choice.words), []).extend(choice.problems)
    rows = tuple(
        (Cell(name), Cell(", ".join(dict.fromkeys(problems))), Cell(setting or "–"), Cell(words))
        for (name, setting, words), problems in merged.items()
    )
    columns = ("policy", "problems", "setting", "how it was chosen")
    return Table("chosen", "How the settings were chosen", columns, rows)


def chosen_lines(suites: Mapping[str, str]) -> Iterator[str]:
    """The same in short, for the columns of the paper's table: a line of Markdown for each; problems are named only
    where a column was not chosen in the same way on all of them."""
    found: dict[str, dict[str, list[str]]] = {}
    for choice in _choices(suites):
        if choice.name in SHOWN:
            by_words = found.setdefault(SHOWN[choice.name], {})
            by_words.setdefault(choice.words, []).extend(choice.problems)
    for head in SHOWN.values():
        if head in found:
            several = len(found[head]) > 1
            parts = [
                f"{words}, on {', '.join(dict.fromkeys(on))}" if several else words
                for words, on in found[head].items()
            ]
            yield f"- {head}: {'; '.join(parts)}."


def _choices(suites: Mapping[str, str]) -> Iterator[_Choice]:
    """All that suites say, reports before selections; a default that our own search chose is called so where the
    paper's is there too."""
    written = (
        tomllib.loads(text) for text in suites.values() if text
    )  # `tune` asks for trials without a file
    tables = sorted(written, key=_is_selection)
    taken = {policy["name"] for table in tables if not _is_selection(table) for policy in table["policies"]}
    for table in tables:
        names = [problem.get("name", problem["id"]) for problem in table["problems"]]
        for policy in table["policies"]:
            if words := policy.get("chosen"):
                name = policy["name"]
                twice = name in taken and _is_selection(table)
                on = [p for p in names if any(fnmatchcase(p, w) for w in policy.get("problems", ("*",)))]
                setting = setting_text(_searched(policy.get("parameters", {})))
                yield _Choice(f"{name}-selected" if twice else name, tuple(on), setting, words)


def _searched(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What a grid varies and what counts; suites that were written from an archive name every parameter."""
    rule = parameters.get("exploration")
    return {k: parameters[k] for k in _SEARCHED if k in parameters and _RULE_OF.get(k, rule) == rule}


def _is_selection(table: Mapping[str, Any]) -> bool:
    return str(table["name"]).endswith("-selected")
