"""What `rnlps` and `nlps` lose when they remember the last rounds only.

    python -m research.benchmarks.neural_memory [--jobs 2]

Runs what research/results/neural_memory.csv lacks, prints the table, and puts it into
research/lab/neural.md.
"""

from __future__ import annotations

import argparse

from research.benchmarks.regret_rows import (
    ROOT,
    Row,
    provenance,
    run_missing,
    summary,
    write_between,
)
from tidepull.experiments.spec import TrialSpec

HORIZON, SEEDS = 4096, range(900, 903)
MEMORIES: tuple[int | None, ...] = (128, 256, 512, 1024, 2048, None)
PROBLEMS = (
    "flipping-gaussian",
    "flipping-bernoulli",
    "sinusoidal-bernoulli",
    "circular-markov-chain",
    "rotating-vector-32",
)
POLICIES = ("rnlps", "nlps")
RESULTS = ROOT / "research" / "results" / "neural_memory.csv"


def specs() -> list[TrialSpec]:
    return [
        TrialSpec(
            problem=problem,
            policy=policy,
            policy_parameters={} if memory is None else {"memory": memory},
            name=name(policy, memory),
            horizon=HORIZON,
            seed=seed,
        )
        for seed in SEEDS
        for problem in PROBLEMS
        for policy in POLICIES
        for memory in MEMORIES
    ]


def name(policy: str, memory: int | None) -> str:
    return f"{policy} {'all' if memory is None else memory}"


def table(rows: list[Row]) -> str:
    shown = ["all" if memory is None else f"{memory:,}" for memory in MEMORIES]
    lines = [f"| problem | policy | {' | '.join(shown)} |", "|---|---|" + "---:|" * len(MEMORIES)]
    for problem in PROBLEMS:
        for policy in POLICIES:
            cells = [summary(rows, problem, name(policy, memory)) for memory in MEMORIES]
            best = min(cell.mean for cell in cells)
            text = " | ".join(f"**{cell}**" if cell.mean == best else f"{cell}" for cell in cells)
            lines.append(f"| `{problem}` | `{policy}` | {text} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="run every trial again")
    options = parser.parse_args()
    rows = run_missing(specs(), RESULTS, options.jobs, fresh=options.reset_copy)
    text = f"{provenance('python -m research.benchmarks.neural_memory', rows, options.jobs)}\n\n{table(rows)}"
    print(text)
    write_between(ROOT / "research" / "lab" / "neural.md", "neural-memory", text)


if __name__ == "__main__":
    main()
