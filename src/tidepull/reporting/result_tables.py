"""The tables of a report: results beside the paper's, paired comparisons, scores, recovery,
settings, halving, and what policies that explain themselves (`tide`) believed about time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidepull.experiments.grid import rung_number, searched_suite
from tidepull.experiments.search import RungMeans, agreements
from tidepull.reporting import published, stats
from tidepull.reporting.frames import Group, Study
from tidepull.reporting.published import paper_column, reported, reported_share, standard_errors
from tidepull.reporting.tables import (
    Cell,
    Table,
    duration,
    interval,
    number,
    share,
    spread,
    table_of,
)
from tidepull.reporting.traces import Band, GroupTrace, Recovery

SHARE = "share of random's regret"
_ABOUT_RANDOM = (
    "Share of random's regret: mean regret divided by that of uniformly random arms; 0 is the "
    "oracle, 1 is random. Trials worse than random: those with more regret than random arms have "
    "on average. Best arm: rounds in which it was played."
)
_ABOUT_RECOVERY = (
    "Rounds from a change to the first of three good rounds in a row (at most a tenth of the regret "
    "of random arms). A regime that ends before counts with its whole length."
)
_ABOUT_SCORES = (
    "Regret as a share of random's: 0 is the oracle, 1 is random. Intervals: stratified percentile "
    "bootstrap, as in rliable; too narrow where a problem has only a few trials."
)
_ABOUT_SETTINGS = (
    "Rewards are means over trials. Score: what the median setting earns above random arms, as a "
    "share of what the policy's own best setting earns above them; 1 is as good as the best, 0 as "
    "random."
)
_ABOUT_HALVING = (
    "Spearman's correlation of mean rewards on two rungs, over the settings that played both. Those "
    "are the best of the shorter rung, so that it is lower than over a whole grid."
)


def results_table(suite: str, studies: Sequence[Study]) -> Table:
    """Problems x policies: mean ± standard deviation of final regret, best in bold, the paper's
    figure and the difference in standard errors in the next columns where the paper has one."""
    names = _in_order(studies)
    printed = [n for n in names if any(reported(s, n) for s in studies)]
    starred = {g.name for study in studies for g in study.groups if g.chosen_from > 1}
    columns = ["problem"]
    for name in names:
        columns.append(f"{name}*" if name in starred else name)
        if name in printed:
            columns += [f"{name}, paper", f"{name}, difference in s.e."]
    rows = []
    for study in studies:
        winner = study.contenders[0].name if study.contenders else ""
        cells = [Cell(study.title)]
        for name in names:
            cells += _result_cells(study, name, name == winner, name in printed)
        rows.append(tuple(cells))
    flatters = "* the best setting of a grid, chosen on these very trials, which flatters."
    note = flatters if starred else ""
    title = "Final regret: mean ± standard deviation"
    return Table(f"results-{_slug(suite)}", title, tuple(columns), tuple(rows), note)


def _in_order(studies: Sequence[Study]) -> list[str]:
    """The paper's columns first, then the suite's other policies, then those that do not learn."""
    names = dict.fromkeys(group.name for study in studies for group in study.groups)
    last = ("random", "fixed", "oracle")

    def place(name: str) -> int:
        column = paper_column(name)
        return published.COLUMNS.index(column) if column else 99 if name in last else 50

    return sorted(names, key=place)


def _result_cells(study: Study, name: str, best: bool, printed: bool) -> list[Cell]:
    group = study.group(name)
    ours = Cell("–")
    if group is not None:
        s = stats.summarise(group.regrets)
        ours = spread(s.mean, s.std, best=best)
    return [ours, *_paper_cells(study, name, group)] if printed else [ours]


def details_table(study: Study, random: float | None, traces: Mapping[str, GroupTrace]) -> Table:
    """One problem: every policy with interval, normalised regret, lost trials, time, and the
    paper's figure."""
    order = study.contenders + [group for group in study.groups if group not in study.contenders]
    columns = _detail_columns(order, random, traces)
    if any(reported(study, group.name) for group in order):
        columns["paper"] = lambda group: _paper_cells(study, group.name, group)[0]
        columns["difference (s.e.)"] = lambda group: _paper_cells(study, group.name, group)[1]
    if any(math.isfinite(reported_share(study, group.name, random)) for group in order):
        columns[f"paper, {SHARE}"] = lambda group: number(
            reported_share(study, group.name, random), 2
        )
    starred = [group for group in study.groups if group.chosen_from > 1]
    note = _ABOUT_RANDOM if random else ""
    if starred:
        chosen = "; ".join(f"{g.name}: {g.setting}, best of {g.chosen_from}" for g in starred)
        note = f"{note} * chosen on these very trials, which flatters ({chosen}).".strip()
    return table_of(_name("details", study), "Every policy", order, columns, note)


def _detail_columns(
    order: Sequence[Group], random: float | None, traces: Mapping[str, GroupTrace]
) -> dict[str, Callable[[Group], Cell]]:
    def regret(group: Group) -> Cell:
        s = stats.summarise(group.regrets)
        return spread(s.mean, s.std, best=group is order[0])

    def band(group: Group) -> Cell:
        trace = traces.get(group.name)
        return Cell("–") if trace is None else interval(trace.regret.low[-1], trace.regret.high[-1])

    def best_share(group: Group) -> Cell:
        trace = traces.get(group.name)
        return Cell("–") if trace is None else share(trace.best_share)

    return {
        "policy": lambda group: Cell(group.shown_name),
        "trials": lambda group: number(len(group.rows), 0),
        "regret": regret,
        "95% interval": band,
        "worst trial": lambda group: number(float(group.regrets.max())),
        SHARE: lambda group: number(group.regrets.mean() / random if random else math.nan, 2),
        "trials worse than random": lambda group: share(
            float(np.mean(group.regrets > random)) if random else math.nan
        ),
        "best arm": best_share,
        "realised regret": lambda group: number(_mean(r.optimal - r.reward for r in group.rows)),
        "wall-clock seconds a trial": lambda group: number(_mean(r.seconds for r in group.rows), 2),
    }


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _paper_cells(study: Study, name: str, group: Group | None) -> tuple[Cell, Cell]:
    """The paper's figure, and how many standard errors ours is off."""
    theirs = reported(study, name)
    if theirs is None:
        return Cell("–"), Cell("–")
    apart = math.nan if group is None else standard_errors(group, theirs)
    return spread(theirs.mean, theirs.std), _signed(apart)


def pairs_table(study: Study) -> Table:
    """Every pair of policies on their common seeds."""
    columns: dict[str, Callable[[stats.Difference], Cell]] = {
        "pair": lambda d: Cell(f"{d.a} vs {d.b}"),
        "common seeds": lambda d: number(d.pairs, 0),
        "difference in regret": lambda d: Cell(number(d.mean).text, d.mean, d.clear),
        "95% interval": lambda d: interval(d.low, d.high),
        "seeds won": lambda d: Cell(f"{d.wins:.0%}", d.wins),
        "95% interval ": lambda d: Cell(f"{d.wins_low:.0%} to {d.wins_high:.0%}"),
    }
    pairs = [d for d in stats.all_pairs(study.contenders) if d.pairs]
    note = "Below zero, the first of the pair has less regret. Bold where the interval leaves out zero."
    return table_of(_name("pairs", study), "Paired comparisons", pairs, columns, note)


def recovery_table(study: Study, traces: Mapping[str, GroupTrace]) -> Table | None:
    """Rounds to recover after a change, early and late in the trial; None where nothing changes."""
    columns: dict[str, Callable[[tuple[str, Recovery]], Cell]] = {
        "policy": lambda row: Cell(row[0]),
        "first quarter of changes": lambda row: number(row[1].early),
        "last quarter of changes": lambda row: number(row[1].late),
        "changes recovered from": lambda row: share(row[1].recovered),
    }
    rows = [
        (group.shown_name, trace.recovery)
        for group in study.contenders
        if (trace := traces.get(group.name)) and trace.recovery
    ]
    name, title = _name("recovery", study), "Rounds to recover after a change"
    return table_of(name, title, rows, columns, _ABOUT_RECOVERY) if rows else None


def scores_table(suite: str, panels: Sequence[stats.Panel]) -> Table | None:
    """Interquartile means of normalised regret over each set of problems."""
    columns: dict[str, Callable[[tuple[stats.Panel, stats.Score]], Cell]] = {
        "policy": lambda row: Cell(row[1].policy),
        "problems": lambda row: Cell(_set_name(row[0])),
        "trials": lambda row: number(row[1].trials, 0),
        "interquartile mean": lambda row: number(row[1].iqm, 3, best=row[1] is row[0].scores[0]),
        "95% interval": lambda row: interval(row[1].low, row[1].high, 3),
        "mean": lambda row: number(row[1].mean, 3),
    }
    rows = [(panel, score) for panel in panels for score in panel.scores]
    if not rows:
        return None
    return table_of(f"scores-{_slug(suite)}", "Scores over problems", rows, columns, _ABOUT_SCORES)


def sensitivity_table(study: Study, sensitivities: Sequence[stats.Sensitivity]) -> Table:
    """Best, median and worst setting of each policy."""
    columns: dict[str, Callable[[stats.Sensitivity], Cell]] = {
        "policy": lambda s: Cell(s.name),
        "settings": lambda s: number(len(s.means), 0),
        "trials of each": lambda s: _from_to(min(s.trials), max(s.trials)),
        "best reward": lambda s: number(float(s.means[0])),
        "median": lambda s: number(float(np.median(s.means))),
        "worst": lambda s: number(float(s.means[-1])),
        "median setting's score": lambda s: _score(s.median_score),
        "settings below random": lambda s: share(s.share_below_random),
        "best setting": lambda s: Cell(s.settings[0] or "–"),
    }
    return table_of(
        _name("sensitivity", study), "Settings", sensitivities, columns, _ABOUT_SETTINGS
    )


def _score(value: float) -> Cell:
    """Two digits; how far below random a setting lies says nothing where the best is hardly
    above."""
    return number(value, 2) if not value < 0 else Cell("below random", value)


def _set_name(panel: stats.Panel) -> str:
    count = len(panel.problems)
    return ", ".join(panel.problems) if count <= 4 else f"{count} problems"


def _from_to(low: int, high: int) -> Cell:
    return Cell(str(low) if low == high else f"{low} to {high}", low)


def _signed(value: float) -> Cell:
    return Cell(f"{value:+.1f}", value) if math.isfinite(value) else Cell("–")


def _slug(text: str) -> str:
    return text or "other"


def _name(kind: str, study: Study) -> str:
    """The name of a table of one study, for its file."""
    return f"{kind}-{_slug(study.suite)}-{study.slug}"


def halving_table(studies: Sequence[Study]) -> Table:
    """One row for each problem and policy that was searched by halving."""
    rungs: dict[tuple[str, str, str], dict[int, tuple[Group, ...]]] = {}
    for study in studies:
        if rung := rung_number(study.suite):
            for name, groups in study.grids.items():
                key = searched_suite(study.suite), study.title, name
                rungs.setdefault(key, {})[rung] = groups
    rows = tuple(
        (Cell(problem), Cell(name), *_played(by_rung), *_ranked(problem, name, by_rung))
        for (_, problem, name), by_rung in rungs.items()
    )
    columns = (
        "problem", "policy", "settings x rounds x trials", "CPU time", "rank correlation of rungs",
    )  # fmt: skip
    title = "What was played, and how short trials rank long ones"
    return Table("halving", title, columns, rows, _ABOUT_HALVING)


def _played(by_rung: dict[int, tuple[Group, ...]]) -> Iterator[Cell]:
    parts = [
        f"{len(groups):,} x {groups[0].rows[0].horizon:,} x {trials_text(groups)}"
        for _, groups in sorted(by_rung.items())
    ]
    every = [group for groups in by_rung.values() for group in groups]
    seconds = {row.hash: row.cpu_seconds for group in every for row in group.rows}
    yield Cell(", ".join(parts))
    yield Cell(duration(sum(seconds.values())))


def _ranked(problem: str, name: str, by_rung: dict[int, tuple[Group, ...]]) -> Iterator[Cell]:
    standings = []
    for rung, groups in sorted(by_rung.items()):
        means = {group.setting: float(group.rewards.mean()) for group in groups}
        standings.append(RungMeans(problem, name, rung, means))
    correlations = [
        f"{one.first} and {one.second}: {number(one.correlation, 2).text}"
        for one in agreements(standings)
    ]
    yield Cell(", ".join(correlations) or "–")


def trials_text(groups: Sequence[Group]) -> str:
    """How many trials each of the settings has."""
    counts = {len(group.rows) for group in groups}
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Hypotheses in words with their weights at the end, the leading one first; weights of families
    in some rounds."""

    leading: tuple[tuple[str, float], ...]
    rounds: tuple[int, ...]
    families: Mapping[str, tuple[float, ...]]


def beliefs_of(diagnostics: Mapping[str, Any]) -> Beliefs | None:
    """`diagnostics["beliefs"]`, if it is there and has the shape that `tide` gives it."""
    try:
        content = diagnostics["beliefs"]
        leading = tuple((_text(one["words"]), _number(one["weight"])) for one in content["leading"])
        rounds = tuple(int(_number(t)) for t in content["rounds"])
        families = {
            _text(name): tuple(map(_number, content["families"][name]))
            for name in content["families"]
        }
    except (KeyError, IndexError, TypeError):
        return None
    lengths = {len(set(rounds)), *map(len, families.values())}
    sound = lengths == {len(rounds)}
    return Beliefs(leading, rounds, families) if leading and sound else None


def believers(study: Study) -> Iterator[Group]:
    """The groups whose trials came with beliefs."""
    return (one for one in study.groups if all(beliefs_of(row.diagnostics) for row in one.rows))


def misunderstood(study: Study) -> Iterator[Group]:
    """The groups whose trials came with something else under that name."""
    for group in study.groups:
        diagnostics = [row.diagnostics for row in group.rows if row.diagnostics.get("beliefs")]
        if not all(map(beliefs_of, diagnostics)):
            yield group


def belief_bands(group: Group) -> dict[str, Band]:
    """Weight of each family of hypotheses over the rounds, mean over trials, without families that
    never matter."""
    trials = [one for row in group.rows if (one := beliefs_of(row.diagnostics))]
    rounds = sorted(set.intersection(*(set(one.rounds) for one in trials)))
    at = [[one.rounds.index(t) for t in rounds] for one in trials]
    families = {name: None for one in trials for name in one.families}
    bands = {}
    for name in families:
        table = np.array(
            [np.asarray(one.families.get(name, np.zeros(len(one.rounds))))[places]
             for one, places in zip(trials, at, strict=True)]
        )  # fmt: skip
        if table.size and table.mean(axis=0).max() >= 0.01:
            low, high = stats.mean_interval(table)
            mean = table.mean(axis=0)
            low, high = np.clip([low, high], 0, 1)
            bands[name] = Band(np.array(rounds, float), mean, low, high)
    return bands


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return value


def beliefs_table(study: Study, group: Group) -> Table:
    """A row for each trial: the leading hypothesis at its end, how sure, and the next one."""
    rows = []
    for row in group.rows:
        beliefs = beliefs_of(row.diagnostics)
        assert beliefs is not None, f"{group.name} has no beliefs"
        (words, weight), *others = beliefs.leading
        second = [Cell(others[0][0]), share(others[0][1])] if others else [Cell("–"), Cell("–")]
        first = [Cell(f"seed {row.seed}", row.seed), Cell(words), share(weight)]
        rows.append((*first, *second, number(row.regret)))
    columns = ("trial", "leading model", "weight", "next", "its weight", "final regret")
    title = f"What {group.name} believed at the end"
    return Table(f"{_name('beliefs', study)}-{group.name}", title, columns, tuple(rows))
