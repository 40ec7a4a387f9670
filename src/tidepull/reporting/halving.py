"""What searches by halving played, and how well their short trials ranked long ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidepull.experiments.search.agreement import agreements
from tidepull.experiments.search.halving import Standing
from tidepull.experiments.suites.rungs import rung_number, searched_suite
from tidepull.reporting.duration import duration
from tidepull.reporting.frame import Group, Study
from tidepull.reporting.tables import Cell, Table, number


def halving_table(studies: Sequence[Study]) -> Table:
    """One row for each problem and policy that was searched by halving."""
    rungs: dict[tuple[str, str, str], dict[int, tuple[Group, ...]]] = {}
    for study in studies:
        if rung := rung_number(study.suite):
            for name, groups in study.grids.items():
                rungs.setdefault((searched_suite(study.suite), study.title, name), {})[rung] = groups
    rows = tuple(
        (Cell(problem), Cell(name), *_played(by_rung), *_ranked(problem, name, by_rung))
        for (_, problem, name), by_rung in rungs.items()
    )
    columns = ("problem", "policy", "settings x rounds x trials", "CPU time", "rank correlation of rungs")
    note = (
        "Spearman's correlation of mean rewards on two rungs, over the settings that played both. Those are the best "
        "of the shorter rung, so that it is lower than over a whole grid."
    )
    return Table("halving", "What was played, and how short trials rank long ones", columns, rows, note)


def _played(by_rung: dict[int, tuple[Group, ...]]) -> Iterator[Cell]:
    parts = [
        f"{len(groups):,} x {groups[0].rows[0].horizon:,} x {trials_text(groups)}"
        for _, groups in sorted(by_rung.items())
    ]
    seconds = {
        row.hash: row.cpu_seconds for groups in by_rung.values() for group in groups for row in group.rows
    }
    yield Cell(", ".join(parts))
    yield Cell(duration(sum(seconds.values())))


def _ranked(problem: str, name: str, by_rung: dict[int, tuple[Group, ...]]) -> Iterator[Cell]:
    standings = [
        Standing(problem, name, rung, {group.setting: float(group.rewards.mean()) for group in groups})
        for rung, groups in sorted(by_rung.items())
    ]
    found = agreements(standings)
    yield Cell(
        ", ".join(f"{one.first} and {one.second}: {number(one.correlation, 2).text}" for one in found) or "–"
    )


def trials_text(groups: Sequence[Group]) -> str:
    """How many trials each of the settings has."""
    counts = {len(group.rows) for group in groups}
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
