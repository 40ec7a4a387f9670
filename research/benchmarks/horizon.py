"""Whole trials in fresh processes (Linux): cost against the horizon, peak memory, cold and warm
starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from research.benchmarks.regret_rows import ROOT

HORIZONS = (512, 1024, 2048, 4096, 8192, 16384)
AUTHORS_SECONDS = 1073.0
"""The authors' implementation: `sinusoidal-bernoulli`, 4,096 rounds, one core of an AVX2 EPYC."""

_TRIAL = """
import sys, time
from tidepull.experiments.loop import run_trial
policy, horizon = sys.argv[1], int(sys.argv[2])
run_trial("sinusoidal-bernoulli", policy, horizon=64)
cpu = time.process_time()
trial = run_trial("sinusoidal-bernoulli", policy, horizon=horizon, seed=0)
cpu = time.process_time() - cpu
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(cpu, int(peak) / 1024, trial.regret[-1])
"""

_START = """
import resource, time
from tidepull import warm_up
compiled = warm_up()
others = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.process_time() + others.ru_utime + others.ru_stime, int(compiled))
"""


@dataclass(frozen=True)
class TrialRow:
    """One trial: seconds of the processor, peak memory of its process, regret."""

    policy: str
    horizon: int
    seconds: float
    megabytes: float
    regret: float


def measure(policy: str, horizon: int) -> TrialRow:
    """A trial in a process of its own; importing and loading kernels are not counted."""
    numbers = _run(_TRIAL, policy, str(horizon))
    return TrialRow(policy, horizon, *numbers)


def starts() -> tuple[float, float]:
    """Seconds from the start of Python to every kernel ready: with an empty cache on disk, with a
    full one."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", f"{folder}/src", ignore=shutil.ignore_patterns("__pycache__"))
        environment = {"PYTHONPATH": f"{folder}/src", "TIDEPULL_CACHE": f"{folder}/kernels"}
        (cold, compiled), (warm, again) = (_run(_START, **environment) for _ in range(2))
    if not compiled or again:
        raise RuntimeError("the kernels were not compiled once and then found on disk")
    return cold, warm


def _run(script: str, *arguments: str, **given: str) -> list[float]:
    environment = {**os.environ, **given}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]
