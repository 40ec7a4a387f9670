"""The tables of a report: results beside the paper's, paired comparisons, scores, recovery,
settings, halving."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tidepull.experiments.grid import rung_number, searched_suite
from tidepull.experiments.search import RungMeans, agreements
from tidepull.reporting import published
from tidepull.reporting.frames import Group, Study
from tidepull.reporting.published import paper_column, reported, reported_share, standard_errors
from tidepull.reporting.stats import Panel, Sensitivity, all_pairs, summarise
from tidepull.reporting.tables import Cell, Table, duration, interval, number, spread
from tidepull.reporting.traces import GroupTrace

SHARE = "share of random's regret"
_ABOUT_RANDOM = (
    "Share of random's regret: mean regret divided by that of uniformly random arms; 0 is the "
    "oracle, 1 is random. "
    "Trials worse than random: those with more regret than random arms have on average. Best arm: "
    "rounds in which it "
    "was played."
)


def results_table(suite: str, studies: Sequence[Study]) -> Table:
    """Problems x policies: mean ± standard deviation of final regret, best in bold, the paper's
    figure and the difference in standard errors in the next columns where the paper has one."""
    names = _in_order(studies)
    printed = [n for n in names if any(reported(s, n) for s in studies)]
    starred = {g.name for study in studies for g in study.groups if g.chosen_from > 1}
    columns = ["problem"]
    for name in names:
        head = f"{name}*" if name in starred else name
        columns += (
            [head, f"{name}, paper", f"{name}, difference in s.e."] if name in printed else [head]
        )
    rows = []
    for study in studies:
        winner = study.contenders[0].name if study.contenders else ""
        cells = [Cell(study.title)]
        for name in names:
            cells += _result_cells(study, name, name == winner, name in printed)
        rows.append(tuple(cells))
    note = (
        "* the best setting of a grid, chosen on these very trials, which flatters."
        if starred
        else ""
    )
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
    group, theirs = study.group(name), reported(study, name)
    if group is None:
        cells = [Cell("–")]
    else:
        s = summarise(group.regrets)
        cells = [spread(s.mean, s.std, best=best)]
    if printed:
        cells.append(Cell("–") if theirs is None else spread(theirs.mean, theirs.std))
        known = group is not None and theirs is not None
        cells.append(
            _signed(standard_errors(group, theirs)) if known and group and theirs else Cell("–")
        )
    return cells


def details_table(study: Study, random: float | None, traces: Mapping[str, GroupTrace]) -> Table:
    """One problem: every policy with interval, normalised regret, lost trials, time, and the
    paper's figure."""
    order = study.contenders + [group for group in study.groups if group not in study.contenders]
    printed = any(reported(study, group.name) for group in order)
    shared = any(math.isfinite(reported_share(study, group.name, random)) for group in order)
    columns = [
        "policy",
        "trials",
        "regret",
        "95% interval",
        "worst trial",
        SHARE,
        "trials worse than random",
    ]
    columns += ["best arm", "realised regret", "wall-clock seconds a trial"]
    columns += ["paper", "difference (s.e.)"] if printed else []
    columns += [f"paper, {SHARE}"] if shared else []
    rows = []
    for group in order:
        cells = _details(group, random, traces.get(group.name), group is order[0])
        cells += _paper_cells(study, group) if printed else []
        cells += [number(reported_share(study, group.name, random), 2)] if shared else []
        rows.append(tuple(cells))
    starred = [group for group in study.groups if group.chosen_from > 1]
    note = _ABOUT_RANDOM if random else ""
    if starred:
        chosen = "; ".join(f"{g.name}: {g.setting}, best of {g.chosen_from}" for g in starred)
        note = f"{note} * chosen on these very trials, which flatters ({chosen}).".strip()
    return Table(
        f"details-{_slug(study.suite)}-{study.slug}",
        "Every policy",
        tuple(columns),
        tuple(rows),
        note,
    )


def _details(
    group: Group, random: float | None, trace: GroupTrace | None, best: bool
) -> list[Cell]:
    s = summarise(group.regrets)
    low, high = (
        (float("nan"),) * 2 if trace is None else (trace.regret.low[-1], trace.regret.high[-1])
    )
    unknown = Cell("–")
    return [
        Cell(group.shown_name),
        number(s.trials, 0),
        spread(s.mean, s.std, best=best),
        interval(float(low), float(high)),
        number(float(group.regrets.max())),
        number(s.mean / random, 2) if random else unknown,
        number(float(np.mean(group.regrets > random)) * 100, 0, unit="%") if random else unknown,
        number(trace.best_share * 100, 0, unit="%") if trace else unknown,
        number(float(np.mean([row.optimal - row.reward for row in group.rows]))),
        number(float(np.mean([row.seconds for row in group.rows])), 2),
    ]


def _paper_cells(study: Study, group: Group) -> list[Cell]:
    theirs = reported(study, group.name)
    if theirs is None:
        return [Cell("–"), Cell("–")]
    return [spread(theirs.mean, theirs.std), _signed(standard_errors(group, theirs))]


def pairs_table(study: Study) -> Table:
    """Every pair of policies on their common seeds."""
    rows = tuple(
        (
            Cell(f"{d.a} vs {d.b}"),
            number(d.pairs, 0),
            Cell(number(d.mean).text, d.mean, d.clear),
            interval(d.low, d.high),
            Cell(f"{d.wins:.0%}", d.wins),
            Cell(f"{d.wins_low:.0%} to {d.wins_high:.0%}"),
        )
        for d in all_pairs(study.contenders)
        if d.pairs
    )
    columns = (
        "pair",
        "common seeds",
        "difference in regret",
        "95% interval",
        "seeds won",
        "95% interval ",
    )
    note = "Below zero, the first of the pair has less regret. Bold where the interval leaves out zero."
    return Table(
        f"pairs-{_slug(study.suite)}-{study.slug}", "Paired comparisons", columns, rows, note
    )


def recovery_table(study: Study, traces: Mapping[str, GroupTrace]) -> Table | None:
    """Rounds to recover after a change, early and late in the trial; None where nothing changes."""
    rows = tuple(
        (
            Cell(group.shown_name),
            number(trace.recovery.early),
            number(trace.recovery.late),
            number(trace.recovery.recovered * 100, 0, unit="%"),
        )
        for group in study.contenders
        if (trace := traces.get(group.name)) and trace.recovery
    )
    columns = (
        "policy",
        "first quarter of changes",
        "last quarter of changes",
        "changes recovered from",
    )
    note = (
        "Rounds from a change to the first of three good rounds in a row (at most a tenth of the "
        "regret of random "
        "arms). A regime that ends before counts with its whole length."
    )
    name = f"recovery-{_slug(study.suite)}-{study.slug}"
    return Table(name, "Rounds to recover after a change", columns, rows, note) if rows else None


def scores_table(suite: str, panels: Sequence[Panel]) -> Table | None:
    """Interquartile means of normalised regret over each set of problems."""
    rows = tuple(
        (
            Cell(s.policy),
            Cell(_set_name(panel)),
            number(s.trials, 0),
            number(s.iqm, 3, best=s is panel.scores[0]),
            interval(s.low, s.high, 3),
            number(s.mean, 3),
        )
        for panel in panels
        for s in panel.scores
    )
    columns = ("policy", "problems", "trials", "interquartile mean", "95% interval", "mean")
    note = (
        "Regret as a share of random's: 0 is the oracle, 1 is random. Intervals: stratified "
        "percentile bootstrap, "
        "as in rliable; too narrow where a problem has only a few trials."
    )
    return (
        Table(f"scores-{_slug(suite)}", "Scores over problems", columns, rows, note)
        if rows
        else None
    )


def sensitivity_table(study: Study, found: Sequence[Sensitivity]) -> Table:
    """Best, median and worst setting of each policy."""
    rows = tuple(
        (
            Cell(s.name),
            number(len(s.means), 0),
            _from_to(min(s.trials), max(s.trials)),
            number(float(s.means[0])),
            number(float(np.median(s.means))),
            number(float(s.means[-1])),
            _score(s.median_score),
            number(s.share_below_random * 100, 0, unit="%"),
            Cell(s.settings[0] or "–"),
        )
        for s in found
    )
    columns = (
        "policy",
        "settings",
        "trials of each",
        "best reward",
        "median",
        "worst",
        "median setting's score",
        "settings below random",
        "best setting",
    )
    note = (
        "Rewards are means over trials. Score: what the median setting earns above random arms, as "
        "a share of what the "
        "policy's own best setting earns above them; 1 is as good as the best, 0 as random."
    )
    return Table(f"sensitivity-{_slug(study.suite)}-{study.slug}", "Settings", columns, rows, note)


def _score(value: float) -> Cell:
    """Two digits; how far below random a setting lies says nothing where the best is hardly
    above."""
    return number(value, 2) if not value < 0 else Cell("below random", value)


def _set_name(panel: Panel) -> str:
    return (
        ", ".join(panel.problems) if len(panel.problems) <= 4 else f"{len(panel.problems)} problems"
    )


def _from_to(low: int, high: int) -> Cell:
    return Cell(str(low) if low == high else f"{low} to {high}", low)


def _signed(value: float) -> Cell:
    return Cell(f"{value:+.1f}", value) if math.isfinite(value) else Cell("–")


def _slug(text: str) -> str:
    return text or "other"


def halving_table(studies: Sequence[Study]) -> Table:
    """One row for each problem and policy that was searched by halving."""
    rungs: dict[tuple[str, str, str], dict[int, tuple[Group, ...]]] = {}
    for study in studies:
        if rung := rung_number(study.suite):
            for name, groups in study.grids.items():
                rungs.setdefault((searched_suite(study.suite), study.title, name), {})[rung] = (
                    groups
                )
    rows = tuple(
        (Cell(problem), Cell(name), *_played(by_rung), *_ranked(problem, name, by_rung))
        for (_, problem, name), by_rung in rungs.items()
    )
    columns = (
        "problem",
        "policy",
        "settings x rounds x trials",
        "CPU time",
        "rank correlation of rungs",
    )
    note = (
        "Spearman's correlation of mean rewards on two rungs, over the settings that played both. "
        "Those are the best "
        "of the shorter rung, so that it is lower than over a whole grid."
    )
    return Table(
        "halving", "What was played, and how short trials rank long ones", columns, rows, note
    )


def _played(by_rung: dict[int, tuple[Group, ...]]) -> Iterator[Cell]:
    parts = [
        f"{len(groups):,} x {groups[0].rows[0].horizon:,} x {trials_text(groups)}"
        for _, groups in sorted(by_rung.items())
    ]
    seconds = {
        row.hash: row.cpu_seconds
        for groups in by_rung.values()
        for group in groups
        for row in group.rows
    }
    yield Cell(", ".join(parts))
    yield Cell(duration(sum(seconds.values())))


def _ranked(problem: str, name: str, by_rung: dict[int, tuple[Group, ...]]) -> Iterator[Cell]:
    standings = [
        RungMeans(
            problem, name, rung, {group.setting: float(group.rewards.mean()) for group in groups}
        )
        for rung, groups in sorted(by_rung.items())
    ]
    found = agreements(standings)
    yield Cell(
        ", ".join(
            f"{one.first} and {one.second}: {number(one.correlation, 2).text}" for one in found
        )
        or "–"
    )


def trials_text(groups: Sequence[Group]) -> str:
    """How many trials each of the settings has."""
    counts = {len(group.rows) for group in groups}
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
