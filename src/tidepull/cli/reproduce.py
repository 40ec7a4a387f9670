"""`tidepull reproduce`: run what is missing of the paper's experiments, then report them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
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
from tidepull.errors import WrongStoreError
from tidepull.experiments.executors import usable_cpus
from tidepull.experiments.grid import searched_suite
from tidepull.experiments.rows import read_plans
from tidepull.experiments.runner import estimator, prepare
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite
from tidepull.paper.front import claims_of, front, tally
from tidepull.paper.reproduce import (
    FULL,
    QUICK,
    SELECTED,
    THEORY_FILE,
    PaperPart,
    PaperSuite,
    paper_suite,
    report_seeds,
    searches_of_part,
    simulate_theory,
    stored_reports,
    suites_of_part,
)
from tidepull.paper.theory.simulate import configurations
from tidepull.paper.theory.tables import check_table
from tidepull.paper.verdicts import Claim
from tidepull.reporting.frames import Frame
from tidepull.reporting.report import build_report
from tidepull.reporting.tables import duration

WHERE: Literal["local", "here"] = "local"


def reproduce(
    target: PaperPart = Argument(PaperPart.all, help="A part of the paper, or all of it."),
    trials: int = Option(None, min=1, help="Number of trials to report. Default: the paper's ten."),
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
    workers: options.Workers = None,
    dry_run: options.DryRun = False,
    retry_failed: options.RetryFailed = False,
    partial: options.Partial = False,
    json: bool = options.JSON,
) -> None:
    """Run what is missing of the paper's experiments, then report on one page; the same command
    continues."""
    ending = f"{'-one-world' if one_world else ''}{'-quick' if quick else ''}"
    directory = out or Path("out") / f"reproduce{ending}"
    names = suites_of_part(target, quick=quick)
    parts = [paper_suite(name, trials=trials, one_world=one_world) for name in names]
    searches = searches_of_part(target) if search and not quick else ()
    complete = True
    if play:
        counts = _announce_all(
            parts, directory, retry_failed=retry_failed, partial=partial or dry_run
        )
        if dry_run:
            _foretell(counts, searches, json=json)
            return
        settings: dict[str, Any] = {"retry_failed": retry_failed, "partial": partial}
        settings["workers"] = workers or usable_cpus()
        with redirect_stdout(sys.stderr):  # the standard output is for results alone
            complete = _play(parts, directory, trials, settings)
            for name in searches:
                looked_for = paper_suite(name, trials=None, one_world=one_world)
                complete &= _search(looked_for, directory, trials, settings, exhaustive=exhaustive)
        if target in (PaperPart.theory, PaperPart.all):
            _theory(directory, QUICK if quick else FULL)
        if target is PaperPart.theory:
            _say_theory(directory, json=json)
            return
    claims: list[Claim] = []

    def first(frame: Frame) -> Iterator[str]:
        claims.extend(claims_of(frame))
        return front(frame, claims, stored_reports(directory))

    with err.status("writing the report", spinner="dots"):
        result = build_report([Store.open(directory)], directory / "report", front=first)
    announce(result, json=json, claims=[claim.as_plain() for claim in claims])
    say(tally(claims))
    if not complete:
        raise Exit(1)


def _foretell(counts: dict[str, Any], searches: Sequence[str], *, json: bool) -> None:
    for name in searches:
        say(f"then {name} is searched, and what it chooses is run on seeds that it has not seen")
    if json:
        print_json({**counts, "then": [f"{name}{SELECTED}" for name in searches]})


def _play(
    parts: Sequence[PaperSuite], directory: Path, trials: int | None, settings: dict[str, Any]
) -> bool:
    """Sweep one suite after the other; what a search in this store has chosen stands instead of
    what comes along."""
    complete = True
    for number, one in enumerate(parts, 1):
        say(f"[bold]{one.name}[/] ({number} of {len(parts)})")
        searched = one.name.removesuffix(SELECTED) if one.name.endswith(SELECTED) else ""
        own = _chosen(searched, directory, trials) if searched else None
        complete &= _succeeds(sweep, own or one.written(directory), directory, settings)
    return complete


def _search(
    looked_for: PaperSuite,
    directory: Path,
    trials: int | None,
    settings: dict[str, Any],
    *,
    exhaustive: bool,
) -> bool:
    """Search the grids of a suite, then report what was chosen on seeds that it never saw."""
    say(f"[bold]{looked_for.name}[/]: searching")
    command = sweep if exhaustive else halve
    complete = _succeeds(command, looked_for.written(directory), directory, settings)
    chosen = _chosen(looked_for.name, directory, trials)
    return complete and chosen is not None and _succeeds(sweep, chosen, directory, settings)


def _chosen(search: str, directory: Path, trials: int | None) -> str | None:
    """The suite of what a search in this store has chosen, for reporting; None where it has not
    come so far."""
    known = read_plans(Store(directory)) if directory.is_dir() else []
    if not any(searched_suite(plan.suite) == search for plan in known):
        return None
    path = directory / "suites" / f"{search}{SELECTED}.toml"
    try:
        select(directory, search, path, report_seeds(search, trials), partial=True)
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
    parts: Sequence[PaperSuite], directory: Path, *, retry_failed: bool, partial: bool
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
