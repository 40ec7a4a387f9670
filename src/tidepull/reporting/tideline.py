"""Tideline: every trial on a scale between the specialist that knows the structure (0) and random
arms (1).

    score = (R - R_specialist) / (R_random - R_specialist), all three in one world under one seed

On real streams and in shops the lower line is the oracle, R = 0. The score over
all worlds is an interquartile mean with a stratified bootstrap (`stats.py`). The tables say each
policy's place, by kind of world, as documented beside in hindsight, and with which settings it
plays.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from tidepull.errors import UnknownIdError
from tidepull.experiments.grid import count_settings
from tidepull.experiments.rows import Row
from tidepull.registry import policies
from tidepull.reporting.frames import Frame, Group, Study
from tidepull.reporting.stats import Panel, Score, common_regrets, paired_values, panel, score
from tidepull.reporting.tables import Cell, Table, number
from tidepull.types import FloatArray

KINDS: Mapping[str, tuple[str, ...]] = {
    "late rewards": ("late-*",),  # first: their names say what kind of world it is, too
    "stationary": ("*-stationary", "labels-slow"),
    "periodic": ("*-flip", "*-sine", "arms-seasons"),
    "wall clock": ("arms-clock",),
    "change points": ("*-changes", "*-irregular"),
    "returning regimes": ("*-returning",),
    "walks": ("*-walk",),
    "hidden states": ("arms-chain", "outside-*"),
    "season and change": ("arms-mixed",),
    "wearing arms": ("arms-rotting",),
    "heavy tails": ("arms-heavy",),
    "many arms": ("arms-many",),
    "wide contexts": ("*-wide",),
    "real streams": ("flipping-digits", "wall-following"),
    "shops": ("shop-*",),
    "real hours": ("stream-*",),
}
FROM_ORACLE = frozenset({"real streams", "shops", "real hours"})
"""Kinds whose lower line is the oracle: their structure is unknown, or not told."""
LOWER, UPPER = "specialist", "random"
MOST_BOARDS = 4


@dataclass(frozen=True, slots=True)
class Standing:
    """One policy on a board: its score over all worlds there, its mean by kind, milliseconds a
    round, of how many settings it is the best in hindsight, and the library that really plays, with
    its version (empty: tidepull)."""

    policy: str
    overall: Score
    by_kind: Mapping[str, float]
    milliseconds: float
    chosen_from: int = 1
    library: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """Policies that all played these worlds, lowest score first: nobody is compared on other
    worlds."""

    problems: tuple[str, ...]
    standings: tuple[Standing, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tideline:
    """Boards, that of most worlds first; `profiles` are of the first, `costs` the two lines'
    milliseconds a round."""

    boards: tuple[Board, ...]
    profiles: Panel | None
    costs: Mapping[str, float]


def kind_of(problem: str) -> str | None:
    """The kind of world that a problem of the suite belongs to."""
    for kind, patterns in KINDS.items():
        if any(fnmatchcase(problem, pattern) for pattern in patterns):
            return kind
    return None


def tideline(frame: Frame) -> Tideline:
    """Scores of everybody but the two lines, over the studies in which both lines were played."""
    scores: dict[str, dict[str, FloatArray]] = {}
    groups: dict[str, dict[str, Group]] = {}
    for study in frame.studies:
        if kind_of(study.problem) is None:
            continue
        for name, values in scaled(study).items():
            scores.setdefault(name, {})[study.problem] = values
        for group in study.groups:
            groups.setdefault(group.name, {})[study.problem] = group
    boards = [_board(problems, scores, groups) for problems in _sets(scores)]
    boards = boards[:1] + [board for board in boards[1:] if len(board.standings) > 1]
    several = bool(boards) and len(boards[0].standings) > 1
    return Tideline(
        boards=tuple(boards),
        profiles=panel(frozenset(boards[0].problems), scores) if several else None,
        costs={name: _cost(groups[name].values()) for name in (LOWER, UPPER) if name in groups},
    )


def _sets(scores: Mapping[str, Mapping[str, FloatArray]]) -> list[frozenset[str]]:
    """The sets of worlds that most policies played, no more and no less; the largest first."""
    sets = Counter(frozenset(by_problem) for by_problem in scores.values())
    most = max(sets, key=len, default=frozenset())
    others = [problems for problems, _ in sets.most_common() if problems != most]
    largest = {most, *others[: MOST_BOARDS - 1]} - {frozenset()}
    return sorted(largest, key=lambda s: (-len(s), sorted(s)))


def _board(
    problems: frozenset[str],
    scores: Mapping[str, Mapping[str, FloatArray]],
    groups: Mapping[str, Mapping[str, Group]],
) -> Board:
    order = sorted(problems)
    standings = []
    for name, by_problem in scores.items():
        if problems <= set(by_problem):
            played = [groups[name][problem] for problem in order]
            standings.append(
                Standing(
                    name,
                    score(name, [by_problem[problem] for problem in order]),
                    _by_kind({problem: by_problem[problem] for problem in order}),
                    _cost(played),
                    max(group.chosen_from for group in played),
                    _library(played[0].rows[0]),
                )
            )
    return Board(tuple(order), tuple(sorted(standings, key=lambda one: one.overall.iqm)))


def scaled(study: Study) -> dict[str, FloatArray]:
    """Every policy's trials on the scale between the lines; nothing where a line is missing."""
    upper, lower = study.group(UPPER), study.group(LOWER)
    if upper is None or (lower is None and kind_of(study.problem) not in FROM_ORACLE):
        return {}
    top = dict(zip(upper.worlds, upper.regrets, strict=True))
    bottom = {} if lower is None else dict(zip(lower.worlds, lower.regrets, strict=True))
    scores = {}
    for group in study.groups:
        if group.name in (UPPER, LOWER, "oracle"):
            continue
        pairs = [
            (regret, bottom.get(world, 0.0), top[world])
            for world, regret in zip(group.worlds, group.regrets, strict=True)
            if world in top and (lower is None or world in bottom)
        ]
        if pairs:
            scores[group.name] = np.array([(r - low) / (high - low) for r, low, high in pairs])
    return scores


def _by_kind(by_problem: Mapping[str, FloatArray]) -> dict[str, float]:
    means: dict[str, list[float]] = {}
    for problem, values in by_problem.items():
        means.setdefault(kind_of(problem) or "", []).append(float(values.mean()))
    return {kind: float(np.mean(means[kind])) for kind in KINDS if kind in means}


def _cost(groups: Iterable[Group]) -> float:
    """Milliseconds of processor time a round, each trial counted once."""
    rows = [row for group in groups for row in group.rows]
    return float(np.mean([row.cpu_seconds / row.horizon * 1e3 for row in rows]))


def _library(row: Row) -> str:
    """Name and version of an external package: the only text among what else a trial hangs on."""
    code = json.loads(row.code or "{}")
    return ", ".join(f"{name} {value}" for name, value in code.items() if isinstance(value, str))


HINDSIGHT = "-hindsight"


def board_table(line: Tideline, board: Board) -> Table:
    """One row for each policy, the two lines among them."""
    lower = LOWER if LOWER in line.costs else "oracle"
    rows = {
        (LOWER, 0.0): _line(f"{lower} (the lower line)", 0.0, line.costs.get(LOWER)),
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
            *(
                number(round(one.by_kind[k], 2) + 0.0, 2, best=one.by_kind[k] == least[k])
                for k in kinds
            ),
        )
        for one in board.standings
    )
    return Table("tideline-kinds", "Mean score by kind of world", ("policy", *kinds), rows)


def ahead_table(frame: Frame) -> Table:
    """Every world in which another policy has less regret than `tide` beyond noise: the 95%
    interval of their paired difference lies above 0."""
    rows, player = [], "tide"
    for study in frame.studies:
        own = study.group(player)
        if own is None or kind_of(study.problem) is None:
            continue
        for group in study.groups:
            mine, theirs = common_regrets(own, group)
            difference = paired_values(player, group.name, mine, theirs)
            if difference.low > 0 and group.name not in (player, UPPER, LOWER, "oracle"):
                names = Cell(study.problem), Cell(group.name)
                means = number(float(theirs.mean()), 1), number(float(mine.mean()), 1)
                apart = Cell(f"{difference.low:.1f} to {difference.high:.1f}")
                rows.append((*names, *means, apart))
    columns = ("world", "policy", "its regret", f"{player}'s", "difference, 95%")
    title = f"Where another policy is ahead of {player}"
    return Table("tideline-ahead", title, columns, tuple(rows))


def worlds_table(frame: Frame, board: Board) -> Table:
    """Mean score of every policy in every world of a board; those who play fewer worlds come
    last."""
    means = {
        study.problem: {name: float(values.mean()) for name, values in scaled(study).items()}
        for study in frame.studies
        if study.problem in board.problems
    }
    shown = {one.policy: shown_name(one) for one in board.standings}
    shown |= {name: name for by_name in means.values() for name in by_name if name not in shown}
    rows = tuple(
        (
            Cell(problem),
            *(
                number(by_name[name], 3, best=by_name[name] == min(by_name.values()))
                if name in by_name
                else Cell("–")
                for name in shown
            ),
        )
        for problem, by_name in sorted(means.items())
    )
    return Table("tideline-worlds", "Mean score by world", ("world", *shown.values()), rows)


def hindsight_table(line: Tideline) -> Table:
    """Everybody who plays twice: at one setting, and at the best of a grid for each world, in
    hindsight."""
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
                        Cell(
                            f"{shown_name(board.standings[0])} {board.standings[0].overall.iqm:.3f}"
                        ),
                    )
                )
    columns = ("policy", "one setting", "best of a grid", "settings", "worlds", "leader")
    title = "One setting, and the best in hindsight"
    return Table("tideline-hindsight", title, columns, tuple(rows))


def players_table(frame: Frame, line: Tideline) -> Table:
    """What stands behind each name: library, policies, settings."""
    libraries = {one.policy: one.library for board in line.boards for one in board.standings}
    rows = tuple(
        (
            Cell(name),
            Cell(libraries[name] or f"tidepull{_versions(frame, name)}"),
            Cell("; ".join(ids)),
            Cell("; ".join(settings)),
        )
        for name, ids, settings in _players(frame)
        if name in libraries
    )
    columns = ("policy", "library", "what plays", "settings")
    return Table("tideline-players", "Policies", columns, rows)


def _versions(frame: Frame, name: str) -> str:
    """Which versions of a policy of tidepull played, where it has several."""
    groups = (study.group(name) for study in frame.studies)
    codes = (json.loads(row.code or "{}") for group in groups if group for row in group.rows)
    versions = sorted({code["policy_version"] for code in codes if "policy_version" in code})
    return f", version {' and '.join(map(str, versions))}" if versions else ""


def shown_name(one: Standing) -> str:
    """The policy's name; a star marks settings that were chosen in hindsight."""
    return f"{one.policy}*" if one.chosen_from > 1 else one.policy


def _line(name: str, score: float, milliseconds: float | None) -> tuple[Cell, ...]:
    cost = Cell("–") if milliseconds is None else number(milliseconds, 3)
    return Cell(name), number(score, 3), Cell("–"), number(score, 3), cost


def _scored(one: Standing) -> Cell:
    text = f"{one.overall.iqm:.3f} ({one.overall.low:.3f} to {one.overall.high:.3f})"
    return Cell(text, one.overall.iqm)


def _players(frame: Frame) -> Iterator[tuple[str, list[str], list[str]]]:
    """Names with the ids and settings that the suites give them, each said once."""
    players: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for text in frame.suites.values():
        for entry in tomllib.loads(text)["policies"]:
            id = entry.get("id", entry.get("name"))
            ids, settings = players.setdefault(entry.get("name", id), ({}, {}))
            ids[_described(id)] = None
            settings[_settings(entry)] = None
    for name, (ids, settings) in players.items():
        yield name, list(ids), list(settings)


def _described(id: str) -> str:
    try:
        return f"`{id}`: {policies.entry(id).description}"
    except UnknownIdError:  # of a module that is not loaded here
        return f"`{id}`"


def _settings(entry: Mapping[str, Any]) -> str:
    fixed = ", ".join(f"{name} {value}" for name, value in entry.get("parameters", {}).items())
    grid = entry.get("grid", {})
    if not grid:
        return fixed or "its defaults"
    choices = ", ".join(f"{name} {' or '.join(map(str, values))}" for name, values in grid.items())
    return f"best of {count_settings(grid)}: {choices}" + (f", with {fixed}" if fixed else "")
