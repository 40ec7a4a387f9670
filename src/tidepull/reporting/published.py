"""The paper's own numbers, read from `paper.toml`: average regrets, default hyperparameters, horizons.

Every figure is copied from the paper ("±" is the standard deviation over ten trials) and is always
shown beside ours with the label "paper". `reported` says where the table has a figure for what was
run here, `standard_errors` how far apart the two are. `verdict` says in words which policy won a
study; two stores, or a store and the paper, are compared line by line.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from tidepull.experiments.delay import AT_ONCE
from tidepull.experiments.spec import canonical
from tidepull.reporting.frames import Frame, Group, Study
from tidepull.reporting.stats import Difference, Summary, compared, independent, summarise


@dataclass(frozen=True, slots=True)
class Reported:
    """Mean and standard deviation of final regret over ten trials."""

    mean: float
    std: float


_PAPER: Final = tomllib.loads(
    files("tidepull.reporting").joinpath("paper.toml").read_text(encoding="utf-8")
)

COLUMNS: Final[tuple[str, ...]] = tuple(_PAPER["columns"])
"""Best NN, Best RNN, Default NN, Default RNN, D-(Lin)UCB, SW-(Lin)UCB."""

REGRET: Final[Mapping[str, Mapping[str, Reported]]] = {
    problem: {column: Reported(*cell) for column, cell in zip(COLUMNS, cells, strict=False)}
    for problem, cells in _PAPER["regret"].items()
}
"""Problem -> column -> final regret, as printed."""

HORIZONS: Final[Mapping[str, int]] = _PAPER["horizons"]
"""Rounds in each trial of the table; hyperparameter search on problems without contexts used
2,048."""

NON_CONTEXTUAL: Final = tuple(HORIZONS)[:4]
CONTEXTUAL: Final = tuple(HORIZONS)[4:]


def _by_policy_and_kind(part: str) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    return {
        (policy, kind): {name: _tuples(value) for name, value in values.items()}
        for policy, kinds in _PAPER[part].items()
        for kind, values in kinds.items()
    }


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


DEFAULTS: Final = _by_policy_and_kind("defaults")
"""(Policy, kind of problem) -> the paper's default hyperparameters; its "variances" are standard
deviations."""

GRIDS: Final = _by_policy_and_kind("grids")
"""(Policy, kind of problem) -> the candidates of the search: 576 settings of NN, 96 of RNN."""

DISCOUNTS: Final = (0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999)
WINDOWS: Final = (5, 10, 25, 50, 75, 100, 150, 200, 250, 300)
EPSILONS: Final = (0.01, 0.03, 0.05, 0.1)
TEMPERATURES: Final = (0.001, 0.005, 0.01, 0.05)
"""Candidates of D-UCB, SW-UCB, and of the two other kinds of exploration."""

SEARCH_TRIALS: Final = 5
SEARCH_HORIZON: Final = 2048
TRIALS: Final = 10
"""Trials of each setting in the search, their rounds without contexts, and trials of the table."""


def figure(problem: str, column: str) -> Reported | None:
    """One cell of the table; None where the paper has none."""
    return REGRET[problem].get(column) if problem in REGRET else None


def paper_column(name: str) -> str | None:
    """The column of the paper's table that a policy's name stands for."""
    if name in COLUMNS:
        return name
    for prefixes, column in (
        (("d-ucb", "d-lin-ucb"), "discounted"),
        (("sw-ucb", "sw-lin-ucb"), "windowed"),
    ):
        if name.removesuffix("-best") in prefixes:
            return column
    return None


def reported(study: Study, name: str) -> Reported | None:
    """The paper's figure, where it has one for the problem, the policy and the horizon; its rewards
    come at once."""
    column = paper_column(name) if study.delay == AT_ONCE else None
    if column is None or HORIZONS.get(study.problem) != study.horizon:
        return None
    return figure(study.problem, column)


def reported_share(study: Study, name: str, random: float | None) -> float:
    """The paper's regret as a share of random's, whose regret grows evenly with the horizon; nan if
    unknown.

    It lets trials of another length be held against the paper's.
    """
    column = paper_column(name) if study.delay == AT_ONCE else None
    theirs = figure(study.problem, column) if column else None
    if theirs is None or not random:
        return float("nan")
    return theirs.mean / (random * HORIZONS[study.problem] / study.horizon)


def standard_errors(ours: Group, theirs: Reported) -> float:
    """(Our mean - the paper's) / the standard error of that difference."""
    mine = summarise(ours.regrets)
    return errors_apart(mine.mean, mine.std, mine.trials, theirs)


def errors_apart(mean: float, std: float, trials: int, theirs: Reported) -> float:
    """The same of a mean and a standard deviation over so many trials; nan for a single one."""
    if trials < 2:
        return float("nan")
    error = math.sqrt(std**2 / trials + theirs.std**2 / TRIALS)
    return (mean - theirs.mean) / error if error > 0 else float("nan")


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
                printed = (theirs.mean, theirs.std, TRIALS)
                mine = (ours.mean, ours.std, ours.trials)
                difference = independent(group.name, column, mine, printed)
                their = Summary(theirs.mean, theirs.std, float("nan"), TRIALS)
                names = study.title, group.shown_name, study.horizon
                yield ComparisonRow(*names, ours, their, difference)


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
