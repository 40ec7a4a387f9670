"""How the LSTM's weights begin: as in the authors' code, and as in the paper's text.

    python -m research.benchmarks.initialisation [--jobs 2]

Runs what research/results/initialisation.csv lacks, prints the table, and puts it into
research/lab/neural.md.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import stats

from research.benchmarks.neural_rows import reported
from research.benchmarks.regret_rows import (
    ROOT,
    Row,
    provenance,
    run_missing,
    summary,
    write_between,
)
from tidepull.experiments.spec import TrialSpec

HORIZON, SEEDS = 4096, range(10)
CODE, TEXT = "authors-code", "paper-text"
PROBLEMS = (
    "flipping-gaussian",
    "flipping-bernoulli",
    "sinusoidal-bernoulli",
    "circular-markov-chain",
)
RESULTS = ROOT / "research" / "results" / "initialisation.csv"


def specs() -> list[TrialSpec]:
    return [
        TrialSpec(
            problem=problem,
            policy="rnlps",
            policy_parameters={"init": init},
            name=init,
            horizon=HORIZON,
            seed=seed,
        )
        for seed in SEEDS
        for problem in PROBLEMS
        for init in (CODE, TEXT)
    ]


def difference(rows: list[Row], problem: str) -> str:
    """Text minus code over the same seeds, with a 95% interval (Student's t)."""
    final = {(row.name, row.seed): row.regret for row in rows if row.problem == problem}
    gaps = np.array([final[TEXT, seed] - final[CODE, seed] for seed in SEEDS])
    half = stats.t.ppf(0.975, len(gaps) - 1) * stats.sem(gaps)
    return f"{gaps.mean():+.0f} ({gaps.mean() - half:+.0f} to {gaps.mean() + half:+.0f})"


def table(rows: list[Row]) -> str:
    lines = [
        "| problem | `authors-code` | worst | `paper-text` | worst | text - code, 95% | the paper "
        "|",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for problem in PROBLEMS:
        printed = reported(problem, "rnlps")
        code, text = summary(rows, problem, CODE), summary(rows, problem, TEXT)
        lines.append(
            f"| `{problem}` | {code} | {code.worst:.0f} | {text} | {text.worst:.0f} "
            f"| {difference(rows, problem)} | {printed.mean:.1f} ± {printed.std:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="run every trial again")
    options = parser.parse_args()
    rows = run_missing(specs(), RESULTS, options.jobs, fresh=options.reset_copy)
    text = f"{provenance('python -m research.benchmarks.initialisation', rows, options.jobs)}\n\n{table(rows)}"
    print(text)
    write_between(ROOT / "research" / "lab" / "neural.md", "initialisation", text)


if __name__ == "__main__":
    main()
