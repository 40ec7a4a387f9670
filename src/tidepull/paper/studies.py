"""Studies of a store, put together as the paper reports them, and kept as CSV beside the source.

All that was reported of a problem is one study, whichever suite it came from. Searches (studies
with grids) stay out: what they chose is reported on seeds that they never saw. Trials with late
rewards stay out, since the paper has none. Comparisons of exploration rules have studies of their
own (`exploration.py`), and so have trials in the authors' worlds (`authors.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tidepull.experiments.archive import gathered, read_archive, write_archive
from tidepull.experiments.delay import AT_ONCE
from tidepull.experiments.grid import is_last_rung, rung_number, searched_suite
from tidepull.experiments.rows import load_rows, read_plans
from tidepull.experiments.spec import canonical
from tidepull.experiments.store import Store
from tidepull.paper.authors import SLIP, by_row, is_authors
from tidepull.paper.exploration import RIVALS, explorations, exploring
from tidepull.paper.verdicts import AS_PUBLISHED
from tidepull.reporting import published
from tidepull.reporting.frames import Group, Study, load_frame, random_regret
from tidepull.reporting.published import paper_column
from tidepull.reporting.tables import hardware
from tidepull.reporting.traces import POINTS, TrialSummary, read_curves, read_played, write_curves

DIGITS, SLOW = "flipping-digits", "rotating-vector-2048"
FIRST = ("paper-table", "quick-table")
"""Suites whose names stand when another suite uses the same name for another setting."""


def combined(studies: Sequence[Study]) -> list[Study]:
    """One study for each problem and horizon, in the paper's order, then by name."""
    merged: dict[tuple[str, int, str], Study] = {}
    reports = [
        s
        for s in studies
        if not s.grids
        and not rung_number(s.suite)
        and s.delay == AT_ONCE
        and not exploring(s)
        and not is_authors(s)
    ]
    for study in sorted(reports, key=lambda study: (study.suite not in FIRST, study.suite == "")):
        key = (study.problem, study.horizon, canonical(dict(study.parameters)))
        present = merged.get(key)
        merged[key] = (
            study if present is None else replace(present, groups=_joined_groups(present, study))
        )
    return sorted(merged.values(), key=lambda s: (_row(s.problem), s.problem, -s.horizon))


def _row(problem: str) -> int:
    """The row of the paper's table, or after the last."""
    order = list(published.REGRET)
    return order.index(problem) if problem in order else len(order)


def judged_studies(studies: Sequence[Study]) -> list[Study]:
    """The combined studies, with the digits as published where they were played, since the paper's
    claims about them were made there; the slow rotation is beside them with the slip in D-LinUCB."""
    reports, there = combined(studies), by_row(studies)
    if digits := there.get(DIGITS):
        reports = [study for study in reports if study.problem != DIGITS]
        reports.append(replace(digits, problem=DIGITS, remark="as published"))
    if slow := there.get(SLOW):
        named = {group.name: group for group in slow.groups}
        named |= {"d-lin-ucb": replace(named.pop(SLIP), name="d-lin-ucb")} if SLIP in named else {}
        reports.append(replace(slow, problem=f"{SLOW}{AS_PUBLISHED}", groups=tuple(named.values())))
    return reports


def _joined_groups(present: Study, more: Study) -> tuple[Group, ...]:
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
    """The group that stands in a column of the paper's table; the paper's own settings before
    ours."""
    able = [group for group in study.groups if paper_column(group.name) == column]
    return min(
        able,
        key=lambda group: group.name.endswith("-best") and column not in group.name,
        default=None,
    )


def searched_beside(study: Study, column: str) -> Group | None:
    """The setting that our own search chose, where another one (known to reproduce the paper)
    stands in the column."""
    stands = in_column(study, column)
    able = [g for g in study.groups if g.name.endswith("-best") and paper_column(g.name) == column]
    return next((group for group in able if stands and group.hashes != stands.hashes), None)


def main_groups(study: Study, others: Iterable[str] = ("random", "tide")) -> tuple[Group, ...]:
    """The groups of the paper's table, and a few more, for pictures that would else be crowded."""
    shown = [group for column in published.COLUMNS if (group := in_column(study, column))]
    return (*shown, *(group for group in study.groups if group.name in others))


def searches_of(studies: Sequence[Study], *, last: bool = False) -> list[Study]:
    """Studies that show every setting of a grid, all settings of a policy played alike: whole
    grids, and the first rungs of searches by halving. With `last`, the trials from which searches
    chose: whole grids and last rungs. What one suite searched in both ways on one problem, at one
    length, is one study. They are in the paper's order, searches over kinds of exploration last."""
    merged: dict[tuple[str, str, int, str], Study] = {}
    for study in studies:
        rung = rung_number(study.suite)
        shown = not rung or (is_last_rung(study.suite) if last else rung == 1)
        if not study.grids or study.delay != AT_ONCE or not shown:
            continue
        suite = searched_suite(study.suite)
        key = (suite, study.problem, study.horizon, study.remarks)
        known = merged.get(key)
        merged[key] = (
            replace(study, suite=suite) if known is None else _joined_searches(known, study)
        )
    return sorted(
        merged.values(), key=lambda s: (any(name in s.grids for name in RIVALS), _row(s.problem))
    )


def _joined_searches(known: Study, more: Study) -> Study:
    names = {group.name for group in known.groups}
    return replace(
        known,
        groups=(*known.groups, *(group for group in more.groups if group.name not in names)),
        grids={**more.grids, **known.grids},
    )


def keep(store: Store, folder: Path) -> tuple[int, int]:
    """Write the totals of all the store's trials, and thinned curves of those that are reported;
    returns how many.

    What the folder has from earlier stores stays where a suite still asks for it.
    """
    archive = gathered(read_plans(store), load_rows(store), read_archive(folder), hardware())
    write_archive(archive, folder)
    asked = {row.hash for rows in archive.rows.values() for row in rows}
    before = {hash: played for hash, played in read_curves(folder).items() if hash in asked}
    curves = {**before, **_curves(load_frame([store]).studies)}
    write_curves(curves, folder)
    return len(asked), len(curves)


def _curves(studies: Sequence[Study]) -> dict[str, TrialSummary]:
    """Of every trial that the page shows or judges; of searches only totals are shown."""
    curves: dict[str, TrialSummary] = {}
    for study in (*combined(studies), *judged_studies(studies), *explorations(studies)):
        random = random_regret(study)
        for group in study.groups:
            if any(row.suite and row.hash not in curves for row in group.rows):
                new = read_played(study, group, random, POINTS)
                curves |= {hash: played for hash, played in new.items() if hash not in curves}
    return curves
