"""Default `rnlps` and `nlps` on the four problems without contexts, beside the paper's rows.

python -m benchmarks.neural_rows [--jobs 2]    run what results/neural_rows.csv lacks, print the table,
                                               and put it into docs/neural.md
"""

from __future__ import annotations

import argparse
import math

from benchmarks.regret_rows import ROOT, Row, Summary, provenance, run_missing, summary, write_between
from tidepull.analysis.paper import NON_CONTEXTUAL, REGRET, Reported
from tidepull.bench.spec import TrialSpec

HORIZON, SEEDS = 4096, range(10)
POLICIES = ("rnlps", "nlps")
RESULTS = ROOT / "results" / "neural_rows.csv"


def specs() -> list[TrialSpec]:
    return [
        TrialSpec(problem=problem, policy=policy, horizon=HORIZON, seed=seed)
        for problem in NON_CONTEXTUAL
        for policy in POLICIES
        for seed in SEEDS
    ]


def difference(ours: Summary, paper: Reported) -> str:
    """In standard errors of the difference of two means of ten trials; bold beyond two."""
    off = (ours.mean - paper.mean) / math.hypot(ours.standard_error, paper.std / math.sqrt(10))
    return f"**{off:+.1f}**" if abs(off) > 2 else f"{off:+.1f}"


def table(rows: list[Row]) -> str:
    lines = [
        "| problem | policy | ours | standard error | worst trial | paper | difference in standard errors |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for policy in POLICIES:
        for problem in NON_CONTEXTUAL:
            ours, paper = summary(rows, problem, policy), REGRET[problem][f"{policy}-default"]
            lines.append(
                f"| `{problem}` | `{policy}` | {ours} | {ours.standard_error:.1f} | {ours.worst:.1f} | "
                f"{paper.mean:.1f} ± {paper.std:.1f} | {difference(ours, paper)} |"
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
    text = f"{provenance('python -m benchmarks.neural_rows', rows, options.jobs)}\n\n{table(rows)}"
    print(text)
    write_between(ROOT / "docs" / "neural.md", "neural-rows", text)


if __name__ == "__main__":
    main()
