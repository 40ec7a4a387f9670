"""A worker process: it reads specs from its standard input, plays them, and writes results to its output.

A plain subprocess and not `multiprocessing`: it never imports the caller's main script, so it works from
notebooks and unguarded scripts, and its environment limits BLAS before numpy is loaded.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue

from tidepull._internal.clusters import ONE_THREAD
from tidepull._internal.threads import one_blas_thread
from tidepull.experiments.attempt import Result, attempt
from tidepull.experiments.suites.spec import TrialSpec

_START = "import sys; sys.path[:] = {path!r}; from tidepull.experiments.running.worker import main; main()"


class WorkerDiedError(Exception):
    """A worker ended without an answer: killed, out of memory, or crashed in native code."""


class WorkerProcess:
    """The driver's end of one worker; `assigned` are the specs it still owes, the first being played."""

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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the driver decides.
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
