"""`tidepull sweep SUITE`: run what is missing of a suite into a store; the same command continues."""

from __future__ import annotations

import math
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import typer
from rich.markup import escape

from tidepull.cli.console import INTERRUPTED, print_json, say
from tidepull.cli.executor import check_address, executor_for
from tidepull.cli.options import KNOWN
from tidepull.cli.readiness import PARTIAL, ready
from tidepull.cli.sweep_display import Display, shown, time_left
from tidepull.errors import StoreError
from tidepull.experiments.archive import known_rewards
from tidepull.experiments.executors import LocalProcesses
from tidepull.experiments.rows import compact
from tidepull.experiments.runner import Progress, Work, estimator, prepare, start, without_known
from tidepull.experiments.runner import sweep as run_sweep
from tidepull.experiments.store import Store
from tidepull.experiments.suite import load_suite
from tidepull.protocols import Executor
from tidepull.reporting.tables import duration

_MOST_NAMED = 10


def sweep(
    suite: str = typer.Argument(help="A TOML file, or the name of a suite that comes with tidepull."),
    out: Path = typer.Option(None, help="The store (out/NAME if not given)."),
    workers: int = typer.Option(None, help="Processes (one for each core if not given)."),
    only: list[str] = typer.Option(
        [], metavar="PATTERN", help="Only trials whose id fits, such as '*/rnlps*/*'; may be given again."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Count and estimate; run nothing."),
    known: list[Path] = typer.Option([], help=KNOWN),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Run failed trials again too."),
    partial: bool = typer.Option(False, "--partial", help=PARTIAL),
    on: Literal["local", "here", "ray"] = typer.Option(
        "local", help="Local processes, this process, or a Ray cluster."
    ),
    address: str = typer.Option(None, help="Of the Ray cluster (the one that runs on this machine)."),
    json: bool = typer.Option(False, "--json", help="Only a JSON summary on stdout."),
) -> None:
    """Run a suite's missing trials; interrupt at any time, the same command continues."""
    check_address(on, address)
    loaded = load_suite(suite)
    directory = out or Path("out") / loaded.name
    store = Store(directory)
    work = without_known(prepare(loaded, store, only=only, retry_failed=retry_failed), known_rewards(known))
    announce(work, loaded.name, directory)
    if dry_run:
        able = ready(work.todo, partial=True)
        _estimate(replace(work, todo=able), store, workers, json=json, unable=len(work.todo) - len(able))
        return
    work = replace(work, todo=ready(work.todo, partial=partial))
    Store.create(directory)
    with executor_for(on, workers, address, loaded.specs[0].modules) as (executor, width):
        progress = start(loaded, store, work)
        interrupted = run_shown(work, store, executor, progress, Display(progress, width), quiet=json)
    if json:
        print_json(_summary(loaded.name, directory, work, progress, interrupted))
    if interrupted or progress.failed or work.failed_before:
        raise typer.Exit(INTERRUPTED if interrupted else 1)


def run_shown(
    work: Work,
    store: Store,
    executor: Executor,
    progress: Progress,
    display: Display,
    *,
    quiet: bool,
    until: float = math.inf,
) -> bool:
    """Run the work and show how it goes; True when it was interrupted."""
    failures: list[str] = []
    try:
        # Ray prints about its machines to the standard output, which is for results alone.
        with redirect_stdout(sys.stderr), shown(display, quiet=quiet):
            for result in run_sweep(work, store, executor, progress, until=until):
                if result.trial is None:
                    failures.append(
                        f"{result.spec.id}: {result.mistake or result.error.strip().splitlines()[-1]}"
                    )
                    del failures[20:]
                display.tick()
        compact(store)
    except KeyboardInterrupt:
        say(f"stopped: {display.line()}; the same command continues")
        return True
    except StoreError as error:
        raise StoreError(f"{error} ({progress.done:,} trials of this run are kept)") from error
    where = escape(str(store.directory))
    say(f"{display.line() if progress.total else 'nothing to do'}; results in {where}")
    for failure in failures:
        say(f"[red]failed[/] {escape(failure)}")
    if progress.failed:
        say(f"tracebacks are in {store.directory / 'failed'}; --retry-failed runs them again")
    return False


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
            {**counts, "unable": unable, "failed_before": len(work.failed_before), "damaged": work.damaged}
            | {"seconds_left": seconds / width, "unknown": unknown, "workers": width}
        )
    elif work.todo:
        cpu = f" ({duration(seconds)} of CPU time)" if seconds else ""
        say(f"on {width} workers: {time_left(progress, width)}{cpu}")


def _summary(name: str, directory: Path, work: Work, progress: Progress, interrupted: bool) -> dict[str, Any]:
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
