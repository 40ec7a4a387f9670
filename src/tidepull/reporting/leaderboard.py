"""Tideline's leaderboard, as a page of Markdown with its pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tidepull.reporting.frame import Frame
from tidepull.reporting.leaderboard_plots import profiles_figure, standings_figure
from tidepull.reporting.leaderboard_tables import board_table, hindsight_table, kinds_table, players_table
from tidepull.reporting.provenance import provenance
from tidepull.reporting.tables import Table, to_markdown
from tidepull.reporting.tideline import Board, Tideline

SCORE = (
    "0 is the specialist who knows how each world changes and has only its values to learn, 1 is random arms; lower is "
    "better. The score is an interquartile mean over all trials, its interval resamples trials within each world, "
    '"mean" is the plain mean over worlds, and "ms a round" is processor time. A star: the best setting of a grid for '
    "each world, chosen in hindsight on these very trials, which flatters."
)
PROFILES = (
    "### How often it goes well\n\nThe share of trials whose score is at most x: further up and left is better.\n\n"
    "![Share of trials up to each score: tidepull's policies, guests as documented, guests in hindsight](profiles.svg)"
)


def write_leaderboard(frame: Frame, line: Tideline, folder: Path, *, command: str) -> Path:
    """`leaderboard.md`, `standings.svg` and `profiles.svg` in the folder; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    standings_figure(line.boards[0], folder / "standings.svg")
    if line.profiles is not None:
        profiles_figure(line.profiles, line.boards[0], folder / "profiles.svg")
    page = folder / "leaderboard.md"
    page.write_text("\n\n".join(_parts(frame, line, command)) + "\n")
    return page


def _parts(frame: Frame, line: Tideline, command: str) -> Iterator[str]:
    first, *others = line.boards
    yield f"# Tideline: leaderboard\n\n```\n{command}\n```"
    if frame.gaps:
        yield f"**Not everything has been played:** {_gaps(frame)}."
    yield f"{SCORE}\n\n## {'' if frame.gaps else 'All '}{len(first.problems)} worlds"
    yield "![Every policy's score and its interval, between the specialist at 0 and random arms at 1](standings.svg)"
    yield _numbers(board_table(line, first))
    yield f"### By kind of world\n\n{_numbers(kinds_table(first))}"
    if line.profiles is not None:
        yield PROFILES
    hindsight = hindsight_table(line)
    if hindsight.rows:
        yield f"## One setting, and the best of a grid in hindsight\n\n{to_markdown(hindsight).strip()}"
    seen = {one.policy for one in first.standings}
    for board in others:
        yield _smaller(line, board, [one.policy for one in board.standings if one.policy not in seen])
        seen |= {one.policy for one in board.standings}
    yield f"## Who plays\n\n{to_markdown(players_table(frame, line)).strip()}"
    yield "## Where it was played\n\n" + "\n".join(f"- {said}" for said in provenance(frame, names=False))


def _smaller(line: Tideline, board: Board, new: list[str]) -> str:
    """The worlds of those who do not play everywhere, with everybody in them."""
    worlds = ", ".join(f"`{problem}`" for problem in board.problems)
    return (
        f"## The {len(board.problems)} worlds of {_named(new)}\n\n{worlds}.\n\n"
        f"{_numbers(board_table(line, board))}\n\n{_numbers(kinds_table(board))}"
    )


def _numbers(table: Table) -> str:
    """A narrow table whose first column stays when it is scrolled (the manual's style sheet does it)."""
    return f'<div class="numbers" markdown>\n\n{to_markdown(table)}\n</div>'


def _named(names: list[str]) -> str:
    if len(names) <= 2:
        return " and ".join(names) or "fewer policies"
    return f"{names[0]} and {len(names) - 1} others"


def _gaps(frame: Frame) -> str:
    kinds = {"not played yet": frame.gaps.missing, "failed": frame.gaps.failed, "damaged": frame.gaps.damaged}
    return ", ".join(f"{len(ids):,} trial{'s' * (len(ids) > 1)} {what}" for what, ids in kinds.items() if ids)
