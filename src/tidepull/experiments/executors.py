"""Where trials run: in this process, in local worker processes, or on a Ray cluster.

An executor takes specs and yields a `Result` for each as it finishes, in any order. A trial that
raises becomes a result with its traceback; it never stops the others.

A worker reads specs from its standard input, plays them, and writes results to its output. It is a
plain subprocess and not `multiprocessing`: it never imports the caller's main script, so it works
from notebooks and unguarded scripts, and its environment limits BLAS before numpy is loaded.

On a cluster trials become tasks of one CPU each, batched when they are short; results come back to
the driver, which stores them. A task that is lost with its machine is sent out again, trial by
trial, and a trial fails only after it was lost `ATTEMPTS` times. A shipment carries the user's
module files and the problems' data files to the machines.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

import tidepull
from tidepull._internal.files import write_whole
from tidepull._internal.system import ONE_THREAD, connected, one_blas_thread
from tidepull.errors import InputError, ParameterError
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


__all__ = ["InProcess", "LocalProcesses", "RayCluster", "Result", "usable_cpus"]

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


@dataclass(frozen=True, slots=True)
class Shipment:
    """Files by name: data, and modules under the paths by which specs call them."""

    data: Mapping[str, bytes] = field(default_factory=dict)
    modules: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Names the folder into which it is unpacked."""
        total = sha256()
        for name, content in (*sorted(self.data.items()), *sorted(self.modules.items())):
            total.update(f"{name} {len(content)} ".encode() + content)
        return total.hexdigest()[:24]


def pack(modules: Iterable[str], data: Iterable[Path]) -> Shipment:
    """Read what is to travel; modules named by dots must be importable over there."""
    return Shipment(
        data={path.name: path.read_bytes() for path in data},
        modules={name: Path(name).read_bytes() for name in modules if name.endswith(".py")},
    )


def unpack(shipment: Shipment) -> dict[str, str]:
    """Put the files into a folder of this machine, point tidepull to them; returns the modules' new
    paths."""
    folder = Path(tempfile.gettempdir()) / f"tidepull-{os.getuid()}" / shipment.digest
    moved = {}
    for number, (name, content) in enumerate(sorted(shipment.modules.items())):
        path = folder / "modules" / str(number) / Path(name).name
        _put(path, content)
        moved[name] = str(path)
    for name, content in shipment.data.items():
        _put(folder / "tidepull" / name, content)
    if shipment.data:
        # Both places where problems look for data, so that no file of this machine is taken for the
        # sent one.
        os.environ["TIDEPULL_DATA"] = str(folder / "tidepull")
        os.environ["XDG_CACHE_HOME"] = str(folder)
    return moved


def relocated(spec: TrialSpec, moved: Mapping[str, str]) -> TrialSpec:
    """The spec with its module files where they were unpacked."""
    return replace(spec, modules=tuple(moved.get(name, name) for name in spec.modules))


def _put(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        write_whole(path, content)


ATTEMPTS = 3
TASK_SECONDS = 5.0
"""Short trials are batched into tasks of about this length, so that scheduling costs next to
nothing."""
LARGEST_BATCH = 64


class RayCluster:
    """The cluster at an address (`auto` finds the one that runs on this machine), left at the end
    of `with`.

    `modules` are your own modules that specs name; tidepull and they travel to the machines.
    """

    def __init__(self, address: str = "auto", *, modules: Sequence[str] = ()) -> None:
        self._ray = _connected(address, modules)
        self._task = self._ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(play)
        self._shipments: dict[tuple[Any, ...], Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()

    @property
    def workers(self) -> int:
        """CPUs of the cluster now; machines may come and go."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def run(self, specs: Iterable[TrialSpec]) -> Iterator[Result]:
        """Yield results as they come back; closing the iterator (or Ctrl-C) calls back what is
        out."""
        flow = Flow(specs)
        pending: dict[Any, list[TrialSpec]] = {}
        try:
            while True:
                while len(pending) < 2 * self.workers and (batch := flow.next_batch()):
                    pending[self._submit(batch)] = batch
                if not pending:
                    return
                ready, _ = self._ray.wait(list(pending), num_returns=1, timeout=1.0)
                for reference in ready:
                    yield from flow.collect(pending.pop(reference), self._fetch(reference))
        finally:
            for reference in pending:
                self._ray.cancel(reference, force=True)

    def _submit(self, batch: list[TrialSpec]) -> Any:
        key = modules, data = _files(batch[0])
        if key not in self._shipments:
            self._shipments[key] = self._ray.put(pack(modules, data))
        return self._task.remote(self._shipments[key], batch)

    def _fetch(self, reference: Any) -> list[Result] | Exception:
        try:
            results: list[Result] = self._ray.get(reference)
            return results
        except self._ray.exceptions.RayError as lost:
            return RuntimeError(str(lost))


def play(shipment: Shipment, batch: list[TrialSpec]) -> list[Result]:
    """What a worker does."""
    moved = unpack(shipment)
    return [replace(attempt(relocated(spec, moved)), spec=spec) for spec in batch]


class Flow(_Todo):
    """Specs on their way: in batches of alike length, again when they were lost."""

    def __init__(self, specs: Iterable[TrialSpec]) -> None:
        super().__init__(specs)
        self._again: deque[TrialSpec] = deque()
        self._lost: dict[str, int] = {}
        self._seconds = TASK_SECONDS

    def next_batch(self) -> list[TrialSpec]:
        """One spec that was lost before, or as many new ones as fill a task; empty when there are
        none."""
        if self._again:
            return [self._again.popleft()]
        size = min(LARGEST_BATCH, max(1, int(TASK_SECONDS / max(self._seconds, 1e-3))))
        batch: list[TrialSpec] = []
        files = _files(self._ahead[0]) if self else ()
        while len(batch) < size and self and _files(self._ahead[0]) == files:
            batch.append(self._ahead.popleft())
        return batch

    def collect(
        self, batch: list[TrialSpec], outcome: list[Result] | Exception
    ) -> Iterator[Result]:
        """The results of a batch; after a loss, its specs go out again or have failed for good."""
        if not isinstance(outcome, Exception):
            # The mean of recent trials, so that batches follow a suite's slow and quick parts.
            mean = sum(result.seconds for result in outcome) / len(outcome)
            self._seconds += 0.5 * (mean - self._seconds)
            yield from outcome
            return
        for spec in batch:
            self._lost[spec.hash] = self._lost.get(spec.hash, 0) + 1
            if self._lost[spec.hash] < ATTEMPTS:
                self._again.append(spec)
            else:
                reason = (str(outcome).strip() or type(outcome).__name__).splitlines()[0]
                yield Result(
                    spec, None, f"lost {ATTEMPTS} times on the cluster; the last time: {reason}"
                )


def _files(spec: TrialSpec) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """What must travel with a trial."""
    return spec.modules, spec.data_files


def _connected(address: str, modules: Sequence[str]) -> Any:
    packages = [
        Path(tidepull.__file__).parent,
        *(_package(name) for name in modules if not name.endswith(".py")),
    ]
    travels = {"py_modules": [str(package) for package in packages], "excludes": ["__pycache__"]}
    return connected(address, "running on a Ray cluster", travels)


def _package(name: str) -> Path:
    top = importlib.util.find_spec(name.partition(".")[0])
    if top is None or not top.submodule_search_locations:
        raise InputError(
            f"the module '{name}' cannot travel to a cluster; name its .py file instead"
        )
    return Path(next(iter(top.submodule_search_locations)))
