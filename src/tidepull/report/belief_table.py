"""What a policy that explains itself believed at the end of each trial, as a table."""

from __future__ import annotations

from collections.abc import Mapping

from tidepull.analysis.frame import Group, Study
from tidepull.report.tables import Cell, Table, number


def beliefs_table(study: Study, group: Group) -> Table:
    """A row for each trial: the leading hypothesis at its end, how sure, and the next one."""
    rows = []
    for row in group.rows:
        first, *others = row.diagnostics["beliefs"]["leading"]
        second = [Cell(others[0]["words"]), _percent(others[0])] if others else [Cell("–"), Cell("–")]
        rows.append(
            (
                Cell(f"seed {row.seed}", row.seed),
                Cell(first["words"]),
                _percent(first),
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


def _percent(belief: Mapping[str, float]) -> Cell:
    return number(100 * belief["weight"], 0, unit="%")
