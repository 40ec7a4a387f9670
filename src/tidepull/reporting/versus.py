"""Two sets of results side by side: two stores, or a store and the paper's table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidepull.experiments.suites.spec import canonical
from tidepull.reporting.beside_paper import paper_column, reported
from tidepull.reporting.compare import Difference, compared, independent
from tidepull.reporting.frame import Frame, Group, Study
from tidepull.reporting.published import TRIALS
from tidepull.reporting.summary import Summary, summarise


@dataclass(frozen=True, slots=True)
class Line:
    """One policy on one problem in both; `difference` is the first minus the second.

    A star at the policy's name: in one of the two it is the best setting of a grid, chosen on these trials.
    """

    problem: str
    policy: str
    horizon: int
    a: Summary
    b: Summary
    difference: Difference


def versus_store(a: Frame, b: Frame) -> Iterator[Line]:
    """What both have: the same problem, horizon and delay under the same name; paired on common seeds."""
    for mine in a.studies:
        for theirs in b.studies:
            if _same_world(mine, theirs):
                for group in mine.groups:
                    other = theirs.group(group.name)
                    if other is not None:
                        yield _line(mine, group, other)


def versus_paper(a: Frame) -> Iterator[Line]:
    """What the paper's table has too, at the paper's horizon; the intervals are Welch's."""
    for study in a.studies:
        for group in study.groups:
            theirs = reported(study, group.name)
            if theirs is not None:
                ours = summarise(group.regrets)
                column = f"paper: {paper_column(group.name)}"
                difference = independent(
                    group.name,
                    column,
                    (ours.mean, ours.std, ours.trials),
                    (theirs.mean, theirs.std, TRIALS),
                )
                their = Summary(theirs.mean, theirs.std, float("nan"), TRIALS)
                yield Line(study.title, group.shown_name, study.horizon, ours, their, difference)


def _same_world(a: Study, b: Study) -> bool:
    first, second = (
        (study.problem, study.horizon, study.delay, canonical(dict(study.parameters))) for study in (a, b)
    )
    return first == second


def _line(study: Study, ours: Group, theirs: Group) -> Line:
    name = (ours if ours.chosen_from > 1 else theirs).shown_name
    first, second = summarise(ours.regrets), summarise(theirs.regrets)
    return Line(study.title, name, study.horizon, first, second, compared(ours, theirs))
