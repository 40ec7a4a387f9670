"""Play `random` on every problem and hold its regret against the analytic value.

python -m research.benchmarks.random_regret            check, and print the table
python -m research.benchmarks.random_regret --write    also put it into research/lab/problems.md

Exit code 1 when a problem differs by more than four standard errors.
"""

from __future__ import annotations

import argparse
import math
import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import numpy as np

import tidepull
from tidepull.errors import DataError
from tidepull.experiments.loop import run_trial
from tidepull.problems import build_problem, problems

OTHERS = ("random-world", "from-log")  # every number is another world, and so is every log
PAGE = Path(__file__).parents[2] / "research" / "lab" / "problems.md"
BEGIN, END = "<!-- random-regret: begin -->", "<!-- random-regret: end -->"
LIMIT = 4.0


class KnowsRandomRegret(Protocol):
    def random_regret(self, horizon: int) -> float: ...


@dataclass(frozen=True)
class Row:
    id: str
    remark: str
    horizon: int
    analytic: float
    measured: float
    standard_error: float

    @property
    def deviation(self) -> float:
        return (self.measured - self.analytic) / self.standard_error


def measure(id: str, horizon: int, seeds: Iterable[int]) -> Row:
    analytic, measured, remark = [], [], ""
    for seed in seeds:
        world = cast(KnowsRandomRegret, build_problem(id, seed=seed))
        analytic.append(world.random_regret(horizon))
        trial = run_trial(id, "random", horizon=horizon, seed=seed)
        measured.append(float(trial.regret[-1]))
        remark = trial.remark
    differences = np.subtract(measured, analytic)
    error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    return Row(id, remark, horizon, float(np.mean(analytic)), float(np.mean(measured)), error)


def kept(id: str) -> list[str]:
    """The line of the page for a problem whose data are not here."""
    print(f"{id}: its data are not here, its row stays as it is", file=sys.stderr)
    return [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{id}`")]


def table(rows: list[Row | str], n_seeds: int) -> str:
    versions = f"tidepull {tidepull.__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    lines = [
        f"`python -m research.benchmarks.random_regret --write`, seeds 0 to {n_seeds - 1}, "
        f"{versions}, "
        f"{platform.system()} on {platform.machine()}.",
        "",
        "| problem | rounds | analytic | measured | standard error | difference in standard errors "
        "|",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        if isinstance(row, str):
            lines.append(row)
            continue
        name = f"`{row.id}`" + (f" ({row.remark})" if row.remark else "")
        measured = f"{row.measured:.1f} | {row.standard_error:.1f}"
        lines.append(
            f"| {name} | {row.horizon:,} | {row.analytic:.2f} | {measured} | {row.deviation:+.1f} |"
        )
    return "\n".join(lines)


def write(text: str) -> None:
    page = PAGE.read_text()
    before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
    PAGE.write_text(f"{before}\n{text}\n{after}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows: list[Row | str] = []
    for entry in problems:
        if entry.id not in OTHERS:
            try:
                rows.append(measure(entry.id, entry.horizon, range(options.seeds)))
            except DataError:
                rows += kept(entry.id)
    text = table(rows, options.seeds)
    print(text)
    if options.write:
        write(text)
    measured = [row for row in rows if isinstance(row, Row)]
    wrong = [row.id for row in measured if abs(row.deviation) > LIMIT]
    if wrong:
        print(f"more than {LIMIT:g} standard errors off: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
