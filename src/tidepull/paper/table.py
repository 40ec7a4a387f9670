"""The paper's table beside ours, and how each setting in it was chosen.

A cell has our figure across worlds, the paper's with the difference in standard errors, and ours in
the authors' world with its own difference (`authors.py` says which errors these are). The suites
that played a setting say how it was chosen and from how many trials.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tidepull.experiments.grid import setting_text
from tidepull.paper.authors import BEYOND, SLIP, SLIPPED, AcrossCell, AuthorsCell
from tidepull.paper.studies import DIGITS, in_column, searched_beside
from tidepull.reporting import published
from tidepull.reporting.frames import Study
from tidepull.reporting.published import GRIDS
from tidepull.reporting.stats import summarise
from tidepull.reporting.tables import Cell, Table, spread

HEADS = {
    "nlps-best": "best NN",
    "rnlps-best": "best RNN",
    "nlps-default": "default NN",
    "rnlps-default": "default RNN",
    "discounted": "D-(Lin)UCB",
    "windowed": "SW-(Lin)UCB",
}


def overview(reports: Sequence[Study], cells: Sequence[AuthorsCell] = ()) -> Table:
    """A row for each problem of the paper; `cells` are those played in the authors' world."""
    there, across = (
        {(cell.row, cell.column): cell for cell in those}
        for those in (cells, across_cells(reports))
    )
    rows = [
        row
        for study in reports
        if study.problem in published.REGRET and (row := _row(study, across, there))
    ]
    played = {study.problem for study in reports}
    rows += [_not_played(problem) for problem in published.REGRET if rows and problem not in played]
    columns = ("problem", *(HEADS[column] for column in published.COLUMNS))
    return Table("paper-table", "Final regret, ours and the paper's", columns, tuple(rows))


def across_cells(reports: Sequence[Study]) -> Iterator[AcrossCell]:
    """Every cell of the table across worlds that has the paper's problem, algorithm and rounds: not
    the digits, nor D-LinUCB where the paper's has the slip."""
    for study in filter(full_length, reports):
        slipped = ("discounted",) if study.problem in SLIPPED else ()
        for column in () if study.problem == DIGITS else published.COLUMNS:
            group, paper = in_column(study, column), published.figure(study.problem, column)
            if group and paper and len(group.rows) > 1 and column not in slipped:
                ours = summarise(group.regrets)
                yield AcrossCell(study.problem, column, group.name, ours, paper)


def full_length(study: Study) -> bool:
    """Whether the trials have as many rounds as the paper's."""
    return published.HORIZONS.get(study.problem) == study.horizon


def _row(
    study: Study,
    across: Mapping[tuple[str, str], AuthorsCell],
    there: Mapping[tuple[str, str], AuthorsCell],
) -> tuple[Cell, ...] | None:
    full = full_length(study)
    ours = {
        column: summarise(group.regrets)
        for column in published.COLUMNS
        if (group := in_column(study, column))
    }
    if not ours:
        return None
    lowest = min(summary.mean for summary in ours.values())
    cells = [Cell(study.title + ("" if full else f", {study.horizon:,} rounds"))]
    for column in published.COLUMNS:
        lines = []
        if mine := ours.get(column):
            text = spread(mine.mean, mine.std).text
            lines.append(f"**{text}**" if mine.mean == lowest else text)
        if other := searched_beside(study, column):
            s = summarise(other.regrets)
            lines.append(f"searched: {spread(s.mean, s.std).text}")
        if full and (theirs := published.figure(study.problem, column)):
            lines.append(f"*{spread(theirs.mean, theirs.std).text}*")
            if cell := across.get((study.problem, column)):
                lines.append(f"({cell.z:+.1f} s.e.)")
        if full and (cell := there.get((study.problem, column))):
            lines.append(_in_their_world(cell))
        cells.append(Cell("<br>".join(lines) or "–"))
    return tuple(cells)


def _in_their_world(cell: AuthorsCell) -> str:
    slip = " with the slip" if cell.name == SLIP else ""
    figures = spread(cell.ours.mean, cell.ours.std).text
    return f"there{slip}: {figures} ({cell.z:+.1f} s.e.)"


def _not_played(problem: str) -> tuple[Cell, ...]:
    theirs = (published.figure(problem, column) for column in published.COLUMNS)
    return (
        Cell(f"{problem}<br>(not played)"),
        *(Cell(f"*{spread(cell.mean, cell.std).text}*" if cell else "–") for cell in theirs),
    )


_SEARCHED = ("epsilon", "temperature", "discount", "window", *GRIDS["nlps", "contextual"])
"""Parameters that the paper's grids vary, in the order in which they are shown."""
_RULE_OF = {"epsilon": "epsilon-greedy", "temperature": "boltzmann"}
"""Those that count with one kind of exploration only."""


@dataclass(frozen=True, slots=True)
class _Choice:
    name: str
    problems: tuple[str, ...]
    setting: str
    words: str


def chosen_table(suites: Mapping[str, str]) -> Table:
    """A row for each setting that some suite says how it was chosen; `suites` are their texts by
    name."""
    merged: dict[tuple[str, str, str], list[str]] = {}
    for choice in _choices(suites):
        merged.setdefault((choice.name, choice.setting, choice.words), []).extend(choice.problems)
    rows = tuple(
        (Cell(name), Cell(", ".join(dict.fromkeys(problems))), Cell(setting or "–"), Cell(words))
        for (name, setting, words), problems in merged.items()
    )
    columns = ("policy", "problems", "setting", "how it was chosen")
    return Table("chosen", "How the settings were chosen", columns, rows)


def best_choices(suites: Mapping[str, str]) -> Iterator[str]:
    """How the best networks across worlds were chosen, and where; what was chosen is in the
    details."""
    grids = {name: text for name, text in suites.items() if name.startswith("paper-grid")}
    merged: dict[tuple[str, str], list[str]] = {}
    for choice in _choices(grids):
        if choice.name in published.COLUMNS and choice.name.endswith("-best"):
            merged.setdefault((HEADS[choice.name], choice.words), []).extend(choice.problems)
    for (head, words), problems in merged.items():
        yield f"{head} of {', '.join(dict.fromkeys(problems))}: {words}"


def worse_bests(reports: Sequence[Study]) -> str:
    """Best networks with more mean regret than the default of the same network."""
    cells = {(c.row, c.column): c.ours.mean for c in across_cells(reports)}
    return ", ".join(
        f"{HEADS[column]} of {row} ({mean:,.1f} against {cells[row, default]:,.1f})"
        for (row, column), mean in cells.items()
        if mean > cells.get((row, default := column.replace("best", "default")), mean)
    )


def best_reasons(cells: Sequence[AuthorsCell]) -> dict[str, tuple[str, str]]:
    """Why best networks lie beyond two standard errors, with figures: whose search chose a setting
    that is no better than the default of the same network, or else how much each gained on it."""
    ours = {(cell.row, cell.column): cell.ours.mean for cell in cells}
    reasons = {}
    for cell in cells:
        if not cell.is_best or abs(cell.z) <= BEYOND:
            continue
        default = cell.column.replace("best", "default")
        theirs, mine = published.REGRET[cell.row][default].mean, ours.get((cell.row, default))
        best, paper = cell.ours.mean, cell.paper.mean
        if cell.z < 0 and theirs <= paper:
            why = "The paper's own best is no better than its default"
            figures = f"{paper:,.1f} against {theirs:,.1f}"
        elif mine is not None and cell.z > 0 and mine <= best:
            why = "Our search was misled, its best is no better than our default"
            figures = f"{best:,.1f} against {mine:,.1f}"
        else:
            why = "The paper does not print its setting, and the two searches gained unlike amounts"
            mine_too = f"ours {mine - best:,.1f}, " if mine is not None else ""
            figures = f"{mine_too}the paper's {theirs - paper:,.1f} below the default"
        reasons[f"{HEADS[cell.column]} of {cell.row}"] = why, figures
    return reasons


def _choices(suites: Mapping[str, str]) -> Iterator[_Choice]:
    """All that suites say, reports before selections; a default that our own search chose is called
    so where the paper's is there too."""
    written = (
        tomllib.loads(text) for text in suites.values() if text
    )  # `tune` asks for trials without a file
    tables = sorted(written, key=_is_selection)
    taken = {
        policy["name"]
        for table in tables
        if not _is_selection(table)
        for policy in table["policies"]
    }
    for table in tables:
        names = [problem.get("name", problem["id"]) for problem in table["problems"]]
        for policy in table["policies"]:
            if words := policy.get("chosen"):
                name = policy["name"]
                twice = name in taken and _is_selection(table)
                on = [
                    p
                    for p in names
                    if any(fnmatchcase(p, w) for w in policy.get("problems", ("*",)))
                ]
                setting = setting_text(_searched(policy.get("parameters", {})))
                yield _Choice(f"{name}-selected" if twice else name, tuple(on), setting, words)


def _searched(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What a grid varies and what counts; suites that were written from an archive name every
    parameter."""
    rule = parameters.get("exploration")
    return {
        k: parameters[k] for k in _SEARCHED if k in parameters and _RULE_OF.get(k, rule) == rule
    }


def _is_selection(table: Mapping[str, Any]) -> bool:
    return str(table["name"]).endswith("-selected")
