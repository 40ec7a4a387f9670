"""`tidepull sweep SUITE` runs what is missing of a suite, `tidepull search SUITE` halves its grids
successively; the same command continues."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape
from typer import Argument, Exit, Option

from tidepull.cli import options
from tidepull.cli.console import INTERRUPTED, print_json, print_table, say
from tidepull.cli.trials import check_address, executor_for, ready, run_work, time_left
from tidepull.experiments.archive import known_rewards
from tidepull.experiments.executors import LocalProcesses
from tidepull.experiments.grid import rungs_text
from tidepull.experiments.runner import Progress, Work, estimator, prepare, start, without_known
from tidepull.experiments.search import (
    Agreement,
    HalvingRun,
    agreements,
    halving_of,
    matching_suite,
    search_rule,
)
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite, load_suite
from tidepull.reporting.tables import duration

_MOST_NAMED = 10


def sweep(
    suite: Annotated[str, Argument(help="TOML file, or name of a suite of tidepull.")],
    out: options.Out = None,
    workers: options.Workers = None,
    only: options.Only = None,
    dry_run: options.DryRun = False,
    known: options.Known = None,
    retry_failed: options.RetryFailed = False,
    partial: options.Partial = False,
    on: options.On = "local",
    address: options.Address = None,
    json: options.Json = False,
) -> None:
    """Run a suite's missing trials; interrupt at any time, the same command continues."""
    check_address(on, address)
    loaded = load_suite(suite)
    directory = out or Path("out") / loaded.name
    store = Store(directory)
    work = prepare(loaded, store, only=only or (), retry_failed=retry_failed)
    work = without_known(work, known_rewards(known or ()))
    announce(work, loaded.name, directory)
    if dry_run:
        _estimate(work, store, workers, json=json)
        return
    work = replace(work, todo=ready(work.todo, partial=partial))
    Store.create(directory)
    with executor_for(on, workers, address, loaded.specs[0].modules) as (executor, width):
        progress = start(loaded, store, work)
        interrupted = run_work(work, store, executor, progress, width, quiet=json)
    if json:
        print_json(_summary(loaded.name, directory, work, progress, interrupted))
    if interrupted or progress.failed or work.failed_before:
        raise Exit(INTERRUPTED if interrupted else 1)


def announce(work: Work, name: str, directory: Path) -> None:
    """Say what is done, to do, damaged and failed."""
    where = escape(str(directory))
    say(f"{name}: {work.total:,} trials, {work.done:,} done, {len(work.todo):,} to do, in {where}")
    for id, fault in list(work.damaged.items())[:_MOST_NAMED]:
        say(f"[yellow]damaged, will be run again:[/] {escape(f'{id} ({fault})')}")
    if len(work.damaged) > _MOST_NAMED:
        say(f"[yellow]and {len(work.damaged) - _MOST_NAMED:,} more damaged ones[/]")
    if work.failed_before:
        say(f"[yellow]{len(work.failed_before)} failed earlier; --retry-failed runs them again[/]")


def _estimate(work: Work, store: Store, workers: int | None, *, json: bool) -> None:
    able = ready(work.todo, partial=True)
    width, unable = LocalProcesses(workers).workers, len(work.todo) - len(able)
    work = replace(work, todo=able)
    progress = Progress(total=len(able), estimator=estimator(store, work))
    seconds, unknown = progress.estimator.seconds_left()
    if json:
        counts = {"total": work.total, "done": work.done, "todo": len(able), "unable": unable}
        faults = {"failed_before": len(work.failed_before), "damaged": work.damaged}
        left = {"seconds_left": seconds / width, "unknown": unknown, "workers": width}
        print_json({**counts, **faults, **left})
    elif able:
        cpu = f" ({duration(seconds)} of CPU time)" if seconds else ""
        say(f"on {width} workers: {time_left(progress, width)}{cpu}")


def _summary(
    name: str, directory: Path, work: Work, progress: Progress, interrupted: bool
) -> dict[str, Any]:
    return {
        "suite": name,
        "out": str(directory),
        "total": work.total,
        "done": work.done + progress.done,
        "ran": progress.done,
        "failed": progress.failed + len(work.failed_before),
        "damaged": work.damaged,
        "interrupted": interrupted,
        "cpu_hours": round(progress.cpu_seconds / 3600, 4),
    }


_RUNGS = "Shares of the horizon and numbers of seeds, such as 1/4:1,1/2:1,1. Default: the suite's."


def search(
    suite: Annotated[str, Argument(help="TOML file with grids, or name of a suite of tidepull.")],
    eta: Annotated[
        int | None,
        Option(help="Keep 1/N of the settings at each rung. Default: the suite's value, else 4."),
    ] = None,
    rungs: Annotated[str | None, Option(metavar="SHARE[:SEEDS],...", help=_RUNGS)] = None,
    budget: Annotated[
        str | None, Option(help="Start no trial after this time: 90s, 30m, 4h. Default: none.")
    ] = None,
    known: options.Known = None,
    out: options.Out = None,
    workers: options.Workers = None,
    only: options.Only = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Count the trials of each rung; run nothing.")
    ] = False,
    retry_failed: options.RetryFailed = False,
    partial: options.Partial = False,
    on: options.On = "local",
    address: options.Address = None,
    json: options.Json = False,
) -> None:
    """Search a suite's grids by successive halving: short trials for all settings, long ones for
    the best."""
    check_address(on, address)
    until = time.monotonic() + options.parse_budget(budget) if budget else float("inf")
    loaded = matching_suite(load_suite(suite), only or ())
    rule = search_rule(loaded, eta, rungs)
    loaded = replace(loaded, specs=ready(loaded.specs, partial=partial))
    store = Store(out or Path("out") / loaded.name)
    run = HalvingRun(loaded, halving_of(loaded, rule), store, known_rewards(known or ()))
    if dry_run:
        _describe(run, json=json)
        return
    Store.create(store.directory)
    with executor_for(on, workers, address, loaded.specs[0].modules) as (executor, width):

        def begin(rung: Suite) -> tuple[Work, Progress]:
            work = without_known(prepare(rung, store, retry_failed=retry_failed), run.known)
            announce(work, rung.name, store.directory)
            return work, start(rung, store, work)

        def play(work: Work, progress: Progress) -> bool:
            place = work, store, executor, progress, width
            return bool(work.todo) and run_work(*place, quiet=json, until=until)

        run.run(begin, play)
    _report(run, loaded.name, json=json)


def _describe(run: HalvingRun, *, json: bool) -> None:
    lines = run.describe()
    if json:
        print_json(lines)
        return
    for line in lines:
        waiting = ", ".join(line["waiting"])
        say(
            f"rung {line['rung']}, {line['share']} of the horizon: {line['trials']:,} trials, "
            f"{line['todo']:,} to do"
            + (f"; {waiting} when the rung before is played" if waiting else "")
        )


def _report(run: HalvingRun, suite: str, *, json: bool) -> None:
    ranks = agreements(run.halving.standings(run.rewards()))
    if json:
        rule = run.halving.rule
        print_json(
            {
                "suite": suite,
                "out": run.store.directory,
                "rule": rungs_text(rule.rungs),
                "eta": rule.eta,
                "complete": run.complete,
                "interrupted": run.interrupted,
                "rungs": run.lines,
                "cpu_hours": round(run.cpu_seconds / 3600, 4),
                "agreement": [_agreement_line(one) for one in ranks],
            }
        )
    else:
        _show_agreement(ranks)
        if run.complete:
            say(f"next: tidepull select {run.store.directory} --suite {suite}")
        elif not run.interrupted:
            left = run.lines[-1]["left"]
            say(
                f"the budget is used up: {left:,} trials of this rung are left; the same command "
                "continues"
            )
    if run.interrupted or run.failed:
        raise Exit(INTERRUPTED if run.interrupted else 1)


def _agreement_line(one: Agreement) -> dict[str, Any]:
    rungs, correlation = [one.first + 1, one.second + 1], round(one.correlation, 4)
    ranked = {"rungs": rungs, "settings": one.settings, "correlation": correlation}
    return {"problem": one.problem, "policy": one.name, **ranked}


def _show_agreement(ranks: Sequence[Agreement]) -> None:
    if ranks:
        print_table(
            "How short trials rank long ones (Spearman's correlation over settings that played "
            "both)",
            ["problem", "policy", "rungs", "settings", "correlation"],
            [
                [
                    a.problem,
                    a.name,
                    f"{a.first + 1} and {a.second + 1}",
                    str(a.settings),
                    f"{a.correlation:.2f}",
                ]
                for a in ranks
            ],
            right=(3, 4),
        )
