"""Linear UCB on the Criteo problems with S = L = 1, and with the lengths that the prepared file has.

python -m benchmarks.criteo_bounds [--jobs 2]    run what results/criteo_bounds.csv lacks, print the table,
                                                 and put it into docs/criteo.md
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.regret_rows import ROOT, Row, provenance, run_missing, summary, write_between
from tidepull.bench.suites.spec import TrialSpec

HORIZON, SEEDS = 10_000, range(10)
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
RESULTS = ROOT / "results" / "criteo_bounds.csv"


def specs() -> list[TrialSpec]:
    return [
        TrialSpec(
            problem=problem,
            policy=policy,
            policy_parameters=COMMON | setting | bounds,
            name=f"{policy} {name}",
            horizon=HORIZON,
            seed=seed,
        )
        for name, bounds in reversed(BOUNDS.items())
        for seed in SEEDS
        for problem in PROBLEMS
        for policy, setting in SETTINGS.items()
    ]


def difference(rows: list[Row], problem: str, policy: str) -> str:
    """The file's lengths minus S = L = 1 over the same seeds, with a 95% interval (Student's t)."""
    final = {(row.name, row.seed): row.regret for row in rows if row.problem == problem}
    gaps = np.array([final[f"{policy} lengths", seed] - final[f"{policy} ones", seed] for seed in SEEDS])
    half = stats.t.ppf(0.975, len(gaps) - 1) * stats.sem(gaps)
    return f"{gaps.mean():+.0f} ({gaps.mean() - half:+.0f} to {gaps.mean() + half:+.0f})"


def table(rows: list[Row]) -> str:
    lines = [
        "| problem | policy | S = L = 1 | the file's lengths | difference, 95% |",
        "|---|---|---:|---:|---:|",
    ]
    for problem in PROBLEMS:
        for policy in SETTINGS:
            ones, lengths = (summary(rows, problem, f"{policy} {name}") for name in BOUNDS)
            lines.append(
                f"| `{problem}` | `{policy}` | {ones} | {lengths} | {difference(rows, problem, policy)} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="run every trial again")
    options = parser.parse_args()
    rows = run_missing(specs(), RESULTS, options.jobs, fresh=options.fresh)
    text = f"{provenance('python -m benchmarks.criteo_bounds', rows, options.jobs)}\n\n{table(rows)}"
    print(text)
    write_between(ROOT / "docs" / "criteo.md", "criteo-bounds", text)


if __name__ == "__main__":
    main()
