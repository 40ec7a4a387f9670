"""The paper's table: ours in each cell, the paper's figure below it, the difference in standard errors below that."""

from __future__ import annotations

from collections.abc import Sequence

from tidepull.paper.averages import MARK, Average, average_of
from tidepull.paper.combine import in_column, searched_beside
from tidepull.reporting import published
from tidepull.reporting.frames import Study
from tidepull.reporting.published import errors_apart
from tidepull.reporting.stats import summarise
from tidepull.reporting.tables import Cell, Table, spread

HEADS = {
    "nlps-best": "best NN",
    "rnlps-best": "best RNN",
    "nlps-default": "default NN",
    "rnlps-default": "default RNN",
    "discounted": "D-(Lin)UCB",
    "windowed": "SW-(Lin)UCB",
}


def overview(reports: Sequence[Study], averages: Sequence[Average] = ()) -> Table:
    """A row for each problem of the paper; what was not kept trial by trial comes from `averages`, with a mark."""
    rows = [row for study in reports if study.problem in published.REGRET and (row := _row(study, averages))]
    played = {study.problem for study in reports}
    rows += [_not_played(problem) for problem in published.REGRET if rows and problem not in played]
    columns = ("problem", *(HEADS[column] for column in published.COLUMNS))
    return Table("paper-table", "Final regret, ours and the paper's", columns, tuple(rows))


def full_length(study: Study) -> bool:
    """Whether the trials have as many rounds as the paper's."""
    return published.HORIZONS.get(study.problem) == study.horizon


def _row(study: Study, averages: Sequence[Average]) -> tuple[Cell, ...] | None:
    full = full_length(study)
    ours: dict[str, Average] = {}
    kept = set()
    for column in published.COLUMNS:
        if group := in_column(study, column):
            s = summarise(group.regrets)
            ours[column] = Average("", study.problem, column, study.horizon, s.mean, s.std, s.trials)
            kept.add(column)
        elif full and (average := average_of(averages, study.problem, column)):
            ours[column] = average
    if not ours:
        return None
    lowest = min(average.mean for average in ours.values())
    cells = [Cell(study.title + ("" if full else f", {study.horizon:,} rounds"))]
    for column in published.COLUMNS:
        lines = []
        if mine := ours.get(column):
            text = spread(mine.mean, mine.std).text
            mark = "" if column in kept else f" {MARK}"
            lines.append((f"**{text}**" if mine.mean == lowest else text) + mark)
        if other := searched_beside(study, column):
            s = summarise(other.regrets)
            lines.append(f"searched: {spread(s.mean, s.std).text}")
        if full and (theirs := published.figure(study.problem, column)):
            lines.append(f"*{spread(theirs.mean, theirs.std).text}*")
            if mine and mine.trials > 1:
                lines.append(f"({errors_apart(mine.mean, mine.std, mine.trials, theirs):+.1f} s.e.)")
        cells.append(Cell("<br>".join(lines) or "–"))
    return tuple(cells)


def _not_played(problem: str) -> tuple[Cell, ...]:
    theirs = (published.figure(problem, column) for column in published.COLUMNS)
    return (
        Cell(f"{problem}<br>(not played)"),
        *(Cell(f"*{spread(cell.mean, cell.std).text}*" if cell else "–") for cell in theirs),
    )
