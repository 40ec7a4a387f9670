"""`tidepull sweep SUITE`: run what is missing of a suite into a store; the same command
continues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.markup import escape
from typer import Argument, Exit, Option

from tidepull.cli.console import INTERRUPTED, print_json, say
from tidepull.cli.options import (
    ADDRESS,
    DRY_RUN,
    JSON,
    KNOWN,
    ON,
    ONLY,
    PARTIAL,
    RETRY_FAILED,
    WORKERS,
    Place,
)
from tidepull.cli.trials import check_address, executor_for, ready, run_work, time_left
from tidepull.experiments.archive import known_rewards
from tidepull.experiments.executors import LocalProcesses
from tidepull.experiments.runner import Progress, Work, estimator, prepare, start, without_known
from tidepull.experiments.store import Store
from tidepull.experiments.suite import load_suite
from tidepull.reporting.tables import duration

_MOST_NAMED = 10


def sweep(
    suite: str = Argument(help="TOML file, or name of a suite of tidepull."),
    out: Path = Option(None, help="Store to write to. Default: out/NAME."),
    workers: int = WORKERS,
    only: list[str] = ONLY,
    dry_run: bool = DRY_RUN,
    known: list[Path] = KNOWN,
    retry_failed: bool = RETRY_FAILED,
    partial: bool = PARTIAL,
    on: Place = ON,
    address: str = ADDRESS,
    json: bool = JSON,
) -> None:
    """Run a suite's missing trials; interrupt at any time, the same command continues."""
    check_address(on, address)
    loaded = load_suite(suite)
    directory = out or Path("out") / loaded.name
    store = Store(directory)
    work = without_known(
        prepare(loaded, store, only=only, retry_failed=retry_failed), known_rewards(known)
    )
    announce(work, loaded.name, directory)
    if dry_run:
        able = ready(work.todo, partial=True)
        _estimate(
            replace(work, todo=able), store, workers, json=json, unable=len(work.todo) - len(able)
        )
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


def _estimate(work: Work, store: Store, workers: int | None, *, json: bool, unable: int) -> None:
    width = LocalProcesses(workers).workers
    progress = Progress(total=len(work.todo), estimator=estimator(store, work))
    seconds, unknown = progress.estimator.seconds_left()
    if json:
        counts = {"total": work.total, "done": work.done, "todo": len(work.todo)}
        print_json(
            {
                **counts,
                "unable": unable,
                "failed_before": len(work.failed_before),
                "damaged": work.damaged,
            }
            | {"seconds_left": seconds / width, "unknown": unknown, "workers": width}
        )
    elif work.todo:
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
