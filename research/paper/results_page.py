"""`docs/results.md` with its figures and tables: ours beside the paper's, row by row and claim by
claim.

`python -m research.paper.results_page [STORE ...]` writes the page from stores or, by default, from
the trials that `results/` keeps as CSV (`tidepull store archive` writes them). The same command
makes `docs/results/*.svg` and `docs/results/summary.csv`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from research.paper.averages import FILE, Average, averages_section, read_averages
from tidepull._internal.files import write_whole
from tidepull.experiments.archive import export, is_archive
from tidepull.experiments.store import Store
from tidepull.paper.authors import (
    AuthorsCell,
    across_worlds,
    authors_cells,
    control_words,
    tally_cells,
)
from tidepull.paper.claims import check_claims
from tidepull.paper.exploration import NAMES, explorations
from tidepull.paper.front import BY_PROBLEM, general_notes, tally
from tidepull.paper.studies import (
    combined,
    in_column,
    judged_studies,
    main_groups,
    searches_of,
)
from tidepull.paper.table import HEADS, chosen_table, full_length, overview
from tidepull.paper.verdicts import Claim, lines_table, verdicts_table
from tidepull.reporting import figures, published, result_tables
from tidepull.reporting.frames import Frame, Study, archived_frame, load_frame
from tidepull.reporting.published import verdict
from tidepull.reporting.result_tables import halving_table, trials_text
from tidepull.reporting.stats import sensitivities, summarise
from tidepull.reporting.tables import Cell, Table, duration, number, provenance, to_markdown
from tidepull.reporting.traces import POINTS, Examined, TrialSummary, examined, read_curves, scored


def write_results(
    frame: Frame,
    docs: Path,
    *,
    command: str,
    known: Mapping[str, TrialSummary] = MappingProxyType({}),
    averages: Sequence[Average] = (),
) -> Path:
    """Write the page and everything it shows; `command` is how to make it again.

    `known` is what was kept of trials' rounds (by hash); others are read from their stores.
    `averages` have a table of their own.
    """
    folder = docs / "results"
    reports = combined(frame.studies)
    searches = searches_of(frame.studies)
    looked_at = [examined(study, points=POINTS, known=known) for study in reports]
    judged = [
        examined(study, points=POINTS, known=known) for study in judged_studies(frame.studies)
    ]
    main = [_only_main(one) for one in looked_at]
    explored = [
        examined(study, points=POINTS, known=known) for study in explorations(frame.studies)
    ]
    _draw(main, searches, folder)
    _draw_exploration(explored, folder)
    shown = [*reports, *(one.study for one in explored)]
    rows = [row for study in shown for group in study.groups for row in group.rows]
    if rows:
        export(rows, folder / "summary.csv", by_setting=True)
    parts = [
        *_head(frame, command),
        *_table(reports, authors_cells(frame.studies), control_words(frame.studies)),
        *played_section(frame),
        *chosen_section(frame.suites),
        *_scores(main),
        *_rows(looked_at),
        *exploration_section(explored),
        *averages_section(averages, shown),
        *searches_section(searches),
        *halving_section(frame.studies),
        *claims_section(check_claims(judged, searches, explored)),
        *_origin(frame),
    ]
    page = docs / "results.md"
    write_whole(page, ("\n\n".join(part.strip() for part in parts) + "\n").encode())
    return page


def agreement(study: Study) -> str:
    """An honest sentence: in which columns we agree with the paper, and how we differ in the
    others."""
    if not full_length(study):
        return "The trials are shorter than the paper's; its figures cannot be compared one to one."
    agree, differ, single = [], [], False
    for column in published.COLUMNS:
        group, theirs = in_column(study, column), published.figure(study.problem, column)
        if group is None or theirs is None:
            continue
        if len(group.rows) < 2:
            single = True
            continue
        z = across_worlds(study.problem, summarise(group.regrets), theirs)
        share = abs(group.regrets.mean() / theirs.mean - 1)
        if abs(z) < 2:
            agree.append(HEADS[column])
        else:
            differ.append(f"{share:.0%} {'above' if z > 0 else 'below'} for {HEADS[column]}")
    if not agree and not differ:
        few = "A single trial is too little to hold against the paper."
        return few if single else "The paper prints no figure for what was run here."
    parts = [f"within two standard errors of the paper for {_listed(agree)}"] if agree else []
    parts += [_listed(differ)] if differ else []
    return f"Ours is {'; '.join(parts)}."


def _head(frame: Frame, command: str) -> Iterator[str]:
    yield "# Results"
    yield (
        "Every figure on this page comes from stored trials by one command. Regret is cumulative "
        "pseudo-regret, mean ± "
        "standard deviation over trials; intervals are 95% (bootstrap; Student's below six "
        "trials); differences are "
        'paired on common seeds. "s.e." is the difference to the paper in standard errors, across '
        "worlds or in the authors' world."
    )
    yield f"```\n{command}\n```"
    yield "How our trials differ from the paper's:"
    yield "\n".join(f"- {note}" for note in general_notes(frame))


def _table(reports: Sequence[Study], cells: Sequence[AuthorsCell], control: str) -> Iterator[str]:
    table = overview(reports, cells)
    if table.rows:
        yield "## The paper's table"
        yield (
            "Ours across worlds, *the paper's*, the difference, and ours in the authors' own world "
            '("there", `authors-world`, suite `paper-authors`) with its difference; the lowest of '
            "ours in bold."
        )
        yield to_markdown(table)
        if cells:
            plain = [cell for cell in cells if not cell.is_best]
            best = [cell for cell in cells if cell.is_best]
            yield f"In the authors' world, default and conventional columns: {tally_cells(plain)}"
            yield f"Best columns, whose settings the paper does not print: {tally_cells(best)}"
        if control:
            yield control
        yield "![Regret curves of all problems](results/curves.svg)"


def _scores(main: Sequence[Examined]) -> Iterator[str]:
    panels = scored([one for one in main if one.study.problem in published.REGRET])
    table = result_tables.scores_table("all", panels)
    if table is not None:
        yield "## Over all problems"
        yield to_markdown(table)


def _rows(looked_at: Sequence[Examined]) -> Iterator[str]:
    yield "## Problem by problem"
    for one in looked_at:
        study = one.study
        yield f"### {study.title}"
        yield f"{verdict(study)} {agreement(study) if study.problem in published.REGRET else ''}"
        if note := BY_PROBLEM.get(study.problem):
            yield note
        yield to_markdown(result_tables.details_table(study, one.random, one.traces))
        if recovery := result_tables.recovery_table(study, one.traces):
            yield f"{recovery.title}:"
            yield to_markdown(recovery)
        yield f"![Regret on {study.title}](results/{_picture(study)})"


def _origin(frame: Frame) -> Iterator[str]:
    yield "## Where this comes from"
    yield "\n".join(f"- {line}" for line in provenance(frame, names=False))
    yield "The figures behind this page are in `results/summary.csv`."


def _draw(main: Sequence[Examined], searches: Sequence[Study], folder: Path) -> None:
    curves = {
        one.study.title: one.bands("regret")
        for one in main
        if one.study.problem in published.REGRET
    }
    if len(curves) > 1:
        figures.band_grid(
            curves, xlabel="round", ylabel="cumulative regret", paths=[folder / "curves.svg"]
        )
    for one in main:
        figures.band_figure(
            one.bands("regret"),
            title=f"{one.study.title}: {figures.trials_text([len(g.rows) for g in one.study.groups])}",
            xlabel="round",
            ylabel="cumulative regret (lower is better)",
            paths=[folder / _picture(one.study)],
        )
    charts = {
        played_words(study).replace(", ", ",\n", 1): sensitivities(study) for study in searches
    }
    if charts:
        figures.sensitivity_grid(charts, paths=[folder / "sensitivity.svg"])


def _draw_exploration(explored: Sequence[Examined], folder: Path) -> None:
    """Posterior sampling beside its alternatives, where they were run."""
    for one in explored:
        bands = one.bands("regret")
        figures.band_figure(
            {name: bands[name] for name in NAMES if name in bands} or bands,
            title=f"{one.study.title}: kinds of exploration",
            xlabel="round",
            ylabel="cumulative regret (lower is better)",
            paths=[folder / exploration_picture(one.study)],
        )


def _only_main(one: Examined) -> Examined:
    """For crowded studies only the paper's columns; where the paper has none, everything."""
    shown = main_groups(one.study)
    if one.study.problem not in published.REGRET or not shown:
        return one
    study = replace(one.study, groups=shown)
    return Examined(study, one.random, {g.name: one.traces[g.name] for g in study.groups}, ())


def _picture(study: Study) -> str:
    return f"regret-{study.problem}-{study.horizon}.svg"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def exploration_picture(study: Study) -> str:
    """The file of the picture of one problem."""
    return f"exploration-{study.problem}-{study.horizon}.svg"


def chosen_section(suites: Mapping[str, str]) -> Iterator[str]:
    """How every setting of the table came about."""
    table = chosen_table(suites)
    if table.rows:
        yield "### How the settings were chosen"
        yield to_markdown(table)


def exploration_section(explored: Sequence[Examined]) -> Iterator[str]:
    """Posterior sampling beside its alternatives; pictures are where `exploration_picture` says."""
    if explored:
        yield "## Kinds of exploration"
        yield (
            "Posterior sampling (`rnlps`), epsilon-greedy and Boltzmann exploration on recurrent "
            "features. Without an "
            "ending: the paper's default network and tidepull's default epsilon and temperature, "
            "so that only the rule "
            "differs. `-best`: each rule with the setting that its own search chose."
        )
    for one in explored:
        yield f"### {one.study.title}: kinds of exploration"
        yield to_markdown(result_tables.details_table(one.study, one.random, one.traces))
        yield f"![Kinds of exploration on {one.study.title}](results/{exploration_picture(one.study)})"


def claims_section(claims: Sequence[Claim]) -> Iterator[str]:
    """All verdicts in one table, then each claim with its rule and figures."""
    yield "## The paper's claims, one by one"
    yield (
        "Every sentence of the paper's Analysis that trials can judge, as a rule. A claim holds "
        "when all its figures "
        "say so, fails when one says clearly otherwise, and is open in between or where trials are "
        "missing. "
        "Differences are paired on common seeds. Conventional policies stand there with the "
        "setting that reproduces "
        "the paper and, where it is another, with the one that our search chose."
    )
    yield tally(claims)
    yield to_markdown(verdicts_table(claims))
    for place, claim in enumerate(claims, 1):
        yield f"### {place}. {claim.topic}: {claim.says}"
        yield f"**{claim.verdict.capitalize()}**{f' ({claim.reason})' if claim.reason else ''}. Rule: {claim.rule}."
        yield to_markdown(lines_table(claim, f"claim-{place}"))


def played_section(frame: Frame) -> Iterator[str]:
    """How many trials there are; which ones are not, and by which commands they come."""
    gaps = frame.gaps
    if not gaps:
        return
    lost = len(gaps.missing) + len(gaps.failed) + len(gaps.damaged)
    yield "### What was played"
    yield (
        f"{frame.trials:,} trials are behind this page. The suites ask for {lost:,} more, which "
        "were not played yet "
        f"({len(gaps.failed):,} failed, {len(gaps.damaged):,} damaged); "
        "`tidepull sweep SUITE --known research/results/trials` plays them. "
        "Cells and claims that need them are empty, or open and say so. Settings that a search by "
        "halving "
        "left behind are not among them: they are not played on by design."
    )
    yield to_markdown(not_played(frame))


def not_played(frame: Frame) -> Table:
    """A row for each policy that lacks trials, with the problems."""
    gaps = frame.gaps
    counts: Counter[tuple[str, str, bool]] = Counter()
    for id in (*gaps.missing, *gaps.failed, *gaps.damaged):
        problem, *names = id.split("/")[:-1]
        searched = len(names) > 1 and "=" in names[-1]
        counts[names[-2] if searched else names[-1], problem, searched] += 1
    policies = dict.fromkeys((name, searched) for name, _, searched in counts)
    rows = []
    for name, searched in policies:
        at = {
            problem: n
            for (other, problem, of), n in counts.items()
            if (other, of) == (name, searched)
        }
        rows.append(
            (
                Cell(f"{name}, settings of a search that goes on" if searched else name),
                Cell(", ".join(f"{problem} ({n})" for problem, n in at.items())),
                number(sum(at.values()), 0),
            )
        )
    return Table(
        "not-played", "Not played yet", ("policy", "problems (trials)", "trials"), tuple(rows)
    )


def played_words(study: Study) -> str:
    """`rotating-vector-32, 1,024 rounds, 2 trials of each setting (nlps: 1)`."""
    trials = {name: trials_text(groups) for name, groups in study.grids.items()}
    many = set(trials.values())
    if many == {"1"}:
        words = "one trial of each setting"
    elif len(many) == 1:
        words = f"{many.pop()} trials of each setting"
    else:
        most = max(many, key=lambda count: (list(trials.values()).count(count), count))
        others = ", ".join(f"{name}: {count}" for name, count in trials.items() if count != most)
        words = f"{most} trials of each setting ({others})"
    return f"{study.title}, {study.horizon:,} rounds, {words}"


def searches_section(searches: Sequence[Study]) -> Iterator[str]:
    """How much settings matter, problem by problem; each table says what was played."""
    if searches:
        yield "## Sensitivity to hyperparameters"
        yield (
            "Mean cumulative reward of every setting, from best to worst; searches and reports "
            "share no seed. Where "
            "a grid was searched by halving, what is shown is its first rung, which all settings "
            "played."
        )
        yield "![Sensitivity](results/sensitivity.svg)"
        for study in searches:
            yield f"{played_words(study)} ({duration(_cpu_seconds(study))} of CPU time):"
            yield to_markdown(result_tables.sensitivity_table(study, sensitivities(study)))


def _cpu_seconds(study: Study) -> float:
    groups = [group for settings in study.grids.values() for group in settings]
    return sum(row.cpu_seconds for group in groups for row in group.rows)


def halving_section(studies: Sequence[Study]) -> Iterator[str]:
    """What searches by halving played, and how their short trials ranked the long ones."""
    table = halving_table(studies)
    if table.rows:
        yield "## Searches by halving"
        yield (
            "All settings of a grid play the first rung, the best of them the next, which is "
            "longer or on more seeds. "
            "Settings that were left behind were not played on, by design (`tidepull search`, "
            "[experiments](experiments.md#search-by-halving)). The best setting is chosen on the "
            "last rung."
        )
        yield to_markdown(table)


def main(arguments: Sequence[str] | None = None) -> Path:
    """Write the page from the command line's arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m research.paper.results_page", description=__doc__
    )
    parser.add_argument(
        "sources", nargs="*", type=Path, metavar="STORE", help="stores, or a folder of kept trials"
    )
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="the folder to write into")
    options = parser.parse_args(arguments)
    sources = options.sources or [Path("research/results")]
    command = (
        f"python -m research.paper.results_page {' '.join(map(str, sources))} --docs {options.docs}"
    )
    folder = next((one for one in (sources[0], sources[0] / "trials") if is_archive(one)), None)
    if folder is None:
        page = write_results(
            load_frame([Store.open(one) for one in sources]), options.docs, command=command
        )
    else:
        averages = read_averages(sources[0] / FILE)
        known = read_curves(folder)
        frame = archived_frame(folder)
        page = write_results(frame, options.docs, command=command, known=known, averages=averages)
    print(page)
    return page


if __name__ == "__main__":
    main()
