"""How each setting of the table was chosen and from how many trials, as the suites that played it say."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from tidepull.report.tables import Cell, Table

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


def chosen_table(suites: Mapping[str, str]) -> Table:
    """A row for each policy of a suite that says how it was chosen; `suites` are their texts by name."""
    rows = tuple(row for text in suites.values() for row in _rows(tomllib.loads(text)))
    return Table("chosen", "How the settings were chosen", ("policy", "problems", "how it was chosen"), rows)


def chosen_lines(suites: Mapping[str, str]) -> Iterator[str]:
    """The same in short, for the columns of the paper's table: a line of Markdown for each; problems are named only
    where a column was not chosen in the same way on all of them."""
    found: dict[str, dict[str, list[str]]] = {}
    for text in suites.values():
        for name, problems, words in (tuple(cell.text for cell in row) for row in _rows(tomllib.loads(text))):
            if name in SHOWN:
                found.setdefault(SHOWN[name], {}).setdefault(words, []).append(problems)
    for head in SHOWN.values():
        if head in found:
            several = len(found[head]) > 1
            parts = [
                f"{words}, on {', '.join(dict.fromkeys(on))}" if several else words
                for words, on in found[head].items()
            ]
            yield f"- {head}: {'; '.join(parts)}."


def _rows(suite: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    """Policy, problems and words; a default that our own search chose is called so, as on the page."""
    for policy in suite.get("policies", ()):
        if words := policy.get("chosen"):
            name, problems = policy["name"], ", ".join(policy.get("problems", ("all problems",)))
            if name.endswith("-default") and suite["name"].endswith("-selected"):
                name = f"{name}-selected"
            yield Cell(name), Cell(problems), Cell(words)
