"""`docs/results.md` with its figures and tables: ours beside the paper's, row by row and claim by claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from tidepull._internal.files import write_whole
from tidepull.experiments.archive import export
from tidepull.paper import notes
from tidepull.paper.averages import LEGEND, MARK, Average, averages_section
from tidepull.paper.claims import check_claims
from tidepull.paper.combine import combined, in_column, main_groups
from tidepull.paper.exploration import NAMES, explorations
from tidepull.paper.paper_table import HEADS, full_length, overview
from tidepull.paper.played import played_section
from tidepull.paper.searches import halving_section, played_words, searches_of, searches_section
from tidepull.paper.sections import (
    chosen_section,
    claims_section,
    exploration_picture,
    exploration_section,
)
from tidepull.reporting import figures, published, result_tables
from tidepull.reporting.comparison import verdict
from tidepull.reporting.frames import Frame, Study
from tidepull.reporting.published import standard_errors
from tidepull.reporting.stats import sensitivities
from tidepull.reporting.tables import provenance, to_markdown
from tidepull.reporting.traces import POINTS, Examined, TrialSummary, examined, scored


def write_results(
    frame: Frame,
    docs: Path,
    *,
    command: str,
    known: Mapping[str, TrialSummary] = MappingProxyType({}),
    averages: Sequence[Average] = (),
) -> Path:
    """Write the page and everything it shows; `command` is how to make it again.

    `known` is what was kept of trials' rounds (by hash); others are read from their stores. `averages` fill cells of
    the table whose trials are not there.
    """
    folder = docs / "results"
    reports = combined(frame.studies)
    searches = searches_of(frame.studies)
    looked_at = [examined(study, points=POINTS, known=known) for study in reports]
    main = [_only_main(one) for one in looked_at]
    explored = [examined(study, points=POINTS, known=known) for study in explorations(frame.studies)]
    _draw(main, searches, folder)
    _draw_exploration(explored, folder)
    shown = [*reports, *(one.study for one in explored)]
    rows = [row for study in shown for group in study.groups for row in group.rows]
    if rows:
        export(rows, folder / "summary.csv", by_setting=True)
    parts = [
        *_head(frame, command),
        *_table(reports, averages),
        *played_section(frame),
        *chosen_section(frame.suites),
        *_scores(main),
        *_rows(looked_at),
        *exploration_section(explored),
        *averages_section(averages, shown),
        *searches_section(searches),
        *halving_section(frame.studies),
        *claims_section(check_claims(looked_at, searches, explored)),
        *_origin(frame),
    ]
    page = docs / "results.md"
    write_whole(page, ("\n\n".join(part.strip() for part in parts) + "\n").encode())
    return page


def agreement(study: Study) -> str:
    """An honest sentence: in which columns we agree with the paper, and how we differ in the others."""
    if not full_length(study):
        return "The trials are shorter than the paper's; its figures cannot be compared one to one."
    agree, differ, single = [], [], False
    for column in published.COLUMNS:
        group, theirs = in_column(study, column), published.figure(study.problem, column)
        if group is None or theirs is None:
            continue
        if len(group.rows) < 2:
            single = True
            continue
        z = standard_errors(group, theirs)
        share = abs(group.regrets.mean() / theirs.mean - 1)
        if abs(z) < 2:
            agree.append(HEADS[column])
        else:
            differ.append(f"{share:.0%} {'above' if z > 0 else 'below'} for {HEADS[column]}")
    if not agree and not differ:
        few = "A single trial is too little to hold against the paper."
        return few if single else "The paper prints no figure for what was run here."
    parts = [f"within two standard errors of the paper for {_listed(agree)}"] if agree else []
    parts += [_listed(differ)] if differ else []
    return f"Ours is {'; '.join(parts)}."


def _head(frame: Frame, command: str) -> Iterator[str]:
    yield "# Results"
    yield (
        "Every figure on this page comes from stored trials by one command. Regret is cumulative pseudo-regret, mean ± "
        "standard deviation over trials; intervals are 95% (bootstrap; Student's below six trials); differences are "
        'paired on common seeds. "s.e." is the difference to the paper in standard errors of both samples.'
    )
    yield f"```\n{command}\n```"
    yield "How our trials differ from the paper's:"
    yield "\n".join(f"- {note}" for note in notes.general(frame))


def _table(reports: Sequence[Study], averages: Sequence[Average]) -> Iterator[str]:
    table = overview(reports, averages)
    if table.rows:
        yield "## The paper's table"
        yield "Ours, *the paper's*, and the difference; the lowest of ours in bold."
        yield to_markdown(table)
        if any(MARK in cell.text for row in table.rows for cell in row):
            yield LEGEND
        yield "![Regret curves of all problems](results/curves.svg)"


def _scores(main: Sequence[Examined]) -> Iterator[str]:
    panels = scored([one for one in main if one.study.problem in published.REGRET])
    table = result_tables.scores_table("all", panels)
    if table is not None:
        yield "## Over all problems"
        yield to_markdown(table)


def _rows(looked_at: Sequence[Examined]) -> Iterator[str]:
    yield "## Problem by problem"
    for one in looked_at:
        study = one.study
        yield f"### {study.title}"
        yield f"{verdict(study)} {agreement(study) if study.problem in published.REGRET else ''}"
        if note := notes.BY_PROBLEM.get(study.problem):
            yield note
        yield to_markdown(result_tables.details_table(study, one.random, one.traces))
        if recovery := result_tables.recovery_table(study, one.traces):
            yield f"{recovery.title}:"
            yield to_markdown(recovery)
        yield f"![Regret on {study.title}](results/{_picture(study)})"


def _origin(frame: Frame) -> Iterator[str]:
    yield "## Where this comes from"
    yield "\n".join(f"- {line}" for line in provenance(frame, names=False))
    yield "The figures behind this page are in `results/summary.csv`."


def _draw(main: Sequence[Examined], searches: Sequence[Study], folder: Path) -> None:
    curves = {one.study.title: one.bands("regret") for one in main if one.study.problem in published.REGRET}
    if len(curves) > 1:
        figures.band_grid(curves, xlabel="round", ylabel="cumulative regret", paths=[folder / "curves.svg"])
    for one in main:
        figures.band_figure(
            one.bands("regret"),
            title=f"{one.study.title}: {figures.trials_text([len(g.rows) for g in one.study.groups])}",
            xlabel="round",
            ylabel="cumulative regret (lower is better)",
            paths=[folder / _picture(one.study)],
        )
    charts = {played_words(study).replace(", ", ",\n", 1): sensitivities(study) for study in searches}
    if charts:
        figures.sensitivity_grid(charts, paths=[folder / "sensitivity.svg"])


def _draw_exploration(explored: Sequence[Examined], folder: Path) -> None:
    """Posterior sampling beside its alternatives, where they were run."""
    for one in explored:
        bands = one.bands("regret")
        figures.band_figure(
            {name: bands[name] for name in NAMES if name in bands} or bands,
            title=f"{one.study.title}: kinds of exploration",
            xlabel="round",
            ylabel="cumulative regret (lower is better)",
            paths=[folder / exploration_picture(one.study)],
        )


def _only_main(one: Examined) -> Examined:
    """For crowded studies only the paper's columns; where the paper has none, everything."""
    shown = main_groups(one.study)
    if one.study.problem not in published.REGRET or not shown:
        return one
    study = replace(one.study, groups=shown)
    return Examined(study, one.random, {g.name: one.traces[g.name] for g in study.groups}, ())


def _picture(study: Study) -> str:
    return f"regret-{study.problem}-{study.horizon}.svg"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
