"""A shop of four weeks for the dashboard of `tidepull serve`: banners by the hour, a new one
half-way, late clicks.

    python examples/serve_shop.py agents && tidepull serve --db agents --insecure

The weeks end now, so that the page looks like that of a shop that runs.
"""

import heapq
import math
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.agent.commands import Request
from tidepull.agent.served import ServedAgent

TIDE = ("tide", {"also": ["calendar"]})
WITHIN = 3 * 3600.0
NEW, NEW_FROM, NEW_TO = "picnic", 12, 17


def best(at: float, new_since: float) -> str:
    """Coffee by day, dinner in the evening, brunch on weekends before noon; the new banner takes
    the afternoons."""
    moment = datetime.fromtimestamp(at, UTC)
    if NEW_FROM <= moment.hour < NEW_TO and at >= new_since:
        return NEW
    if moment.weekday() >= 5 and moment.hour < 12:
        return "brunch"
    return "dinner" if 17 <= moment.hour < 23 else "coffee"


def visitors(since: float, days: int, a_day: int, rng: np.random.Generator) -> list[float]:
    """When they come: few at night, most in the evening."""
    times = since + np.sort(rng.uniform(0.0, days * 86_400.0, 2 * days * a_day))
    busy = 0.5 + 0.45 * np.cos(math.tau * (times % 86_400 / 86_400 - 0.75))
    return [float(at) for at in times[rng.random(len(times)) < busy]]


def fill(path: Path, *, days: int = 28, a_day: int = 400, policy: Any = TIDE, seed: int = 0) -> int:
    """Write the agent's file; how many decisions it has."""
    end = time.time()
    rng = np.random.default_rng(seed)
    new_since = end - 0.4 * days * 86_400
    clicks: list[tuple[float, str, float]] = []
    context = {"device": ["phone", "desktop"]}
    agent = ServedAgent(
        path, arms=["coffee", "dinner", "brunch"], context=context, policy=policy, seed=seed, training="manual",
        control=0.1, min_share=0.02, reward_within=WITHIN, capacity=8,
    )  # fmt: skip
    with agent:
        times = visitors(end - days * 86_400, days, a_day, rng)
        for n, at in enumerate(times):
            if NEW not in agent.arms and at >= new_since:
                agent.add(NEW, at=at)
            while clicks and clicks[0][0] <= at:
                paid_at, id, reward = heapq.heappop(clicks)
                agent.reward_ahead(id, reward, at=paid_at)
            visitor = {"device": "phone" if rng.random() < 0.6 else "desktop"}
            (decision,), _ = agent.choose_ahead([Request(context=visitor, at=at)])
            liked = rng.random() < (0.35 if decision.arm == best(at, new_since) else 0.12)
            if rng.random() < 0.97:
                heapq.heappush(clicks, (at + rng.exponential(400.0), decision.id, float(liked)))
            if n % 4 == 0:
                agent.slice()
        agent.save()
    return len(times)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if sys.argv[1:] else "agents")
    directory.mkdir(parents=True, exist_ok=True)
    print(f"{fill(directory / 'shop.db'):,} decisions in {directory / 'shop.db'}")
