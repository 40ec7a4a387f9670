"""How long an `AsyncAgent` blocks the event loop of its program.

python -m research.benchmarks.loop_lag [--policy tide] [--seconds 20] [--rate 50]

A ticker wakes every millisecond and measures how late it is, in wall time, while callers choose and
reward through an agent on disk at `--rate` decisions a second. The first row has the same ticker
without an agent: what the machine itself adds. Run it on a quiet machine. The column `others` is the
processor time that other threads of the process took within a tick, at its 99.9% quantile: the most
by which they can have held the interpreter's lock, on a busy machine too.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np

import tidepull

TICK_SECONDS = 0.001
CONTEXT = {"device": ["phone", "desktop"], "age": float, "basket": float}


async def ticks(seconds: float, found: list[tuple[float, float]]) -> None:
    """Milliseconds by which each tick is late, and that other threads computed meanwhile."""
    end = time.perf_counter() + seconds
    while (before := time.perf_counter()) < end:
        others = time.process_time() - time.thread_time()
        await asyncio.sleep(TICK_SECONDS)
        others = time.process_time() - time.thread_time() - others
        found.append(((time.perf_counter() - before - TICK_SECONDS) * 1000, others * 1000))


async def visits(agent: tidepull.AsyncAgent, seconds: float, rate: float) -> int:
    """Decisions and their rewards at random moments."""
    rng, count, end = np.random.default_rng(0), 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        seen = {"device": "phone", "age": 20 + 50 * rng.random(), "basket": 100 * rng.random()}
        decision = await agent.choose(seen)
        await agent.reward(decision.id, float(rng.random() < 0.1))
        count += 1
        await asyncio.sleep(rng.exponential(1 / rate))
    return count


async def lag_of(policy: str | None, seconds: float, rate: float) -> tuple[np.ndarray, int]:
    """What the ticker found, and how many decisions were made beside it."""
    lags: list[tuple[float, float]] = []
    if policy is None:
        await ticks(seconds, lags)
        return np.array(lags), 0
    with tempfile.TemporaryDirectory() as folder:
        arms = ["coffee", "dinner", "brunch"]
        made = tidepull.Agent(Path(folder) / "shop.db", arms=arms, context=CONTEXT, policy=policy)
        async with tidepull.AsyncAgent(made) as agent:
            await visits(agent, min(2.0, seconds), 200.0)  # compiled and past its first jobs
            _, count = await asyncio.gather(ticks(seconds, lags), visits(agent, seconds, rate))
    return np.array(lags), count


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="tide")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=50.0)
    given = parser.parse_args()
    print("| agent | decisions | p50 | p99 | p99.9 | longest, ms | others, ms |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for policy in (None, "bernoulli-ts", given.policy):
        found, count = asyncio.run(lag_of(policy, given.seconds, given.rate))
        lags, others = found.T
        numbers = [*np.quantile(lags, (0.5, 0.99, 0.999)), lags.max(), np.quantile(others, 0.999)]
        row = [policy or "none", f"{count:,}", *(f"{number:.2f}" for number in numbers)]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
