"""Results on record: a change that moves them must raise a version, or stores would mix old and
new."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from tidepull.experiments.spec import RESULTS_VERSION, TrialSpec, run_spec

RECORD = Path(__file__).parents[2] / "golden" / "results.json"
PAIRS = [
    ("flipping-gaussian", "d-ucb"),
    ("flipping-bernoulli", "bernoulli-ts"),
    ("sinusoidal-bernoulli", "sw-ucb"),
    ("circular-markov-chain", "random"),
    ("flipping-vector", "lin-ts"),
    ("rotating-vector-32", "sw-lin-ucb"),
    ("rotating-vector-2048", "d-lin-ucb"),
    ("stationary-bernoulli", "ucb"),
    ("stationary-vector", "lin-ucb"),
]


def fingerprint(problem: str, policy: str) -> list[str | float]:
    trial = run_spec(TrialSpec(problem=problem, policy=policy, horizon=150, seed=12))
    arms = sha256(trial.arms.astype(np.int64).tobytes()).hexdigest()[:16]
    return [arms, round(float(trial.rewards.sum()), 6), round(float(trial.regret[-1]), 6)]


@pytest.mark.parametrize(("problem", "policy"), PAIRS)
def test_trials_come_out_as_recorded_for_this_results_version(problem: str, policy: str) -> None:
    recorded = json.loads(RECORD.read_text())
    assert recorded["results_version"] == RESULTS_VERSION, "record the results of the new version"
    assert fingerprint(problem, policy) == recorded["trials"][f"{problem}/{policy}"], (
        "this trial comes out differently now: raise the version of its problem or policy in the "
        "registry (or, "
        "if all do, RESULTS_VERSION in bench/spec.py) and record it anew "
        "(python -m tests.unit.experiments.test_results_version)"
    )


def record() -> None:
    trials = {f"{problem}/{policy}": fingerprint(problem, policy) for problem, policy in PAIRS}
    RECORD.write_text(
        json.dumps({"results_version": RESULTS_VERSION, "trials": trials}, indent=1) + "\n"
    )


if __name__ == "__main__":
    record()
