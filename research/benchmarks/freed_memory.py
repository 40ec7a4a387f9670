"""What the snapshots of four `tide` agents leave behind in memory, with and without
`give_memory_back`.

    python -m research.benchmarks.freed_memory

Snapshots are taken by threads, as the service does. Prints megabytes before and after, each in a
process of its own.
"""

from __future__ import annotations

import multiprocessing
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

FIELDS = {"device": ["phone", "desktop"], "age": float, "member": bool}
AGENTS, VISITS, BATCH = 4, 20, 10


def megabytes() -> float:
    """What this process holds."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def measure(give_back: bool) -> None:
    from tidepull.agent.commands import Request
    from tidepull.agent.served import ServedAgent
    from tidepull.service.server import give_memory_back

    if give_back:
        give_memory_back()
    rng = random.Random(0)
    chosen: dict[str, Any] = {"arms": ["a", "b", "c"], "context": FIELDS, "policy": "tide"}
    with tempfile.TemporaryDirectory() as folder:
        agents = [
            ServedAgent(
                Path(folder) / f"{n}.db", **chosen, seed=n, training="manual", snapshot_every=10**9
            )
            for n in range(AGENTS)
        ]
        for agent in agents * VISITS:
            contexts = [{"age": float(round(rng.gauss(40, 10)))} for _ in range(BATCH)]
            for decision in agent.choose_ahead([Request(context) for context in contexts])[0]:
                _, seq = agent.reward_ahead(decision.id, float(rng.random() < 0.3))
            agent.commit(seq)
            while agent.slice():
                pass
        before = megabytes()
        with ThreadPoolExecutor(AGENTS) as threads:
            for _ in range(2):
                list(threads.map(lambda agent: agent.save(), agents))
        name = "with give_memory_back" if give_back else "without"
        print(
            f"{name}: {before:.0f} MB, after two snapshots of each {megabytes():.0f} MB", flush=True
        )
        for agent in agents:
            agent.close()


def main() -> None:
    processes = multiprocessing.get_context("spawn")
    for give_back in (False, True):
        process = processes.Process(target=measure, args=(give_back,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
