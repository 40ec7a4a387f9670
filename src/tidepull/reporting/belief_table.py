"""What a policy that explains itself believed at the end of each trial, as a table."""

from __future__ import annotations

from tidepull.reporting.beliefs import beliefs_of
from tidepull.reporting.frame import Group, Study
from tidepull.reporting.tables import Cell, Table, number


def beliefs_table(study: Study, group: Group) -> Table:
    """A row for each trial: the leading hypothesis at its end, how sure, and the next one."""
    rows = []
    for row in group.rows:
        told = beliefs_of(row.diagnostics)
        assert told is not None, f"{group.name} has no beliefs"
        (words, weight), *others = told.leading
        second = [Cell(others[0][0]), _percent(others[0][1])] if others else [Cell("–"), Cell("–")]
        rows.append(
            (
                Cell(f"seed {row.seed}", row.seed),
                Cell(words),
                _percent(weight),
                *second,
                number(row.regret),
            )
        )
    return Table(
        f"beliefs-{study.suite or 'other'}-{study.slug}-{group.name}",
        f"What {group.name} believed at the end",
        ("trial", "leading hypothesis", "weight", "next", "its weight", "final regret"),
        tuple(rows),
    )


def _percent(weight: float) -> Cell:
    return number(100 * weight, 0, unit="%")
