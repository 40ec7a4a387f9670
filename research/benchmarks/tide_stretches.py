"""Change points and returning regimes: what the two families gain where they are right and cost
where they are wrong.

    python -m research.benchmarks.tide_stretches run --out research/results/tide_stretches.csv
    python -m research.benchmarks.tide_stretches table research/results/tide_stretches.csv

Worlds from 60,000 to 61,999 and from 63,000 on were development worlds; nothing was decided on
those from `--first 62000` or 68000 on. One row for each trial; those in the file already are not
run again. Five worlds of a kind, two seeds each; all kinds of one world come before the next.
Beside `tide` without one or both of the families: the specialist who is told which rounds pay alike
(`specialists.py`), and for rewards of 0 and 1 under change points GLR-klUCB with per-arm restarts,
told the horizon and the number of changes (`glr.py`).
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.glr import GLRklUCB
from research.benchmarks.specialists import specialist
from research.benchmarks.world_trials import Book, read_rows, seeds_of, trial_of
from tidepull.experiments.loop import run_trial
from tidepull.problems import build_problem
from tidepull.registry import Named

FIELDS = ("kind", "world", "seed", "horizon", "policy", "regret", "milliseconds", "explanation")
FIRST = 60_000
TIDES: dict[str, dict[str, Any]] = {
    "tide": {},
    "without changes": {"without": ["changes"]},
    "without regimes": {"without": ["regimes"]},
    "without both": {"without": ["changes", "regimes"]},
}
POLICIES = ("specialist", "glr", "random", *TIDES)
RIGHT = ("published-local", "published-global", "one-arm", "all-arms", "returning", "wall-clock")
WRONG = (
    "arms-stationary", "arms-flip", "arms-irregular", "arms-sine", "arms-seasons", "arms-walk", "arms-chain",
    "labels-stationary", "labels-irregular", "vectors-stationary", "vectors-walk", "vectors-irregular",
    "arms-few-changes", "arms-many-changes", "arms-returning", "vectors-few-changes", "vectors-returning",
)  # fmt: skip


def problem_of(kind: str, world: int) -> tuple[Named, int, int]:
    """The problem, its horizon, and the number of changes that are told (0: not a change-point
    problem)."""
    rng = np.random.default_rng([world, 9])
    if kind == "returning":
        return "returning-regimes", 6000, 0
    if kind == "wall-clock":
        return "wall-clock-bernoulli", 6000, 0
    if kind.startswith("published"):
        return ("change-points-bernoulli", {"levels": kind}), 5000, 4
    if kind in ("one-arm", "all-arms"):
        changes, n_arms = int(rng.integers(3, 10)), int(rng.integers(3, 7))
        drawn = {"n_arms": n_arms, "changes": changes, "together": kind == "all-arms"}
        return ("change-points-bernoulli", drawn), 5000, changes
    return (
        ("random-world", {"world": world, "kind": kind}),
        2048 if kind.startswith("arms") else 1024,
        0,
    )


def trial(kind: str, world: int, seed: int, policy: str) -> dict[str, Any] | None:
    """One row; None when this policy does not play this kind."""
    named, horizon, changes = problem_of(kind, world)
    # Problems other than random-world draw their levels from their seed: each trial has a world of
    # its own.
    fixed = None if kind.startswith(("arms-", "labels", "vectors")) else world + seed
    problem = build_problem(named, seed=seed if fixed is None else fixed)
    learner: Any = policy
    if policy == "specialist":
        learner = specialist(problem, horizon, seed)
    elif policy == "glr":
        learner = GLRklUCB(problem.n_arms, horizon, changes) if changes else None
    elif policy in TIDES:
        learner = ("tide", TIDES[policy])
    if learner is None:
        return None
    started = time.process_time()
    result = run_trial(named, learner, horizon=horizon, seed=seed, problem_seed=fixed)
    return {
        "kind": kind,
        "world": world,
        "seed": seed,
        "horizon": horizon,
        "policy": policy,
        "regret": round(float(result.regret[-1]), 2),
        "milliseconds": round((time.process_time() - started) / horizon * 1e3, 3),
        "explanation": result.diagnostics.get("explanation", ""),
    }


def wanted(
    kinds: list[str], first: int, worlds: int, policies: list[str]
) -> Iterator[tuple[str, int, int, str]]:
    """All trials, in order."""
    for world in range(first, first + worlds):
        for seed in seeds_of(world):
            for kind in kinds:
                for policy in policies:
                    yield kind, world, seed, policy


def run(out: Path, kinds: list[str], first: int, worlds: int, policies: list[str]) -> None:
    """Whatever is not in the file yet."""
    book = Book(out, FIELDS)
    done = {(r["kind"], int(r["world"]), int(r["seed"]), r["policy"]) for r in book.rows}
    for key in wanted(kinds, first, worlds, policies):
        row = None if key in done else trial(*key)
        if row is not None:
            book.add(row)


def table(path: Path, version: str) -> str:
    """Mean regret by kind and policy over the trials of a version of `tide`; "-" for whoever has
    not played all."""
    regrets: dict[str, dict[str, dict[tuple[int, int], float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in read_rows(path):
        regrets[row["kind"]][row["policy"]][trial_of(row)] = float(row["regret"])
    shown = [
        name
        for name in POLICIES
        if any(_played_all(kind, version, name) for kind in regrets.values())
    ]
    lines = [
        "| kind | trials | " + " | ".join(shown) + " | over glr: mean, worst |",
        "|---|---:|" + "---:|" * (len(shown) + 1),
    ]
    for kind in (*RIGHT, *WRONG):
        played = regrets[kind]
        common = set(played[version])
        if common:
            cells = [
                f"{np.mean([played[name][key] for key in common]):.1f}"
                if common <= set(played[name])
                else "-"
                for name in shown
            ]
            told = [
                played[version][key] / played["glr"][key] for key in common if key in played["glr"]
            ]
            cells.append(f"{np.mean(told):.2f}, {max(told):.2f}" if told else "-")
            lines.append(f"| {kind} | {len(common)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _played_all(kind: dict[str, dict[tuple[int, int], float]], version: str, policy: str) -> bool:
    """Whether a policy has played all that a version has played of a kind."""
    return bool(kind[version]) and set(kind[version]) <= set(kind[policy])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--kinds", default=",".join((*RIGHT, *WRONG)))
    running.add_argument("--policies", default=",".join(POLICIES))
    running.add_argument("--first", type=int, default=FIRST)
    running.add_argument("--worlds", type=int, default=5)
    showing = commands.add_parser("table")
    showing.add_argument("file", type=Path)
    showing.add_argument("--of", default="tide 5", help="the version whose trials are counted")
    given = parser.parse_args()
    if given.command == "run":
        run(given.out, given.kinds.split(","), given.first, given.worlds, given.policies.split(","))
    else:
        print(table(given.file, given.of))


if __name__ == "__main__":
    main()
