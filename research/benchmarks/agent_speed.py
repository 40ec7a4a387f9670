"""What a decision and its reward cost in an agent, and how far SQLite's commits are from the disk's
own.

    python -m research.benchmarks.agent_speed [--rounds 3000]

Five context fields, upkeep apart (a thread's business). Times of calls are processor time of the
calling thread, so that neighbours on a shared machine count little; commits wait for the disk and
are told in time on the clock. Writes research/results/agent_speed.csv.
"""

from __future__ import annotations

import argparse
import csv
import sqlite3
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.machine import describe
from tidepull.agent.agent import Agent

OUT = Path(__file__).parents[1] / "results" / "agent_speed.csv"
CONTEXT: dict[str, Any] = {
    "device": ["phone", "desktop"], "age": float, "basket": float, "member": bool, "country": ["de", "fr", "us"],
}  # fmt: skip
KINDS = [
    ("random", 3), ("bernoulli-ts", 3), ("lin-ts", 3), ("tide", 3), ("tide", 10),
]  # fmt: skip


def visits(count: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        {
            "device": str(rng.choice(["phone", "desktop"])),
            "age": float(rng.normal(40, 10)),
            "basket": float(rng.exponential(30)),
            "member": bool(rng.random() < 0.3),
            "country": str(rng.choice(["de", "fr", "us"])),
        }
        for _ in range(count)
    ]


def calls(policy: str, n_arms: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of `choose` and `reward` together, the first tenth apart."""
    agent = Agent.memory(
        arms=[f"arm {k}" for k in range(n_arms)],
        context=CONTEXT,
        policy=policy,
        seed=0,
        training="manual",
    )
    rng, spent = np.random.default_rng(1), []
    for n, context in enumerate(visits(rounds)):
        reward = float(rng.random() < 0.3)
        started = time.thread_time()
        agent.reward(
            agent.choose(context, at=1.78e9 + 60.0 * n).id, reward, at=1.78e9 + 60.0 * n + 5
        )
        spent.append(1e3 * (time.thread_time() - started))
        while agent.work():
            pass
    late = np.array(spent[rounds // 10 :])
    p50, p99, p999 = np.quantile(late, [0.5, 0.99, 0.999])
    return {
        "what": f"{policy}, {n_arms} arms, memory",
        "p50_ms": p50,
        "p99_ms": p99,
        "p99.9_ms": p999,
    }


def raw_commits(folder: Path, rows: int = 500) -> float:
    """Median milliseconds of a commit of one row, with the agent's settings."""
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (x BLOB)")
    spent = []
    for _ in range(rows):
        started = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?)", (b"x" * 200,))
        connection.execute("COMMIT")
        spent.append(1e3 * (time.perf_counter() - started))
    connection.close()
    return float(np.median(spent))


def on_disk(folder: Path, threads: int, each: int = 300) -> dict[str, Any]:
    """Decisions and rewards a second with so many client threads, every one of them safe on
    disk."""
    path = folder / f"{threads}.db"
    agent = Agent(
        path,
        arms=["a", "b", "c"],
        context=CONTEXT,
        policy="bernoulli-ts",
        seed=0,
        training="manual",
    )
    given = visits(each)

    def client() -> None:
        for context in given:
            agent.reward(agent.choose(context).id, 1.0)

    clients = [threading.Thread(target=client) for _ in range(threads)]
    started = time.perf_counter()
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    spent = time.perf_counter() - started
    agent.close()
    events = 2 * threads * each
    return {
        "what": f"bernoulli-ts, SQLite, {threads} thread{'s' * (threads > 1)}", "events_a_second": events / spent,
        "p50_ms": 1e3 * spent * threads / events, "bytes_an_event": path.stat().st_size / events,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3000)
    rounds = parser.parse_args().rounds
    machine = describe()
    print(machine)
    rows = [calls(policy, n_arms, rounds) for policy, n_arms in KINDS]
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        rows.append({"what": "SQLite alone, one row a commit", "p50_ms": raw_commits(folder)})
        rows += [on_disk(folder, threads) for threads in (1, 8)]
    rows = [{**row, "machine": machine} for row in rows]
    columns = [
        "what",
        "p50_ms",
        "p99_ms",
        "p99.9_ms",
        "events_a_second",
        "bytes_an_event",
        "machine",
    ]
    with OUT.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})
            print(row)


if __name__ == "__main__":
    main()
