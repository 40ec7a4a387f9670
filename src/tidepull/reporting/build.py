"""`tidepull report`: the page, the figures as files, the tables as files; from stores alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidepull._internal.files import write_whole
from tidepull.experiments.archive import export
from tidepull.experiments.store import Store
from tidepull.reporting import figures, result_tables
from tidepull.reporting.beliefs import belief_bands, beliefs_table, believers
from tidepull.reporting.frames import Frame, Study, load_frame
from tidepull.reporting.page import AXES, render
from tidepull.reporting.tables import Table, to_csv, to_latex, to_markdown
from tidepull.reporting.traces import Examined, ExaminedSuite, examine

FORMATS = ("svg", "pdf")


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """What was written, and what it was made of."""

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    frame: Frame
    suites: tuple[ExaminedSuite, ...]


def build_report(
    stores: Sequence[Store],
    out: Path,
    *,
    formats: Sequence[str] = FORMATS,
    on_study: Callable[[Study], None] | None = None,
    front: Callable[[Frame], Iterable[str]] | None = None,
) -> ReportFiles:
    """Write everything into `out`; files of an earlier report are replaced. `front` makes the
    page's first parts."""
    frame = load_frame(stores)
    suites = examine(frame, on_study=on_study)
    title = "tidepull: " + (", ".join(suite.name or "trials" for suite in suites) or "no results")
    page = out / "index.html"
    write_whole(page, render(frame, suites, title, front(frame) if front else ()).encode())
    tables = [path for suite in suites for path in write_tables(suite, out / "tables")]
    summary = out / "tables" / "summary.csv"
    rows = [row for study in frame.studies for group in study.groups for row in group.rows]
    if rows:
        export(rows, summary, by_setting=True)
        tables.append(summary)
    figures = [path for suite in suites for path in draw_figures(suite, out / "figures", formats)]
    return ReportFiles(page, tuple(figures), tuple(tables), frame, tuple(suites))


def write_tables(suite: ExaminedSuite, folder: Path) -> list[Path]:
    """Every table of a suite as Markdown, CSV and LaTeX."""
    written = []
    for table in suite_tables(suite):
        for ending, text in ((".md", to_markdown), (".csv", to_csv), (".tex", to_latex)):
            written.append(folder / f"{table.name}{ending}")
            write_whole(written[-1], text(table).encode())
    return written


def suite_tables(suite: ExaminedSuite) -> Iterator[Table]:
    """The tables of a suite, in the order of the page."""
    yield result_tables.results_table(suite.name, [examined.study for examined in suite.studies])
    if scores := result_tables.scores_table(suite.name, suite.panels):
        yield scores
    for examined in suite.studies:
        yield result_tables.details_table(examined.study, examined.random, examined.traces)
        yield result_tables.pairs_table(examined.study)
        if recovery := result_tables.recovery_table(examined.study, examined.traces):
            yield recovery
        for group in believers(examined.study):
            yield beliefs_table(examined.study, group)
        if examined.sensitivities:
            yield result_tables.sensitivity_table(examined.study, examined.sensitivities)


def draw_figures(suite: ExaminedSuite, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Every figure of a suite in every format."""
    if not formats:
        return []
    name = suite.name or "other"
    written: list[Path] = []

    def files(kind: str, what: str = "") -> list[Path]:
        stem = "-".join(part for part in (kind, name, what) if part)
        written.extend(folder / f"{stem}.{ending}" for ending in formats)
        return written[-len(formats) :]

    curves = {e.study.title: e.bands("regret") for e in suite.studies}
    if len(curves) > 1:
        figures.band_grid(curves, xlabel="round", ylabel="cumulative regret", paths=files("curves"))
    settings = {e.study.title: e.sensitivities for e in suite.studies if e.sensitivities}
    if settings:
        figures.sensitivity_grid(settings, paths=files("sensitivity"))
    for number, panel in enumerate(suite.panels, 1):
        title = (
            ", ".join(panel.problems)
            if len(panel.problems) <= 3
            else f"{len(panel.problems)} problems"
        )
        figures.profile_figure(panel, title=title, paths=files("profile", str(number)))
    for examined in suite.studies:
        _study_figures(examined, files)
    return written


def _study_figures(examined: Examined, files: Callable[[str, str], list[Path]]) -> None:
    study = examined.study
    trials = figures.trials_text([len(group.rows) for group in study.groups])
    titles = {"regret": trials, "regimes": "regret in each regime", "phases": "best arm by phase"}
    shown = [(kind, study.slug, title, examined.bands(kind)) for kind, title in titles.items()]
    shown += [
        ("beliefs", f"{study.slug}-{g.name}", f"what {g.name} believed", belief_bands(g))
        for g in believers(study)
    ]
    for kind, name, title, bands in shown:
        if bands:
            xlabel, ylabel = AXES[kind]
            figures.band_figure(
                bands,
                title=f"{study.title}: {title}",
                xlabel=xlabel,
                ylabel=ylabel,
                paths=files(kind, name),
            )
