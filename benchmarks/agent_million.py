"""A million events through one agent on disk: memory, cost and bytes for each, and how long a restart takes.

    python -m benchmarks.agent_million [--events 1000000] [--policy bernoulli-ts]

Writes results/agent_million.csv (a row for each twentieth) and results/agent_million.svg.
"""

from __future__ import annotations

import argparse
import csv
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.agent_speed import CONTEXT, visits
from tidepull.online.agent import Agent

OUT = Path(__file__).parents[1] / "results"


def restart(path: Path) -> float:
    started = time.perf_counter()
    with Agent(path, read_only=True):
        return time.perf_counter() - started


def resident() -> float:
    """Megabytes of memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def run(path: Path, events: int, policy: str) -> list[dict[str, Any]]:
    given, rng, rows = visits(1000), np.random.default_rng(0), []
    agent = Agent(path, arms=["a", "b", "c"], context=CONTEXT, policy=policy, seed=0, upkeep="inline")
    part = max(1, events // 40)
    for twentieth in range(20):
        started = time.thread_time()
        for n in range(part):
            at = 1.78e9 + 30.0 * (twentieth * part + n)
            agent.reward(agent.choose(given[n % 1000], at=at).id, float(rng.random() < 0.3), at=at + 5)
        spent = time.thread_time() - started
        size = path.stat().st_size
        done = 2 * part * (twentieth + 1)
        rows.append({
            "events": done, "ms_an_event": 1e3 * spent / (2 * part), "memory_mb": resident(),
            "bytes_an_event": size / done,
        })  # fmt: skip
        print({k: round(v, 4) for k, v in rows[-1].items()}, flush=True)
    agent.save()
    agent.close()
    return rows


def draw(rows: list[dict[str, Any]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axes, name, title in zip(
        panels, ("ms_an_event", "memory_mb"), ("ms an event", "memory, MB"), strict=True
    ):
        axes.plot([row["events"] for row in rows], [row[name] for row in rows])
        axes.set(title=title, xlabel="events")
        axes.set_ylim(bottom=0)
    figure.savefig(OUT / "agent_million.svg", metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--policy", default="bernoulli-ts")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        path = Path(name) / "shop.db"
        rows = run(path, given.events, given.policy)
        recent = restart(path)
        with Agent(path, upkeep="manual") as agent:
            newest = agent._desk.ledger.snapshots()[:2]
            agent._desk.ledger.drop_snapshots(newest[1])
        older = restart(path)
        print(f"restart: {recent:.2f} s with a snapshot of the end, {older:.2f} s with the one before it")
    rows[-1] |= {"restart_s": recent, "restart_older_s": older}
    with (OUT / "agent_million.csv").open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[-1]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()})
    draw(rows)


if __name__ == "__main__":
    main()
