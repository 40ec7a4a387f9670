"""How each setting of the table was chosen and from how many trials, as the suites that played it say."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from tidepull.report.tables import Cell, Table


def chosen_table(suites: Mapping[str, str]) -> Table:
    """A row for each policy of a suite that says how it was chosen; `suites` are their texts by name."""
    rows = tuple(row for text in suites.values() for row in _rows(tomllib.loads(text)))
    return Table("chosen", "How the settings were chosen", ("policy", "problems", "how it was chosen"), rows)


def _rows(suite: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for policy in suite.get("policies", ()):
        if words := policy.get("chosen"):
            problems = ", ".join(policy.get("problems", ("all",)))
            yield Cell(policy["name"]), Cell(problems), Cell(words)
