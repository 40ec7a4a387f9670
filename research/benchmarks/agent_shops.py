"""Simulated shops: what an agent earns beside an A/B test, Thompson sampling, the best window in
hindsight and one who knows all.

    python -m research.benchmarks.agent_shops [--first 0] [--shops 30] [--policy tide]

In every shop the click rate of each arm has its own daily and weekly swing and differs by device;
traffic follows the hour; rewards come minutes to days late and a tenth never; two arms are added
and one is retired on the way. Writes to research/results/agent_shops_gain.csv, shop by shop.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.agent.agent import Agent
from tidepull.types import FloatArray

OUT = Path(__file__).parents[1] / "results"
MONDAY = 1_780_272_000.0
WINDOWS = (100, 300, 1000)


class Shop:
    """Arms 0-2 from the start, 3 after a third, 4 after half; arm 0 is retired after two thirds."""

    def __init__(self, seed: int, visits: int) -> None:
        rng = np.random.default_rng(seed)
        days = visits / 130
        quarters = MONDAY + 900.0 * np.arange(int(days * 96) + 200)
        rate = 1.35 * (1 + 0.8 * np.cos(math.tau * (quarters / 86_400 - rng.random())))
        times = np.repeat(quarters, rng.poisson(rate))[:visits]
        self.at = times + 900.0 * np.sort(rng.random(len(times)))
        self.device = rng.integers(2, size=len(times))
        self.luck = rng.random(len(times))
        self.delay = np.exp(rng.uniform(math.log(60), math.log(3 * 86_400), len(times)))
        self.lost = rng.random(len(times)) < 0.1
        self._base = rng.uniform(-2.2, -1.0, 5)
        self._day, self._week = rng.uniform(0.3, 1.2, 5), rng.uniform(0.0, 0.6, 5)
        self._phase = rng.random((2, 5))
        self._device = rng.normal(0, 0.4, (2, 5))

    def __len__(self) -> int:
        return len(self.at)

    def rates(self, n: int) -> FloatArray:
        """Every arm's click rate for visit n."""
        day = self._day * np.cos(math.tau * (self.at[n] / 86_400 - self._phase[0]))
        week = self._week * np.cos(math.tau * (self.at[n] / 604_800 - self._phase[1]))
        return np.asarray(
            1 / (1 + np.exp(-(self._base + day + week + self._device[self.device[n]])))
        )

    def open(self, n: int) -> list[int]:
        """The arms that can be chosen at visit n."""
        third, half, two_thirds = len(self) // 3, len(self) // 2, 2 * len(self) // 3
        arms = [0, 1, 2] + [3] * (n >= third) + [4] * (n >= half)
        return arms[1:] if n >= two_thirds else arms


def serve(shop: Shop, policy: Any, seed: int, **given: Any) -> tuple[Agent, FloatArray, list[str]]:
    """All visits of a shop: the agent, what was paid in expectation, and the groups."""
    agent = Agent.memory(
        arms=["0", "1", "2"],
        context={"device": ["0", "1"]},
        policy=policy,
        seed=seed,
        training="inline",
        capacity=8,
        **given,
    )
    waiting: list[tuple[float, str, float]] = []
    earned, groups = np.zeros(len(shop)), []
    for n in range(len(shop)):
        at = float(shop.at[n])
        while waiting and waiting[0][0] <= at:
            due, id, reward = heapq.heappop(waiting)
            agent.reward(id, reward, at=due)
        change(agent, shop, n, at)
        decision = agent.choose({"device": str(shop.device[n])}, at=at)
        rate = shop.rates(n)[int(decision.arm)]
        earned[n] = rate
        groups.append(decision.group)
        if not shop.lost[n]:
            heapq.heappush(waiting, (at + shop.delay[n], decision.id, float(shop.luck[n] < rate)))
    for due, id, reward in sorted(waiting):
        agent.reward(id, reward, at=due)
    return agent, earned, groups


def change(agent: Agent, shop: Shop, n: int, at: float) -> None:
    wanted = {str(arm) for arm in shop.open(n)}
    if n and wanted != set(agent.arms):
        for label in wanted - set(agent.arms):
            agent.add(label, at=at)
        for label in set(agent.arms) - wanted:
            agent.retire(label, at=at)


def gain(seed: int, visits: int, policy: str) -> dict[str, Any]:
    """One shop: mean click rates of the agent and of all others."""
    shop = Shop(seed, visits)
    rates = [shop.rates(n)[shop.open(n)] for n in range(len(shop))]
    windows = [
        serve(shop, ("sw-ucb", {"window": w, "xi": 0.1}), seed, control=0.0)[1].mean()
        for w in WINDOWS
    ]
    return {
        "shop": seed,
        "policy": policy,
        "visits": len(shop),
        "agent": float(serve(shop, policy, seed)[1].mean()),
        "A/B test": float(np.mean([rate.mean() for rate in rates])),
        "Thompson sampling": float(serve(shop, "bernoulli-ts", seed, control=0.0)[1].mean()),
        "best window": float(max(windows)),
        "clairvoyant": float(np.mean([rate.max() for rate in rates])),
    }


def write(out: Path, row: dict[str, Any]) -> None:
    """One more row, in the order of shops; one of the same shop is replaced."""
    rows = []
    if out.exists():
        with out.open(newline="") as handle:
            rows = [other for other in csv.DictReader(handle) if int(other["shop"]) != row["shop"]]
    rows.append({k: f"{v:.5f}" if isinstance(v, float) else v for k, v in row.items()})
    half = out.with_suffix(f".{os.getpid()}")
    with half.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda one: int(one["shop"])))
    half.replace(out)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0, help="the first shop")
    parser.add_argument("--shops", type=int, default=30)
    parser.add_argument("--visits", type=int, default=3000)
    parser.add_argument("--policy", default="tide")
    given = parser.parse_args()
    for seed in range(given.first, given.first + given.shops):
        row = gain(seed, given.visits, given.policy)
        print(row, flush=True)
        write(OUT / "agent_shops_gain.csv", row)


if __name__ == "__main__":
    main()
