"""Pictures beyond regret curves: sensitivity, performance profiles, recovery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.reporting.aggregate import Panel
from tidepull.reporting.colours import colour
from tidepull.reporting.plots import line_style, pyplot, save, tidy
from tidepull.reporting.sensitivity import Sensitivity


def sensitivity_grid(charts: Mapping[str, Sequence[Sensitivity]], *, paths: Sequence[Path]) -> None:
    """Every setting's mean cumulative reward, best to worst, one line for each policy; a chart a problem."""
    plt = pyplot()
    columns = 2 if len(charts) == 4 else min(3, len(charts))
    rows = -(-len(charts) // columns)
    size = (8, 4.8) if len(charts) == 1 else (3.7 * columns, 2.8 * rows + 0.5)
    figure, panels = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for axes, (title, found) in zip(panels.ravel(), charts.items(), strict=False):
        for s in found:
            share = np.linspace(0, 100, len(s.means))
            marker = "." if len(s.means) <= 40 else ""
            axes.plot(share, s.means, marker=marker, label=f"{s.name} ({len(s.means)})", **line_style(s.name))
        axes.set_title(title, fontsize=9)
        axes.set_xlim(0, 100)
        tidy(axes)
        axes.margins(y=0.08)
        axes.legend(frameon=False, fontsize=8, loc="lower left")
        _room_below(axes)
    for axes in panels.ravel()[len(charts) :]:
        axes.set_visible(False)
    figure.supxlabel("settings from best to worst (%)", fontsize=10)
    figure.supylabel("mean cumulative reward", fontsize=10)
    save(figure, paths)


def profile_figure(
    panel: Panel,
    *,
    title: str,
    paths: Sequence[Path],
    scale: str = "regret as a share of random's (0 oracle, 1 random)",
) -> None:
    """Share of trials whose normalised regret is at most x: further up and left is better."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 4.8), layout="constrained")
    for profile in panel.profiles:
        axes.plot(panel.thresholds, profile.share, label=profile.policy, **line_style(profile.policy))
        axes.fill_between(
            panel.thresholds, profile.low, profile.high, color=colour(profile.policy), alpha=0.15, lw=0
        )
    axes.set(title=title, xlabel=scale, ylabel="share of trials")
    axes.set_xlim(0, float(panel.thresholds[-1]))
    axes.set_ylim(0, 1.02)
    tidy(axes)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    save(figure, paths)


def _room_below(axes: Any) -> None:
    """Lengthen the axis downwards so that the legend hides no line."""
    low, high = axes.get_ylim()
    lines = len(axes.get_lines())
    axes.set_ylim(low - (high - low) * (0.06 + 0.1 * lines), high)
