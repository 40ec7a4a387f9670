"""Tideline: every trial on a scale between the specialist who knows the structure (0) and random arms (1).

    score = (R - R_specialist) / (R_random - R_specialist), all three in the same world under the same seed

On real streams nobody knows the structure, and the lower line is the oracle, R = 0. The score over all worlds is an
interquartile mean with a stratified bootstrap (`aggregate.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from tidepull.analysis.aggregate import Panel, Score, panel, score
from tidepull.analysis.frame import Frame, Study
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


@dataclass(frozen=True, slots=True)
class Standing:
    """One policy: its score over all worlds that it played, its mean by kind (None where it played none), its cost;
    `leader`: the score there of the policy that leads over all worlds."""

    policy: str
    overall: Score
    leader: float
    by_kind: Mapping[str, float | None]
    worlds: int
    milliseconds: float
    chosen_from: int


@dataclass(frozen=True, slots=True, eq=False)
class Tideline:
    """All policies, those that played every world first, lowest score first; `profiles` are of those alone."""

    standings: tuple[Standing, ...]
    profiles: Panel | None
    worlds: int
    trials: int


def kind_of(problem: str) -> str | None:
    """The kind of world that a problem of the suite belongs to."""
    for kind, patterns in KINDS.items():
        if any(fnmatchcase(problem, pattern) for pattern in patterns):
            return kind
    return None


def tideline(frame: Frame) -> Tideline:
    """Scores of everybody but the two lines, over the studies in which both lines were played."""
    scores: dict[str, dict[str, FloatArray]] = {}
    costs: dict[str, list[float]] = {}
    grids: dict[str, int] = {}
    for study in frame.studies:
        if kind_of(study.problem) is None:
            continue
        for name, values in scaled(study).items():
            scores.setdefault(name, {})[study.problem] = values
        for group in study.groups:
            grids[group.name] = max(grids.get(group.name, 1), group.chosen_from)
            costs.setdefault(group.name, []).extend(row.cpu_seconds / row.horizon * 1e3 for row in group.rows)
    every = {problem for by_problem in scores.values() for problem in by_problem}
    whole = {name: s for name, s in scores.items() if set(s) == every}
    first = min(whole, key=lambda name: score(name, list(whole[name].values())).iqm) if whole else None
    standings = [
        Standing(
            name,
            score(name, list(by_problem.values())),
            _there(whole.get(first or ""), by_problem),
            _by_kind(by_problem),
            len(by_problem),
            float(np.mean(costs[name])),
            grids[name],
        )
        for name, by_problem in scores.items()
    ]
    return Tideline(
        standings=tuple(sorted(standings, key=lambda s: (s.worlds < len(every), s.overall.iqm))),
        profiles=panel(frozenset(every), whole) if len(whole) > 1 else None,
        worlds=len(every),
        trials=sum(len(values) for by_problem in scores.values() for values in by_problem.values()),
    )


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


def _there(leader: Mapping[str, FloatArray] | None, worlds: Mapping[str, FloatArray]) -> float:
    """The leader's score over the worlds that somebody else played."""
    if leader is None:
        return float("nan")
    return score("leader", [leader[problem] for problem in worlds]).iqm


def _by_kind(by_problem: Mapping[str, FloatArray]) -> dict[str, float | None]:
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for problem, values in by_problem.items():
        kind = kind_of(problem)
        if kind is not None:
            found[kind].append(float(values.mean()))
    return {kind: _mean(values) for kind, values in found.items()}


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
