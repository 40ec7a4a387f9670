"""The page of results: the paper's table beside ours, what differs and why, its claims, the cost.

A page is a sequence of blocks, Markdown paragraphs and tables. `tidepull reproduce` writes it as
Markdown and shows it as HTML at the top of its report; `details.py` has everything behind it.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from msgspec import convert

from tidepull._internal.files import write_whole
from tidepull.experiments.archive import export
from tidepull.experiments.grid import SearchRule, is_last_rung, rung_number, searched_suite
from tidepull.experiments.rows import Row
from tidepull.experiments.search import LEAST
from tidepull.paper.authors import (
    BEYOND,
    AuthorsCell,
    authors_cells,
    beyond_and_chance,
    control_words,
    is_authors,
    slip_words,
    tally_cells,
)
from tidepull.paper.claims import check_claims
from tidepull.paper.exploration import NAMES, explorations
from tidepull.paper.studies import combined, judged_studies, main_groups, searches_of
from tidepull.paper.table import (
    HEADS,
    across_cells,
    best_choices,
    best_reasons,
    overview,
    worse_bests,
)
from tidepull.paper.verdicts import FAILS, HOLDS, NOT_JUDGED, OPEN, Claim, verdicts_table
from tidepull.reporting import figures, published
from tidepull.reporting.frames import Frame, Study
from tidepull.reporting.published import SEARCH_TRIALS
from tidepull.reporting.result_tables import trials_text
from tidepull.reporting.stats import sensitivities
from tidepull.reporting.tables import Cell, Table, number, to_markdown
from tidepull.reporting.traces import POINTS, Band, Examined, TrialSummary, examined

Block: TypeAlias = str | Table
Charts: TypeAlias = dict[str, Mapping[str, Band]]
FIGURES = "results"
"""The folder of figures beside a page."""


@dataclass(frozen=True, slots=True)
class PaperResults:
    """All that the pages show, from one frame of trials."""

    frame: Frame
    reports: Sequence[Examined]
    explored: Sequence[Examined]
    searches: Sequence[Study]
    cells: Sequence[AuthorsCell]
    claims: Sequence[Claim]

    def shown_rows(self) -> list[Row]:
        """The trials of tables and figures; those of searches are shown by their means alone."""
        studies = [one.study for one in (*self.reports, *self.explored)]
        return [row for study in studies for group in study.groups for row in group.rows]


def paper_results(
    frame: Frame, known: Mapping[str, TrialSummary] = MappingProxyType({})
) -> PaperResults:
    """Look at all trials; `known` is what was kept of their rounds (by hash), others are read from
    their stores."""

    def look(studies: Iterable[Study]) -> list[Examined]:
        return [examined(study, points=POINTS, known=known) for study in studies]

    explored, searches = look(explorations(frame.studies)), searches_of(frame.studies)
    finals = searches_of(frame.studies, last=True)
    claims = check_claims(look(judged_studies(frame.studies)), searches, explored, finals)
    cells = authors_cells(frame.studies)
    return PaperResults(frame, look(combined(frame.studies)), explored, searches, cells, claims)


def write_page(blocks: Iterable[Block], page: Path) -> Path:
    """Write blocks as one Markdown file."""
    parts = [to_markdown(block) if isinstance(block, Table) else block for block in blocks]
    write_whole(page, ("\n\n".join(part.strip() for part in parts) + "\n").encode())
    return page


def results_blocks(results: PaperResults, command: str) -> Iterator[Block]:
    """The page that is read; its figures are those of `draw`."""
    yield "# Results"
    yield (
        "The table, claims and figures of *Recurrent Neural-Linear Posterior Sampling for "
        "Non-Stationary Contextual Bandits* (Ramesh, Rauber, Conserva, Schmidhuber, 2022) beside "
        "ours. NN (`nlps`) and RNN (`rnlps`) are posterior sampling on the last layer of a "
        "feedforward and of a recurrent network. Regret is cumulative, mean ± standard deviation "
        "over trials; intervals are 95% (bootstrap; Student's below six trials). Every figure comes "
        "from stored trials by "
        "one command, which also writes the details: rules and figures of each verdict, settings, "
        "searches (`research/paper/results.md` in the repository)."
    )
    yield f"```\n{command}\n```"
    yield _in_short(results)
    yield from _table(results)
    yield "## What differs, and why"
    yield _differences(results.frame)
    yield "## The paper's claims"
    yield (
        "Every sentence of the paper's Analysis that trials can judge, as a rule that was fixed "
        "before trials were counted. A claim holds when all its figures say so, fails when one "
        "says clearly otherwise, and is open in between. Differences are paired on common seeds."
    )
    yield verdicts_table(results.claims)
    yield from _pictures(results)
    yield "## What it cost, and what is missing"
    yield cost_table(results.frame)
    yield from missing_blocks(results.frame)
    if halved := halved_grids(results.frame):
        yield f"Chosen by halving, where the suite asks for the whole grid: {halved}."


def _in_short(results: PaperResults) -> str:
    cells = [cell for cell in results.cells if not cell.is_best]
    words = f"**In short.** {tally(results.claims)}"
    if not cells:
        return words
    beyond, chance = beyond_and_chance(cells)
    return (
        f"{words} With the paper's own settings and in its authors' world, {beyond} of {len(cells)} "
        f"cells lie beyond {BEYOND:g} standard errors of the paper's; chance gives {chance:.1f}."
    )


def _table(results: PaperResults) -> Iterator[Block]:
    cells = results.cells
    yield "## The paper's table"
    table = overview([one.study for one in results.reports], cells)
    if not table.rows:
        yield "None of its problems was played."
        return
    yield (
        "Ours across worlds (every trial in a world of its own), *the paper's*, and ours in the "
        'authors\' own world ("there"); differences in standard errors (s.e.), across worlds with '
        "the deviation between them, none where the paper's cell is another problem or has the "
        "slip; the lowest of ours in bold. D-UCB and SW-UCB have the "
        'settings with which the paper\'s cells come out; "searched" is our own choice where it is '
        "another."
    )
    yield table
    if cells:
        across = list(across_cells([one.study for one in results.reports]))
        there, apart = "in the authors' world", "across worlds, without the digits and the slip"
        tallies = [*_tallies(there, cells), *_tallies(apart, across)]
        if again := authors_cells(results.frame.studies, again=True):
            seeds = again[0].ours.trials
            tallies.insert(1, f"- The same cells on {seeds} other seeds: {tally_cells(again)}")
        yield "\n".join(tallies)
        why: dict[str, list[str]] = {}
        for place, (words, figures) in (best_reasons(across) | best_reasons(cells)).items():
            why.setdefault(words, []).append(f"{place} ({figures})")
        if why:
            lines = " ".join(f"{words}: {', '.join(places)}." for words, places in why.items())
            yield f"Why those best columns differ. {lines}"
        yield "![Differences in the authors' world](results/authors.svg)"
    if choices := [*best_choices(results.frame.suites), *unfinished_searches(results.frame)]:
        yield (
            "How the best settings across worlds were chosen (the paper: highest mean reward of all "
            "96 and 576 settings, five trials of each):"
        )
        yield "\n".join(f"- {one}" for one in choices)
    if worse := worse_bests([one.study for one in results.reports]):
        yield (
            "Best settings with more mean regret than the paper's default, on seeds that the search "
            f"did not see: {worse}. Few seeds and short trials rank settings badly."
        )
    studies = results.frame.studies
    if notes := " ".join(filter(None, (control_words(studies), slip_words(studies)))):
        yield notes
    if len(_curves(results)) > 1:
        yield "![Regret curves of all problems](results/curves.svg)"


def _tallies(where: str, cells: Sequence[AuthorsCell]) -> Iterator[str]:
    """Default and conventional columns, then the best ones, whose settings the paper does not
    print."""
    for is_best, columns in ((False, "Default and conventional columns"), (True, "Best columns")):
        yield f"- {columns} {where}: {tally_cells([c for c in cells if c.is_best is is_best])}"


def _pictures(results: PaperResults) -> Iterator[Block]:
    if results.searches:
        yield (
            "## Sensitivity to hyperparameters\n\nMean reward of every setting, from best to worst; "
            "where a grid was searched by halving, its first rung."
        )
        yield "![Sensitivity](results/sensitivity.svg)"
    if _others(results, "criteo"):
        yield "## Criteo (synthetic)\n\n![Regret on Criteo](results/criteo.svg)"
    if _others(results, "stationary"):
        yield "## Stationary problems\n\n![Stationary problems](results/stationary.svg)"
    if results.explored:
        yield "## Kinds of exploration"
        yield "![Kinds of exploration](results/exploration.svg)"


def _differences(frame: Frame) -> str:
    """The notes of `differences.md`; the first is another where all trials share a world."""
    first, *others = (
        files("tidepull.paper").joinpath("differences.md").read_text(encoding="utf-8").splitlines()
    )
    studies = [study for study in frame.studies if not is_authors(study)]
    rows = (row for study in studies for group in study.groups for row in group.rows)
    if any(row.problem_seed != row.seed for row in rows):
        first = (
            "- **Worlds.** All trials of a problem were played in one realisation of it, as the "
            "paper's were; it is not the paper's own, which `authors-world` has."
        )
    return "\n".join((first, *others))


def tally(claims: Sequence[Claim]) -> str:
    """How many of the paper's claims hold, fail, are open and not judged."""
    papers = [claim for claim in claims if not claim.beyond_paper]
    words = {HOLDS: "hold", FAILS: "fail", OPEN: "open", NOT_JUDGED: "not judged"}
    counts = ", ".join(f"{sum(c.outcome == o for c in papers)} {w}" for o, w in words.items())
    return f"{len(papers)} claims of the paper: {counts}."


def suite_costs(frame: Frame) -> dict[str, tuple[int, float]]:
    """Trials and CPU seconds of every suite; what several ask for counts for each."""
    costs: dict[str, dict[str, float]] = {}
    for study in frame.studies:
        groups = (*study.groups, *(group for grid in study.grids.values() for group in grid))
        of_suite = costs.setdefault(searched_suite(study.suite) or "outside any suite", {})
        of_suite |= {row.hash: row.cpu_seconds for group in groups for row in group.rows}
    return {name: (len(trials), sum(trials.values())) for name, trials in costs.items()}


def cost_table(frame: Frame) -> Table:
    """CPU hours of every suite, with the report of what it selected, and of all."""
    costs: dict[str, tuple[int, float]] = {}
    for name, (count, seconds) in suite_costs(frame).items():
        suite = name.removesuffix("-selected")
        others, before = costs.get(suite, (0, 0.0))
        costs[suite] = others + count, before + seconds
    costs["all"] = frame.trials, frame.cpu_seconds
    rows = tuple(
        (Cell(name), number(count, 0), number(seconds / 3600, 2))
        for name, (count, seconds) in costs.items()
    )
    note = (
        "Searches with the reports of what they chose. A trial that several suites ask for counts "
        "for each of them, and once for all."
    )
    return Table("cost", "Cost", ("suite", "trials", "CPU hours"), rows, note)


def missing_blocks(frame: Frame) -> Iterator[str]:
    """Which trials the suites ask for that were not played, by policy and problem."""
    gaps = frame.gaps
    searched: dict[str, Counter[str]] = {}
    reported: dict[str, Counter[str]] = {}
    for id in (*gaps.missing, *gaps.failed, *gaps.damaged):
        problem, *names = id.split("/")[:-1]
        in_grid = len(names) > 1 and "=" in names[-1]
        counts = searched if in_grid else reported
        counts.setdefault(names[-2] if in_grid else names[-1], Counter())[problem] += 1
    if not searched and not reported:
        yield "Every trial that the suites ask for was played."
        return
    yield "Not played, for want of processor time:"
    lines = []
    if searched:
        lines.append(f"- of searches: {_counted(searched)}.")
    if reported:
        lines.append(f"- of reports: {_counted(reported)}; cells and claims stand on the others.")
    yield "\n".join(lines)
    yield "`tidepull reproduce --known research/results/trials` plays them."


def unfinished_searches(frame: Frame) -> Iterator[str]:
    """Networks whose search by halving has not come to its end, with the trials that the rule of
    their suite still asks for."""
    lost = {id.rsplit("/", 2)[0] for id in frame.gaps.missing}
    for first in (study for study in frame.studies if rung_number(study.suite) == 1):
        suite = searched_suite(first.suite)
        rungs = [
            study
            for study in frame.studies
            if searched_suite(study.suite) == suite and study.problem == first.problem
        ]
        for name, settings in first.grids.items():
            played = [study for study in rungs if name in study.grids]
            ended = any(study.suite == suite or is_last_rung(study.suite) for study in played)
            if f"{name}-best" not in HEADS or (ended and f"{first.problem}/{name}" not in lost):
                continue
            rule = convert(tomllib.loads(frame.suites[first.suite]).get("search", {}), SearchRule)
            asked = sum(
                (rung.seeds or SEARCH_TRIALS) * max(LEAST, ceil(len(settings) / rule.eta**passed))
                for passed, rung in enumerate(rule.rungs)
            )
            count = sum(len(group.rows) for study in played for group in study.grids[name])
            yield (
                f"{HEADS[f'{name}-best']} of {first.problem}: not chosen, since the search is not "
                f"finished; {asked - count:,} of its {asked:,} trials are missing"
            )


def halved_grids(frame: Frame) -> str:
    """Policies and problems of a suite that was swept, whose settings only halving has played."""
    whole = {(s.suite, s.problem, name) for s in frame.studies for name in s.grids}
    halved: dict[str, dict[str, None]] = {}
    for study in frame.studies:
        suite = searched_suite(study.suite)
        if suite != study.suite and suite in frame.suites:
            for name in study.grids:
                if (suite, study.problem, name) not in whole:
                    halved.setdefault(name, {})[study.problem] = None
    return "; ".join(f"{name} on {', '.join(at)}" for name, at in halved.items())


def _counted(lost: Mapping[str, Mapping[str, int]]) -> str:
    return "; ".join(
        f"{name} on {', '.join(f'{problem} ({n:,})' for problem, n in at.items())}"
        for name, at in lost.items()
    )


def played_words(study: Study) -> str:
    """`rotating-vector-32, 1,024 rounds, 2 trials of each setting (nlps: 1)`."""
    trials = {name: trials_text(groups) for name, groups in study.grids.items()}
    many = list(trials.values())
    most = max(many, key=lambda count: (many.count(count), count))
    others = ", ".join(f"{name}: {count}" for name, count in trials.items() if count != most)
    words = "one trial" if most == "1" else f"{most} trials"
    behind = f" ({others})" if others else ""
    return f"{study.title}, {study.horizon:,} rounds, {words} of each setting{behind}"


def draw(results: PaperResults, folder: Path) -> None:
    """The figures of the page, and the means and deviations behind them as `summary.csv`."""
    grids: dict[str, Charts] = {
        "curves": _curves(results),
        **{kind: _others(results, kind) for kind in ("criteo", "stationary")},
        "exploration": {
            one.study.title: {
                name if name.endswith("-best") else f"{name}-default": band
                for name, band in one.bands("regret").items()
                if name in NAMES
            }
            for one in results.explored
        },
    }
    for name, charts in grids.items():
        if charts and (name != "curves" or len(charts) > 1):
            path = folder / f"{name}.svg"
            figures.band_grid(charts, xlabel="round", ylabel="cumulative regret", paths=[path])
    if results.searches:
        settings = {
            played_words(study).replace(", ", ",\n", 1): sensitivities(study)
            for study in results.searches
        }
        figures.sensitivity_grid(settings, paths=[folder / "sensitivity.svg"])
    if results.cells:
        _draw_authors(results.cells, folder / "authors.svg")
    if rows := results.shown_rows():
        export(rows, folder / "summary.csv", by_setting=True)


def _curves(results: PaperResults) -> Charts:
    """Of the table's problems, with the columns of the table alone."""
    charts: Charts = {}
    for one in results.reports:
        if one.study.problem in published.REGRET:
            shown = replace(one.study, groups=main_groups(one.study) or one.study.groups)
            traces = {group.name: one.traces[group.name] for group in shown.groups}
            charts[shown.title] = Examined(shown, one.random, traces, ()).bands("regret")
    return charts


def _others(results: PaperResults, kind: str) -> Charts:
    return {
        one.study.title: one.bands("regret")
        for one in results.reports
        if one.study.problem.startswith(kind)
    }


def _draw_authors(cells: Sequence[AuthorsCell], path: Path) -> None:
    """A point for each cell, its difference to the paper in standard errors of the one world."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    figure, axes = figures.pyplot().subplots(figsize=(8, 3.6), layout="constrained")
    axes.axvspan(-2, 2, color="0.92", lw=0)
    for number_, column in enumerate(published.COLUMNS):
        points = [cell for cell in cells if cell.column == column]
        places = [rows.index(cell.row) + (number_ - 2.5) / 9 for cell in points]
        if points:
            tint = figures.colour(points[0].name)
            inside = "white" if column.endswith("-default") else tint
            z = [cell.z for cell in points]
            axes.plot(z, places, "o", ms=5, c=tint, mfc=inside, label=HEADS[column])
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set_xlabel("ours minus the paper's in the authors' world, standard errors")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figures.unbox(axes, grid="x")
    figures.save(figure, [path])
