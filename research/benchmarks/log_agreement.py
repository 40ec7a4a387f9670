"""`tidepull backtest` beside the Open Bandit Pipeline, on the same logs with the same model of
rewards.

    pip install "torch==2.13.0" && pip install --no-deps obp==0.4.1     # an environment of its own: obp pulls torch
    python -m research.benchmarks.log_agreement run
    python -m research.benchmarks.log_agreement table

Dictionaries come from obp's own synthetic dataset and from simulated logs of `log_estimators`;
`logs.read` reads them as they are. The table has the largest difference of any log (`--logs 20` of
each kind). obp 0.4.1 is the newest that installs on Python 3.11; it does not clip weights, so
`clipped` is checked by direct sums in the tests only.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.log_estimators import make_log
from tidepull import logs
from tidepull.logs.estimators import ESTIMATORS
from tidepull.logs.models import RewardModel
from tidepull.logs.policies import terms_of

COLUMNS = ("source", "logs", "estimator", "largest_difference")
CLIP = 10.0


def dictionary(source: str, seed: int) -> dict[str, Any]:
    """A log as obp has it."""
    if source == "obp synthetic":
        from obp.dataset import SyntheticBanditDataset

        made: dict[str, Any] = SyntheticBanditDataset(
            n_actions=10, dim_context=5, random_state=seed
        ).obtain_batch_bandit_feedback(n_rounds=2000)
        return made
    log, _, _ = make_log("daily", source, 10, 1000, seed)
    return {
        "action": log.arm,
        "reward": log.reward,
        "pscore": log.propensity,
        "n_actions": 10,
        "position": None,
    }


def theirs(log: logs.Log, shares: Any, model: RewardModel) -> dict[str, float]:
    """obp's estimates of a policy of fixed shares."""
    from obp import ope

    expected = np.vstack([model.rewards(rows, x) for rows, x in model.features.chunks()])
    given = {
        "reward": log.reward, "action": log.arm.astype(int), "pscore": log.propensity,
        "action_dist": np.tile(shares, (len(log), 1))[:, :, None],
        "estimated_rewards_by_reg_model": expected[:, :, None], "position": np.zeros(len(log), int),
    }  # fmt: skip
    judges = {
        "ips": ope.InverseProbabilityWeighting(), "snips": ope.SelfNormalizedInverseProbabilityWeighting(),
        "dm": ope.DirectMethod(), "dr": ope.DoublyRobust(), "switch-dr": ope.SwitchDoublyRobust(tau=CLIP),
    }  # fmt: skip
    return {name: float(judge.estimate_policy_value(**given)) for name, judge in judges.items()}


def differences(source: str, seed: int) -> dict[str, float]:
    """How far the two are apart on one log."""
    log = logs.read(dictionary(source, seed))
    shares = np.random.default_rng(seed).dirichlet(np.ones(log.n_arms))
    model = RewardModel(log)
    target = logs.Target("judged", lambda _, rows: np.tile(shares, (rows.stop - rows.start, 1)))
    rows, _ = terms_of(log, target, model, CLIP)
    return {
        name: abs(ESTIMATORS[name](rows).value - value)
        for name, value in theirs(log, shares, model).items()
    }


def run(out: Path, count: int) -> None:
    """Every kind of log."""
    made = []
    for source in ("obp synthetic", "uniform", "greedy"):
        apart = [differences(source, seed) for seed in range(count)]
        for name in apart[0]:
            largest = f"{max(one[name] for one in apart):.1e}"
            made.append(
                {"source": source, "logs": count, "estimator": name, "largest_difference": largest}
            )
    with out.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(made)


def table(out: Path) -> None:
    """Markdown: the largest difference, by kind of log and estimator."""
    with out.open(newline="") as handle:
        found = list(csv.DictReader(handle))
    names = list(dict.fromkeys(row["estimator"] for row in found))
    print(
        "| log | " + " | ".join(f"`{name}`" for name in names) + " |\n|---|" + "---|" * len(names)
    )
    for source in dict.fromkeys(row["source"] for row in found):
        cells = [row["largest_difference"] for row in found if row["source"] == source]
        print(f"| {source} | " + " | ".join(cells) + " |")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=Path("research/results/log_agreement.csv"))
    parser.add_argument("--logs", type=int, default=20)
    given = parser.parse_args()
    if given.what == "run":
        run(given.out, given.logs)
    else:
        table(given.out)


if __name__ == "__main__":
    main()
