"""All that was reported of a problem, whichever suite it came from, as one study.

Searches (studies with grids) stay out: what they chose is reported on seeds that they never saw. So do trials
with late rewards, of which the paper has none, and comparisons of exploration rules, which have a place of their own
(`exploration.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tidepull.experiments.delay import AT_ONCE
from tidepull.experiments.grid import rung_number
from tidepull.experiments.spec import canonical
from tidepull.paper.exploration import exploring
from tidepull.reporting import published
from tidepull.reporting.frames import Group, Study
from tidepull.reporting.published import paper_column

FIRST = ("paper-table", "quick-table")
"""Suites whose names stand when another suite uses the same name for another setting."""


def combined(studies: Sequence[Study]) -> list[Study]:
    """One study for each problem and horizon, in the paper's order, then by name."""
    merged: dict[tuple[str, int, str], Study] = {}
    reports = [
        s
        for s in studies
        if not s.grids and not rung_number(s.suite) and s.delay == AT_ONCE and not exploring(s)
    ]
    for study in sorted(reports, key=lambda study: (study.suite not in FIRST, study.suite == "")):
        key = (study.problem, study.horizon, canonical(dict(study.parameters)))
        present = merged.get(key)
        merged[key] = study if present is None else replace(present, groups=_joined(present, study))
    order = list(published.REGRET)
    return sorted(
        merged.values(),
        key=lambda s: (order.index(s.problem) if s.problem in order else len(order), s.problem, -s.horizon),
    )


def _joined(present: Study, more: Study) -> tuple[Group, ...]:
    groups = {group.name: group for group in present.groups}
    for group in more.groups:
        known = groups.get(group.name)
        if known is None:
            groups[group.name] = group
        elif known.hashes != group.hashes:
            # Trials that no suite of the store asks for any more are those of an earlier choice.
            name = f"{group.name}-{'selected' if more.suite else 'earlier'}"
            groups.setdefault(name, replace(group, name=name))
    return tuple(groups.values())


def in_column(study: Study, column: str) -> Group | None:
    """The group that stands in a column of the paper's table; the paper's own settings before ours."""
    able = [group for group in study.groups if paper_column(group.name) == column]
    return min(
        able, key=lambda group: group.name.endswith("-best") and column not in group.name, default=None
    )


def searched_beside(study: Study, column: str) -> Group | None:
    """The setting that our own search chose, where another one (known to reproduce the paper) stands in the column."""
    stands = in_column(study, column)
    able = [g for g in study.groups if g.name.endswith("-best") and paper_column(g.name) == column]
    return next((group for group in able if stands and group.hashes != stands.hashes), None)


def main_groups(study: Study, others: Iterable[str] = ("random", "tide")) -> tuple[Group, ...]:
    """The groups of the paper's table, and a few more, for pictures that would else be crowded."""
    shown = [group for column in published.COLUMNS if (group := in_column(study, column))]
    return (*shown, *(group for group in study.groups if group.name in others))
