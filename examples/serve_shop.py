"""A shop of four weeks for the dashboard of `tidepull serve`: banners by the hour, a new one
half-way, late clicks.

    python examples/serve_shop.py agents && tidepull serve --db agents --insecure

The weeks end now, so that the page looks like that of a shop that runs. `best` and `LIKED` are the
truth: a test compares what the page says with them.
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

WITHIN = 3 * 3600.0
LIKED, OTHERWISE = 0.35, 0.12
"""The chance of a click on the banner that is best at that hour, and on any other."""

CLICKS_AFTER, LOST = 400.0, 0.03
"""Seconds until a visitor says whether the banner was liked, on average; and how many never do."""

NEW, NEW_FROM, NEW_TO, NEW_FOR = "picnic", 12, 17, 0.5
"""A banner that is added later: the hours at which it is best, and for which part of the time it is
there."""


def best(at: float, new_since: float) -> str:
    """Coffee by day, dinner in the evening, brunch on weekends before noon; the new banner takes
    the afternoons."""
    moment = datetime.fromtimestamp(at, UTC)
    if NEW_FROM <= moment.hour < NEW_TO and at >= new_since:
        return NEW
    if moment.weekday() >= 5 and moment.hour < 12:
        return "brunch"
    return "dinner" if 17 <= moment.hour < 23 else "coffee"


def busy(at: float | np.ndarray) -> Any:
    """How busy the shop is: nearly empty in the morning, full in the evening (0 to 1)."""
    return 0.5 + 0.45 * np.cos(math.tau * (at % 86_400 / 86_400 - 0.75))


def visitors(since: float, days: int, a_day: int, rng: np.random.Generator) -> list[float]:
    """When they come."""
    times = since + np.sort(rng.uniform(0.0, days * 86_400.0, 2 * days * a_day))
    return [float(at) for at in times[rng.random(len(times)) < busy(times)]]


def visitor(rng: np.random.Generator) -> dict[str, str]:
    """What is known of one."""
    return {"device": "phone" if rng.random() < 0.6 else "desktop"}


def click(arm: str, at: float, new_since: float, rng: np.random.Generator) -> tuple[float, float]:
    """When a visitor says whether a banner was liked (never: infinity), and whether it was."""
    liked = float(rng.random() < (LIKED if arm == best(at, new_since) else OTHERWISE))
    return (math.inf if rng.random() < LOST else at + rng.exponential(CLICKS_AFTER)), liked


def fill(
    path: Path, *, days: int = 28, a_day: int = 400, end: float | None = None, seed: int = 0
) -> int:
    """Write the agent's file, up to a moment (None: now); how many decisions it has."""
    end = time.time() if end is None else end
    rng = np.random.default_rng(seed)
    new_since = end - NEW_FOR * days * 86_400
    clicks: list[tuple[float, str, float]] = []
    agent = ServedAgent(
        path, arms=["coffee", "dinner", "brunch"], context={"device": ["phone", "desktop"]},
        policy="tide", seed=seed, training="manual", control=0.1, min_share=0.02,
        reward_within=WITHIN, capacity=8, shadow=["bernoulli-ts"],
    )  # fmt: skip
    with agent:
        times = visitors(end - days * 86_400, days, a_day, rng)
        for n, at in enumerate(times):
            if NEW not in agent.arms and at >= new_since:
                agent.add(NEW, at=at)
            while clicks and clicks[0][0] <= at:
                paid_at, id, reward = heapq.heappop(clicks)
                agent.reward_ahead(id, reward, at=paid_at)
            (decision,), _ = agent.choose_ahead([Request(context=visitor(rng), at=at)])
            said_at, liked = click(decision.arm, at, new_since, rng)
            heapq.heappush(clicks, (said_at, decision.id, liked))
            if n % 4 == 0:
                agent.slice()
            if n % 2000 == 1999:
                agent.save()
        agent.save()
    return len(times)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if sys.argv[1:] else "agents")
    directory.mkdir(parents=True, exist_ok=True)
    print(f"{fill(directory / 'shop.db'):,} decisions in {directory / 'shop.db'}")
