"""One self-contained HTML page: no network, light and dark, readable on a phone.

Its interactive charts are plain data, which `report.js` draws.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from tidepull.reporting import result_tables
from tidepull.reporting.beliefs import belief_bands, beliefs_table, believers, misunderstood
from tidepull.reporting.comparison import verdict
from tidepull.reporting.figures import colour, dashes
from tidepull.reporting.frames import Frame, Gaps, Study
from tidepull.reporting.result_tables import halving_table
from tidepull.reporting.stats import Panel, Sensitivity
from tidepull.reporting.tables import duration, provenance, to_html
from tidepull.reporting.traces import Band, Examined, ExaminedSuite
from tidepull.types import FloatArray

Chart = dict[str, Any]


def band_chart(bands: Mapping[str, Band], *, xlabel: str, ylabel: str, **options: Any) -> Chart:
    """Lines with bands."""
    series = [
        {
            **_series(name),
            "x": _numbers(band.x),
            "y": _numbers(band.mean),
            **(
                {"low": _numbers(band.low), "high": _numbers(band.high)}
                if np.isfinite(band.low).all()
                else {}
            ),
        }
        for name, band in bands.items()
    ]
    return {"kind": "lines", "xlabel": xlabel, "ylabel": ylabel, "series": series, **options}


def dots_chart(study: Study) -> Chart:
    """The final regret of every trial, a row for each policy."""
    series = [
        {**_series(g.name), "x": _numbers(g.regrets), "hover": [f"seed {row.seed}" for row in g.rows]}
        for g in study.contenders
    ]
    return {"kind": "dots", "xlabel": "final regret of each trial", "ylabel": "", "series": series}


def profile_chart(panel: Panel) -> Chart:
    """Performance profiles."""
    bands = {p.policy: Band(panel.thresholds, p.share, p.low, p.high) for p in panel.profiles}
    return band_chart(
        bands, xlabel="regret as a share of random's (0 oracle, 1 random)", ylabel="share of trials"
    )


def sensitivity_chart(found: Iterable[Sensitivity]) -> Chart:
    """Mean reward of every setting from best to worst; the hover names the setting."""
    series = [
        {
            **_series(s.name),
            "x": _numbers(np.linspace(0, 100, len(s.means))),
            "y": _numbers(s.means),
            "hover": list(s.settings),
        }
        for s in found
    ]
    return {
        "kind": "lines",
        "xlabel": "settings from best to worst (%)",
        "ylabel": "mean cumulative reward",
        "free": True,
        "series": series,
    }


def thinned(charts: Mapping[str, Chart], most_numbers: int) -> Mapping[str, Chart]:
    """Every n-th point (and the last) of all lines, so that all charts together stay within the budget."""
    total = sum(len(s.get(key, ())) for c in charts.values() for s in c["series"] for key in _ARRAYS)
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
    kept = sorted({*range(0, last + 1, step), last})
    return {key: [value[i] for i in kept] if key in _ARRAYS else value for key, value in series.items()}


def _series(name: str) -> dict[str, Any]:
    return {"name": name, "colour": colour(name), "dash": list(dashes(name))}


def _numbers(values: FloatArray | Sequence[float]) -> list[float | None]:
    """Five significant digits; None where there is no number."""
    return [float(f"{v:.5g}") if math.isfinite(v) else None for v in np.asarray(values, dtype=float)]


MOST_NUMBERS = 400_000
"""Numbers in all charts of a page together: about 3 MB."""
_MOST_NAMED = 50
_UNNAMED = "trials outside any suite"


def render(frame: Frame, suites: Sequence[ExaminedSuite], title: str, front: Iterable[str] = ()) -> str:
    """The page as text; `front` are parts of HTML that come first."""
    charts: dict[str, Chart] = {}
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="dim">{frame.trials:,} trials, {duration(frame.cpu_seconds)} of CPU time. '
        "Regret is cumulative pseudo-regret; bands are 95% intervals of the mean over trials "
        "(bootstrap; Student's below six trials).</p>",
        *notice(frame.gaps),
        *front,
        *_in_short(suites),
    ]
    for suite in suites:
        parts.extend(_suite(suite, charts))
    parts.extend(_halving(frame))
    parts.extend(_origin(frame))
    room = files("tidepull.reporting")
    page = Template(room.joinpath("report.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=escape(title),
        style=room.joinpath("report.css").read_text(encoding="utf-8"),
        body="\n".join(parts),
        # "</script" would end the element and "<!--" begin a comment: no "<" may stand in it as it is
        data=json.dumps(thinned(charts, MOST_NUMBERS), separators=(",", ":")).replace("<", "\\u003c"),
        script=room.joinpath("report.js").read_text(encoding="utf-8"),
    )


def notice(gaps: Gaps) -> Iterator[str]:
    """What is not in the results, at the top, in one box."""
    if not gaps:
        return
    counts = [
        f"{len(ids):,} {what}"
        for what, ids in (("failed", gaps.failed), ("missing", gaps.missing), ("damaged", gaps.damaged))
        if ids
    ]
    lines = [f"{id}: failed, {error}" for id, error in gaps.failed.items()]
    lines += [f"{id}: damaged, {fault}" for id, fault in gaps.damaged.items()]
    lines += [f"{id}: missing" for id in gaps.missing]
    more = f"\n… and {len(lines) - _MOST_NAMED:,} more" if len(lines) > _MOST_NAMED else ""
    yield (
        f'<div class="notice" role="alert"><b>Not all trials of the suite are here: {", ".join(counts)}.</b> '
        "Everything below is computed from the others. "
        f"<details><summary>Which ones</summary><pre>{escape(chr(10).join(lines[:_MOST_NAMED]) + more)}</pre>"
        "</details></div>"
    )


def _halving(frame: Frame) -> Iterator[str]:
    table = halving_table(frame.studies)
    if table.rows:
        yield f"<h2>Searches by halving</h2><p>{escape(table.title)}.</p>"
        yield to_html(table)


def _in_short(suites: Sequence[ExaminedSuite]) -> Iterator[str]:
    for suite in suites:
        yield f"<h2>In short: {escape(suite.name or _UNNAMED)}</h2>"
        yield '<ul class="short">'
        for examined in suite.studies:
            link = f'<a href="#{escape(_anchor(examined))}">{escape(examined.study.title)}</a>'
            yield f"<li>{link}: {escape(verdict(examined.study))}</li>"
        yield "</ul>"


def _suite(suite: ExaminedSuite, charts: dict[str, Chart]) -> Iterator[str]:
    yield f"<h2>{escape(suite.name or _UNNAMED)}</h2>"
    yield to_html(result_tables.results_table(suite.name, [examined.study for examined in suite.studies]))
    for examined in suite.studies:
        yield from _study(examined, charts)
    scores = result_tables.scores_table(suite.name, suite.panels)
    if scores is None:
        return
    yield f"<h3>All problems of {escape(suite.name or _UNNAMED)} together</h3>"
    yield to_html(scores)
    for number, panel in enumerate(suite.panels):
        id = f"profile-{suite.name}-{number}"
        charts[id] = profile_chart(panel)
        yield _chart(id, f"Performance profile over {', '.join(panel.problems)}")


def _study(examined: Examined, charts: dict[str, Chart]) -> Iterator[str]:
    study, id = examined.study, _anchor(examined)
    remark = f' <span class="remark">{escape(study.remarks)}</span>' if study.remarks else ""
    yield f'<h3 id="{escape(id)}">{escape(study.problem)}{remark}</h3>'
    yield f'<p class="verdict">{escape(verdict(study))}</p>'
    charts[f"regret-{id}"] = band_chart(
        examined.bands("regret"), xlabel="round", ylabel="cumulative regret (lower is better)"
    )
    yield _chart(f"regret-{id}", f"Regret on {study.title}, {study.horizon:,} rounds")
    charts[f"dots-{id}"] = dots_chart(study)
    yield _chart(f"dots-{id}", "Every trial")
    yield to_html(result_tables.details_table(study, examined.random, examined.traces))
    if examined.sensitivities:
        charts[f"settings-{id}"] = sensitivity_chart(examined.sensitivities)
        yield _chart(f"settings-{id}", "Sensitivity to hyperparameters")
        yield to_html(result_tables.sensitivity_table(study, examined.sensitivities))
    for group in believers(study):
        charts[f"beliefs-{group.name}-{id}"] = band_chart(
            belief_bands(group), xlabel="round", ylabel="weight of the family"
        )
        yield _chart(f"beliefs-{group.name}-{id}", f"What {group.name} believed, mean over trials")
        yield to_html(beliefs_table(study, group))
    for group in misunderstood(study):
        yield (
            f'<p class="note">{escape(group.name)} told beliefs in another form than this page can show '
            "(see <code>tide</code> for the form); they are left out.</p>"
        )
    yield "<details><summary>Pairs of policies, regimes and phases</summary>"
    yield to_html(result_tables.pairs_table(study))
    yield from _regimes(examined, charts)
    yield "</details>"


def _regimes(examined: Examined, charts: dict[str, Chart]) -> Iterator[str]:
    id = _anchor(examined)
    recovery = result_tables.recovery_table(examined.study, examined.traces)
    if recovery is not None:
        yield to_html(recovery)
    if regimes := examined.bands("regimes"):
        charts[f"regimes-{id}"] = band_chart(
            regimes, xlabel="first round of the regime", ylabel="regret per round"
        )
        yield _chart(f"regimes-{id}", "Regret per round in each regime")
    if phases := examined.bands("phases"):
        charts[f"phases-{id}"] = band_chart(
            phases, xlabel="phase of the period", ylabel="share of rounds with the best arm"
        )
        yield _chart(f"phases-{id}", "Best arm by phase of the period")


def _origin(frame: Frame) -> Iterator[str]:
    yield "<h2>Where this comes from</h2><ul>"
    yield from (f"<li>{escape(line)}</li>" for line in provenance(frame))
    yield "</ul>"
    for name, text in frame.suites.items():
        yield f"<details><summary>The suite {escape(name)}, as run</summary><pre>{escape(text)}</pre></details>"


def _chart(id: str, caption: str) -> str:
    label = escape(caption)
    return (
        f'<figure><figcaption>{label}</figcaption><div data-chart="{escape(id)}" data-label="{label}">'
        "<noscript>This chart needs JavaScript; the same figure is beside this page as SVG.</noscript></div></figure>"
    )


def _anchor(examined: Examined) -> str:
    study = examined.study
    return f"{study.suite or 'other'}-{study.slug}-{study.horizon}"
