"""`tidepull reproduce`: run what is missing of the paper's experiments, then report them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from typer import Argument, Exit, Option

from tidepull.cli import options
from tidepull.cli.console import INTERRUPTED, err, print_json, progress, say
from tidepull.cli.report import announce
from tidepull.cli.select import select
from tidepull.cli.sweep import search as halve
from tidepull.cli.sweep import sweep
from tidepull.cli.trials import ready
from tidepull.errors import ParameterError, WrongStoreError
from tidepull.experiments.archive import is_archive, known_rewards
from tidepull.experiments.executors import usable_cpus
from tidepull.experiments.grid import searched_suite
from tidepull.experiments.runner import estimator, prepare, without_known
from tidepull.experiments.selection import open_search
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite, load_suite
from tidepull.paper.details import claim_blocks, detail_blocks
from tidepull.paper.html import html_parts
from tidepull.paper.page import (
    PaperResults,
    draw,
    paper_results,
    results_blocks,
    tally,
    write_page,
)
from tidepull.paper.reproduce import (
    FULL,
    QUICK,
    SELECTED,
    THEORY_FILE,
    PaperPart,
    PaperSuite,
    paper_suite,
    published_hours,
    report_seeds,
    searches_of_part,
    simulate_theory,
    stored_reports,
    suites_of_part,
)
from tidepull.paper.studies import keep
from tidepull.paper.theory.simulate import configurations
from tidepull.paper.theory.tables import check_table, steps_table
from tidepull.reporting.frames import Frame, archived_frame
from tidepull.reporting.report import build_report
from tidepull.reporting.tables import duration, to_html
from tidepull.reporting.traces import read_curves

WHERE: Literal["local", "here"] = "local"
KEPT = "kept"
"""The folder of a store with what it and `--known` have played, as CSV."""


def reproduce(
    target: PaperPart = Argument(PaperPart.all, help="A part of the paper, or all of it."),
    trials: int = Option(
        None, min=1, help="Number of trials to report. Default: those of the suites, 10 to 40."
    ),
    quick: bool = Option(
        False, "--quick", help="Fewer and shorter trials: minutes instead of days."
    ),
    one_world: bool = Option(
        False,
        "--one-world",
        help="All trials in one realisation of each problem, as the authors did.",
    ),
    search: bool = Option(
        True, help="Search the paper's grids, or use the settings of the package."
    ),
    exhaustive: bool = Option(False, "--exhaustive", help="Search every setting to the end."),
    play: bool = Option(True, help="Play what is missing, or only report what was played."),
    out: Path = Option(
        None, help="Output directory. Default: out/reproduce, with -one-world and -quick appended."
    ),
    known: Path = Option(
        None,
        help="Folder of kept trials (`tidepull store archive`), which are not played again and "
        "are reported as Markdown.",
    ),
    workers: options.Workers = None,
    dry_run: options.DryRun = False,
    retry_failed: options.RetryFailed = False,
    partial: options.Partial = False,
    json: bool = options.JSON,
) -> None:
    """Run what is missing of the paper's experiments, then report on one page; the same command
    continues."""
    if known and not is_archive(known):
        raise ParameterError(
            f"--known: {known} holds no kept trials; `tidepull store archive` writes them"
        )
    ending = f"{'-one-world' if one_world else ''}{'-quick' if quick else ''}"
    directory = out or Path("out") / f"reproduce{ending}"
    names = suites_of_part(target, quick=quick)
    parts = [paper_suite(name, trials=trials, one_world=one_world) for name in names]
    searches = searches_of_part(target) if search and not quick else ()
    complete = True
    if play:
        counts = _announce_all(
            parts, directory, known, retry_failed=retry_failed, partial=partial or dry_run
        )
        if dry_run:
            _foretell(counts, parts, searches, json=json)
            return
        settings: dict[str, Any] = {"retry_failed": retry_failed, "partial": partial}
        settings |= {"workers": workers or usable_cpus(), "known": [known] if known else None}
        with redirect_stdout(sys.stderr):  # the standard output is for results alone
            for name in searches:
                looked_for = paper_suite(name, trials=None, one_world=one_world)
                complete &= _search(looked_for, directory, settings, exhaustive=exhaustive)
            names = list(dict.fromkeys((*names, *(f"{name}{SELECTED}" for name in searches))))
            complete &= _play(names, directory, trials, settings, one_world=one_world)
        if target in (PaperPart.theory, PaperPart.all):
            _theory(directory, QUICK if quick else FULL)
        if target is PaperPart.theory:
            _say_theory(directory, json=json)
            return
    if known:
        place = f"--known {known}" + (f" --out {out}" if out else "")
        _report_archive(known, directory, place, json=json)
    else:
        _report(directory, json=json)
    if not complete:
        raise Exit(1)


def _archive_folder(known: Path, directory: Path) -> Path:
    """The known trials and those of the store, as CSV."""
    folder = directory / KEPT
    shutil.copytree(known, folder, dirs_exist_ok=True)
    if (directory / "plans").is_dir():
        keep(Store.open(directory), folder)
    return folder


def _report_archive(known: Path, directory: Path, options: str, *, json: bool) -> None:
    """The page of results and the details as Markdown, from CSV."""
    folder = _archive_folder(known, directory)
    results = paper_results(archived_frame(folder), read_curves(folder))
    _write_pages(results, directory, options)
    if json:
        claims = [claim.as_plain() for claim in results.claims]
        print_json({"page": directory / "results.md", "claims": claims})


def _write_pages(results: PaperResults, directory: Path, options: str) -> None:
    again = f"tidepull reproduce --no-play {options}"
    draw(results, directory / "results")
    write_page(results_blocks(results, again), directory / "results.md")
    write_page(detail_blocks(results, again), directory / "details.md")
    say(f"{tally(results.claims)} As Markdown: {directory / 'results.md'}")


def _report(directory: Path, *, json: bool) -> None:
    """The report of a store as HTML, its page of results and the details as Markdown."""
    shown: list[PaperResults] = []

    def first(frame: Frame) -> Iterator[str]:
        shown.append(paper_results(frame))
        return _front(shown[0], directory)

    with err.status("writing the report", spinner="dots"):
        result = build_report([Store.open(directory)], directory / "report", front=first)
        _write_pages(shown[0], directory, f"--out {directory}")
    announce(result, json=json, claims=[claim.as_plain() for claim in shown[0].claims])


def _front(results: PaperResults, directory: Path) -> Iterator[str]:
    """The page of results, the figures of each claim, and the theorem, at the top of the report."""
    again = f"tidepull reproduce --no-play --out {directory}"
    yield from html_parts(results_blocks(results, again))
    yield "<details><summary>The rule and the figures of each claim</summary>"
    yield from html_parts(claim_blocks(results.claims))
    yield "</details><h2>The theorem</h2>"
    if theory := stored_reports(directory):
        yield to_html(steps_table(theory))
        yield f"<details><summary>Every configuration</summary>{to_html(check_table(theory))}</details>"
    else:
        yield "<p>Not simulated yet: <code>tidepull reproduce theory</code>.</p>"


def _foretell(
    counts: dict[str, Any], parts: Sequence[PaperSuite], searches: Sequence[str], *, json: bool
) -> None:
    """What there is to do, in CPU hours of the machine that made the published page."""
    costs = {one.name: published_hours(one.name, len(one.load().specs)) for one in parts}
    for name in searches:
        suite = load_suite(name)
        whole = len(suite.search.rungs) == 1
        costs[name] = published_hours(name, len(suite.specs) if whole else None)
        hours, more = costs[name]
        about = "at least " if more else ""
        say(f"before that {name} is searched ({about}{hours:.1f} CPU hours)")
    hours = sum(hours for hours, _ in costs.values())
    known = isfinite(hours)
    if known:
        about = "at least" if any(more for _, more in costs.values()) else "about"
        measured = "as measured for the published page"
        say(f"{about} {hours:.1f} CPU hours from an empty store, {measured}")
    if json:
        searched = {"searches": list(searches), "cpu_hours": hours if known else None}
        print_json({**counts, **searched})


def _play(
    names: Sequence[str],
    directory: Path,
    trials: int | None,
    settings: dict[str, Any],
    *,
    one_world: bool,
) -> bool:
    """Sweep one suite after the other; what a search in this store has chosen stands instead of
    what comes along."""
    known = settings["known"]
    source = _archive_folder(known[0], directory) if known else directory
    own = {
        name: _chosen(name.removesuffix(SELECTED), source, directory, trials)
        for name in names
        if name.endswith(SELECTED)
    }
    complete = True
    for number, name in enumerate(names, 1):
        say(f"[bold]{name}[/] ({number} of {len(names)})")
        if not (suite := own.get(name)):
            chosen = directory / "suites"
            one = paper_suite(name, trials=trials, one_world=one_world, chosen=chosen)
            suite = one.written(directory)
        complete &= _succeeds(sweep, suite, directory, settings)
    return complete


def _search(
    looked_for: PaperSuite, directory: Path, settings: dict[str, Any], *, exhaustive: bool
) -> bool:
    """Search the grids of a suite; one rung alone is the whole grid."""
    say(f"[bold]{looked_for.name}[/]: searching")
    whole = exhaustive or len(looked_for.load().search.rungs) == 1
    command = sweep if whole else halve
    return _succeeds(command, looked_for.written(directory), directory, settings)


def _chosen(search: str, source: Path, directory: Path, trials: int | None) -> str | None:
    """The suite of what a search in `source` has chosen, for reporting; None where it has not come
    so far."""
    stored = is_archive(source) or (source / "plans").is_dir()
    plans = open_search(source).plans if stored else ()
    if not any(searched_suite(plan) == search for plan in plans):
        return None
    path = directory / "suites" / f"{search}{SELECTED}.toml"
    try:
        select(source, search, path, report_seeds(search, trials), partial=True)
    except WrongStoreError as error:
        say(f"[yellow]no best settings from {search} yet[/]: {error}")
        return None
    return str(path)


def _theory(directory: Path, size: dict[str, int]) -> None:
    say("[bold]theory[/]: the promises of the proof")
    rounds = size["horizon"] * len(list(configurations(**size)))
    with progress("checking", rounds) as bar:
        simulate_theory(directory, size, on_round=lambda _: bar.advance(bar.task_ids[0]))


def _say_theory(directory: Path, *, json: bool) -> None:
    """By itself the theorem needs no page; the page of the trials shows it from now on."""
    reports = stored_reports(directory)
    if json:
        print_json(reports)
        return
    print(check_table(reports).title)
    say(
        f"kept in {directory / THEORY_FILE}; the next report of {directory} shows every "
        "configuration"
    )


def _announce_all(
    parts: Sequence[PaperSuite],
    directory: Path,
    known: Path | None,
    *,
    retry_failed: bool,
    partial: bool,
) -> dict[str, Any]:
    """What there is to do in all suites together, each trial once, and how long that will take as
    far as is known.

    What cannot run here is an error before anything starts; with `partial` it is named and left
    out.
    """
    if not parts:
        return {"suites": [], **dict.fromkeys(("total", "done", "failed", "unable", "todo"), 0)}
    store = Store(directory)
    specs = tuple({spec.hash: spec for one in parts for spec in one.load().specs}.values())
    work = prepare(Suite("reproduce", "", "", specs), store, retry_failed=retry_failed)
    work = without_known(work, known_rewards([known] if known else ()))
    able = ready(work.todo, partial=partial)
    seconds, unknown = estimator(store, replace(work, todo=able)).seconds_left()
    failed, unable = len(work.failed_before), len(work.todo) - len(able)
    counts = {"total": work.total, "done": work.done, "failed": failed, "unable": unable}
    counts["todo"] = len(able)
    suites = "one suite" if len(parts) == 1 else f"{len(parts)} suites"
    others = f", {failed:,} failed earlier (--retry-failed runs them again)" if failed else ""
    others += f", {unable:,} cannot run here" if unable else ""
    say(
        f"{work.total:,} trials in {suites}, {work.done:,} done{others}, {len(able):,} to do, in "
        f"{directory}"
    )
    if able and seconds:
        more_text = f", and {unknown:,} trials of unknown length" if unknown else ""
        say(f"about {duration(seconds)} of CPU time are left{more_text}")
    counted: dict[str, Any] = {"suites": [one.name for one in parts], **counts}
    return counted | {"cpu_seconds_left": seconds, "unknown": unknown}


def _succeeds(
    command: Callable[..., None], suite: str, directory: Path, settings: dict[str, Any]
) -> bool:
    """Run `sweep` or `search`; False when trials failed. Ctrl-C ends the whole command."""
    try:
        command(suite, out=directory, on=WHERE, **settings)
    except Exit as end:
        if end.exit_code == INTERRUPTED:
            raise
        return False
    return True
