"""What the paper leaves as future work, each alone and in combination, on three problems.

    python -m research.benchmarks.future_work [--jobs 2]

Runs what research/results/future_work.csv lacks, prints the table, and puts it into research/lab/neural.md.

Variants whose relative regret is below 0.9 are then played on ten fresh seeds, since the best of
many is partly luck.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from research.benchmarks.regret_rows import (
    ROOT,
    Row,
    provenance,
    run_missing,
    summary,
    write_between,
)
from tidepull.experiments.spec import TrialSpec

HORIZON, SEEDS, FRESH_SEEDS = 4096, range(10), range(10, 20)
BASE, PROMISING = "paper's defaults", 0.9
PROBLEMS = ("flipping-gaussian", "flipping-bernoulli", "circular-markov-chain")
RESULTS = ROOT / "research" / "results" / "future_work.csv"
DEFAULTS = ROOT / "research" / "results" / "neural_rows.csv"

WINDOW: dict[str, Any] = {"bptt_window": 64}
SCALED: dict[str, Any] = {"init": "scaled"}
INFER: dict[str, Any] = {"noise_std": "infer"}
RAW: dict[str, Any] = {"raw_features": True}
VARIANTS: dict[str, dict[str, Any]] = {
    BASE: {},
    "bptt_window": WINDOW,
    "scaled": SCALED,
    "infer": INFER,
    "raw": RAW,
    "scaled + raw": SCALED | RAW,
    "scaled + infer": SCALED | INFER,
    "bptt_window + infer": WINDOW | INFER,
    "infer + raw": INFER | RAW,
    "scaled + infer + raw": SCALED | INFER | RAW,
}


def specs(names: Iterable[str], seeds: range) -> list[TrialSpec]:
    return [
        TrialSpec(
            problem=problem,
            policy="rnlps",
            policy_parameters=VARIANTS[name],
            name=name,
            horizon=HORIZON,
            seed=seed,
        )
        for name in names
        for problem in PROBLEMS
        for seed in seeds
    ]


def relative(rows: list[Row], name: str) -> float:
    """Mean regret as a share of the paper's defaults', averaged over the problems."""
    shares = [
        summary(rows, problem, name).mean / summary(rows, problem, BASE).mean
        for problem in PROBLEMS
    ]
    return sum(shares) / len(shares)


def table(rows: list[Row], names: Iterable[str]) -> str:
    names = list(names)
    lines = [
        "| variant | "
        + " | ".join(f"`{problem}`" for problem in PROBLEMS)
        + " | relative regret |",
        "|---|" + "---:|" * (len(PROBLEMS) + 1),
    ]
    lowest = {
        problem: min(summary(rows, problem, name).mean for name in names) for problem in PROBLEMS
    }
    least = min(relative(rows, name) for name in names)
    for name in names:
        cells = []
        for problem in PROBLEMS:
            s = summary(rows, problem, name)
            cells.append(f"{_marked(f'{s}', s.mean == lowest[problem])}, worst {s.worst:.0f}")
        share = relative(rows, name)
        lines.append(
            f"| {name} | {' | '.join(cells)} | {_marked(f'{share:.2f}', share == least)} |"
        )
    return "\n".join(lines)


def _marked(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="run every trial again")
    options = parser.parse_args()
    rows = run_missing(
        specs(VARIANTS, SEEDS), RESULTS, options.jobs, fresh=options.reset_copy, also=[DEFAULTS]
    )
    promising = [BASE, *(name for name in VARIANTS if relative(rows, name) < PROMISING)]
    again = run_missing(specs(promising, FRESH_SEEDS), RESULTS, options.jobs)
    text = (
        f"{provenance('python -m research.benchmarks.future_work', rows, options.jobs)}\n\n{table(rows, VARIANTS)}\n\n"
        f"The promising ones on fresh seeds, {FRESH_SEEDS[0]} to "
        f"{FRESH_SEEDS[-1]}:\n\n{table(again, promising)}"
    )
    print(text)
    write_between(ROOT / "research" / "lab" / "neural.md", "future-work", text)


if __name__ == "__main__":
    main()
