"""How soon a process decides, what a warm agent takes of memory, and what an installation takes of
the disk.

    python -m research.benchmarks.start

A cold process finds a copy of the package that cannot be written, with bytecode and without
kernels, and no home: it decides in Python while a thread of its own compiles. A warm one finds the
kernels of this installation. Seconds on the clock, from the start of Python; the median of several
processes.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

from research.benchmarks.regret_rows import ROOT

PACKAGE = ROOT / "src" / "tidepull"
PLACES = ("TIDEPULL_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
STEPS = ("`import tidepull`", "`Agent.memory`", "first decision and its reward", "all of it")

_PLAY = """
import os, sys, time
begun = time.clock_gettime(time.CLOCK_BOOTTIME)
import tidepull
times = [time.clock_gettime(time.CLOCK_BOOTTIME)]
context = {"device": ["phone", "desktop"], "age": float, "basket": float, "member": bool, "country": ["de", "fr", "us"]}
agent = tidepull.Agent.memory(arms=list("abcde"), context=context, seed=0)
times.append(time.clock_gettime(time.CLOCK_BOOTTIME))
seen = {"device": "phone", "age": 30.0, "basket": 12.5, "member": True, "country": "de"}
agent.reward(agent.choose(seen).id, 1.0)
times.append(time.clock_gettime(time.CLOCK_BOOTTIME))
ticks = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
started = ticks / os.sysconf("SC_CLK_TCK")
print(*(after - before for before, after in zip([begun, *times], times)), times[-1] - started, flush=True)
os._exit(0)
"""

_OBEYING = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
if os.geteuid() == 0:
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
"""Runs a program that obeys the permissions of files even if root starts it."""


@dataclass(frozen=True)
class Started:
    """Seconds of each of `STEPS`."""

    cold: list[float]
    warm: list[float]


def measure(times: int) -> Started:
    """Both kinds of processes, in turns."""
    cold, warm = list[list[float]](), list[list[float]]()
    with _locked_copy() as (sources, home):
        for _ in range(times):
            cold.append(_played(sources, HOME=home))
            warm.append(_played(PACKAGE.parent))
    medians = [np.median(found, axis=0).tolist() for found in (cold, warm)]
    return Started(*medians)


def warm_agent_megabytes() -> float:
    """What `agent_memory` says, in a process of its own."""
    command = [sys.executable, "-m", "research.benchmarks.agent_memory"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return float(said.split()[0])


def installed_megabytes() -> float:
    """The files of a bare installation: this package, and all that it needs, without pip."""
    own = sum(path.stat().st_size for path in PACKAGE.rglob("*") if path.suffix == ".py")
    return (own + sum(_bytes_of(name) for name in _needed())) / 1e6


def _needed() -> set[str]:
    found, waiting = set[str](), ["tidepull"]
    while waiting:
        for line in metadata.requires(waiting.pop()) or ():
            name = re.split(r"[^\w.-]", line)[0].lower()
            if "extra ==" not in line and name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _bytes_of(distribution: str) -> int:
    """Of all its files that are there, but those that are no part of it, such as kernels."""
    paths = (file.locate() for file in metadata.files(distribution) or ())
    return sum(path.stat().st_size for path in map(Path, paths) if path.is_file())


@contextmanager
def _locked_copy() -> Iterator[tuple[Path, str]]:
    with tempfile.TemporaryDirectory() as folder:
        sources, home = Path(folder) / "sources", Path(folder) / "home"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PACKAGE, sources / "tidepull", ignore=ignored)
        compileall.compile_dir(sources, quiet=2)
        home.mkdir()
        folders = [home, sources, *(path for path in sources.rglob("*") if path.is_dir())]
        for path in folders:
            path.chmod(0o555)
        try:
            yield sources, str(home)
        finally:
            for path in folders:
                path.chmod(0o755)


def _played(sources: Path, **given: str) -> list[float]:
    kept = {name: value for name, value in os.environ.items() if not given or name not in PLACES}
    environment = {**kept, "PYTHONPATH": str(sources), **given}
    command = [sys.executable, "-c", *([_OBEYING] if given else []), _PLAY]
    done = subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, check=True
    )
    return [float(number) for number in done.stdout.split()]


def main() -> None:
    found = measure(3)
    for step, cold, warm in zip(STEPS, found.cold, found.warm, strict=True):
        print(f"{step}: {cold:.2f} s cold, {warm:.2f} s warm")
    print(f"a warm agent: {warm_agent_megabytes():.0f} MB")
    print(f"a bare installation: {installed_megabytes():.0f} MB")


if __name__ == "__main__":
    main()
