"""Default `rnlps` and `nlps` on the four problems without contexts, beside the paper's rows.

    python -m research.benchmarks.neural_rows [--jobs 2]

Runs what research/results/neural_rows.csv lacks, prints the table, and puts it into research/lab/neural.md.

Where the ten trials differ from the paper by more than two standard errors, thirty others are
played, to tell a difference from chance.
"""

from __future__ import annotations

import argparse
import math

from research.benchmarks.regret_rows import (
    ROOT,
    Row,
    Summary,
    provenance,
    run_missing,
    summary,
    write_between,
)
from tidepull.experiments.spec import TrialSpec
from tidepull.reporting.published import NON_CONTEXTUAL, REGRET, Reported

HORIZON, SEEDS, MORE_SEEDS = 4096, range(10), range(10, 40)
POLICIES = ("rnlps", "nlps")
CELLS = [(problem, policy) for policy in POLICIES for problem in NON_CONTEXTUAL]
RESULTS = ROOT / "research" / "results" / "neural_rows.csv"


def specs(cells: list[tuple[str, str]], seeds: range) -> list[TrialSpec]:
    return [
        TrialSpec(problem=problem, policy=policy, horizon=HORIZON, seed=seed)
        for problem, policy in cells
        for seed in seeds
    ]


def reported(problem: str, policy: str) -> Reported:
    return REGRET[problem][f"{policy}-default"]


def difference(ours: Summary, paper: Reported) -> float:
    """In standard errors of the difference of two means; the paper's is of ten trials."""
    return (ours.mean - paper.mean) / math.hypot(ours.standard_error, paper.std / math.sqrt(10))


def table(rows: list[Row], cells: list[tuple[str, str]]) -> str:
    lines = [
        "| problem | policy | trials | ours | standard error | worst trial | paper | difference |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for problem, policy in cells:
        ours, paper = summary(rows, problem, policy), reported(problem, policy)
        off = difference(ours, paper)
        lines.append(
            f"| `{problem}` | `{policy}` | {ours.n} | {ours} | {ours.standard_error:.1f} | "
            f"{ours.worst:.1f} | "
            f"{paper.mean:.1f} ± {paper.std:.1f} | "
            f"{f'**{off:+.1f}**' if abs(off) > 2 else f'{off:+.1f}'} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="run every trial again")
    options = parser.parse_args()
    rows = run_missing(specs(CELLS, SEEDS), RESULTS, options.jobs, fresh=options.reset_copy)
    text = f"{provenance('python -m research.benchmarks.neural_rows', rows, options.jobs)}\n\n{table(rows, CELLS)}"
    far = [cell for cell in CELLS if abs(difference(summary(rows, *cell), reported(*cell))) > 2]
    if far:
        everything = specs(CELLS, SEEDS) + specs(far, MORE_SEEDS)
        more = run_missing(everything, RESULTS, options.jobs)[-len(far) * len(MORE_SEEDS) :]
        seeds = f"seeds {MORE_SEEDS[0]} to {MORE_SEEDS[-1]}"
        text += (
            f"\n\nWhere that is more than two standard errors, on {seeds}:\n\n{table(more, far)}"
        )
    print(text)
    write_between(ROOT / "research" / "lab" / "neural.md", "neural-rows", text)


if __name__ == "__main__":
    main()
