"""Linear UCB on the Criteo problems with S = L = 1, and with the lengths that the prepared file
has.

python -m research.benchmarks.criteo_bounds [--seeds 10] [--problem criteo-partial-flip] [--jobs 2]
    run what research/results/criteo_bounds.csv lacks, print the table, and put it into
    research/lab/criteo.md
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from research.benchmarks.regret_rows import (
    ROOT,
    Row,
    provenance,
    run_missing,
    summary,
    write_between,
)
from tidepull.experiments.spec import TrialSpec

HORIZON = 10_000
PROBLEMS = ("criteo-partial-flip", "criteo-flipping")
SETTINGS: dict[str, dict[str, Any]] = {
    "d-lin-ucb": {"discount": "variation-budget"},
    "sw-lin-ucb": {"window": "variation-budget"},
}
# As in suites/paper-criteo.toml.
COMMON: dict[str, Any] = {"delta": 0.01, "regularisation": 1.0, "noise_std": 0.3873}
BOUNDS: dict[str, dict[str, Any]] = {
    "ones": {},
    "lengths": {"parameter_bound": "problem", "feature_bound": "problem"},
}
RESULTS = ROOT / "research" / "results" / "criteo_bounds.csv"


def specs(problems: Sequence[str], seeds: range) -> list[TrialSpec]:
    return [
        TrialSpec(
            problem=problem,
            policy=policy,
            policy_parameters=COMMON | setting | bounds,
            name=f"{policy} {name}",
            horizon=HORIZON,
            seed=seed,
        )
        for problem in problems
        for seed in seeds
        for name, bounds in BOUNDS.items()
        for policy, setting in SETTINGS.items()
    ]


def difference(rows: list[Row], problem: str, policy: str) -> str:
    """The file's lengths minus S = L = 1 over the same seeds, with a 95% interval (Student's t)."""
    final = {(row.name, row.seed): row.regret for row in rows if row.problem == problem}
    seeds = sorted({seed for _, seed in final})
    gaps = np.array(
        [final[f"{policy} lengths", seed] - final[f"{policy} ones", seed] for seed in seeds]
    )
    half = stats.t.ppf(0.975, len(gaps) - 1) * stats.sem(gaps)
    return f"{gaps.mean():+.0f} ({gaps.mean() - half:+.0f} to {gaps.mean() + half:+.0f})"


def table(rows: list[Row], problems: Sequence[str]) -> str:
    lines = [
        "| problem | policy | trials | S = L = 1 | the file's lengths | difference, 95% |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for problem in problems:
        for policy in SETTINGS:
            ones, lengths = (summary(rows, problem, f"{policy} {name}") for name in BOUNDS)
            lines.append(
                f"| `{problem}` | `{policy}` | {ones.n} | {ones} | {lengths} | "
                f"{difference(rows, problem, policy)} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="run every trial again")
    parser.add_argument("--seeds", type=int, default=10, help="trials of each, at least 2")
    parser.add_argument(
        "--problem", choices=PROBLEMS, action="append", help="one of the two; both if not given"
    )
    options = parser.parse_args()
    problems = options.problem or PROBLEMS
    rows = run_missing(
        specs(problems, range(options.seeds)), RESULTS, options.jobs, fresh=options.reset_copy
    )
    command = (
        "python -m research.benchmarks.criteo_bounds"
        + ("" if options.seeds == 10 else f" --seeds {options.seeds}")
        + "".join(f" --problem {problem}" for problem in options.problem or ())
    )
    text = f"{provenance(command, rows, options.jobs)}\n\n{table(rows, problems)}"
    print(text)
    write_between(ROOT / "research" / "lab" / "criteo.md", "criteo-bounds", text)


if __name__ == "__main__":
    main()
