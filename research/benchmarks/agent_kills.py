"""Processes killed at random instants, many times over, and the ledger audited against what their
callers were told.

    python -m research.benchmarks.agent_kills [--kills 500]

Every second shop has one thread and does its work in line: at the end its agent is compared with a
twin that was never killed. The others have four threads and work in the background: after every
kill the ledger is read and compared. Writes research/results/agent_kills.csv as it goes, and goes
on from what is there.
"""

from __future__ import annotations

import argparse
import csv
import random
import tempfile
from pathlib import Path

from tests.unit.agent.test_kills import audit, kill_after, start, told
from tests.unit.agent.worlds import SHOP, serve
from tidepull.agent.agent import Agent

OUT = Path(__file__).parents[1] / "results" / "agent_kills.csv"
VISITS = 200
"""Visits of a shop that one thread serves; as many kills as fit."""


def one_thread(folder: Path, rng: random.Random, kills: int, policy: str) -> dict[str, object]:
    """A shop that is killed again and again until all visitors are served; then it must decide like
    its twin."""
    path, said, killed = folder / "shop.db", folder / "told", 0
    while killed < kills:
        process = start(path, said, policy, 0, VISITS, 1)
        if not kill_after(
            process, said, len(told(said)) + rng.randrange(5, 60), rng.random() * 0.004
        ):
            break
        killed += 1
    kill_after(start(path, said, policy, 0, VISITS, 1), said, 10**9, 0.0)
    audit(path, said)
    twin = Agent.memory(**{**SHOP, "policy": policy}, training="inline")
    serve(twin, 0, VISITS, late=0)
    with Agent(path, training="inline") as agent:
        same = serve(agent, VISITS, VISITS + 30) == serve(twin, VISITS, VISITS + 30)
    return {
        "threads": 1,
        "policy": policy,
        "kills": killed,
        "acknowledged": _acknowledged(said),
        "like_its_twin": same,
    }


def four_threads(folder: Path, rng: random.Random, kills: int) -> dict[str, object]:
    """A shop of four threads; every life ends with a kill."""
    path, said, killed = folder / "shop.db", folder / "told", 0
    for life in range(kills):
        process = start(path, said, "bernoulli-ts", 600 * life, 600 * (life + 1), 4)
        lines = len(told(said)) + rng.randrange(20, 300)
        killed += kill_after(process, said, lines, rng.random() * 0.004)
        audit(path, said)
    acknowledged = _acknowledged(said)
    return {
        "threads": 4, "policy": "bernoulli-ts", "kills": killed, "acknowledged": acknowledged, "like_its_twin": "",
    }  # fmt: skip


def _acknowledged(said: Path) -> int:
    return sum(words[0] in ("decided", "paid") for words in told(said))


def one_shop(shop: int, kills: int) -> dict[str, object]:
    """Shop number so and so, killed at most so often."""
    rng = random.Random(shop)
    with tempfile.TemporaryDirectory() as name:
        if shop % 2:
            return {"shop": shop, **four_threads(Path(name), rng, kills)}
        policy = "tide" if shop % 10 == 0 else "lin-ts"
        return {"shop": shop, **one_thread(Path(name), rng, kills, policy)}


def known() -> list[dict[str, str]]:
    """Shops that were done before."""
    if not OUT.exists():
        return []
    with OUT.open(newline="") as handle:
        return list(csv.DictReader(handle))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=500)
    before = known()
    left, shop = parser.parse_args().kills - sum(int(row["kills"]) for row in before), len(before)
    with OUT.open("a", newline="") as handle:
        columns = ["shop", "threads", "policy", "kills", "acknowledged", "like_its_twin"]
        writer = csv.DictWriter(handle, columns, lineterminator="\n")
        if not before:
            writer.writeheader()
        while left > 0:
            row = one_shop(shop, min(left, 10))
            print(row, flush=True)
            writer.writerow(row)
            handle.flush()
            left -= max(1, int(str(row["kills"])))
            shop += 1


if __name__ == "__main__":
    main()
