"""How much `tide` loses in short worlds, over many seeds: the numbers behind
tests/golden/test_regret.py.

    python -m research.benchmarks.thresholds            writes tests/golden/thresholds.json

A world's threshold for the mean regret of n other seeds is mean + 4 std / sqrt(n): a sound `tide`
is beyond it once in some ten thousand runs of the suite.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from tidepull.experiments.loop import run_trial

RECORD = Path(__file__).parents[2] / "tests" / "golden" / "thresholds.json"
SEEDS = range(1000, 1032)
WORLDS: dict[str, tuple[str, int, int]] = {
    "stationary-bernoulli": ("stationary-bernoulli", 400, 0),
    "flipping-gaussian": ("flipping-gaussian", 250, 0),
    "sinusoidal-bernoulli": ("sinusoidal-bernoulli", 400, 0),
    "circular-markov-chain": ("circular-markov-chain", 300, 0),
    "rotating-vector-32": ("rotating-vector-32", 200, 0),
    "flipping-gaussian, 5 late": ("flipping-gaussian", 250, 5),
}
"""By name: problem, horizon, and how many rounds rewards come late."""


def regret(world: str, policy: str, seed: int) -> float:
    """What a policy loses in one world."""
    problem, horizon, delay = WORLDS[world]
    return float(run_trial(problem, policy, horizon=horizon, seed=seed, delay=delay).regret[-1])


def main() -> int:
    """Measure every world and write the file."""
    measured = {}
    for world in WORLDS:
        of = {
            policy: [regret(world, policy, seed) for seed in SEEDS] for policy in ("tide", "random")
        }
        measured[world] = {
            "mean": round(float(np.mean(of["tide"])), 3),
            "std": round(float(np.std(of["tide"], ddof=1)), 3),
            "worst": round(max(of["tide"]), 3),
            "random": round(float(np.mean(of["random"])), 3),
        }
        print(world, measured[world], flush=True)
    content = {
        "policy": "tide",
        "seeds": f"{SEEDS[0]}-{SEEDS[-1]}",
        "worlds": measured,
    }
    RECORD.write_text(json.dumps(content, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
