"""Can `tide` lock an arm out, does it see what contexts decide, and what does a wild reward cost
it?

    python -m research.benchmarks.tide_lockout run --groups steady --policies "4;5;specialist"
    --seeds 30000:30002 python -m research.benchmarks.tide_lockout table --groups steady

The first resumes: trials that are in the file already are not run again. The second prints the
tables of research/lab/tide.md: mean regret, in brackets the largest regret of the second half in
any trial, and the number of trials.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.machine import describe
from tidepull.experiments.loop import run_trial

World = tuple[str, dict[str, Any], int, str]
"""Id, parameters, horizon, delay."""


def _steady(horizon: int = 2000, **parameters: Any) -> World:
    return "steady-contexts", parameters, horizon, "0"


def _wild(**parameters: Any) -> World:
    return "wild-rewards", parameters, 1000, "0"


GROUPS: dict[str, dict[str, World]] = {
    "steady": {
        "10 numbers, 10 arms": _steady(),
        "the same, noise 0.01": _steady(noise_std=0.01),
        "the same, noise 1": _steady(noise_std=1.0),
        "5 numbers, 2 arms": _steady(numbers=5, n_arms=2),
        "5 numbers, 40 arms": _steady(numbers=5, n_arms=40),
        "32 numbers, 5 arms": _steady(numbers=32, n_arms=5),
        "200 numbers of rank 10, 5 arms": _steady(numbers=200, rank=10, n_arms=5),
        "60 numbers, 3 arms": _steady(numbers=60, n_arms=3),
        "vectors of 10, 10 arms": _steady(numbers=10, shared=True),
        "vectors of 50, 25 arms": _steady(numbers=50, n_arms=25, shared=True),
        "vectors of 200, rank 10": _steady(numbers=200, rank=10, shared=True),
        "vectors of 5, 40 arms, noise 1": _steady(numbers=5, n_arms=40, noise_std=1.0, shared=True),
    },
    "rows": {
        "flipping-digits": ("flipping-digits", {}, 4095, "0"),
        "flipping-vector": ("flipping-vector", {}, 4096, "0"),
        "wall-following": ("wall-following", {}, 5455, "0"),
    },
    "blocks": {
        "40 classes, 4 in a block": ("class-blocks", {}, 4000, "0"),
        "40 classes, 1 in a block": ("class-blocks", {"together": 1, "block": 100}, 4000, "0"),
        "20 classes, all the time": ("class-blocks", {"together": 20, "n_arms": 20}, 4000, "0"),
        "40 classes, 4 in a block, far apart": ("class-blocks", {"apart": 6.0}, 4000, "0"),
        "10 classes, 2 in a block": ("class-blocks", {"n_arms": 10, "together": 2}, 4000, "0"),
    },
    "five arms": {
        "chances .1 to .5": (
            "stationary-bernoulli",
            {"means": [0.1, 0.2, 0.3, 0.4, 0.5], "shuffle": True},
            4000,
            "0",
        ),
    },
    "late": {
        "wall-following, 3 late": ("wall-following", {}, 5455, "3"),
    },
    "wild": {
        "none": _wild(share=0.0),
        "1e14 in round 300": _wild(share=0.0, absurd_in=300),
        "1e14 in round 5": _wild(share=0.0, absurd_in=5),
        "-1e14 in round 300": _wild(share=0.0, absurd_in=300, absurd=-1e14),
        "1%, scale 1": _wild(),
        "1%, scale 10": _wild(scale=10.0),
        "flipping, none": _wild(share=0.0, half_period=10),
        "flipping, 1e14 in round 300": _wild(share=0.0, half_period=10, absurd_in=300),
        "flipping, 1%, scale 1": _wild(half_period=10),
    },
}
POLICIES: dict[str, dict[str, Any]] = {
    "tide": {},
    "all rewards": {"outlier_share": 0.0},
}
FIELDS = (
    "group",
    "world",
    "seed",
    "policy",
    "settings",
    "regret",
    "second_half",
    "reward",
    "seconds",
    "explanation",
    "machine",
)


def settings_of(policy: str, world: World) -> tuple[str, dict[str, Any]]:
    """Id and parameters; the specialist is told the noise and how far weights spread."""
    if policy != "specialist":
        return ("tide", POLICIES[policy]) if policy in POLICIES else (policy, {})
    parameters = {"noise_std": 0.1, "numbers": 10, "rank": 0, **world[1]}
    directions = parameters["rank"] or parameters["numbers"]
    noise = parameters["noise_std"]
    return "lin-ts", {"noise_std": noise, "regularisation": noise**2 * directions}


def trial(group: str, name: str, seed: int, policy: str) -> dict[str, Any]:
    """One row."""
    world = GROUPS[group][name]
    problem, parameters, horizon, delay = world
    id, settings = settings_of(policy, world)
    started = time.process_time()
    result = run_trial(
        (problem, parameters), (id, settings), horizon=horizon, seed=seed, delay=delay
    )
    return {
        "group": group,
        "world": name,
        "seed": seed,
        "policy": policy,
        "settings": json.dumps({id: settings}),
        "regret": round(float(result.regret[-1]), 3),
        "second_half": round(float(result.regret[-1] - result.regret[horizon // 2 - 1]), 3),
        "reward": round(float(result.rewards.mean()), 5),
        "seconds": round(time.process_time() - started, 2),
        "explanation": result.diagnostics.get("explanation", ""),
        "machine": describe(),
    }


def _rows(out: Path) -> list[dict[str, str]]:
    if not out.exists():
        return []
    with out.open() as file:
        return list(csv.DictReader(file))


def run(out: Path, groups: list[str], worlds: list[str], policies: list[str], seeds: range) -> None:
    """All trials that are not in the file yet."""
    rows = _rows(out)
    done = {(r["group"], r["world"], r["seed"], r["policy"]) for r in rows}
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        for seed in seeds:
            for group in groups:
                for name in GROUPS[group]:
                    if worlds and name not in worlds:
                        continue
                    for policy in policies:
                        if (group, name, str(seed), policy) not in done:
                            writer.writerow(trial(group, name, seed, policy))
                            file.flush()


def table(out: Path, groups: list[str]) -> str:
    """A row for each world, a column for each policy."""
    lines = []
    for group in groups:
        cells: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row in _rows(out):
            if row["group"] == group:
                value = float(row["regret"]), float(row["second_half"])
                cells[row["world"]][row["policy"]].append(value)
        policies = list(dict.fromkeys(policy for row in cells.values() for policy in row))
        if not cells:
            continue
        lines += [f"| {group} | " + " | ".join(policies) + " |", "|---" * (len(policies) + 1) + "|"]
        for world, found in cells.items():
            shown = [_shown(found[policy]) for policy in policies]
            lines.append(f"| {world} | " + " | ".join(shown) + " |")
        lines.append("")
    return "\n".join(lines)


def _shown(values: list[tuple[float, float]]) -> str:
    if not values:
        return ""
    regret, second = np.array(values).T
    return f"{regret.mean():.1f} ({second.max():.1f}), {len(regret)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--worlds", default="", help="separated by semicolons (default: all)")
    parser.add_argument("--policies", default="4;5;specialist", help="separated by semicolons")
    parser.add_argument("--seeds", default="30000:30002", help="first:stop")
    parser.add_argument("--out", type=Path, default=Path("research/results/tide_lockout.csv"))
    given = parser.parse_args()
    groups = given.groups.split(",")
    if given.what == "table":
        print(table(given.out, groups))
        return
    first, stop = map(int, given.seeds.split(":"))
    worlds = [world for world in given.worlds.split(";") if world]
    run(given.out, groups, worlds, given.policies.split(";"), range(first, stop))


if __name__ == "__main__":
    main()
