"""Our trials in the authors' own worlds beside the paper's figures, and standard errors that mean
something.

Within the authors' world both samples are ten seeds of a policy in one world, and regret is as in
their code (realised but for the linear rows):

    z = (m_ours - m_paper) / sqrt(s_ours^2 / n + s_paper^2 / 10)

Across worlds ours are n worlds and the paper's is one, whose own deviation counts once. Luck, the
sum of the noise that the authors' world adds to every policy's realised regret, is known and taken
off:

    z = (m_ours - (m_paper - luck)) / sqrt(s_ours^2 / n + s_paper^2 / 10 + s_between^2)
    s_between^2 = max(0, s_ours^2 - s_paper^2)

Chance takes a cell beyond 2 with the probability of Student's t, since the deviations are those of
a few trials (degrees of freedom after Welch and Satterthwaite).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from scipy.stats import t as student

from tidepull.reporting import published
from tidepull.reporting.frames import Group, Study
from tidepull.reporting.published import TRIALS, Reported, errors_apart
from tidepull.reporting.stats import Summary, summarise
from tidepull.types import FloatArray

PROBLEM: Final = "authors-world"
SLIP: Final = "d-lin-ucb-slip"
"""D-LinUCB with the slip of the authors' published code (`variant = "reference-code"`)."""
AGAIN: Final = "paper-authors-again"
"""The suite that plays cells which lie beyond once more, on other seeds."""
SLIPPED: Final = ("flipping-vector", "rotating-vector-2048")
"""Rows of D-LinUCB that the authors played with the slip."""
LUCK: Final = MappingProxyType(
    {"flipping-gaussian": 10.907, "flipping-digits": 5.578, "wall-following": 4.168}
)
"""Realised minus pseudo-regret in the authors' world, the same for every policy."""
BEYOND = 2.0
"""Standard errors from which on a difference is counted."""


@dataclass(frozen=True, slots=True)
class AuthorsCell:
    """A cell of the table in the authors' world: ours, the paper's and the difference."""

    row: str
    column: str
    name: str
    ours: Summary
    paper: Reported

    @property
    def z(self) -> float:
        """The difference in standard errors of one world's seeds."""
        return errors_apart(self.ours.mean, self.ours.std, self.ours.trials, self.paper)

    @property
    def chance(self) -> float:
        """The probability with which chance alone takes the cell beyond."""
        ours, paper = self.ours.std**2 / self.ours.trials, self.paper.std**2 / TRIALS
        freedom = (ours + paper) ** 2 / (ours**2 / (self.ours.trials - 1) + paper**2 / (TRIALS - 1))
        return float(2 * student.sf(BEYOND, freedom))

    @property
    def is_best(self) -> bool:
        """Whether the column is a best one, whose setting the paper does not print."""
        return self.column.endswith("-best")


@dataclass(frozen=True, slots=True)
class AcrossCell(AuthorsCell):
    """A cell of the table across worlds."""

    @property
    def z(self) -> float:
        """The difference in standard errors that contain the deviation between worlds."""
        return across_worlds(self.row, self.ours, self.paper)

    @property
    def chance(self) -> float:
        """The probability with which chance alone takes the cell beyond; the deviation between
        worlds is that of our trials."""
        return float(2 * student.sf(BEYOND, self.ours.trials - 1))


def is_authors(study: Study) -> bool:
    """Whether a study was played in the authors' world."""
    return study.problem_id == PROBLEM


def by_row(studies: Iterable[Study], *, again: bool = False) -> dict[str, Study]:
    """The studies in the authors' world, by the row of the table, with the table's rounds; with
    `again`, those on other seeds."""
    return {
        row: study
        for study in studies
        if is_authors(study)
        and (study.suite == AGAIN) is again
        and (row := str(study.parameters["row"])) in published.REGRET
        and study.horizon == published.HORIZONS[row]
    }


def authors_regrets(row: str, group: Group) -> FloatArray:
    """Final regret as in the authors' code: expected on linear rows, realised on all others."""
    if "vector" in row:
        return group.regrets
    return group.regrets + [r.optimal - r.reward - r.regret for r in group.rows]


def authors_cells(studies: Iterable[Study], *, again: bool = False) -> list[AuthorsCell]:
    """Every cell of the table that was played in the authors' world, in the paper's order; with
    `again`, those on other seeds."""
    played = by_row(studies, again=again)
    cells = []
    for row, figures in published.REGRET.items():
        for column, paper in figures.items():
            group = _group(played[row], row, column) if row in played else None
            if group is not None:
                ours = summarise(authors_regrets(row, group))
                cells.append(AuthorsCell(row, column, group.name, ours, paper))
    return cells


def _group(study: Study, row: str, column: str) -> Group | None:
    if column == "discounted" and row in SLIPPED:
        return study.group(SLIP)
    named = [g for g in study.groups if published.paper_column(g.name) == column]
    return named[0] if named else None


def across_worlds(problem: str, ours: Summary, paper: Reported) -> float:
    """The difference of trials in worlds of their own to the paper's one world, in standard
    errors."""
    if ours.trials < 2:
        return math.nan
    between = max(0.0, ours.std**2 - paper.std**2)
    error = math.sqrt(ours.std**2 / ours.trials + paper.std**2 / TRIALS + between)
    luck = LUCK.get(problem, 0.0)
    return (ours.mean - (paper.mean - luck)) / error if error > 0 else math.nan


def beyond_and_chance(cells: Sequence[AuthorsCell]) -> tuple[int, float]:
    """How many cells lie beyond two standard errors, and how many chance would give."""
    return sum(abs(cell.z) > BEYOND for cell in cells), sum(cell.chance for cell in cells)


def tally_cells(cells: Sequence[AuthorsCell]) -> str:
    """`beyond_and_chance` in words, with the names of the cells."""
    beyond = [cell for cell in cells if abs(cell.z) > BEYOND]
    names = ", ".join(
        f"{cell.row} {cell.name} ({cell.z:+.1f}, {cell.ours.mean / cell.paper.mean - 1:+.1%})"
        for cell in beyond
    )
    lie, they_are = ("lies", "It is") if len(beyond) == 1 else ("lie", "They are")
    counted = f"{len(beyond)} of {len(cells)} cells {lie} beyond {BEYOND:g} standard errors"
    chance = f"chance gives {beyond_and_chance(cells)[1]:.1f}"
    if not beyond:
        return f"{counted}; {chance}."
    likely = _as_many(cells, len(beyond))
    probability = f"{likely:.2f}" if likely >= 0.01 else "below 0.01"
    as_many = f"{len(beyond)} or more with probability {probability}"
    return f"{counted}; {chance}, and {as_many}. {they_are} {names}."


def _as_many(cells: Iterable[AuthorsCell], count: int) -> float:
    """The probability that chance alone takes so many cells beyond, or more."""
    counts: FloatArray = np.ones(1)
    for cell in cells:
        counts = np.convolve(counts, [1 - cell.chance, cell.chance])
    return float(counts[count:].sum())


def slip_words(studies: Iterable[Study]) -> str:
    """What the slip in the second matrix of D-LinUCB is worth in the authors' world; empty where it
    was not played."""
    played = by_row(studies)
    worth = []
    for row in SLIPPED:
        groups = [played[row].group(name) for name in (SLIP, "d-lin-ucb")] if row in played else []
        means = [float(group.regrets.mean()) for group in groups if group]
        worth += [f"{means[0] - means[1]:+,.1f} on {row}"] if len(means) == 2 else []
    return f"The slip in D-LinUCB is worth {' and '.join(worth)} there." if worth else ""


def control_words(studies: Iterable[Study]) -> str:
    """What always playing arm 1 scores on the digits as published; empty where it was not
    played."""
    study = by_row(studies).get("flipping-digits")
    group = study.group("fixed") if study else None
    if group is None:
        return ""
    regret = authors_regrets("flipping-digits", group).mean()
    learners = [cell for cell in authors_cells(studies) if cell.row == "flipping-digits"]
    least = all(regret < min(cell.ours.mean, cell.paper.mean) for cell in learners)
    words = ", less than every policy of the row" if learners and least else ""
    return f"On the digits as published, always playing arm 1 has a regret of {regret:,.1f}{words}."
