"""Trials on record for every policy and kind of problem: exact where the arithmetic is the same, close elsewhere.

Sums in another order (another processor, another BLAS) change last bits, and a decision that hangs on one then goes
the other way. On such machines regret must stay near the recorded one instead: within a quarter of what random arms
lose. `python -m tests.golden.test_trials` records anew.
"""

from __future__ import annotations

import json
import platform
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding
from threadpoolctl import threadpool_info

from tidepull.bench.suites.spec import TrialSpec, run_spec
from tidepull.registry import policies

RECORD = Path(__file__).parent / "trials.json"
SEED = 12
TIDE, NETWORK = 130, 70
TRIALS: tuple[tuple[str, str, int, int], ...] = (
    *(
        (version, problem, TIDE, delay)
        for version in ("tide-4", "tide-8")
        for problem, delay in (
            ("stationary-bernoulli", 0),
            ("flipping-gaussian", 0),
            ("flipping-gaussian", 5),
            ("sinusoidal-bernoulli", 8),
            ("circular-markov-chain", 0),
            ("circular-markov-chain", 3),
            ("rotating-vector-32", 0),
            ("rotating-vector-32", 3),
            ("flipping-digits", 0),
            ("flipping-digits", 2),
        )
    ),
    *(
        (policy, problem, NETWORK, delay)
        for policy in ("rnlps", "nlps")
        for problem, delay in (
            ("flipping-gaussian", 0),
            ("sinusoidal-bernoulli", 4),
            ("circular-markov-chain", 0),
            ("rotating-vector-32", 3),
            ("flipping-digits", 0),
        )
    ),
    ("d-ucb", "flipping-gaussian", 150, 5),
    ("sw-ucb", "sinusoidal-bernoulli", 150, 5),
    ("bernoulli-ts", "stationary-bernoulli", 150, 5),
    ("lin-ts", "flipping-digits", 150, 3),
    ("lin-ucb", "rotating-vector-32", 150, 3),
    ("d-lin-ucb", "rotating-vector-32", 150, 3),
    ("sw-lin-ucb", "rotating-vector-32", 150, 3),
)


@lru_cache(maxsize=1)
def arithmetic() -> dict[str, str]:
    """What the last bits of a number hang on."""
    blas = sorted(f"{i['internal_api']} {i['version']} {i.get('architecture')}" for i in threadpool_info())
    return {
        "machine": platform.machine(),
        "cpu": binding.get_host_cpu_name(),
        "blas": "; ".join(dict.fromkeys(one for one in blas if "openmp" not in one)),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite")},
    }


def name_of(policy: str, problem: str, horizon: int, delay: int) -> str:
    return f"{policy} on {problem}, {horizon} rounds" + (f", {delay} late" if delay else "")


def outcome(policy: str, problem: str, horizon: int, delay: int) -> dict[str, Any]:
    id, _, version = policy.partition("-") if policy.startswith("tide-") else (policy, "", "")
    given = {"version": int(version)} if version else {}
    spec = TrialSpec(
        problem=problem, policy=id, policy_parameters=given, horizon=horizon, seed=SEED, delay=delay
    )
    trial = run_spec(spec)
    return {
        "version": policies.entry(id).version,
        "arms": sha256(trial.arms.astype(np.int64).tobytes()).hexdigest()[:16],
        "regret": round(float(trial.regret[-1]), 6),
    }


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: name_of(*trial))
def test_trial_comes_out_as_recorded(trial: tuple[str, str, int, int]) -> None:
    record = json.loads(RECORD.read_text())
    expected = record["trials"][name_of(*trial)]
    found = outcome(*trial)
    assert found["version"] == expected["version"], (
        "record the results of the new version (python -m tests.golden.test_trials)"
    )
    if arithmetic() == record["arithmetic"]:
        assert found["arms"] == expected["arms"], (
            f"regret {found['regret']} instead of {expected['regret']}: raise the policy's version in the registry "
            "and record it anew (python -m tests.golden.test_trials)"
        )
    assert abs(found["regret"] - expected["regret"]) <= 0.25 * expected["random"]


def record() -> None:
    trials = {}
    for trial in TRIALS:
        _, problem, horizon, delay = trial
        found = outcome(*trial)
        found["random"] = outcome("random", problem, horizon, delay)["regret"]
        trials[name_of(*trial)] = found
    RECORD.write_text(json.dumps({"arithmetic": arithmetic(), "trials": trials}, indent=1) + "\n")


if __name__ == "__main__":
    record()
