"""Long work in slices: jobs that are due after certain numbers of rewards.

A job is a generator that yields what each piece of it cost, in steps, and returns its result. A
slice runs pieces of the first job of the queue until `STEPS` steps are spent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias, TypeVar

from tidepull.errors import SnapshotError

T = TypeVar("T")
Job: TypeAlias = Generator[int, None, T]

STEPS = 100_000
"""Steps of a slice (a step is a round of a scan, or a product of a replay): one to two tenths of a
millisecond on one core, since calls pay for slices where no other thread does."""
_NAMES = {"rebuild", "train", "search", "record"}


def finish(job: Job[T]) -> T:
    """Run a whole job."""
    return finish_counted(job)[0]


def finish_counted(job: Job[T]) -> tuple[T, int]:
    """Run a whole job; its result and its steps."""
    spent = 0
    while True:
        try:
            spent += next(job)
        except StopIteration as end:
            return end.value, spent


def ranges(count: int, steps_each: int) -> Iterator[tuple[int, int, int]]:
    """Ranges (start, stop) that cover `count` items of `steps_each` steps, none longer than a
    slice, and the steps of each range."""
    size = max(1, STEPS // max(steps_each, 1))
    for start in range(0, count, size):
        stop = min(start + size, count)
        yield start, stop, (stop - start) * steps_each


class JobQueue:
    """Jobs by name and the number of rewards after which they became due.

    Parameters
    ----------
    start : callable
        Starts the job of a name that became due after a number of rewards.
    overhead : int, default: 0
        Steps that every piece of a job costs beyond those that it says.
    """

    def __init__(self, start: Callable[[str, int], Job[None]], overhead: int = 0) -> None:
        self._start, self._overhead = start, overhead
        self._jobs: list[tuple[str, int]] = []
        self._running: Job[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._jobs)

    @property
    def under_way(self) -> bool:
        """Whether a job has begun."""
        return self._running is not None

    def put(self, name: str, count: int) -> None:
        """Enqueue a job unless one of that name is already waiting."""
        waiting = self._jobs[1:] if self._running is not None else self._jobs
        if name not in (other for other, _ in waiting):
            self._jobs.append((name, count))

    def slice(self) -> bool:
        """Do a slice of the first job; whether anything is left."""
        if not self._jobs:
            return False
        if self._running is None:
            self._running = self._start(*self._jobs[0])
        left = STEPS
        try:
            while left > 0:
                left -= next(self._running) + self._overhead
        except StopIteration:
            self._running = None
            del self._jobs[0]
        return bool(self._jobs)

    def snapshot(self) -> list[list[str | int]]:
        """Jobs that are due; a running job starts again."""
        if self._running is not None:
            self._running.close()
            self._running = None
        return [list(job) for job in self._jobs]

    def restore(self, jobs: list[list[str | int]]) -> None:
        """Continue from a snapshot."""
        self._jobs = [(str(name), int(count)) for name, count in jobs]
        if not {name for name, _ in self._jobs} <= _NAMES:
            raise SnapshotError("the snapshot has a job that tide does not know")
        self._running = None


def search_is_due(count: int) -> bool:
    """Whether a search is due: at 24 and 32, then every 32 rewards to 512, every 128 to 1024, every
    256 to 4096, every 512 from then on."""
    interval = 32 if count <= 512 else 128 if count <= 1024 else 256 if count <= 4096 else 512
    return count == 24 or (count >= 32 and count % interval == 0)


def is_power_of_two(count: int) -> bool:
    """1, 2, 4, 8, ..."""
    return count & (count - 1) == 0
