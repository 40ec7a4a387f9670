"""`tidepull report`: one self-contained HTML page, the figures as files, the tables as files.

The page needs no network, is light or dark, and readable on a phone. Its interactive charts are
plain data, which `report.js` draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tidepull._internal.files import write_whole
from tidepull.experiments.archive import export
from tidepull.experiments.store import Store
from tidepull.reporting import figures, result_tables
from tidepull.reporting.figures import colour, dashes
from tidepull.reporting.frames import Frame, Gaps, Study, load_frame
from tidepull.reporting.published import verdict
from tidepull.reporting.result_tables import (
    belief_bands,
    beliefs_table,
    believers,
    halving_table,
    misunderstood,
)
from tidepull.reporting.stats import Panel, Sensitivity
from tidepull.reporting.tables import (
    Table,
    duration,
    provenance,
    render_page,
    to_csv,
    to_latex,
    to_markdown,
)
from tidepull.reporting.traces import Band, Examined, ExaminedSuite, examine
from tidepull.types import FloatArray

Chart = dict[str, Any]


AXES = {
    "regret": ("round", "cumulative regret (lower is better)"),
    "regimes": ("first round of the regime", "regret per round"),
    "phases": ("phase of the period", "share of rounds with the best arm"),
    "beliefs": ("round", "weight of the family"),
    "profile": ("regret as a share of random's (0 oracle, 1 random)", "share of trials"),
}
"""Labels of the axes of each kind of chart with bands."""


def band_chart(bands: Mapping[str, Band], kind: str) -> Chart:
    """Lines with bands."""
    xlabel, ylabel = AXES[kind]
    series = []
    for name, band in bands.items():
        series.append({**_series(name), "x": _numbers(band.x), "y": _numbers(band.mean)})
        if np.isfinite(band.low).all():
            series[-1] |= {"low": _numbers(band.low), "high": _numbers(band.high)}
    return {"kind": "lines", "xlabel": xlabel, "ylabel": ylabel, "series": series}


def dots_chart(study: Study) -> Chart:
    """The final regret of every trial, a row for each policy."""
    series = []
    for group in study.contenders:
        seeds = [f"seed {row.seed}" for row in group.rows]
        series.append({**_series(group.name), "x": _numbers(group.regrets), "hover": seeds})
    return {"kind": "dots", "xlabel": "final regret of each trial", "ylabel": "", "series": series}


def profile_chart(panel: Panel) -> Chart:
    """Performance profiles."""
    bands = {p.policy: Band(panel.thresholds, p.share, p.low, p.high) for p in panel.profiles}
    return band_chart(bands, "profile")


def sensitivity_chart(sensitivities: Iterable[Sensitivity]) -> Chart:
    """Mean reward of every setting from best to worst; the hover names the setting."""
    series = [
        {
            **_series(s.name),
            "x": _numbers(np.linspace(0, 100, len(s.means))),
            "y": _numbers(s.means),
            "hover": list(s.settings),
        }
        for s in sensitivities
    ]
    return {
        "kind": "lines",
        "xlabel": "settings from best to worst (%)",
        "ylabel": "mean cumulative reward",
        "free": True,
        "series": series,
    }


def thinned(charts: Mapping[str, Chart], most_numbers: int) -> Mapping[str, Chart]:
    """Every n-th point (and the last) of all lines, so that all charts together stay within the
    budget."""
    series = [one for chart in charts.values() for one in chart["series"]]
    total = sum(len(one.get(key, ())) for one in series for key in _ARRAYS)
    step = -(-total // most_numbers)
    if step <= 1:
        return charts
    return {
        id: chart
        if chart["kind"] == "dots"
        else {**chart, "series": [_every(series, step) for series in chart["series"]]}
        for id, chart in charts.items()
    }


_ARRAYS = ("x", "y", "low", "high", "hover")


def _every(series: Mapping[str, Any], step: int) -> dict[str, Any]:
    last = len(series["x"]) - 1
    points = sorted({*range(0, last + 1, step), last})
    return {
        key: [value[i] for i in points] if key in _ARRAYS else value
        for key, value in series.items()
    }


def _series(name: str) -> dict[str, Any]:
    return {"name": name, "colour": colour(name), "dash": list(dashes(name))}


def _numbers(values: FloatArray | Sequence[float]) -> list[float | None]:
    """Five significant digits; None where there is no number."""
    array = np.asarray(values, dtype=float)
    return [float(f"{v:.5g}") if math.isfinite(v) else None for v in array]


MOST_NUMBERS = 400_000
"""Numbers in all charts of a page together: about 3 MB."""
_MOST_NAMED = 50


@dataclass(frozen=True, slots=True)
class ChartPart:
    """A chart of the page: `id` names its data, which `report.js` draws."""

    id: str
    caption: str
    chart: Chart


def render(
    frame: Frame, suites: Sequence[Mapping[str, Any]], title: str, front: Iterable[str] = ()
) -> str:
    """The page as text.

    Parameters
    ----------
    frame
        What the stores hold.
    suites
        What the page shows of each suite.
    title
        Heading of the page.
    front
        Parts of HTML that come first.

    Returns
    -------
    str
        One HTML document with its style, script and data inside.
    """
    parts = (part for suite in suites for part in _parts(suite))
    charts = {part.id: part.chart for part in parts if isinstance(part, ChartPart)}
    return render_page(
        "report.html",
        data=thinned(charts, MOST_NUMBERS),
        title=title,
        frame=frame,
        cpu_time=duration(frame.cpu_seconds),
        gaps=_gaps(frame.gaps),
        front=front,
        suites=suites,
        halving=halving_table(frame.studies),
        provenance=list(provenance(frame)),
    )


def _gaps(gaps: Gaps) -> dict[str, str]:
    """What is not in the results, counted and named."""
    kinds = (("failed", gaps.failed), ("missing", gaps.missing), ("damaged", gaps.damaged))
    lines = [f"{id}: failed, {error}" for id, error in gaps.failed.items()]
    lines += [f"{id}: damaged, {fault}" for id, fault in gaps.damaged.items()]
    lines += [f"{id}: missing" for id in gaps.missing]
    more = f"\n… and {len(lines) - _MOST_NAMED:,} more" if len(lines) > _MOST_NAMED else ""
    counts = ", ".join(f"{len(ids):,} {what}" for what, ids in kinds if ids)
    return {"counts": counts, "lines": "\n".join(lines[:_MOST_NAMED]) + more}


def _parts(shown: Mapping[str, Any]) -> Iterator[Table | ChartPart]:
    """All tables and charts of a suite, in the order of the page."""
    yield shown["results"]
    for one in shown["studies"]:
        yield from (*one["parts"], *one["details"])
    yield from shown["scores"]


def _suite(suite: ExaminedSuite) -> dict[str, Any]:
    scores = result_tables.scores_table(suite.name, suite.panels)
    profiles = [
        ChartPart(
            f"profile-{suite.name}-{number}",
            f"Performance profile over {', '.join(panel.problems)}",
            profile_chart(panel),
        )
        for number, panel in enumerate(suite.panels)
    ]
    return {
        "title": suite.name or "trials outside any suite",
        "results": result_tables.results_table(
            suite.name, [examined.study for examined in suite.studies]
        ),
        "studies": [_study(examined) for examined in suite.studies],
        "scores": [] if scores is None else [scores, *profiles],
    }


def _study(examined: Examined) -> dict[str, Any]:
    study = examined.study
    id = f"{study.suite or 'other'}-{study.slug}-{study.horizon}"
    regret = band_chart(examined.bands("regret"), "regret")
    parts: list[Table | ChartPart] = [
        ChartPart(f"regret-{id}", f"Regret on {study.title}, {study.horizon:,} rounds", regret),
        ChartPart(f"dots-{id}", "Every trial", dots_chart(study)),
        result_tables.details_table(study, examined.random, examined.traces),
    ]
    if examined.sensitivities:
        settings = sensitivity_chart(examined.sensitivities)
        parts.append(ChartPart(f"settings-{id}", "Sensitivity to hyperparameters", settings))
        parts.append(result_tables.sensitivity_table(study, examined.sensitivities))
    for group in believers(study):
        weights = band_chart(belief_bands(group), "beliefs")
        caption = f"What {group.name} believed, mean over trials"
        parts += [
            ChartPart(f"beliefs-{group.name}-{id}", caption, weights),
            beliefs_table(study, group),
        ]
    return {
        "id": id,
        "study": study,
        "verdict": verdict(study),
        "parts": parts,
        "unreadable_beliefs": [group.name for group in misunderstood(study)],
        "details": list(_details(examined, id)),
    }


def _details(examined: Examined, id: str) -> Iterator[Table | ChartPart]:
    yield result_tables.pairs_table(examined.study)
    if recovery := result_tables.recovery_table(examined.study, examined.traces):
        yield recovery
    captions = {
        "regimes": "Regret per round in each regime",
        "phases": "Best arm by phase of the period",
    }
    for kind, caption in captions.items():
        if bands := examined.bands(kind):
            yield ChartPart(f"{kind}-{id}", caption, band_chart(bands, kind))


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
    page, shown = out / "index.html", [_suite(suite) for suite in suites]
    write_whole(page, render(frame, shown, title, front(frame) if front else ()).encode())
    tables = [path for suite in shown for path in write_tables(suite, out / "tables")]
    summary = out / "tables" / "summary.csv"
    rows = [row for study in frame.studies for group in study.groups for row in group.rows]
    if rows:
        export(rows, summary, by_setting=True)
        tables.append(summary)
    figures = [path for suite in suites for path in draw_figures(suite, out / "figures", formats)]
    return ReportFiles(page, tuple(figures), tuple(tables), frame, tuple(suites))


def write_tables(shown: Mapping[str, Any], folder: Path) -> list[Path]:
    """Every table of a suite as Markdown, CSV and LaTeX."""
    written = []
    for table in _parts(shown):
        if isinstance(table, Table):
            for ending, text in ((".md", to_markdown), (".csv", to_csv), (".tex", to_latex)):
                written.append(folder / f"{table.name}{ending}")
                write_whole(written[-1], text(table).encode())
    return written


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
        many = len(panel.problems) > 3
        title = f"{len(panel.problems)} problems" if many else ", ".join(panel.problems)
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
