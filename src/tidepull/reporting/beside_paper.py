"""Where the paper's table has a figure for what was run here, and how far apart the two are."""

from __future__ import annotations

import math

from tidepull.experiments.delay import AT_ONCE
from tidepull.reporting import published
from tidepull.reporting.frame import Group, Study
from tidepull.reporting.summary import summarise


def paper_column(name: str) -> str | None:
    """The column of the paper's table that a policy's name stands for."""
    if name in published.COLUMNS:
        return name
    for prefixes, column in (
        (("d-ucb", "d-lin-ucb"), "discounted"),
        (("sw-ucb", "sw-lin-ucb"), "windowed"),
    ):
        if name.removesuffix("-best") in prefixes:
            return column
    return None


def reported(study: Study, name: str) -> published.Reported | None:
    """The paper's figure, where it has one for the problem, the policy and the horizon; its rewards come at once."""
    column = paper_column(name) if study.delay == AT_ONCE else None
    if column is None or published.HORIZONS.get(study.problem) != study.horizon:
        return None
    return published.figure(study.problem, column)


def reported_share(study: Study, name: str, random: float | None) -> float:
    """The paper's regret as a share of random's, whose regret grows evenly with the horizon; nan if unknown.

    It lets trials of another length be held against the paper's.
    """
    column = paper_column(name) if study.delay == AT_ONCE else None
    theirs = published.figure(study.problem, column) if column else None
    if theirs is None or not random:
        return float("nan")
    return theirs.mean / (random * published.HORIZONS[study.problem] / study.horizon)


def standard_errors(ours: Group, theirs: published.Reported) -> float:
    """(Our mean - the paper's) / the standard error of that difference."""
    mine = summarise(ours.regrets)
    return errors_apart(mine.mean, mine.std, mine.trials, theirs)


def errors_apart(mean: float, std: float, trials: int, theirs: published.Reported) -> float:
    """The same of a mean and a standard deviation over so many trials; nan for a single one."""
    if trials < 2:
        return float("nan")
    error = math.sqrt(std**2 / trials + theirs.std**2 / published.TRIALS)
    return (mean - theirs.mean) / error if error > 0 else float("nan")
