"""Figures of regret, sensitivity and profiles, and what all figures share; no other file imports
matplotlib.

A policy keeps its colour everywhere; all are safe for colour-blind readers (after Okabe and Ito).
Variants of one policy (best, default, other explorations) share its colour and differ by their
line.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from tidepull._internal.extras import needs
from tidepull.errors import InputError
from tidepull.reporting.stats import Panel, Sensitivity, mean_interval
from tidepull.reporting.traces import Band, thinned_rounds
from tidepull.tide.models.families import FAMILIES
from tidepull.types import FloatArray

_FIXED = {
    "random": "#8c8c8c",
    "fixed": "#b5b5b5",
    "oracle": "#000000",
    "ucb": "#997700",
    "d-ucb": "#e69f00",
    "d-lin-ucb": "#e69f00",
    "sw-ucb": "#56b4e9",
    "sw-lin-ucb": "#56b4e9",
    "bernoulli-ts": "#cc79a7",
    "lin-ts": "#cc79a7",
    "lin-ucb": "#997700",
    "nlps": "#009e73",
    "rnlps": "#d55e00",
    "rnlps-epsilon-greedy": "#0072b2",
    "rnlps-boltzmann": "#cc79a7",
    "tide": "#0072b2",
}
_FAMILIES = {family.name: family.colour for family in FAMILIES.values()}
"""Families of hypotheses of `tide`, in charts of their own."""
_SPARE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]

_LEGEND_WIDTH = 120
"""Letters in a line of a legend above a grid of charts."""
SOLID: tuple[float, ...] = ()
_DASHES = {
    "": SOLID,
    "best": SOLID,
    "tuned": SOLID,
    "default": (6, 2.5),
    "epsilon": (1.5, 2),
    "epsilon-greedy": (1.5, 2),
    "boltzmann": (7, 2, 1.5, 2),
}
_SPARE_DASHES: list[tuple[float, ...]] = [(3, 2), (9, 3), (7, 2, 1.5, 2, 1.5, 2), (1.5, 3.5)]


def colour(policy: str) -> str:
    """Colour of a policy id, or of a name that starts with one ("rnlps-best")."""
    id = _id(policy)
    if policy in _FAMILIES:
        return _FAMILIES[policy]
    return _FIXED[id] if id else _SPARE[crc32(policy.encode()) % len(_SPARE)]


def dashes(policy: str) -> tuple[float, ...]:
    """Lengths of the line's dashes and gaps; empty for a solid line."""
    if policy in _FAMILIES:
        return SOLID
    variant = policy.removeprefix(_id(policy) or policy).strip("- *").removesuffix("-best")
    if variant in _DASHES:
        return _DASHES[variant]
    return _SPARE_DASHES[crc32(variant.encode()) % len(_SPARE_DASHES)]


def _id(policy: str) -> str:
    matches = [id for id in _FIXED if f"{policy}-".startswith((f"{id}-", f"{id} ", f"{id}*"))]
    return max(matches, key=len, default="")


def regret_curves(curves: Mapping[str, FloatArray], *, title: str, path: Path) -> None:
    """Cumulative regret of each policy (trials x rounds): mean with its 95% bootstrap band."""
    bands = {}
    for name, regret in curves.items():
        rounds = thinned_rounds(regret.shape[1])
        thin = regret[:, rounds - 1]
        bands[name] = Band(rounds.astype(float), thin.mean(axis=0), *mean_interval(thin))
    ylabel = "cumulative regret (lower is better)"
    band_figure(bands, title=title, xlabel="round", ylabel=ylabel, paths=[path])


def band_figure(
    bands: Mapping[str, Band], *, title: str, xlabel: str, ylabel: str, paths: Sequence[Path]
) -> None:
    """One chart, every line named at its end; written once for each path, in the format of its
    ending."""
    figure, axes = pyplot().subplots(figsize=(8, 4.8), layout="constrained")
    draw_bands(axes, bands)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    _name_ends(axes, {name: float(band.mean[-1]) for name, band in bands.items()})
    save(figure, paths)


def band_grid(
    charts: Mapping[str, Mapping[str, Band]], *, xlabel: str, ylabel: str, paths: Sequence[Path]
) -> None:
    """Small charts side by side, one for each problem, with one legend for all."""
    figure, panels = _grid(len(charts), 2.7, xlabel, ylabel)
    for axes, (title, bands) in zip(panels, charts.items(), strict=True):
        draw_bands(axes, bands, most_points=80)
        axes.set_title(title, fontsize=10)
    lines = {line.get_label(): line for axes in panels for line in axes.get_lines()}
    longest = max((len(str(name)) for name in lines), default=0)
    columns = max(1, min(6, len(lines), _LEGEND_WIDTH // (longest + 6)))
    figure.legend(
        lines.values(), lines.keys(), loc="outside upper center", ncols=columns, frameon=False
    )
    save(figure, paths)


def _grid(count: int, height: float, xlabel: str, ylabel: str) -> tuple[Any, list[Any]]:
    """A figure of `count` panels, at most three in a row, with labels for all of them."""
    columns = 2 if count == 4 else min(3, count)
    rows = -(-count // columns)
    size = (3.7 * columns, height * rows + 0.5)
    figure, panels = pyplot().subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False
    )
    for axes in panels.ravel()[count:]:
        axes.set_visible(False)
    figure.supxlabel(xlabel, fontsize=10)
    figure.supylabel(ylabel, fontsize=10)
    return figure, list(panels.ravel()[:count])


def draw_bands(axes: Any, bands: Mapping[str, Band], most_points: int = 200) -> None:
    """Lines with their bands, each in its policy's colour; more points than can be seen only make
    large files."""
    for name, band in bands.items():
        points = thinned_rounds(len(band.x), most_points) - 1
        axes.plot(band.x[points], band.mean[points], label=name, **line_style(name))
        if np.isfinite(band.low).all():
            low, high = band.low[points], band.high[points]
            axes.fill_between(band.x[points], low, high, color=colour(name), alpha=0.18, lw=0)
    right = max((float(band.x[-1]) for band in bands.values()), default=1.0)
    axes.set_xlim(0, right)
    axes.set_ylim(0, _top(bands))
    tidy(axes)


def _top(bands: Mapping[str, Band]) -> float:
    """Room for all means, and for bands unless those of very few trials would dwarf them."""
    mean = max((float(np.nanmax(band.mean)) for band in bands.values()), default=1.0)
    high = max((float(np.nanmax(band.high, initial=0.0)) for band in bands.values()), default=1.0)
    return max(mean, min(high, 1.2 * mean)) * 1.04 or 1.0


def line_style(name: str) -> dict[str, Any]:
    """Colour and dashes of a policy, as matplotlib takes them."""
    pattern = dashes(name)
    return {"color": colour(name), "lw": 1.9, "ls": (0, pattern) if pattern else "-"}


def tidy(axes: Any) -> None:
    """No box, light horizontal lines, small numbers."""
    unbox(axes, grid="y")
    axes.tick_params(labelsize=9)


def unbox(axes: Any, *, grid: str) -> None:
    """No box, a light grid across `x`, `y` or `both`."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, alpha=0.25)


def plain_ticks(axes: Any) -> None:
    """Numbers such as 20 and 500 on logarithmic axes, and none between them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def dated(axes: Any) -> None:
    """Few and short dates along the x axis."""
    from matplotlib import dates

    locator: Any = dates.AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _name_ends(axes: Any, ends: Mapping[str, float]) -> None:
    top = axes.get_ylim()[1]
    order = sorted(ends, key=lambda name: ends[name])
    right = axes.get_xlim()[1]
    for name, height in zip(order, spread([ends[name] for name in order], top), strict=True):
        beside = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
        look = {"color": colour(name), "fontweight": "bold", "fontsize": 9}
        axes.annotate(name, (right, height), **beside, **look, annotation_clip=False)


def trials_text(counts: Sequence[int]) -> str:
    """`mean of 10 trials, 95% band`; a span where policies differ in their number."""
    if max(counts) == 1:
        return "one trial"
    span = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return f"mean of {span} trials, 95% band"


def spread(heights: Sequence[float], top: float) -> list[float]:
    """Move labels (sorted upwards) apart so that they do not overlap and none lies above the
    chart."""
    gap = min(top * 0.052, top / max(1, len(heights) - 1))
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + gap) if placed else height)
    ceiling = top
    for i in range(len(placed) - 1, -1, -1):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return placed


def pyplot() -> Any:
    """matplotlib without a screen; the same numbers give the same bytes."""
    with needs("drawing figures", "experiments"):
        import matplotlib as mpl
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "tidepull"
    mpl.rcParams["svg.fonttype"] = "path"
    import matplotlib.pyplot as plt

    return plt


def svg(figure: Any) -> str:
    """The figure as the text of an SVG in which words are words, for pages; it is forgotten
    then."""
    text = io.StringIO()
    plt = pyplot()
    with plt.rc_context({"svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    plt.close(figure)
    return text.getvalue()


def save(figure: Any, paths: Sequence[Path]) -> None:
    """Write the figure in each format and forget it."""
    known = figure.canvas.get_supported_filetypes()
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    for path in paths:
        if path.suffix.removeprefix(".") not in known:
            raise InputError(
                f"{path}: the file's ending says the format; use .png, .svg or .pdf, or one of: "
                f"{', '.join(sorted(known))}"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, metadata=undated.get(path.suffix))
    pyplot().close(figure)


def sensitivity_grid(charts: Mapping[str, Sequence[Sensitivity]], *, paths: Sequence[Path]) -> None:
    """Every setting's mean cumulative reward, best to worst, one line for each policy; a chart a
    problem."""
    figure, panels = _grid(
        len(charts), 2.8, "settings from best to worst (%)", "mean cumulative reward"
    )
    if len(charts) == 1:
        figure.set_size_inches(8, 4.8)
    for axes, (title, sensitivities) in zip(panels, charts.items(), strict=True):
        for s in sensitivities:
            share, label = np.linspace(0, 100, len(s.means)), f"{s.name} ({len(s.means)})"
            marker = "." if len(s.means) <= 40 else ""
            axes.plot(share, s.means, marker=marker, label=label, **line_style(s.name))
        axes.set_title(title, fontsize=9)
        axes.set_xlim(0, 100)
        tidy(axes)
        axes.margins(y=0.08)
        axes.legend(frameon=False, fontsize=8, loc="lower left")
        low, high = axes.get_ylim()  # room for the legend below the lines
        axes.set_ylim(low - (high - low) * (0.06 + 0.1 * len(axes.get_lines())), high)
    save(figure, paths)


def profile_figure(panel: Panel, *, title: str, paths: Sequence[Path]) -> None:
    """Share of trials whose normalised regret is at most x: further up and left is better."""
    figure, axes = pyplot().subplots(figsize=(8, 4.8), layout="constrained")
    for profile in panel.profiles:
        name, x = profile.policy, panel.thresholds
        axes.plot(x, profile.share, label=name, **line_style(name))
        axes.fill_between(x, profile.low, profile.high, color=colour(name), alpha=0.15, lw=0)
    scale = "regret as a share of random's (0 oracle, 1 random)"
    axes.set(title=title, xlabel=scale, ylabel="share of trials")
    axes.set_xlim(0, float(panel.thresholds[-1]))
    axes.set_ylim(0, 1.02)
    tidy(axes)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    save(figure, paths)
