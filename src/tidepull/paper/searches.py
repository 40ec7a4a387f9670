"""Searches on the page of results: which trials show how settings compare, and how well short trials rank long ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidepull.analysis.frame import Group, Study
from tidepull.analysis.sensitivity import sensitivities
from tidepull.bench.delay import AT_ONCE
from tidepull.bench.search.agreement import agreements
from tidepull.bench.search.halving import Standing
from tidepull.bench.suites.rungs import rung_number, searched_suite
from tidepull.report import result_tables
from tidepull.report.duration import duration
from tidepull.report.tables import Cell, Table, number, to_markdown


def searches_of(studies: Sequence[Study]) -> list[Study]:
    """Studies that show every setting of a grid, all settings of a policy played alike: whole grids, and the first
    rungs of searches by halving. Later rungs have only the best settings. What one suite searched in both ways on one
    problem, at one length, is one study."""
    merged: dict[tuple[str, str, int, str], Study] = {}
    for study in studies:
        if not study.grids or study.delay != AT_ONCE or rung_number(study.suite) > 1:
            continue
        suite = searched_suite(study.suite)
        key = (suite, study.problem, study.horizon, study.remarks)
        known = merged.get(key)
        merged[key] = replace(study, suite=suite) if known is None else _joined(known, study)
    return list(merged.values())


def _joined(known: Study, more: Study) -> Study:
    names = {group.name for group in known.groups}
    return replace(
        known,
        groups=(*known.groups, *(group for group in more.groups if group.name not in names)),
        grids={**more.grids, **known.grids},
    )


def played_words(study: Study) -> str:
    """`rotating-vector-32, 1,024 rounds, one trial of each setting`."""
    trials = {name: _trials(groups) for name, groups in study.grids.items()}
    many = set(trials.values())
    if many == {"1"}:
        words = "one trial of each setting"
    elif len(many) == 1:
        words = f"{many.pop()} trials of each setting"
    else:
        words = "trials of each setting: " + ", ".join(f"{count} of {name}" for name, count in trials.items())
    return f"{study.title}, {study.horizon:,} rounds, {words}"


def searches_section(searches: Sequence[Study]) -> Iterator[str]:
    """How much settings matter, problem by problem; each table says what was played."""
    if searches:
        yield "## Sensitivity to hyperparameters"
        yield (
            "Mean cumulative reward of every setting, from best to worst; searches and reports share no seed. Where "
            "a grid was searched by halving, what is shown is its first rung, which all settings played."
        )
        yield "![Sensitivity](results/sensitivity.svg)"
        for study in searches:
            yield f"{played_words(study)}:"
            yield to_markdown(result_tables.sensitivity_table(study, sensitivities(study)))


def halving_section(studies: Sequence[Study]) -> Iterator[str]:
    """What searches by halving played, and how their short trials ranked the long ones."""
    table = halving_table(studies)
    if table.rows:
        yield "## Searches by halving"
        yield (
            "All settings of a grid play the first rung, the best of them the next, which is longer or on more seeds. "
            "Settings that were left behind were not played on, by design (`tidepull search`, "
            "[experiments](experiments.md#search-by-halving)). The best setting is chosen on the last rung."
        )
        yield to_markdown(table)


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
        f"{len(groups):,} x {groups[0].rows[0].horizon:,} x {_trials(groups)}"
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


def _trials(groups: Sequence[Group]) -> str:
    counts = {len(group.rows) for group in groups}
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
