"""Tideline: every trial on a scale between the specialist who knows the structure (0) and random arms (1).

    score = (R - R_specialist) / (R_random - R_specialist), all three in the same world under the same seed

On real streams nobody knows the structure, and the lower line is the oracle, R = 0. The score over all worlds is an
interquartile mean with a stratified bootstrap (`aggregate.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from tidepull.experiments.store.rows import Row
from tidepull.reporting.aggregate import Panel, Score, panel, score
from tidepull.reporting.frame import Frame, Group, Study
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
}
LOWER, UPPER = "specialist", "random"
MOST_BOARDS = 4


@dataclass(frozen=True, slots=True)
class Standing:
    """One policy on a board: its score over all worlds there, its mean by kind, milliseconds a round, of how many
    settings it is the best in hindsight, and the library that really plays, with its version (empty: tidepull)."""

    policy: str
    overall: Score
    by_kind: Mapping[str, float]
    milliseconds: float
    chosen_from: int = 1
    library: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """Policies that all played these worlds, lowest score first: nobody is compared on other worlds."""

    problems: tuple[str, ...]
    standings: tuple[Standing, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tideline:
    """Boards, that of most worlds first; `profiles` are of the first, `costs` the two lines' milliseconds a round."""

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
    boards = [board for number, board in enumerate(boards) if number == 0 or len(board.standings) > 1]
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
    return sorted({most, *others[: MOST_BOARDS - 1]} - {frozenset()}, key=lambda s: (-len(s), sorted(s)))


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
    if upper is None or (lower is None and kind_of(study.problem) != "real streams"):
        return {}
    top = dict(zip(upper.worlds, upper.regrets, strict=True))
    bottom = {} if lower is None else dict(zip(lower.worlds, lower.regrets, strict=True))
    found = {}
    for group in study.groups:
        if group.name in (UPPER, LOWER, "oracle"):
            continue
        pairs = [
            (regret, bottom.get(world, 0.0), top[world])
            for world, regret in zip(group.worlds, group.regrets, strict=True)
            if world in top and (lower is None or world in bottom)
        ]
        if pairs:
            found[group.name] = np.array([(r - low) / (high - low) for r, low, high in pairs])
    return found


def _by_kind(by_problem: Mapping[str, FloatArray]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for problem, values in by_problem.items():
        found.setdefault(kind_of(problem) or "", []).append(float(values.mean()))
    return {kind: float(np.mean(found[kind])) for kind in KINDS if kind in found}


def _cost(groups: Iterable[Group]) -> float:
    """Milliseconds of processor time a round, each trial counted once."""
    return float(np.mean([row.cpu_seconds / row.horizon * 1e3 for group in groups for row in group.rows]))


def _library(row: Row) -> str:
    """Name and version of a guest's package: the only text among what else a trial hangs on."""
    found = json.loads(row.code or "{}")
    return ", ".join(f"{name} {version}" for name, version in found.items() if isinstance(version, str))
