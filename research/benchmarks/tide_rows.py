"""`tide` on the paper's rows, paired with `rnlps` and the conventional policies, on seeds never
used before.

    python research/benchmarks/tide_rows.py --out research/results/tide_rows.csv [--rows ...] [--seeds 20000:20010]

Resumes: trials that are in the file already are not run again. The design of `tide` was frozen
before the first run.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tidepull.experiments.grid import GridPoint, budgeted, from_problem
from tidepull.experiments.loop import run_trial
from tidepull.policies import policies

NONCONTEXTUAL = {
    "learning_rate": 0.01,
    "epochs": 16,
    "train_every": 32,
    "noise_std": 0.1,
    "prior_std": 0.5,
}
CONTEXTUAL = {
    "learning_rate": 0.001,
    "epochs": 64,
    "train_every": 32,
    "noise_std": 0.3,
    "prior_std": 0.5,
}
# Discount and window are then set from the world's variation budget, as in
# suites/paper-criteo.toml; unlike there, S and L are 1.
BUDGETED = {"delta": 0.01, "regularisation": 1.0, "noise_std": 0.3873}
# (problem, horizon, the best conventional policy with its setting from the paper's protocol)
ROWS: dict[str, tuple[int, list[tuple[str, dict[str, Any]]]]] = {
    "flipping-gaussian": (4096, [("rnlps", NONCONTEXTUAL), ("sw-ucb", {"window": 25})]),
    "flipping-bernoulli": (4096, [("rnlps", NONCONTEXTUAL), ("d-ucb", {"discount": 0.995})]),
    "sinusoidal-bernoulli": (4096, [("rnlps", NONCONTEXTUAL), ("d-ucb", {"discount": 0.995})]),
    "circular-markov-chain": (4096, [("rnlps", NONCONTEXTUAL), ("d-ucb", {"discount": 0.8})]),
    "flipping-vector": (4096, [("rnlps", CONTEXTUAL), ("d-lin-ucb", {"discount": 0.99269})]),
    "rotating-vector-32": (4096, [("rnlps", CONTEXTUAL), ("sw-lin-ucb", {"window": 5})]),
    "rotating-vector-2048": (4096, [("rnlps", CONTEXTUAL), ("sw-lin-ucb", {"window": 75})]),
    "stationary-bernoulli": (4096, [("bernoulli-ts", {})]),
    "stationary-vector": (4096, [("lin-ucb", {})]),
    "wall-following": (5455, [("rnlps", CONTEXTUAL)]),
    "flipping-digits": (4095, [("rnlps", CONTEXTUAL)]),
    "criteo-partial-flip": (10_000, [("d-lin-ucb", BUDGETED), ("sw-lin-ucb", BUDGETED)]),
}
FIELDS = (
    "problem", "horizon", "seed", "policy", "parameters", "regret", "seconds", "explanation", "weight",
    "machine", "versions",
)  # fmt: skip


def trial(
    problem: str, horizon: int, seed: int, policy: str, parameters: dict[str, Any]
) -> dict[str, Any]:
    """One row of the table."""
    if parameters is BUDGETED:
        entry = policies.entry(policy)
        setting = GridPoint(budgeted(entry, BUDGETED), "")
        parameters = dict(
            from_problem(entry, setting, (problem, {}), horizon=horizon, seed=seed).parameters
        )
    started = time.process_time()
    result = run_trial(problem, (policy, parameters), horizon=horizon, seed=seed)
    return {
        "problem": problem,
        "horizon": horizon,
        "seed": seed,
        "policy": policy,
        "parameters": json.dumps(parameters),
        "regret": round(float(result.regret[-1]), 3),
        "seconds": round(time.process_time() - started, 2),
        "explanation": result.diagnostics.get("explanation", ""),
        "weight": result.diagnostics.get("explanation_weight", ""),
        "machine": platform.machine(),
        "versions": " ".join(f"{name}-{version(name)}" for name in ("numpy", "numba")),
    }


def _key(row: dict[str, str]) -> tuple[str, int, str, str]:
    """A rival has one setting; `tide` may be there in several, taken apart."""
    return (
        row["problem"],
        int(row["seed"]),
        row["policy"],
        row["parameters"] if row["policy"] == "tide" else "",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("research/results/tide_rows.csv"))
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--seeds", default="20000:20010", help="first:stop")
    parser.add_argument("--policies", default="", help="only these (default: all)")
    parser.add_argument("--tide", default="{}", help="JSON, parameters of tide (for ablations)")
    given = parser.parse_args()
    only = given.policies.split(",") if given.policies else None
    first, stop = map(int, given.seeds.split(":"))
    done: set[tuple[str, int, str, str]] = set()
    fresh = not given.out.exists()
    if not fresh:
        with given.out.open() as file:
            done = {_key(row) for row in csv.DictReader(file)}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if fresh:
            writer.writeheader()
        for seed in range(first, stop):
            for problem in given.rows.split(","):
                horizon, rivals = ROWS[problem]
                for policy, parameters in [("tide", json.loads(given.tide)), *rivals]:
                    setting = json.dumps(parameters) if policy == "tide" else ""
                    if (problem, seed, policy, setting) in done or (
                        only is not None and policy not in only
                    ):
                        continue
                    writer.writerow(trial(problem, horizon, seed, policy, parameters))
                    file.flush()


if __name__ == "__main__":
    main()
