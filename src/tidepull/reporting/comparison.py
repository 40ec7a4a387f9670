"""The winner on each problem in words; two stores, or a store and the paper's table, side by
side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tidepull.experiments.spec import canonical
from tidepull.reporting.frames import Frame, Group, Study
from tidepull.reporting.published import TRIALS, paper_column, reported
from tidepull.reporting.stats import Difference, Summary, compared, independent, summarise


def verdict(study: Study) -> str:
    """`rnlps won: regret 254.6, 388.7 less than nlps (95% interval 300.1 to 470.2; better on 10 of
    10 seeds).`"""
    order = study.contenders
    if not order:
        return "No policy that could win was run."
    first = order[0]
    # One setting may stand under two names, such as the best and the default of a search.
    rivals = [group for group in order[1:] if group.hashes != first.hashes]
    regret = f"regret {first.regrets.mean():,.1f} over {_trials(first)}"
    star = ", its setting chosen on these very trials" if first.chosen_from > 1 else ""
    if not rivals:
        return f"{first.name} was the only contender: {regret}{star}."
    second = rivals[0]
    difference = compared(first, second)
    word = "more" if difference.mean > 0 else "less"  # on common seeds the order may be another
    less = f"{abs(difference.mean):,.1f} {word} than {second.name}"
    if not math.isfinite(difference.low):
        return f"{first.name} had the least regret: {regret}{star}, {less}; more trials would tell how sure that is."
    detail = _detail(difference)
    if difference.high < 0:
        return f"{first.name} won: {regret}{star}, {less} {detail}."
    return f"No clear winner: {first.name} had the least regret ({regret}{star}), {less} {detail}."


def _detail(d: Difference) -> str:
    won = d.wins * d.pairs  # a tie counts half
    share = f"{won:.0f}" if won == round(won) else f"{d.wins:.0%}"
    seeds = f"; better on {share} of {d.pairs} seeds" if d.pairs else ""
    low, high = (d.low, d.high) if d.mean > 0 else (-d.high, -d.low)
    return f"(95% interval {low:,.1f} to {high:,.1f}{seeds})"


def _trials(group: Group) -> str:
    return f"{len(group.rows)} trials" if len(group.rows) > 1 else "one trial"


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One policy on one problem in both; `difference` is the first minus the second.

    A star at the policy's name: in one of the two it is the best setting of a grid, chosen on these
    trials.
    """

    problem: str
    policy: str
    horizon: int
    a: Summary
    b: Summary
    difference: Difference


def versus_store(a: Frame, b: Frame) -> Iterator[ComparisonRow]:
    """What both have: the same problem, horizon and delay under the same name; paired on common
    seeds."""
    for mine in a.studies:
        for theirs in b.studies:
            if _same_world(mine, theirs):
                for group in mine.groups:
                    other = theirs.group(group.name)
                    if other is not None:
                        yield _line(mine, group, other)


def versus_paper(a: Frame) -> Iterator[ComparisonRow]:
    """What the paper's table has too, at the paper's horizon; the intervals are Welch's."""
    for study in a.studies:
        for group in study.groups:
            theirs = reported(study, group.name)
            if theirs is not None:
                ours = summarise(group.regrets)
                column = f"paper: {paper_column(group.name)}"
                mine, printed = (
                    (ours.mean, ours.std, ours.trials),
                    (theirs.mean, theirs.std, TRIALS),
                )
                difference = independent(group.name, column, mine, printed)
                their = Summary(theirs.mean, theirs.std, float("nan"), TRIALS)
                yield ComparisonRow(
                    study.title, group.shown_name, study.horizon, ours, their, difference
                )


def _same_world(a: Study, b: Study) -> bool:
    first, second = (
        (study.problem, study.horizon, study.delay, canonical(dict(study.parameters)))
        for study in (a, b)
    )
    return first == second


def _line(study: Study, ours: Group, theirs: Group) -> ComparisonRow:
    name = (ours if ours.chosen_from > 1 else theirs).shown_name
    first, second = summarise(ours.regrets), summarise(theirs.regrets)
    return ComparisonRow(study.title, name, study.horizon, first, second, compared(ours, theirs))
