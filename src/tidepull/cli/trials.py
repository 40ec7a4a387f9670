"""What commands that run trials share: where trials run, whether they can, and how their progress
is shown."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tidepull.cli.console import err, say
from tidepull.errors import DataError, ParameterError, StoreError
from tidepull.experiments.executors import InProcess, LocalProcesses, RayCluster
from tidepull.experiments.spec import TrialSpec, lacking
from tidepull.protocols import Executor
from tidepull.reporting.tables import duration

if TYPE_CHECKING:
    from tidepull.experiments.runner import Progress, Work
    from tidepull.experiments.store import Store

_LINE_EVERY_SECONDS = 15.0
_MOST_PROBLEMS = 14
_MOST_FAILURES = 20


def check_address(on: str, address: str | None) -> None:
    """Refuse `--address` without `--on ray`."""
    if address is not None and on != "ray":
        raise ParameterError(
            f"--address is for --on ray, and trials would run on '{on}'; add --on ray or leave it "
            "out"
        )


@contextmanager
def executor_for(
    on: str, workers: int | None, address: str | None, modules: tuple[str, ...] = ()
) -> Iterator[tuple[Executor, int]]:
    """Yield the executor and how many trials it runs at once; its processes end with the block."""
    if on == "here":
        yield InProcess(), 1
    elif on == "ray":
        with RayCluster(address or "auto", modules=modules) as cluster:
            yield cluster, cluster.workers
    else:
        with LocalProcesses(workers) as local:
            yield local, local.workers


def ready(specs: Sequence[TrialSpec], *, partial: bool | None = None) -> tuple[TrialSpec, ...]:
    """Return the specs if all can run here; with `partial`, those that can (None: there is no such
    option)."""
    lost_by_reason = lacking(specs)
    if not lost_by_reason:
        return tuple(specs)
    if not partial:
        raise DataError(_lacking_sentence(lost_by_reason, len(specs), hint=partial is not None))
    for reason, lost in lost_by_reason.items():
        say(
            f"[yellow]left out: {len(lost):,} trials[/] (such as {escape(lost[0].id)}): "
            f"{escape(reason)}"
        )
    unable = {spec.hash for lost in lost_by_reason.values() for spec in lost}
    return tuple(spec for spec in specs if spec.hash not in unable)


def _lacking_sentence(reasons: Mapping[str, Sequence[TrialSpec]], total: int, *, hint: bool) -> str:
    count = sum(len(lost) for lost in reasons.values())
    many = f"{count:,} of {total:,} trials" if total > 1 else "this trial"
    others = "; --partial runs the others" if hint and count < total else ""
    return f"{many} cannot run here: {'; '.join(reasons)}{others}"


class ProgressDisplay:
    """Draws a `Progress`; `workers` is how many trials run at once, for the time left."""

    def __init__(self, progress: Progress, workers: int) -> None:
        self._progress = progress
        self._workers = workers
        self._last_line = time.monotonic()

    def __rich__(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        for problem, counts in list(self._progress.by_problem.items())[:_MOST_PROBLEMS]:
            finished = counts["done"] + counts["failed"]
            failed = Text(f"{counts['failed']} failed", "red") if counts["failed"] else Text("")
            bar = ProgressBar(total=counts["total"], completed=finished, width=36)
            table.add_row(
                Text(problem), bar, Text(f"{finished}/{counts['total']}", justify="right"), failed
            )
        hidden = len(self._progress.by_problem) - _MOST_PROBLEMS
        if hidden > 0:
            table.add_row(Text(f"and {hidden} more problems", "dim"))
        return Group(table, Text(self.line()))

    def line(self) -> str:
        """The whole state in one line."""
        progress = self._progress
        parts = [f"{progress.done:,} of {progress.total:,} done"]
        if progress.failed:
            parts.append(f"{progress.failed} failed")
        if progress.left:
            parts.append(f"{min(progress.running, self._workers)} running")
            parts.append(time_left(progress, self._workers))
        parts.append(f"{progress.cpu_seconds / 3600:.2f} CPU hours")
        return ", ".join(parts)

    def tick(self) -> None:
        """In a pipe, print a line if the last one is old enough."""
        if not err.is_terminal and time.monotonic() - self._last_line >= _LINE_EVERY_SECONDS:
            self._last_line = time.monotonic()
            err.print(self.line(), soft_wrap=True)


@contextmanager
def shown(display: ProgressDisplay, *, quiet: bool) -> Iterator[None]:
    """Keep the display alive inside the block, in a terminal."""
    if quiet or not err.is_terminal:
        yield
        return
    with Live(display, console=err, refresh_per_second=4, transient=True):
        yield


def time_left(progress: Progress, workers: int) -> str:
    """`about 12 min left`, or why that is not known yet."""
    seconds, unknown = progress.estimator.seconds_left()
    if unknown and not seconds:
        return "time left not known yet"
    return f"about {duration(seconds / workers)} left" + (
        f" plus {unknown:,} of unknown length" if unknown else ""
    )


def run_work(
    work: Work,
    store: Store,
    executor: Executor,
    progress: Progress,
    width: int,
    *,
    quiet: bool,
    until: float = math.inf,
) -> bool:
    """Run the work, `width` trials at once, and show its progress; return True when it was
    interrupted."""
    from tidepull.experiments.rows import compact
    from tidepull.experiments.runner import sweep

    display = ProgressDisplay(progress, width)
    failures: list[str] = []
    try:
        # Ray prints about its machines to the standard output, which is for results alone.
        with redirect_stdout(sys.stderr), shown(display, quiet=quiet):
            for result in sweep(work, store, executor, progress, until=until):
                if result.trial is None and len(failures) < _MOST_FAILURES:
                    reason = result.mistake or result.error.strip().splitlines()[-1]
                    failures.append(f"{result.spec.id}: {reason}")
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
