"""What the least chance of every arm costs: agents with it (the default) beside ones without.

    python -m research.benchmarks.floor_cost run [--seeds 53000:53010]
    python -m research.benchmarks.floor_cost table

`clicks`: four arms of 4, 9, 6 and 5%, nothing changes. `hours`: three arms that pay .3 in eight
hours of the day each, else .1. 4,000 visits, 215 a day; rewards at once; no control group. Regret
is the sum of what the best arm's rate has more than the chosen one's. Both agents of a pair meet
the same visits and luck. Writes to research/results/floor_cost.csv,
and goes on where it stopped; the figures are in research/lab/agent.md.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.agent.agent import Agent
from tidepull.types import FloatArray

OUT = Path(__file__).parents[1] / "results" / "floor_cost.csv"
FIELDS = ("world", "seed", "policy", "floor", "regret", "reward", "zero")
START, DAY, VISITS = 1_780_272_000.0, 86_400.0, 4000
WORLDS = {"clicks": 4, "hours": 3}
"""Numbers of arms."""


def rates(world: str, at: float) -> FloatArray:
    """Every arm's chance of a click."""
    if world == "clicks":
        return np.array([0.04, 0.09, 0.06, 0.05])
    return np.where(np.arange(3) == int(at % DAY // 28_800), 0.3, 0.1)


def play(world: str, seed: int, policy: str, floor: bool) -> dict[str, Any]:
    """One agent; `zero` is the share of decisions in which some arm had no chance."""
    rng = np.random.default_rng(seed)
    times = START + np.cumsum(rng.exponential(DAY / 215, VISITS))
    arms = [str(arm) for arm in range(WORLDS[world])]
    given: dict[str, Any] = {} if floor else {"min_share": 0.0}
    agent = Agent.memory(arms=arms, context={}, policy=policy, seed=seed, control=0.0, **given)
    regret = reward = 0.0
    zero = 0
    for at, luck in zip(times.tolist(), rng.random(VISITS), strict=True):
        decision, paid = agent.choose(at=at), rates(world, at)
        rate = float(paid[int(decision.arm)])
        regret, reward = regret + float(paid.max()) - rate, reward + rate
        zero += min(agent.chances(decision).values()) == 0.0
        agent.reward(decision, float(luck < rate), at=at)
    agent.close()
    return {
        "world": world, "seed": seed, "policy": policy, "floor": floor,
        "regret": round(regret, 2), "reward": round(reward, 2), "zero": round(zero / VISITS, 4),
    }  # fmt: skip


def run(out: Path, first: int, stop: int, policies: list[str]) -> None:
    """All that is not in the file yet."""
    done = set()
    if out.exists():
        with out.open() as file:
            done = {tuple(row[name] for name in FIELDS[:4]) for row in csv.DictReader(file)}
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for seed in range(first, stop):
            for world in WORLDS:
                for policy in policies:
                    for floor in (False, True):
                        if (world, str(seed), policy, str(floor)) not in done:
                            writer.writerow(play(world, seed, policy, floor))
                            file.flush()


def table(out: Path) -> str:
    """Regret with and without the least chance, and the difference in percent of the reward."""
    cells: dict[tuple[str, str], dict[str, list[tuple[float, ...]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    with out.open() as file:
        for row in csv.DictReader(file):
            values = float(row["regret"]), float(row["reward"]), float(row["zero"])
            cells[row["world"], row["policy"]][row["floor"]].append(values)
    lines = [
        "| world | policy | regret without | with | difference, % of the reward "
        "| decisions with a chance of 0: without | with | seeds |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (world, policy), pair in cells.items():
        without, floored = np.array(pair["False"]), np.array(pair["True"])
        cost = 100 * (floored[:, 0] - without[:, 0]) / without[:, 1]
        error = 1.96 * cost.std(ddof=1) / len(cost) ** 0.5
        lines.append(
            f"| `{world}` | `{policy}` | {without[:, 0].mean():.1f} | {floored[:, 0].mean():.1f} "
            f"| {cost.mean():.2f} ± {error:.2f} | {without[:, 2].mean():.0%} "
            f"| {floored[:, 2].mean():.0%} | {len(cost)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seeds", default="53000:53010", help="first:stop")
    parser.add_argument("--policies", default="bernoulli-ts,tide")
    given = parser.parse_args()
    first, stop = map(int, given.seeds.split(":"))
    if given.what == "run":
        run(given.out, first, stop, given.policies.split(","))
    print(table(given.out))


if __name__ == "__main__":
    main()
