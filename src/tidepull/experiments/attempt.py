"""Running one spec, whatever happens: a `Result` holds the trial, or the traceback of its failure."""

from __future__ import annotations

import socket
import time
import traceback
from dataclasses import dataclass

from tidepull.errors import TidepullError
from tidepull.experiments.suites.spec import TrialSpec, run_spec
from tidepull.experiments.trial import Trial


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What became of one spec; `seconds` and `cpu_seconds` include building problem and policy.

    `mistake` is the one sentence of a failure that tidepull raised on purpose.
    """

    spec: TrialSpec
    trial: Trial | None
    error: str = ""
    mistake: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    machine: str = ""


def attempt(spec: TrialSpec) -> Result:
    """Run one spec here; an exception becomes part of the result."""
    started, cpu_started = time.perf_counter(), time.process_time()
    trial, error, mistake = None, "", ""
    try:
        trial = run_spec(spec)
    except Exception as failure:
        error = traceback.format_exc()
        mistake = str(failure) if isinstance(failure, TidepullError) else ""
        if isinstance(failure, MemoryError):
            mistake = f"{spec.id} needs more memory than there is ({failure}): make it smaller"
    return Result(
        spec=spec,
        trial=trial,
        error=error,
        mistake=mistake,
        seconds=time.perf_counter() - started,
        cpu_seconds=time.process_time() - cpu_started,
        machine=socket.gethostname(),
    )
