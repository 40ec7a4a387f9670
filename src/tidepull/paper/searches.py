"""Searches on the page of results: which trials show how settings compare, and what halving played."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidepull.experiments.delay import AT_ONCE
from tidepull.experiments.grid import rung_number, searched_suite
from tidepull.paper.exploration import RIVALS
from tidepull.reporting import result_tables
from tidepull.reporting.frames import Study
from tidepull.reporting.result_tables import halving_table, trials_text
from tidepull.reporting.stats import sensitivities
from tidepull.reporting.tables import duration, to_markdown


def searches_of(studies: Sequence[Study]) -> list[Study]:
    """Studies that show every setting of a grid, all settings of a policy played alike: whole grids, and the first
    rungs of searches by halving. Later rungs have only the best settings. What one suite searched in both ways on one
    problem, at one length, is one study. Searches over kinds of exploration come last."""
    merged: dict[tuple[str, str, int, str], Study] = {}
    for study in studies:
        if not study.grids or study.delay != AT_ONCE or rung_number(study.suite) > 1:
            continue
        suite = searched_suite(study.suite)
        key = (suite, study.problem, study.horizon, study.remarks)
        known = merged.get(key)
        merged[key] = replace(study, suite=suite) if known is None else _joined(known, study)
    return sorted(merged.values(), key=lambda study: any(name in study.grids for name in RIVALS))


def _joined(known: Study, more: Study) -> Study:
    names = {group.name for group in known.groups}
    return replace(
        known,
        groups=(*known.groups, *(group for group in more.groups if group.name not in names)),
        grids={**more.grids, **known.grids},
    )


def played_words(study: Study) -> str:
    """`rotating-vector-32, 1,024 rounds, 2 trials of each setting (nlps: 1)`."""
    trials = {name: trials_text(groups) for name, groups in study.grids.items()}
    many = set(trials.values())
    if many == {"1"}:
        words = "one trial of each setting"
    elif len(many) == 1:
        words = f"{many.pop()} trials of each setting"
    else:
        most = max(many, key=lambda count: (list(trials.values()).count(count), count))
        others = ", ".join(f"{name}: {count}" for name, count in trials.items() if count != most)
        words = f"{most} trials of each setting ({others})"
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
            yield f"{played_words(study)} ({duration(_cpu_seconds(study))} of CPU time):"
            yield to_markdown(result_tables.sensitivity_table(study, sensitivities(study)))


def _cpu_seconds(study: Study) -> float:
    groups = [group for settings in study.grids.values() for group in settings]
    return sum(row.cpu_seconds for group in groups for row in group.rows)


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
