"""Trials behind a table: run what is missing from a CSV file, summarise, and write the table into a
page."""

from __future__ import annotations

import csv
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numba
import numpy as np
import scipy

import tidepull
from tidepull.experiments.executors import LocalProcesses
from tidepull.experiments.spec import Result, TrialSpec, canonical

ROOT = Path(__file__).parents[2]
Key = tuple[str, str, str, int, int]


@dataclass(frozen=True)
class Row:
    """One trial; `name` is the variant's, `setting` its parameters as JSON."""

    problem: str
    name: str
    policy: str
    setting: str
    horizon: int
    seed: int
    regret: float
    realised_regret: float
    seconds: float
    failed_trainings: int

    @property
    def key(self) -> Key:
        """What was played."""
        return (self.problem, self.policy, self.setting, self.horizon, self.seed)


@dataclass(frozen=True)
class Summary:
    """Final regret over some trials; `std` is the sample standard deviation."""

    mean: float
    std: float
    worst: float
    n: int

    @property
    def standard_error(self) -> float:
        return self.std / float(np.sqrt(self.n))

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.std:.1f}"


def run_missing(
    specs: Sequence[TrialSpec],
    path: Path,
    jobs: int,
    *,
    fresh: bool = False,
    also: Iterable[Path] = (),
) -> list[Row]:
    """Rows of all specs, in their order; what the file or another one (`also`) has is not run
    again."""
    own = {row.key: row for row in _read(path)}
    known = {} if fresh else {row.key: row for file in also for row in _read(file)} | own
    todo = [spec for spec in specs if _key(spec) not in known]
    for done, result in enumerate(LocalProcesses(jobs).run(todo), start=1):
        row = _row(result)
        own[row.key] = known[row.key] = row
        _write(path, own.values())
        print(
            f"{done}/{len(todo)} {row.problem} {row.name} seed {row.seed}: {row.regret:.1f}",
            file=sys.stderr,
        )
    return [replace(known[_key(spec)], name=_name(spec)) for spec in specs]


def summary(rows: Iterable[Row], problem: str, name: str) -> Summary:
    """Final regret of one variant on one problem."""
    finals = np.array([row.regret for row in rows if (row.problem, row.name) == (problem, name)])
    return Summary(
        float(finals.mean()), float(finals.std(ddof=1)), float(finals.max()), len(finals)
    )


def provenance(command: str, rows: Sequence[Row], jobs: int) -> str:
    """Command, seeds, versions and hardware, in one sentence."""
    seeds = sorted({row.seed for row in rows})
    return (
        f"`{command}`: seeds {seeds[0]} to {seeds[-1]}; tidepull {tidepull.__version__}, numpy "
        f"{np.__version__}, "
        f"scipy {scipy.__version__}, numba {numba.__version__}, Python "
        f"{platform.python_version()}; "
        f"{_processor()}, {jobs} processes on {os.cpu_count()} cores."
    )


def write_between(page: Path, marker: str, text: str) -> None:
    """Replace what stands between the two comments of that marker."""
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    old = page.read_text()
    page.write_text(f"{old[: old.index(begin)]}{begin}\n{text}\n{old[old.index(end) :]}")


def _name(spec: TrialSpec) -> str:
    return spec.name or spec.policy


def _key(spec: TrialSpec) -> Key:
    return (
        spec.problem,
        spec.policy,
        canonical(dict(spec.policy_parameters)),
        spec.horizon,
        spec.seed,
    )


def _row(result: Result) -> Row:
    if result.trial is None:
        raise RuntimeError(result.error)
    spec, trial = result.spec, result.trial
    return Row(
        problem=spec.problem,
        name=_name(spec),
        policy=spec.policy,
        setting=canonical(dict(spec.policy_parameters)),
        horizon=spec.horizon,
        seed=spec.seed,
        regret=round(float(trial.regret[-1]), 4),
        realised_regret=round(float(trial.realised_regret[-1]), 4),
        seconds=round(trial.seconds, 2),
        failed_trainings=int(trial.diagnostics.get("failed_trainings", 0)),
    )


def _read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Row(
                problem=line["problem"],
                name=line["name"],
                policy=line["policy"],
                setting=line["setting"],
                horizon=int(line["horizon"]),
                seed=int(line["seed"]),
                regret=float(line["regret"]),
                realised_regret=float(line["realised_regret"]),
                seconds=float(line["seconds"]),
                failed_trainings=int(line["failed_trainings"]),
            )
            for line in csv.DictReader(file)
        ]


def _write(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in sorted(rows, key=lambda row: row.key))


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
