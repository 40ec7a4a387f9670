"""Where trials run: in this process, or in local worker processes. A cluster is in `cluster.py`.

An executor takes specs and yields a `Result` for each as it finishes, in any order. A trial that
raises becomes a result with its traceback; it never stops the others.

A worker reads specs from its standard input, plays them, and writes results to its output. It is a
plain subprocess and not `multiprocessing`: it never imports the caller's main script, so it works
from notebooks and unguarded scripts, and its environment limits BLAS before numpy is loaded.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Self

from tidepull._internal.extras import ONE_THREAD
from tidepull._internal.system import one_blas_thread
from tidepull.errors import ParameterError
from tidepull.experiments.spec import Result, TrialSpec, attempt

_START = (
    "import sys; sys.path[:] = {path!r}; from tidepull.experiments.executors import main; main()"
)


class WorkerDiedError(Exception):
    """A worker ended without an answer: killed, out of memory, or crashed in native code."""


class WorkerProcess:
    """The driver's end of one worker; `assigned` are the specs it still owes, the first being
    played."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._specs = Connection(os.dup(self._process.stdin.fileno()), readable=False)
        self.results = Connection(os.dup(self._process.stdout.fileno()), writable=False)
        self._process.stdin.close()
        self._process.stdout.close()
        self.assigned: deque[TrialSpec] = deque()

    def send(self, spec: TrialSpec) -> None:
        """Add a spec to the worker's queue."""
        self.assigned.append(spec)
        with suppress(OSError):  # It has died; `receive` will say how.
            self._specs.send_bytes(pickle.dumps(spec))

    def receive(self) -> Result:
        """The next result, as soon as there is one."""
        try:
            result: Result = pickle.loads(self.results.recv_bytes())
        except (EOFError, OSError):
            code = self._process.wait()
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise WorkerDiedError(f"the worker process {how} while playing this trial") from None
        self.assigned.popleft()
        return result

    def kill(self) -> None:
        """End it now; a trial in flight is lost."""
        self._process.kill()
        self._process.wait()
        self._specs.close()
        self.results.close()


def main() -> None:
    """The worker's side."""
    # Ctrl-C reaches the whole group; the driver decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(10)
    results = Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # What a policy prints goes to the error output, not into the results.
    queue: SimpleQueue[TrialSpec] = SimpleQueue()
    threading.Thread(target=_read, args=(queue,), daemon=True).start()
    with one_blas_thread():
        while True:
            results.send_bytes(pickle.dumps(attempt(queue.get())))


def _read(queue: SimpleQueue[TrialSpec]) -> None:
    """Fill the queue; when the driver is gone, however it went, end at once."""
    specs = Connection(os.dup(0), writable=False)
    try:
        while True:
            queue.put(pickle.loads(specs.recv_bytes()))
    except (EOFError, OSError):
        os._exit(1)


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
        """Yield results as they finish; closing the iterator (or Ctrl-C) kills the workers at
        once."""
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
