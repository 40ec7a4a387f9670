"""Simulated shops: what an agent earns beside an A/B test, Thompson sampling, the best window in hindsight and one who
knows all; and how often the interval of `lift()` covers the true lift.

    python -m benchmarks.agent_shops gain [--shops 30] [--policy tide-5]
    python -m benchmarks.agent_shops lift [--shops 200] [--policy lin-ts]

In every shop the click rate of each arm has its own daily and weekly swing and differs by device; traffic follows the
hour; rewards come minutes to days late and a tenth never; two arms are added and one is retired on the way. Writes
results/agent_shops_gain.csv and results/agent_shops_lift.csv.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.agent_speed import named
from tidepull.online.agent import Agent
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
        return np.asarray(1 / (1 + np.exp(-(self._base + day + week + self._device[self.device[n]]))))

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
        upkeep="inline",
        room=8,
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


def gain(shops: int, visits: int, policy: str) -> list[dict[str, Any]]:
    rows = []
    for seed in range(shops):
        shop = Shop(seed, visits)
        best = [max(shop.rates(n)[arm] for arm in shop.open(n)) for n in range(len(shop))]
        even = [np.mean([shop.rates(n)[arm] for arm in shop.open(n)]) for n in range(len(shop))]
        row = {
            "shop": seed,
            "policy": policy,
            "visits": len(shop),
            "agent": serve(shop, named(policy), seed)[1].mean(),
            "A/B test": np.mean(even),
            "Thompson sampling": serve(shop, "bernoulli-ts", seed, control=0.0)[1].mean(),
            "clairvoyant": np.mean(best),
        }
        windows = [
            serve(shop, ("sw-ucb", {"window": w, "xi": 0.1}), seed, control=0.0)[1].mean() for w in WINDOWS
        ]
        rows.append({**row, "best window": max(windows)})
        print({k: v if isinstance(v, str) else round(float(v), 4) for k, v in rows[-1].items()}, flush=True)
    return rows


def lift(shops: int, visits: int, policy: str) -> list[dict[str, Any]]:
    rows = []
    for seed in range(shops):
        shop = Shop(1000 + seed, visits)
        agent, earned, groups = serve(shop, named(policy), seed, control=0.2)
        even = np.array([np.mean([shop.rates(n)[arm] for arm in shop.open(n)]) for n in range(len(shop))])
        mine = np.array(groups) == "policy"
        truth = float((earned - even)[mine].mean())
        found = agent.lift()
        covered = found.low <= truth <= found.high
        rows.append(
            {
                "shop": seed,
                "policy": policy,
                "truth": truth,
                "gain": found.gain,
                "low": found.low,
                "high": found.high,
                "covered": covered,
            }
        )
    print(f"covered: {np.mean([row['covered'] for row in rows]):.1%} of {shops} shops")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["gain", "lift"])
    parser.add_argument("--shops", type=int)
    parser.add_argument("--visits", type=int, default=3000)
    parser.add_argument("--policy", default=None)
    given = parser.parse_args()
    if given.what == "gain":
        rows = gain(given.shops or 30, given.visits, given.policy or "tide-5")
    else:
        rows = lift(given.shops or 200, given.visits, given.policy or "lin-ts")
    with (OUT / f"agent_shops_{given.what}.csv").open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.5f}" if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
