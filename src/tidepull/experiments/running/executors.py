"""Where trials run: in this process, or in local worker processes. A cluster is in `ray_executor.py`.

An executor takes specs and yields a `Result` for each as it finishes, in any order. A trial that raises
becomes a result with its traceback; it never stops the others.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from multiprocessing.connection import wait
from typing import Self

from tidepull.errors import ParameterError
from tidepull.experiments.attempt import Result, attempt
from tidepull.experiments.running.worker import WorkerDiedError, WorkerProcess
from tidepull.experiments.suites.spec import TrialSpec

__all__ = ["InProcess", "LocalProcesses", "Result", "usable_cpus"]

QUICK = 0.2
"""Seconds; a worker whose last trial was quicker gets a second spec to wait in its queue."""


class InProcess:
    """One trial after another, here; for debugging and for very short trials."""

    def run(self, specs: Iterable[TrialSpec]) -> Iterator[Result]:
        """Yield results in the order of the specs."""
        return map(attempt, specs)


class LocalProcesses:
    """Worker processes on this machine, one BLAS thread each, at low priority.

    Inside `with`, workers live on from one `run` to the next; otherwise they end with it.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ParameterError(f"workers must be at least 1, got {workers}")
        self.workers = workers or usable_cpus()
        self._keep = False
        self._idle: list[WorkerProcess] = []

    def __enter__(self) -> Self:
        self._keep = True
        return self

    def __exit__(self, *_: object) -> None:
        self._keep = False
        while self._idle:
            self._idle.pop().kill()

    def run(self, specs: Iterable[TrialSpec]) -> Iterator[Result]:
        """Yield results as they finish; closing the iterator (or Ctrl-C) kills the workers at once."""
        todo = _Todo(specs)
        workers, self._idle = self._idle, []
        finished = False
        try:
            while len(workers) < self.workers and todo.longer_than(len(workers)):
                workers.append(WorkerProcess())
            for worker in workers:
                todo.feed(worker)
            while busy := {worker.results: worker for worker in workers if worker.assigned}:
                for ready in wait(list(busy)):
                    worker = busy[ready]  # type: ignore[index]
                    try:
                        result = worker.receive()
                    except WorkerDiedError as death:
                        result = Result(worker.assigned.popleft(), None, str(death))
                        todo.give_back(worker.assigned)
                        workers.remove(worker)
                        worker.kill()
                        if todo:
                            workers.append(worker := WorkerProcess())
                    if todo:
                        todo.feed(worker, depth=2 if result.seconds < QUICK else 1)
                    yield result
            finished = True
        finally:
            if finished and self._keep:
                self._idle = workers
            else:
                for worker in workers:
                    worker.kill()


class _Todo:
    """The specs not handed out yet, read from their source only as workers ask for them."""

    def __init__(self, specs: Iterable[TrialSpec]) -> None:
        self._source = iter(specs)
        self._ahead: deque[TrialSpec] = deque()

    def __bool__(self) -> bool:
        return self.longer_than(0)

    def longer_than(self, count: int) -> bool:
        self._ahead.extend(islice(self._source, max(0, count + 1 - len(self._ahead))))
        return len(self._ahead) > count

    def feed(self, worker: WorkerProcess, depth: int = 1) -> None:
        while len(worker.assigned) < depth and self:
            worker.send(self._ahead.popleft())

    def give_back(self, specs: Iterable[TrialSpec]) -> None:
        self._ahead.extend(specs)


def usable_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
