"""One picture of an agent: traffic over time, rewards by hour and weekday, the gain over the
control, and beliefs."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from tidepull.agent.insight import Insight
from tidepull.agent.lift import lift_of
from tidepull.agent.log import DecisionLog
from tidepull.agent.records import DecisionGroup
from tidepull.agent.table import interval
from tidepull.reporting.figures import dated, pyplot, save, tidy
from tidepull.types import IntArray

_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#997700", "#5d3a9b"]
_RETIRED = "#b0b0b0"
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_POINTS = 60
_FEW = 3
"""Arms for which every hour is drawn; more could not be told apart."""

_LEAST = 5
"""Rewards below which a mean says nothing, and is not drawn."""


def draw(insight: Insight, path: Path) -> None:
    """Six panels, written in the format of the file's ending."""
    log = insight.log()
    plt = pyplot()
    figure, panels = plt.subplots(3, 2, figsize=(11, 9.5), layout="constrained")
    moments = [insight.clock.datetime(at) for at in log.at.tolist()]
    hours = np.array([moment.hour for moment in moments], int)
    days = np.array([moment.weekday() for moment in moments], int)
    _traffic(panels[0, 0], insight, log, moments)
    each = 1 if len(insight.labels) <= _FEW else 3
    starts = [f"{h}" if each == 1 else f"{h} to {h + each}" for h in range(0, 24, each)]
    _rewards(panels[0, 1], insight, log, hours // each, starts, "hour of the day")
    _rewards(panels[1, 0], insight, log, days, list(_WEEKDAYS), "weekday")
    _gain(panels[1, 1], insight)
    _best(panels[2, 0], insight)
    _beliefs(panels[2, 1], insight)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside upper center", ncols=min(6, max(1, len(names))), frameon=False
    )
    save(figure, [path])


def _traffic(axes: Any, insight: Insight, log: DecisionLog, moments: list[Any]) -> None:
    """Each arm's share of the policy's decisions, over time."""
    rows = np.flatnonzero(log.group == DecisionGroup.POLICY)
    if len(rows):
        parts = [
            part
            for part in np.array_split(rows, min(_POINTS, max(1, len(rows) // 20)))
            if len(part)
        ]
        x = [moments[int(part[len(part) // 2])] for part in parts]
        shares = [
            [float((log.arm[part] == place).mean()) for part in parts] for place in insight.labels
        ]
        colours = [_colour(insight, place) for place in insight.labels]
        axes.stackplot(x, shares, labels=list(insight.labels.values()), colors=colours, alpha=0.85)
        axes.set_ylim(0, 1)
        dated(axes)
    axes.set_title("share of the policy's decisions", fontsize=10)
    tidy(axes)


def _rewards(
    axes: Any, insight: Insight, log: DecisionLog, key: IntArray, names: list[str], xlabel: str
) -> None:
    """Mean reward of each arm by hour or weekday, with 95% bars; control and policy together."""
    paid = ~np.isnan(log.reward)
    width = 0.8 / max(1, len(insight.labels))
    for n, place in enumerate(insight.labels):
        mine = paid & (log.arm == place)
        cells = [log.reward[mine & (key == cell)] for cell in range(len(names))]
        shown = [interval(cell if len(cell) >= _LEAST else cell[:0]) for cell in cells]
        mean, low, high = np.array(shown).T
        x = np.arange(len(names)) + (n - (len(insight.labels) - 1) / 2) * width
        bars = np.maximum([mean - low, high - mean], 0.0)
        axes.errorbar(x, mean, bars, fmt="o", ms=3, lw=1, color=_colour(insight, place))
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_title(f"mean reward by {xlabel} (95% bars)", fontsize=10)
    axes.set_xlabel(xlabel, fontsize=9)
    tidy(axes)


def _gain(axes: Any, insight: Insight) -> None:
    """The gain over the control up to each moment, with its interval."""
    log, against = insight.compared()
    moments = [insight.clock.datetime(at) for at in log.at.tolist()]
    ends = np.unique(np.linspace(0, len(log), _POINTS + 1).astype(int))[1:]
    lifts = [(moments[end - 1], lift_of(log.where(slice(0, end)))) for end in ends.tolist()]
    known = [(moment, lift) for moment, lift in lifts if lift.known and lift.n_control >= 20]
    if known:
        lines = [(moment, lift.gain, lift.low, lift.high) for moment, lift in known]
        x, gain, low, high = zip(*lines, strict=True)
        axes.plot(x, gain, color="#0072b2")
        axes.fill_between(x, low, high, color="#0072b2", alpha=0.2, lw=0)
        dated(axes)
    axes.axhline(0, color="black", lw=0.8)
    axes.set_title(
        f"gain per decision over {against}, so far (95% confidence sequence)", fontsize=10
    )
    tidy(axes)


def _best(axes: Any, insight: Insight) -> None:
    """What the policy's draws of late found best in every hour of the week; the surer, the
    darker."""
    week = insight.week()
    known = ~np.isnan(week).any(axis=2)
    picture = np.ones((7, 24, 4))
    for place in insight.labels:
        leads = known & (np.nan_to_num(week).argmax(axis=2) == place)
        colour = _colour(insight, place)
        picture[leads, :3] = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        picture[leads, 3] = week[leads, place]
    axes.imshow(picture, aspect="auto", extent=(0, 24, 7, 0), interpolation="none")
    axes.set_xticks(range(0, 25, 3))
    axes.set_yticks(np.arange(7) + 0.5, _WEEKDAYS, fontsize=8)
    axes.set_title("best arm by hour and weekday (pale: uncertain)", fontsize=10)
    axes.set_xlabel("hour of the day", fontsize=9)


def _beliefs(axes: Any, insight: Insight) -> None:
    """What the policy holds true about time, where it can say so."""
    beliefs = insight.summarise_policy().beliefs
    axes.set_title("weights of models of time", fontsize=10)
    if not beliefs:
        axes.text(
            0.5, 0.5, "this policy does not say, or not yet", ha="center", va="center", fontsize=9
        )
        axes.set_axis_off()
        return
    y = np.arange(len(beliefs))
    axes.barh(y + 0.2, [weight for _, weight in beliefs], 0.25, color="#0072b2")
    for n, (words, weight) in enumerate(beliefs):
        axes.text(0.0, n - 0.05, f"{weight:.0%}: {fill(words, 70)}", fontsize=8, va="bottom")
    axes.set(xlim=(0, 1), ylim=(2.6, -0.7), yticks=[])
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    tidy(axes)


def _colour(insight: Insight, place: int) -> str:
    """Arms that can be chosen have colours that differ most; retired ones are grey."""
    if place not in insight.open:
        return _RETIRED
    return _COLOURS[list(insight.open).index(place) % len(_COLOURS)]
