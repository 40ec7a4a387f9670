"""What the paper leaves as future work, each alone and in combination, on three problems.

python -m benchmarks.future_work [--jobs 2]    run what results/future_work.csv lacks, print the table,
                                               and put it into docs/neural.md
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.regret_rows import ROOT, Row, provenance, run_missing, summary, write_between
from tidepull.bench.spec import TrialSpec

HORIZON, SEEDS = 4096, range(10)
PROBLEMS = ("flipping-gaussian", "flipping-bernoulli", "circular-markov-chain")
RESULTS = ROOT / "results" / "future_work.csv"
DEFAULTS = ROOT / "results" / "neural_rows.csv"

WINDOW: dict[str, Any] = {"bptt_window": 64}
SCALED: dict[str, Any] = {"init": "scaled"}
INFER: dict[str, Any] = {"noise_std": "infer"}
RAW: dict[str, Any] = {"raw_features": True}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper's defaults": {},
    "bptt_window": WINDOW,
    "scaled": SCALED,
    "infer": INFER,
    "raw": RAW,
    "scaled + raw": SCALED | RAW,
    "scaled + infer": SCALED | INFER,
    "infer + raw": INFER | RAW,
    "scaled + infer + raw": SCALED | INFER | RAW,
}


def specs() -> list[TrialSpec]:
    return [
        TrialSpec(
            problem=problem, policy="rnlps", policy_parameters=given, name=name, horizon=HORIZON, seed=seed
        )
        for name, given in VARIANTS.items()
        for problem in PROBLEMS
        for seed in SEEDS
    ]


def relative(rows: list[Row], name: str) -> float:
    """Mean regret as a share of the paper's defaults', averaged over the problems."""
    shares = [
        summary(rows, problem, name).mean / summary(rows, problem, "paper's defaults").mean
        for problem in PROBLEMS
    ]
    return sum(shares) / len(shares)


def table(rows: list[Row]) -> str:
    best = min(VARIANTS, key=lambda name: relative(rows, name))
    lines = [
        "| variant | " + " | ".join(f"`{problem}`" for problem in PROBLEMS) + " | relative regret |",
        "|---|" + "---:|" * (len(PROBLEMS) + 1),
    ]
    for name in VARIANTS:
        cells = [f"{s} (worst {s.worst:.0f})" for s in (summary(rows, problem, name) for problem in PROBLEMS)]
        share = f"{relative(rows, name):.2f}"
        lines.append(f"| {name} | {' | '.join(cells)} | {f'**{share}**' if name == best else share} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="run every trial again")
    options = parser.parse_args()
    rows = run_missing(specs(), RESULTS, options.jobs, fresh=options.fresh, also=[DEFAULTS])
    text = f"{provenance('python -m benchmarks.future_work', rows, options.jobs)}\n\n{table(rows)}"
    print(text)
    write_between(ROOT / "docs" / "neural.md", "future-work", text)


if __name__ == "__main__":
    main()
