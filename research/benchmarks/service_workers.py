"""Several workers against one: `tidepull serve --workers N` with 20 agents in one directory.

    python -m research.benchmarks.service_workers [--seconds 10] [--workers 1 2] [--policies tide]

Server and generator share the machine; every commit is synced. 8 connections make single decisions
of agents in turn, and every decision gets its reward a little later, in batches. Services with one
and with several workers take turns, twice each. Prints decisions a second, and processor time of
all processes of the service a decision; the ratios are to one worker.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from research.benchmarks.service_load import ARMS, FIELDS, visit
from research.benchmarks.wire import Connection, loaded, ready, request

AGENTS, CONNECTIONS, TURNS = 20, 8, 2
Row = dict[str, float]


@contextmanager
def service(folder: str, workers: int) -> Iterator[tuple[int, int]]:
    """The process and the port of a service."""
    command = [sys.executable, "-m", "tidepull", "serve", "--insecure", "--db", folder]
    command += ["--port", "0", "--workers", str(workers), "--drain", "0"]
    command += ["--requests", "1000000", "--log", str(Path(folder) / "access.jsonl")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        where = re.search(r"http://[^:]+:(\d+)", line)
        assert where is not None, line
        yield process.pid, int(where.group(1))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def processor_seconds(pid: int) -> float:
    """Of a process and those that it has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_seconds(int(child)) for child in children)


async def prepare(port: int, policy: str) -> None:
    connection = await Connection.to(port)
    for k in range(AGENTS):
        body = {"name": f"shop{k}", "arms": ARMS, "context": FIELDS, "policy": policy, "seed": k}
        status, answer = await connection.ask(request("/v1/agents", body))
        assert status == 201, answer
    connection.close()


async def load(port: int, first: int, seconds: float) -> tuple[int, float]:
    """Decisions that were made, and a second; their ids begin with number `first`."""
    rng, mark = random.Random(0), "n" * 12
    asked = [
        request(f"/v1/agents/shop{k % AGENTS}/choose", {"context": visit(rng), "id": mark})
        for k in range(50 * AGENTS)
    ]
    waiting: deque[str] = deque()
    done = asyncio.Event()

    def ask(n: int) -> bytes:
        return asked[(first + n) % len(asked)].replace(mark.encode(), b"%012d" % (first + n))

    async def pay() -> None:
        connection = await Connection.to(port)
        while not done.is_set():
            await asyncio.sleep(0.02)
            by_agent: dict[int, list[str]] = {}
            for _ in range(len(waiting)):
                id = waiting.popleft()
                by_agent.setdefault(int(id) % AGENTS, []).append(id)
            for agent, ids in by_agent.items():
                body = {"rewards": [{"id": id, "reward": int(rng.random() < 0.3)} for id in ids]}
                path = f"/v1/agents/shop{agent}/rewards"
                status, answer = await connection.ask(request(path, body))
                assert status == 200, answer
        connection.close()

    payer = asyncio.create_task(pay())
    count, _, passed = await loaded(
        port, CONNECTIONS, seconds, ask, lambda body: waiting.append(json.loads(body)["id"])
    )
    done.set()
    await payer
    return count, count / passed


def measure(policy: str, workers: int, seconds: float) -> Row:
    where = os.environ.get("TIDEPULL_BENCH_DIR")
    with tempfile.TemporaryDirectory(dir=where) as folder, service(folder, workers) as (pid, port):
        asyncio.run(ready(port))
        asyncio.run(prepare(port, policy))
        asyncio.run(load(port, 0, min(seconds, 2.0)))  # to warm up
        before = processor_seconds(pid)
        count, rate = asyncio.run(load(port, 10**9, seconds))
        used = processor_seconds(pid) - before
    return {"rate": rate, "processor_us": 1e6 * used / count}


def compare(policy: str, counts: list[int], seconds: float, turns: int = TURNS) -> dict[int, Row]:
    """The better of several turns, by the number of workers."""
    rows: dict[int, list[Row]] = {workers: [] for workers in counts}
    for _ in range(turns):
        for workers in counts:
            rows[workers].append(measure(policy, workers, seconds))
            print(policy, workers, rows[workers][-1], flush=True)
    return {
        workers: {
            "rate": max(row["rate"] for row in of),
            "processor_us": min(row["processor_us"] for row in of),
        }
        for workers, of in rows.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--policies", nargs="*", default=["bernoulli-ts", "tide"])
    given = parser.parse_args()
    for policy in given.policies:
        found = compare(policy, given.workers, given.seconds)
        one = found[given.workers[0]]
        for workers, row in found.items():
            rates = row["rate"] / one["rate"], row["processor_us"] / one["processor_us"]
            print(
                f"{policy}, {workers} workers: {row['rate']:,.0f} decisions a second ({rates[0]:.2f}x),",
                end=" ",
            )
            print(f"processor {row['processor_us']:.0f} us a decision ({rates[1]:.2f}x)")


if __name__ == "__main__":
    main()
