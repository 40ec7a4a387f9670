"""A million events through one agent on disk: memory, cost and bytes for each, and how long a
restart takes.

    python -m research.benchmarks.agent_million [--events 1000000] [--policy tide] [--from-nothing]
    python -m research.benchmarks.agent_million draw

Half are decisions, half their rewards, a hundred of each to a commit, as a server with many callers
has them; upkeep is done after every reward and counted. Cost is processor time of the calling
thread, so that neighbours and the disk count little. Writes to research/results/agent_million.csv
as it goes, a row for each twentieth, in place of those of the same policy; `draw` makes
research/lab/figures/agent_million.svg of it.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.agent_speed import CONTEXT, visits
from tidepull.agent.commands import Request
from tidepull.agent.served import ServedAgent

ROOT = Path(__file__).parents[2]
BATCH = 100
OUT = ROOT / "research" / "results" / "agent_million.csv"
LONG = 100_000
"""Runs of fewer events are not drawn."""
COLUMNS = (
    "policy", "events", "ms_an_event", "memory_mb", "bytes_an_event", "restart_s", "restart_older_s", "older_records",
    "restart_from_nothing_s",
)  # fmt: skip


def restart(path: Path) -> float:
    """Seconds until an agent that is opened again can decide."""
    started = time.perf_counter()
    with ServedAgent(path, read_only=True):
        return time.perf_counter() - started


def resident() -> float:
    """Megabytes of memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def on_disk(path: Path) -> int:
    """Bytes of the ledger, with what is written ahead."""
    return sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))


def together(
    agent: ServedAgent, contexts: list[dict[str, Any]], at: float, rng: np.random.Generator
) -> None:
    """Decisions half a minute apart and their rewards, safe when all are done."""
    asked = [Request(context, at=at + 30.0 * n) for n, context in enumerate(contexts)]
    for decision in agent.choose_ahead(asked)[0]:
        _, seq = agent.reward_ahead(
            decision.id, float(rng.random() < 0.3), at=at + 30.0 * len(asked)
        )
        while agent.work():
            pass
    agent.commit(seq)


def run(path: Path, events: int, policy: str) -> Iterator[dict[str, Any]]:
    """A row for each twentieth."""
    given, rng = visits(1000), np.random.default_rng(0)
    part = max(1, events // 40)
    with ServedAgent(
        path, arms=["a", "b", "c"], context=CONTEXT, policy=policy, seed=0, training="manual"
    ) as agent:
        for twentieth in range(20):
            started = time.thread_time()
            for first in range(0, part, BATCH):
                at = 1.78e9 + 30.0 * (twentieth * part + first)
                together(agent, given[first % 1000 :][: min(BATCH, part - first)], at, rng)
            spent = time.thread_time() - started
            done = 2 * part * (twentieth + 1)
            yield {
                "policy": policy, "events": done, "ms_an_event": 1e3 * spent / (2 * part), "memory_mb": resident(),
                "bytes_an_event": on_disk(path) / done,
            }  # fmt: skip
        agent.save()


def restarts(path: Path, *, from_nothing: bool) -> dict[str, Any]:
    """Seconds of a restart: with a snapshot of the end, with one that is older by some thousand
    records, and if asked with none."""
    found: dict[str, Any] = {"restart_s": restart(path)}
    with ServedAgent(path, training="manual") as agent:
        ledger = agent._commands.ledger
        older = next(
            seq for seq in [*ledger.snapshots(), 0] if ledger.last - seq >= 1000 or seq == 0
        )
        found["older_records"] = ledger.last - older
        ledger.drop_snapshots(older)
    found["restart_older_s"] = restart(path)
    if from_nothing:
        with ServedAgent(path, training="manual") as agent:
            agent._commands.ledger.drop_snapshots(0)
        found["restart_from_nothing_s"] = restart(path)
    return found


def read() -> list[dict[str, Any]]:
    """The rows that there are."""
    if not OUT.exists():
        return []
    with OUT.open(newline="") as handle:
        return list(csv.DictReader(handle))


def write(rows: list[dict[str, Any]]) -> None:
    """All rows, whole or not at all."""
    half = OUT.with_suffix(f".{os.getpid()}")
    with half.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()})
    half.replace(OUT)


def draw() -> None:
    """Cost and memory over events."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "tidepull"
    rows = read()
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axes, column, title in zip(
        panels,
        ("ms_an_event", "memory_mb"),
        ("milliseconds an event, upkeep included", "memory of the process, MB"),
        strict=True,
    ):
        for policy in dict.fromkeys(row["policy"] for row in rows):
            mine = [row for row in rows if row["policy"] == policy]
            if int(mine[-1]["events"]) < LONG:
                continue
            axes.plot(
                [int(row["events"]) for row in mine],
                [float(row[column]) for row in mine],
                label=policy,
            )
        axes.set(title=title, xlabel="events")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x / 1e6:g} m" if x else "0")
    panels[0].legend(frameon=False)
    figure.savefig(
        ROOT / "research" / "lab" / "figures" / "agent_million.svg", metadata={"Date": None}
    )
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "draw"], nargs="?", default="run")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--policy", default="tide")
    parser.add_argument(
        "--from-nothing", action="store_true", help="also restart without any snapshot"
    )
    given = parser.parse_args()
    if given.what == "draw":
        draw()
        return
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=".") as name:
        path = Path(name) / "shop.db"
        for row in run(path, given.events, given.policy):
            rows.append(row)
            print({k: v if isinstance(v, str) else round(v, 4) for k, v in row.items()}, flush=True)
            write([*(other for other in read() if other["policy"] != given.policy), *rows])
        rows[-1] |= restarts(path, from_nothing=given.from_nothing)
        print(rows[-1], flush=True)
        write([*(other for other in read() if other["policy"] != given.policy), *rows])


if __name__ == "__main__":
    main()
