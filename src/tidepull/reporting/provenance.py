"""Which versions and machines the results come from, said in a few lines."""

from __future__ import annotations

import platform
import socket
from collections.abc import Iterator
from pathlib import Path

from tidepull.experiments.running.executors import usable_cpus
from tidepull.experiments.suites.seeds_text import seeds_text
from tidepull.reporting.duration import duration
from tidepull.reporting.frame import Frame


def provenance(frame: Frame, *, names: bool = True) -> Iterator[str]:
    """Versions, hardware, seeds and time; `names` of machines can be left out."""
    for versions in frame.versions:
        yield "Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items())
    here = socket.gethostname()
    for kind in frame.hardware:
        yield f"Hardware: {kind}"
    if frame.machines == (here,):
        yield f"Hardware: {hardware()}"
    elif frame.machines:
        which = ", ".join(frame.machines) if names else f"{len(frame.machines)}"
        yield f"Machines: {which} (this page was made on {hardware()})"
    for suite in dict.fromkeys(study.suite for study in frame.studies):
        groups = [g for study in frame.studies if study.suite == suite for g in study.groups]
        seeds = seeds_text(row.seed for group in groups for row in group.rows)
        yield f"Seeds of {suite or 'trials outside any suite'}: {seeds}"
    yield f"CPU time: {duration(frame.cpu_seconds)} for {frame.trials:,} trials"


def hardware() -> str:
    """The processor of this machine and how much of it may be used."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model
        )
    except OSError:
        pass
    return f"{model}, {usable_cpus()} cores"
