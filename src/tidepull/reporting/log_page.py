"""The page of a diagnosis: its tables, and its pictures as SVG that takes its colour from the page, so
that it is readable in light and dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from tidepull import __version__
from tidepull.logs import Diagnosis
from tidepull.logs.diagnosis import advice
from tidepull.logs.diagnosis.confounding import Mixup
from tidepull.logs.diagnosis.overview import best_by_hour
from tidepull.logs.diagnosis.structure import FEW_PLAYS, KINDS
from tidepull.logs.diagnosis.testing import LEVEL
from tidepull.logs.log import WEEKDAYS, zone_of
from tidepull.reporting.figures import dated, pyplot, svg, tidy
from tidepull.reporting.tables import Cell, Table, number, render_page
from tidepull.types import FloatArray, IntArray

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#997700", "#8c8c8c")
KIND_COLOURS = {
    "nothing": "#8c8c8c", "drift": "#e69f00", "changes": "#009e73", "rounds": "#56b4e9", "clock": "#0072b2",
    "regimes": "#cc79a7", "last": "#d55e00",
}  # fmt: skip
_INK = "#123456"
"""Stands for the page's own colour of text until the picture is on the page."""
_SHOWN = 8


def shown_arms(diagnosis: Diagnosis) -> list[int]:
    """The arms that have lines of their own in pictures, the most played first; arms with too few
    decisions to speak of have none, unless all are such."""
    counts = np.array([arm.decisions for arm in diagnosis.overview.arms])
    least = FEW_PLAYS if (counts >= FEW_PLAYS).any() else 1
    return [int(a) for a in np.argsort(-counts, kind="stable")[:_SHOWN] if counts[a] >= least]


def shares(diagnosis: Diagnosis) -> str:
    """Each arm's share of the decisions, and how many there are, over time."""
    table, arms = diagnosis.overview.over_time, shown_arms(diagnosis)
    total = table.decisions.sum(axis=1)
    figure, (top, bottom) = _figure(2, height=3.6, ratios=(3, 1))
    x = _moments(diagnosis, table.starts)
    parts = [table.decisions[:, a] / np.maximum(total, 1) for a in arms]
    labels = [diagnosis.log.arms[a] for a in arms]
    if len(arms) < diagnosis.log.n_arms:
        parts.append(1 - np.sum(parts, axis=0))
        labels.append(f"{diagnosis.log.n_arms - len(arms)} others")
    colours = [*COLOURS[: len(arms)], "#c9c9c9"][: len(parts)]
    top.stackplot(x, parts, labels=labels, colors=colours, alpha=0.9, step="post", lw=0)
    top.set(ylim=(0, 1), ylabel="share of decisions")
    bottom.fill_between(x, total, step="post", color=COLOURS[0], alpha=0.5, lw=0)
    bottom.set(ylabel="decisions", ylim=(0, None))
    _over_time(diagnosis, top, bottom)
    _legend(figure, top)
    return _svg(figure, "shares")


def rewards(diagnosis: Diagnosis) -> str:
    """Mean reward of each arm over time with its 95% interval."""
    table = diagnosis.overview.over_time
    figure, (axes,) = _figure(1, height=3.6)
    x = _moments(diagnosis, table.starts)
    for n, a in enumerate(shown_arms(diagnosis)):
        known = np.isfinite(table.mean[:, a])
        axes.plot(
            x[known], table.mean[known, a], color=COLOURS[n], lw=1.7, label=diagnosis.log.arms[a]
        )
        axes.fill_between(
            x[known], table.low[known, a], table.high[known, a], color=COLOURS[n], alpha=0.15, lw=0
        )
    if diagnosis.structure is not None:
        for change in diagnosis.structure.changes:
            if change.chance >= 0.5:
                axes.axvline(_moment(diagnosis, change.row), color=_INK, lw=1, ls=(0, (4, 3)))
    axes.set(ylabel="mean reward", ylim=_span(table.mean[:, shown_arms(diagnosis)]))
    _over_time(diagnosis, axes)
    _legend(figure, axes)
    return _svg(figure, "rewards")


def by_hour(diagnosis: Diagnosis) -> str:
    """Mean reward of each arm by hour of the day with 95% bars."""
    assert diagnosis.hours is not None
    figure, (axes,) = _figure(1, height=3.2)
    arms = shown_arms(diagnosis)
    for n, a in enumerate(arms):
        x = np.arange(24) + (n - (len(arms) - 1) / 2) * 0.7 / len(arms)
        mean = diagnosis.hours.arm_mean[:, a]
        bars = [mean - diagnosis.hours.arm_low[:, a], diagnosis.hours.arm_high[:, a] - mean]
        axes.errorbar(
            x, mean, bars, fmt="o", ms=3, lw=1, color=COLOURS[n], label=diagnosis.log.arms[a]
        )
    axes.set(ylabel="mean reward", xticks=range(0, 24, 2))
    axes.set_xlabel(f"hour of the day ({diagnosis.log.timezone})")
    axes.set_ylim(_span(diagnosis.hours.arm_mean[:, arms]))
    tidy(axes)
    _legend(figure, axes)
    return _svg(figure, "hours")


def heat(diagnosis: Diagnosis, what: str) -> str:
    """Hour by weekday: `mean` reward, `decisions` or `effective` rows."""
    assert diagnosis.hours is not None
    values = np.array(getattr(diagnosis.hours, what), float)
    values[diagnosis.hours.decisions == 0] = np.nan
    figure, (axes,) = _figure(1, height=2.4)
    image = axes.imshow(values, aspect="auto", cmap="viridis", interpolation="none")
    axes.set_xticks(range(0, 24, 2), [f"{hour}" for hour in range(0, 24, 2)])
    axes.set_yticks(range(7), [day[:3] for day in WEEKDAYS])
    axes.tick_params(labelsize=9, length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("hour of the day", fontsize=9)
    bar = figure.colorbar(image, ax=axes, fraction=0.03, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=9)
    return _svg(figure, f"heat-{what}")


def best_hours(diagnosis: Diagnosis) -> IntArray | None:
    """The best arm of each hour on weekdays and on weekends; -1 where it is not clear. It is what the
    recommendation says, if the log has a daily or weekly season; else what the hours say by themselves."""
    if diagnosis.structure is None or diagnosis.structure.best is None:
        return best_by_hour(diagnosis.log)
    days = diagnosis.structure.best[:5], diagnosis.structure.best[5:]
    return np.array([np.where((day == day[0]).all(axis=0), day[0], -1) for day in days])


def week(diagnosis: Diagnosis) -> str:
    """The best arm of each hour on weekdays and weekends, where the log is clear about it."""
    best, arms = best_hours(diagnosis), shown_arms(diagnosis)
    assert best is not None
    figure, (axes,) = _figure(1, height=1.5)
    for row, hours in enumerate(best):
        for hour, arm in enumerate(hours):
            colour = COLOURS[arms.index(arm)] if arm in arms else "#c9c9c9"
            alpha = 0.9 if arm in arms else 0.25
            axes.barh(1 - row, 0.94, left=hour + 0.03, height=0.8, color=colour, alpha=alpha, lw=0)
    for n, arm in enumerate(arms):
        if (best == arm).any():
            axes.barh([0], [0], color=COLOURS[n], label=diagnosis.log.arms[arm])
    axes.set_xticks(range(0, 25, 3))
    axes.set_yticks([1, 0], ["Mon-Fri", "Sat-Sun"])
    axes.tick_params(labelsize=9, length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlim(0, 24)
    axes.set_xlabel(f"hour of the day ({diagnosis.log.timezone})", fontsize=9)
    _legend(figure, axes)
    return _svg(figure, "week")


def weights(diagnosis: Diagnosis) -> str:
    """The evidence for each kind of time structure, as decisions go by."""
    structure = diagnosis.structure
    assert structure is not None
    figure, (axes,) = _figure(1, height=3.2)
    x = _at(diagnosis, structure.rows)
    kinds = [
        n
        for n, kind in enumerate(KINDS)
        if structure.over_time[:, n].max() > 0.02 or kind == "nothing"
    ]
    names = list(KINDS)
    axes.stackplot(
        x, [structure.over_time[:, n] for n in kinds], labels=[KINDS[names[n]] for n in kinds],
        colors=[KIND_COLOURS[names[n]] for n in kinds], alpha=0.9, lw=0,
    )  # fmt: skip
    axes.set(ylim=(0, 1), ylabel="share of the evidence")
    _over_time(diagnosis, axes)
    _legend(figure, axes)
    return _svg(figure, "weights")


def memories(diagnosis: Diagnosis) -> str:
    """How much better memories of some length predict than remembering everything."""
    figure, (axes,) = _figure(1, height=2.8)
    tried = diagnosis.forgetting.memories
    x = np.array([memory.decisions for memory in tried])
    gain, low, high = 100 * np.array([(m.gain, m.low, m.high) for m in tried]).T
    axes.axhline(0, color=_INK, lw=0.8)
    axes.plot(x, gain, "o-", color=COLOURS[0], ms=4, lw=1.7)
    axes.fill_between(x, low, high, color=COLOURS[0], alpha=0.18, lw=0)
    axes.set_xscale("log")
    axes.set_xticks(x, [f"{value:,.0f}" for value in x])
    axes.minorticks_off()
    axes.set(xlabel="memory, in decisions", ylabel="better prediction, %")
    tidy(axes)
    return _svg(figure, "memories")


def calibration(diagnosis: Diagnosis) -> str:
    """The sum of 1/p as a share of what it should be, by arm and by slice of time."""
    assert diagnosis.calibration is not None
    groups: dict[str, list[Any]] = {}
    for check in diagnosis.calibration.checks:
        groups.setdefault(check.what, []).append(check)
    figure, panels = _figure(1, height=2.8, columns=max(1, len(groups)))
    for axes, (name, checks) in zip(panels, groups.items(), strict=False):
        x = np.arange(len(checks))
        half = [1.96 * check.error for check in checks]
        axes.axhline(1, color=_INK, lw=0.8)
        axes.errorbar(
            x, [check.value for check in checks], half, fmt="o", ms=3, lw=1, color=COLOURS[0]
        )
        few = max(1, -(-len(checks) // 8))
        axes.set_xticks(
            x[::few], [_short(check.slice) for check in checks[::few]], rotation=45, ha="right"
        )
        axes.set_title(f"by {name}", fontsize=10)
        tidy(axes)
    panels[0].set_ylabel("sum of 1/p, relative to expected")
    return _svg(figure, "calibration")


def _short(name: str) -> str:
    return name.removeprefix("tenth ") if len(name) <= 10 else name[:9] + "…"


def _span(values: FloatArray) -> tuple[float, float]:
    """Room for all means; intervals of few rewards may leave it."""
    known = values[np.isfinite(values)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(np.quantile(known, 0.01)), float(np.quantile(known, 0.99))
    room = 0.35 * (high - low) or 0.5 * abs(high) or 1.0
    return (max(0.0, low - room) if low >= 0 else low - room), high + room


def _moments(diagnosis: Diagnosis, starts: FloatArray) -> Any:
    if diagnosis.log.time is None or not diagnosis.log.dated:
        return starts
    zone = zone_of(diagnosis.log.timezone)
    return np.array([datetime.fromtimestamp(float(t), zone).replace(tzinfo=None) for t in starts])


def _at(diagnosis: Diagnosis, rows: Sequence[int]) -> Any:
    along = (
        np.arange(len(diagnosis.log), dtype=float)
        if diagnosis.log.time is None
        else diagnosis.log.time
    )
    return _moments(diagnosis, along[list(rows)])


def _moment(diagnosis: Diagnosis, row: int) -> Any:
    return _at(diagnosis, [row])[0]


def _over_time(diagnosis: Diagnosis, *panels: Any) -> None:
    for axes in panels:
        tidy(axes)
        axes.margins(x=0)
        if diagnosis.log.time is not None and diagnosis.log.dated:
            dated(axes)
        axes.yaxis.label.set_size(9)
    if diagnosis.log.time is None:
        panels[-1].set_xlabel("decisions", fontsize=9)


def _figure(
    rows: int, *, height: float, columns: int = 1, ratios: Sequence[float] | None = None
) -> tuple[Any, Any]:
    plt = pyplot()
    figure, panels = plt.subplots(
        rows, columns, figsize=(9.6, height), layout="constrained", squeeze=False, sharex=columns == 1,
        gridspec_kw=None if ratios is None else {"height_ratios": ratios},
    )  # fmt: skip
    figure.patch.set_alpha(0)
    for axes in panels.ravel():
        axes.patch.set_alpha(0)
    return figure, panels.ravel()


def _legend(figure: Any, axes: Any) -> None:
    handles, names = axes.get_legend_handles_labels()
    if handles:
        figure.legend(
            handles, [_short_label(name) for name in names], loc="outside upper left", ncols=min(5, len(names)),
            frameon=False, fontsize=9,
        )  # fmt: skip


def _short_label(name: str) -> str:
    return name if len(name) <= 28 else name[:27] + "…"


def _svg(figure: Any, name: str) -> str:
    """The figure as an element of a page: text as text, ink in the colour of the page, names that
    meet no others."""
    for axes in figure.axes:
        axes.tick_params(colors=_INK)
        for part in (axes.xaxis.label, axes.yaxis.label, axes.title):
            part.set_color(_INK)
        for side in axes.spines.values():
            side.set_edgecolor(_INK)
    for legend in figure.legends:
        for text in legend.get_texts():
            text.set_color(_INK)
    text = svg(figure)
    text = text[text.index("<svg") :].replace(_INK, "currentColor")
    text = re.sub(r'\b(id=")', rf"\1{name}-", text)
    text = re.sub(r'(url\(#|href="#)', rf"\1{name}-", text)
    return re.sub(
        r'<svg ([^>]*?)width="[^"]*" height="[^"]*"',
        r'<svg \1class="plot" role="img"',
        text,
        count=1,
    )


_MOST_ARMS = 100
_ABOUT_MEASURES = "The smallest of several p-values is expected to be small; the p-value above is corrected for that."
_ABOUT_CHANGES = (
    "The chance is that of a change about then or since, if change points are the right kind."
)


def render(diagnosis: Diagnosis) -> str:
    """The page as text.

    Parameters
    ----------
    diagnosis
        What `tidepull.logs.diagnose` says of a log.

    Returns
    -------
    str
        One HTML document with its style, script and pictures inside.
    """
    lines = diagnosis.log.preview(rows=0).splitlines()[:4]
    size = ". ".join(line.strip().rstrip(".") for line in lines) + "."
    changes = () if diagnosis.structure is None else diagnosis.structure.changes
    title = f"Diagnosis of {diagnosis.log.reading.source}"
    likely = any(change.chance >= 0.5 for change in changes)
    pictures = (week, shares, rewards, by_hour, heat, weights, memories, calibration)
    draw = {picture.__name__: picture for picture in pictures}
    constants: Any = {
        "draw": draw,
        "best_hours": best_hours,
        "advice": advice,
        "level": LEVEL,
        "version": __version__,
    }
    content: Any = {"diagnosis": diagnosis, "size": size, "likely_change": likely}
    tables = _tables(diagnosis)
    return render_page("log.html", title=title, tables=tables, **content, **constants)


def _tables(diagnosis: Diagnosis) -> dict[str, Any]:
    measures = sorted(diagnosis.test.measures.items(), key=lambda item: item[1])
    rows = tuple((Cell(name), number(p, 3)) for name, p in measures)
    columns = ("measure", "p, uncorrected")
    tables: dict[str, Any] = {
        "arms": _arms_table(diagnosis),
        "measures": Table("measures", "Measures of order", columns, rows, _ABOUT_MEASURES),
        "worth": _worth_table(diagnosis),
        "mixups": [mixup_table(mixup) for mixup in diagnosis.mixups],
    }
    structure = diagnosis.structure
    if structure is not None:
        shares = sorted(structure.weights.items(), key=lambda item: -item[1])
        kinds = _shares([(KINDS[kind], weight) for kind, weight in shares])
        columns = ("kind of time structure", "share of the evidence, %")
        tables["kinds"] = Table("kinds", "Evidence for each kind", columns, kinds)
        leading = _shares(structure.leading)
        tables["leading"] = Table("leading", "Leading models", ("in words", "share, %"), leading)
        changes = tuple(
            (Cell(one.when), number(100 * one.chance, 0), Cell(one.words or "–"))
            for one in structure.changes
        )
        moved = ("when", "chance, %", "what moved")
        tables["changes"] = Table("changes", "Change points", moved, changes, _ABOUT_CHANGES)
    return tables


def _shares(weights: Sequence[tuple[str, float]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple((Cell(words), number(100 * weight, 1)) for words, weight in weights)


def _arms_table(diagnosis: Diagnosis) -> Table:
    lines = sorted(diagnosis.overview.arms, key=lambda arm: -arm.decisions)
    rows = tuple(
        (
            Cell(arm.arm), number(arm.decisions, 0), number(100 * arm.share, 1), number(arm.rewards, 0),
            number(arm.mean, 4), Cell(_between(arm.low, arm.high)), number(arm.least_propensity, 4),
            number(arm.mean_propensity, 4), number(arm.balance, 3),
        )
        for arm in lines[:_MOST_ARMS]
    )  # fmt: skip
    columns = (
        "arm", "decisions", "share, %", "rewards", "mean reward", "95% interval", "least propensity",
        "mean propensity", "sum of 1/p, relative to expected",
    )  # fmt: skip
    hidden = len(lines) - _MOST_ARMS
    more = f"{hidden:,} more arms are not shown. " if hidden > 0 else ""
    copies = "The log has no ids of decisions, so copies cannot be told. "
    if diagnosis.overview.copies is not None:
        copies = f"{diagnosis.overview.copies:,} rows have the id of an earlier one. "
    return Table("arms", "Arms", columns, rows, f"{more}{copies}{_gaps(diagnosis)}")


def _gaps(diagnosis: Diagnosis) -> str:
    overview = diagnosis.overview
    if not overview.gaps:
        return "There are no long gaps." if diagnosis.log.time is not None else ""
    gaps = [f"after {gap.when}: {gap.times_usual:,.0f} usual steps" for gap in overview.gaps]
    return f"Long gaps: {'; '.join(gaps)}."


def _worth_table(diagnosis: Diagnosis) -> Table:
    rows = tuple(
        (
            Cell(one.rule), number(one.value, 4), Cell(_between(one.low, one.high)), number(one.gain, 4),
            Cell("–" if not n else _between(one.gain_low, one.gain_high)), number(one.effective, 0),
        )
        for n, one in enumerate(diagnosis.worth)
    )  # fmt: skip
    columns = (
        "playing", "mean reward", "95% interval", "gain over the first", "95% interval", "effective rows",
    )  # fmt: skip
    note = "By self-normalised inverse propensities; each rule looks at earlier decisions only."
    return Table("worth", "What remembering would have been worth", columns, rows, note)


def mixup_table(mixup: Mixup) -> Table:
    """An arm that is ahead over the whole log and behind within slices of it (Simpson's
    paradox)."""
    rows = tuple(
        (Cell(name), number(n, 0), number(mean, 4), number(other_n, 0), number(other, 4))
        for name, n, mean, other_n, other in mixup.slices
    )
    better, other, by = mixup.better, mixup.other, mixup.by
    columns = (by, f"{better}: decisions", "mean reward", f"{other}: decisions", "mean reward ")
    note = (
        f"Over the whole log {better} is ahead by {mixup.apart:.3g} (± "
        f"{1.96 * mixup.apart_error:.2g}), within a {by} {other} is, by {mixup.within:.3g} (± "
        f"{1.96 * mixup.within_error:.2g}): shares moved with the {by}."
    )
    title = f"'{better}' is ahead over the whole log, '{other}' within each {by} on average"
    return Table(f"mixup-{by}", title, columns, rows, note)


def _between(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}" if low == low else "–"
