"""`docs/results.md` with its figures and tables: ours beside the paper's, row by row and claim by claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from tidepull.analysis import published
from tidepull.analysis.beside_paper import standard_errors
from tidepull.analysis.curves import POINTS
from tidepull.analysis.examine import Examined, examined, scored
from tidepull.analysis.frame import Frame, Study
from tidepull.analysis.sensitivity import sensitivities
from tidepull.analysis.summary import summarise
from tidepull.analysis.traces import Played
from tidepull.bench.store.export import export
from tidepull.files import write_whole
from tidepull.paper import notes
from tidepull.paper.claims import check_claims
from tidepull.paper.combine import combined, in_column, main_groups, searched_beside
from tidepull.paper.exploration import NAMES, explorations
from tidepull.paper.searches import halving_section, played_words, searches_of, searches_section
from tidepull.paper.sections import (
    chosen_section,
    claims_section,
    exploration_picture,
    exploration_section,
)
from tidepull.report import panel_plots, plots, result_tables
from tidepull.report.provenance import provenance
from tidepull.report.tables import Cell, Table, spread, to_markdown
from tidepull.report.verdict import verdict

HEADS = {
    "nlps-best": "best NN",
    "rnlps-best": "best RNN",
    "nlps-default": "default NN",
    "rnlps-default": "default RNN",
    "discounted": "D-(Lin)UCB",
    "windowed": "SW-(Lin)UCB",
}


def write_results(
    frame: Frame, docs: Path, *, command: str, known: Mapping[str, Played] = MappingProxyType({})
) -> Path:
    """Write the page and everything it shows; `command` is how to make it again.

    `known` is what was kept of trials' rounds (by hash); others are read from their stores.
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
        *_table(reports),
        *chosen_section(frame.suites),
        *_scores(main),
        *_rows(looked_at),
        *exploration_section(explored),
        *searches_section(searches),
        *halving_section(frame.studies),
        *claims_section(check_claims(looked_at, searches, explored)),
        *_origin(frame),
    ]
    page = docs / "results.md"
    write_whole(page, ("\n\n".join(part.strip() for part in parts) + "\n").encode())
    return page


def overview(reports: Sequence[Study]) -> Table:
    """The paper's table: in each cell ours, the paper's below it, the difference in standard errors below that."""
    rows = []
    for study in reports:
        if study.problem not in published.REGRET:
            continue
        found = {column: in_column(study, column) for column in published.COLUMNS}
        if not any(found.values()):
            continue
        means = [group.regrets.mean() for group in found.values() if group]
        cells = [Cell(study.title + ("" if _full(study) else f", {study.horizon:,} rounds"))]
        for column, group in found.items():
            theirs = published.figure(study.problem, column)
            lines = []
            if group is not None:
                s = summarise(group.regrets)
                text = spread(s.mean, s.std).text
                lines.append(f"**{text}**" if s.mean == min(means) else text)
            if other := searched_beside(study, column):
                s = summarise(other.regrets)
                lines.append(f"searched: {spread(s.mean, s.std).text}")
            if theirs is not None and _full(study):
                lines.append(f"*{spread(theirs.mean, theirs.std).text}*")
            if group is not None and theirs is not None and _full(study) and len(group.rows) > 1:
                lines.append(f"({standard_errors(group, theirs):+.1f} s.e.)")
            cells.append(Cell("<br>".join(lines) or "–"))
        rows.append(tuple(cells))
    played = {study.problem for study in reports}
    rows += [_not_played(problem) for problem in published.REGRET if rows and problem not in played]
    columns = ("problem", *(HEADS[column] for column in published.COLUMNS))
    return Table("paper-table", "Final regret, ours and the paper's", columns, tuple(rows))


def _not_played(problem: str) -> tuple[Cell, ...]:
    theirs = (published.figure(problem, column) for column in published.COLUMNS)
    return (
        Cell(f"{problem}<br>(not played)"),
        *(Cell(f"*{spread(cell.mean, cell.std).text}*" if cell else "–") for cell in theirs),
    )


def agreement(study: Study) -> str:
    """An honest sentence: in which columns we agree with the paper, and how we differ in the others."""
    if not _full(study):
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
    gaps = frame.gaps
    if gaps:
        yield (
            f"**Not all trials are here**: {len(gaps.failed):,} failed, {len(gaps.missing):,} missing, "
            f"{len(gaps.damaged):,} damaged. Everything below is computed from the others."
        )
    yield "How our trials differ from the paper's:"
    yield "\n".join(f"- {note}" for note in notes.general(frame))


def _table(reports: Sequence[Study]) -> Iterator[str]:
    table = overview(reports)
    if table.rows:
        yield "## The paper's table"
        yield "Ours, *the paper's*, and the difference; the lowest of ours in bold."
        yield to_markdown(table)
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
        plots.band_grid(curves, xlabel="round", ylabel="cumulative regret", paths=[folder / "curves.svg"])
    for one in main:
        plots.band_figure(
            one.bands("regret"),
            title=f"{one.study.title}: {plots.trials_text([len(g.rows) for g in one.study.groups])}",
            xlabel="round",
            ylabel="cumulative regret (lower is better)",
            paths=[folder / _picture(one.study)],
        )
    charts = {played_words(study).replace(", ", ",\n", 1): sensitivities(study) for study in searches}
    if charts:
        panel_plots.sensitivity_grid(charts, paths=[folder / "sensitivity.svg"])


def _draw_exploration(explored: Sequence[Examined], folder: Path) -> None:
    """Posterior sampling beside its alternatives, where they were run."""
    for one in explored:
        bands = one.bands("regret")
        plots.band_figure(
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


def _full(study: Study) -> bool:
    return published.HORIZONS.get(study.problem) == study.horizon


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
