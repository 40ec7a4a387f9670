"""What a running sweep shows: bars for each problem in a terminal, a line now and then in a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tidepull.cli.console import err
from tidepull.experiments.runner import Progress
from tidepull.reporting.tables import duration

LINE_EVERY = 15.0
_MOST_PROBLEMS = 14


class Display:
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
            table.add_row(Text(problem), bar, Text(f"{finished}/{counts['total']}", justify="right"), failed)
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
        """In a pipe: print a line if the last one is old enough."""
        if not err.is_terminal and time.monotonic() - self._last_line >= LINE_EVERY:
            self._last_line = time.monotonic()
            err.print(self.line(), soft_wrap=True)


@contextmanager
def shown(display: Display, *, quiet: bool) -> Iterator[None]:
    """Keep the display alive inside the block."""
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
