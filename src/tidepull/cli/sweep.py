"""`tidepull sweep SUITE`: run what is missing of a suite into a store; the same command
continues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape
from typer import Argument, Exit

from tidepull.cli import options
from tidepull.cli.console import INTERRUPTED, print_json, say
from tidepull.cli.trials import check_address, executor_for, ready, run_work, time_left
from tidepull.experiments.archive import known_rewards
from tidepull.experiments.executors import LocalProcesses
from tidepull.experiments.runner import Progress, Work, estimator, prepare, start, without_known
from tidepull.experiments.store import Store
from tidepull.experiments.suite import load_suite
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
