"""Tideline's leaderboard: a page of Markdown with its figures, one column each, so that they can be
read on a phone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tidepull.reporting import tideline
from tidepull.reporting.figures import colour, pyplot, save, unbox
from tidepull.reporting.frames import Frame
from tidepull.reporting.stats import Panel, Profile
from tidepull.reporting.tables import Table, provenance, to_markdown

SCORE = (
    "0 is the specialist, which knows how each world changes and has only its values to learn (in "
    "shops and real streams the oracle), 1 is random arms; lower is "
    "better. The score is an interquartile mean over all trials, its interval resamples trials "
    "within each world, "
    '"mean" is the plain mean over worlds, and "ms a round" is processor time. A star: the best setting of a grid for '
    "each world, chosen in hindsight on these very trials, which flatters."
)
NOT_AHEAD = "No other policy has less regret beyond noise in any world."
PROFILES = (
    "### How often it goes well\n\nThe share of trials whose score is at most x: further up and "
    "left is better.\n\n"
    "![Share of trials up to each score: tidepull's policies, other libraries as documented and in "
    "hindsight](profiles.svg)"
)


def write_leaderboard(frame: Frame, line: tideline.Tideline, folder: Path, *, command: str) -> Path:
    """`leaderboard.md`, `standings.svg` and `profiles.svg` in the folder; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    standings_figure(line.boards[0], folder / "standings.svg")
    if line.profiles is not None:
        profiles_figure(line.profiles, line.boards[0], folder / "profiles.svg")
    page = folder / "leaderboard.md"
    page.write_text("\n\n".join(_parts(frame, line, command)) + "\n")
    return page


def _parts(frame: Frame, line: tideline.Tideline, command: str) -> Iterator[str]:
    first, *others = line.boards
    second = any(tideline.kind_of(problem) in ("shops", "real hours") for problem in first.problems)
    yield f"# Tideline{' 2' if second else ''}: leaderboard\n\n```\n{command}\n```"
    if frame.gaps:
        yield f"**Not everything has been played:** {_gaps(frame)}."
    yield f"{SCORE}\n\n## {'' if frame.gaps else 'All '}{len(first.problems)} worlds"
    yield "![Every policy's score and its interval, between the specialist at 0 and random arms at 1](standings.svg)"
    yield _numbers(tideline.board_table(line, first))
    yield f"### By kind of world\n\n{_numbers(tideline.kinds_table(first))}"
    if second:
        ahead = tideline.ahead_table(frame)
        yield f"### {ahead.title}\n\n{_numbers(ahead) if ahead.rows else NOT_AHEAD}"
        yield f"### By world\n\n{_numbers(tideline.worlds_table(frame, first))}"
    if line.profiles is not None:
        yield PROFILES
    hindsight = tideline.hindsight_table(line)
    if hindsight.rows:
        yield f"## One setting, and the best of a grid in hindsight\n\n{to_markdown(hindsight).strip()}"
    seen = {one.policy for one in first.standings}
    for board in others:
        yield _smaller(
            line, board, [one.policy for one in board.standings if one.policy not in seen]
        )
        seen |= {one.policy for one in board.standings}
    yield f"## Policies\n\n{to_markdown(tideline.players_table(frame, line)).strip()}"
    yield "## Where it was played\n\n" + "\n".join(
        f"- {sentence}" for sentence in provenance(frame, names=False)
    )


def _smaller(line: tideline.Tideline, board: tideline.Board, new: list[str]) -> str:
    """The worlds of those who do not play everywhere, with everybody in them."""
    worlds = ", ".join(f"`{problem}`" for problem in board.problems)
    return (
        f"## The {len(board.problems)} worlds of {_named(new)}\n\n{worlds}.\n\n"
        f"{_numbers(tideline.board_table(line, board))}\n\n{_numbers(tideline.kinds_table(board))}"
    )


def _numbers(table: Table) -> str:
    """A narrow table whose first column stays when it is scrolled (the manual's style sheet does
    it)."""
    return f'<div class="numbers" markdown>\n\n{to_markdown(table)}\n</div>'


def _named(names: list[str]) -> str:
    if len(names) <= 2:
        return " and ".join(names) or "fewer policies"
    return f"{names[0]} and {len(names) - 1} others"


def _gaps(frame: Frame) -> str:
    gaps = frame.gaps
    kinds = {"not played yet": gaps.missing, "failed": gaps.failed, "damaged": gaps.damaged}
    counts = {what: len(ids) for what, ids in kinds.items() if ids}
    return ", ".join(f"{n:,} trial{'s' * (n > 1)} {what}" for what, n in counts.items())


WIDTH = 4.8
OWN, OTHER, CHOSEN = "#0072b2", "#d55e00", "#e69f00"
COLOURS = ["#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#997700", "#666666", "#000000"]
PANELS = (
    "tidepull's own",
    "other libraries, as documented",
    "other libraries, best of a grid in hindsight",
)


def standings_figure(board: tideline.Board, path: Path) -> None:
    """Every policy's score with its interval between the two lines."""
    plt = pyplot()
    height = 0.24 * len(board.standings) + 1.5
    figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
    for x, name in ((0.0, "specialist"), (1.0, "random")):
        axes.axvline(x, color="#8c8c8c", lw=1)
        axes.annotate(
            name, (x, 1), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
            ha="center", fontsize=9, color="#555555",
        )  # fmt: skip
    for place, one in enumerate(board.standings):
        shade = CHOSEN if one.chosen_from > 1 else OTHER if one.library else OWN
        axes.plot([one.overall.low, one.overall.high], [place, place], color=shade, lw=2)
        axes.plot(one.overall.iqm, place, "o", color=shade, ms=5)
    names = list(map(tideline.shown_name, board.standings))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(board.standings) - 0.4, -0.6)
    left = min(-0.03, *(one.overall.low for one in board.standings))
    axes.set_xlim(left, _right(board.standings))
    axes.set_xlabel("score, 95% interval (lower is better)", fontsize=10)
    unbox(axes, grid="x")
    axes.tick_params(labelsize=9)
    keys = {"tidepull": OWN, "other library": OTHER, "best in hindsight": CHOSEN}
    marks = [plt.Line2D([], [], color=shade, marker="o", lw=2, ms=5) for shade in keys.values()]
    figure.legend(marks, keys, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    save(figure, [path])


def profiles_figure(panel: Panel, board: tideline.Board, path: Path) -> None:
    """Share of trials up to each score, in panels of a few lines; the leader is in all of them."""
    plt = pyplot()
    panels = list(_panels(panel, board))
    size = (WIDTH, 3.1 * len(panels) + 0.3)
    figure, rows = plt.subplots(
        len(panels), 1, figsize=size, layout="constrained", squeeze=False, sharex=True
    )
    for axes, (title, profiles) in zip(rows[:, 0], panels, strict=True):
        _draw(axes, panel, profiles, leader=panel.profiles[0].policy)
        axes.set_title(title, fontsize=10, loc="left")
        axes.legend(fontsize=8, loc="lower right", edgecolor="none", framealpha=0.8)
    rows[-1, 0].set_xlabel("score (0 the specialist, 1 random arms)", fontsize=10)
    save(figure, [path])


def _draw(axes: Any, panel: Panel, profiles: Mapping[str, Profile], *, leader: str) -> None:
    free = iter(COLOURS * 3)
    for name, profile in profiles.items():
        shade = colour("tide") if profile.policy == leader else next(free)
        width = 2.4 if profile.policy == leader else 1.5
        axes.plot(panel.thresholds, profile.share, label=name, color=shade, lw=width)
        axes.fill_between(
            panel.thresholds, profile.low, profile.high, color=shade, alpha=0.12, lw=0
        )
    axes.set_xlim(0, min(1.25, float(panel.thresholds[-1])))
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share of trials", fontsize=9)
    unbox(axes, grid="y")
    axes.tick_params(labelsize=9)


def _panels(panel: Panel, board: tideline.Board) -> Iterator[tuple[str, dict[str, Profile]]]:
    """Title and lines, best first; a panel without a line of its own is left out."""
    profiles = {profile.policy: profile for profile in panel.profiles}
    leader = board.standings[0]
    ranked = sorted(board.standings, key=lambda one: (_panel(one), one.overall.iqm))
    for number, members in groupby(ranked, key=_panel):
        shown = {tideline.shown_name(one): profiles[one.policy] for one in members}
        yield PANELS[number], {tideline.shown_name(leader): profiles[leader.policy]} | shown


def _panel(one: tideline.Standing) -> int:
    if not one.library:
        return 0
    return 2 if one.chosen_from > 1 else 1


def _right(standings: Sequence[tideline.Standing]) -> float:
    """Room for the upper line and all intervals but absurd ones."""
    return min(2.0, max(1.06, *(one.overall.high * 1.03 for one in standings)))
