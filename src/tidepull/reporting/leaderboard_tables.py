"""The tables of Tideline's leaderboard: who stands where, by kind of world, as documented beside in hindsight, and who
plays with which settings."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from tidepull.errors import UnknownIdError
from tidepull.experiments.suites.grid import count_settings
from tidepull.registry import policies
from tidepull.reporting.frame import Frame
from tidepull.reporting.tables import Cell, Table, number
from tidepull.reporting.tideline import KINDS, LOWER, UPPER, Board, Standing, Tideline

HINDSIGHT = "-hindsight"


def board_table(line: Tideline, board: Board) -> Table:
    """One row for each policy, the two lines among them."""
    rows = {
        (LOWER, 0.0): _line("specialist (the lower line)", 0.0, line.costs.get(LOWER)),
        (UPPER, 1.0): _line("random arms (the upper line)", 1.0, line.costs.get(UPPER)),
    }
    for place, one in enumerate(board.standings):
        rows[one.policy, one.overall.iqm] = (
            Cell(shown_name(one)),
            number(one.overall.iqm, 3, best=place == 0),
            Cell(f"{one.overall.low:.3f} to {one.overall.high:.3f}"),
            number(one.overall.mean, 3),
            number(one.milliseconds, 3),
        )
    columns = ("policy", "score", "95% interval", "mean", "ms a round")
    ordered = tuple(rows[key] for key in sorted(rows, key=lambda key: key[1]))
    return Table("tideline", f"{len(board.problems)} worlds", columns, ordered)


def kinds_table(board: Board) -> Table:
    """One row for each policy, one column for each kind of world."""
    kinds = [kind for kind in KINDS if any(kind in one.by_kind for one in board.standings)]
    least = {kind: min(one.by_kind[kind] for one in board.standings) for kind in kinds}
    rows = tuple(
        (
            Cell(shown_name(one)),
            *(number(round(one.by_kind[k], 2) + 0.0, 2, best=one.by_kind[k] == least[k]) for k in kinds),
        )
        for one in board.standings
    )
    return Table("tideline-kinds", "Mean score by kind of world", ("policy", *kinds), rows)


def hindsight_table(line: Tideline) -> Table:
    """Everybody who plays twice: at one setting, and at the best of a grid for each world, in hindsight."""
    rows: list[tuple[Cell, ...]] = []
    for board in line.boards:
        by_name = {one.policy: one for one in board.standings}
        seen = {row[0].text for row in rows}
        for name, one in by_name.items():
            best = by_name.get(name + HINDSIGHT)
            if best is not None and name not in seen:
                rows.append(
                    (
                        Cell(name),
                        _scored(one),
                        _scored(best),
                        number(best.chosen_from, 0),
                        Cell(f"{len(board.problems)}", len(board.problems)),
                        Cell(f"{shown_name(board.standings[0])} {board.standings[0].overall.iqm:.3f}"),
                    )
                )
    columns = ("policy", "one setting", "best of a grid", "settings", "worlds", "who leads there")
    return Table("tideline-hindsight", "One setting, and the best in hindsight", columns, tuple(rows))


def players_table(frame: Frame, line: Tideline) -> Table:
    """What stands behind each name: library, policies, settings."""
    libraries = {one.policy: one.library for board in line.boards for one in board.standings}
    rows = tuple(
        (Cell(name), Cell(libraries[name] or "tidepull"), Cell("; ".join(ids)), Cell("; ".join(settings)))
        for name, ids, settings in _players(frame)
        if name in libraries
    )
    return Table("tideline-players", "Who plays", ("policy", "library", "what plays", "settings"), rows)


def shown_name(one: Standing) -> str:
    """The policy's name; a star marks settings that were chosen in hindsight."""
    return f"{one.policy}*" if one.chosen_from > 1 else one.policy


def _line(name: str, score: float, milliseconds: float | None) -> tuple[Cell, ...]:
    cost = Cell("–") if milliseconds is None else number(milliseconds, 3)
    return Cell(name), number(score, 3), Cell("–"), number(score, 3), cost


def _scored(one: Standing) -> Cell:
    said = f"{one.overall.iqm:.3f} ({one.overall.low:.3f} to {one.overall.high:.3f})"
    return Cell(said, one.overall.iqm)


def _players(frame: Frame) -> Iterator[tuple[str, list[str], list[str]]]:
    """Names with the ids and settings that the suites give them, each said once."""
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for text in frame.suites.values():
        for entry in tomllib.loads(text)["policies"]:
            id = entry.get("id", entry.get("name"))
            ids, settings = found.setdefault(entry.get("name", id), ({}, {}))
            ids[_described(id)] = None
            settings[_settings(entry)] = None
    for name, (ids, settings) in found.items():
        yield name, list(ids), list(settings)


def _described(id: str) -> str:
    try:
        return f"`{id}`: {policies.entry(id).description}"
    except UnknownIdError:  # of a module that is not loaded here
        return f"`{id}`"


def _settings(entry: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name} {value}" for name, value in entry.get("parameters", {}).items())
    grid = entry.get("grid", {})
    if not grid:
        return given or "its defaults"
    choices = ", ".join(f"{name} {' or '.join(map(str, values))}" for name, values in grid.items())
    return f"best of {count_settings(grid)}: {choices}" + (f", with {given}" if given else "")
