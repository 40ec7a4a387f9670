"""Clicks that come early and zeros that come late: what agents earn beside ones that learn every
reward at once.

    python -m research.benchmarks.censored_rewards run [--seeds 51000:51010] [--worlds hours,week]
    python -m research.benchmarks.censored_rewards table

Four arms of 4, 9, 6 and 5% clicks, nothing changes, 1,000 visits a day. A click comes some minutes
after its decision, and what has not come within `reward_within` is a 0. `hours`: six days, a window
of two hours, clicks after ten minutes on average. `week`: seven days, a window of seven days,
clicks after five minutes on average (exponential delays). Earned is the sum of the click rates of
the chosen arms. Writes to research/results/censored_rewards.csv,
and goes on where it stopped; the table is in research/lab/agent.md.
"""

from __future__ import annotations

import argparse
import csv
import heapq
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.agent.agent import Agent

OUT = Path(__file__).parents[1] / "results" / "censored_rewards.csv"
FIELDS = ("world", "seed", "policy", "rewards", "earned", "random", "best", "window")
RATES = np.array([0.04, 0.09, 0.06, 0.05])
START, DAY = 1_780_272_000.0, 86_400.0
WORLDS = {"hours": (6, 7200.0, 600.0), "week": (7, 7 * DAY, 300.0)}
"""Days, `reward_within` and the mean delay of a click."""


def play(world: str, seed: int, policy: str, rewards: str) -> dict[str, Any]:
    """One agent; `rewards` are `late`, or come `at once`."""
    days, within, mean_delay = WORLDS[world]
    rng = np.random.default_rng(seed)
    visits = days * 1000
    times = START + np.cumsum(rng.exponential(DAY / 1000, visits))
    luck, delays = rng.random(visits), rng.exponential(mean_delay, visits)
    late = {"reward_within": within, "default_reward": 0.0} if rewards == "late" else {}
    arms = [str(arm) for arm in range(len(RATES))]
    agent = Agent.memory(arms=arms, context={}, policy=policy, seed=seed, control=0.0, **late)
    waiting: list[tuple[float, str]] = []
    earned = 0.0
    for at, chance, delay in zip(times.tolist(), luck, delays.tolist(), strict=True):
        while waiting and waiting[0][0] <= at:
            due, id = heapq.heappop(waiting)
            agent.reward(id, 1.0, at=due)
        decision = agent.choose(at=at)
        rate = float(RATES[int(decision.arm)])
        earned += rate
        if not late:
            agent.reward(decision, float(chance < rate), at=at)
        elif chance < rate and delay <= within:
            heapq.heappush(waiting, (at + delay, decision.id))
    window = agent._commands.state.learning_window if late else 0.0
    agent.close()
    best, even = float(RATES.max()) * visits, float(RATES.mean()) * visits
    return {
        "world": world, "seed": seed, "policy": policy, "rewards": rewards,
        "earned": round(earned, 2), "random": even, "best": best, "window": round(window),
    }  # fmt: skip


def run(out: Path, first: int, stop: int, worlds: list[str], policies: list[str]) -> None:
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
            for world in worlds:
                for policy in policies:
                    for rewards in ("at once", "late"):
                        if (world, str(seed), policy, rewards) not in done:
                            writer.writerow(play(world, seed, policy, rewards))
                            file.flush()


def table(out: Path) -> str:
    """Clicks in 100 visits, and shares of what is earned with rewards at once."""
    cells: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    with out.open() as file:
        for row in csv.DictReader(file):
            share = 9.0 * float(row["earned"]) / float(row["best"])
            cells[row["world"], row["policy"], row["rewards"]][row["seed"]] = share
    lines = [
        "| world | policy | at once | late | late / its own at once | late / `bernoulli-ts` at once "
        "(least) | seeds |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for (world, policy, rewards), values in cells.items():
        if rewards == "late" and (world, "bernoulli-ts", "at once") in cells:
            pairs = (cells[world, policy, "at once"], cells[world, "bernoulli-ts", "at once"])
            late = np.array(list(values.values()))
            own, sampled = (np.array([other[seed] for seed in values]) for other in pairs)
            lines.append(
                f"| `{world}` | `{policy}` | {own.mean():.2f} | {late.mean():.2f} "
                f"| {late.sum() / own.sum():.3f} | {late.sum() / sampled.sum():.3f} "
                f"({(late / sampled).min():.3f}) | {len(late)} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seeds", default="51000:51010", help="first:stop")
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--policies", default="bernoulli-ts,tide")
    given = parser.parse_args()
    first, stop = map(int, given.seeds.split(":"))
    if given.what == "run":
        run(given.out, first, stop, given.worlds.split(","), given.policies.split(","))
    print(table(given.out))


if __name__ == "__main__":
    main()
