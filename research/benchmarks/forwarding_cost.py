"""What it costs to ask a shard that has not got the agent: the same load at the owner, and at the
other shard.

    python -m research.benchmarks.forwarding_cost [--seconds 5]

Two shards on one PostgreSQL database with full sync, `bernoulli-ts`, single decisions; shards,
database and generator share the machine. Writes research/results/forwarding_cost.csv and the table
of research/lab/service.md.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import tempfile
from pathlib import Path
from typing import Any

from research.benchmarks.machine import describe
from research.benchmarks.regret_rows import ROOT, write_between
from research.benchmarks.wire import loaded, request

OUT = ROOT / "research" / "results" / "forwarding_cost.csv"
CONNECTIONS = (1, 8)


def main() -> None:
    from tests.postgres import private

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    with private() as server, tempfile.TemporaryDirectory() as folder:
        rows = measured(server, Path(folder), given.seconds)
    with OUT.open("w", newline="") as handle:
        handle.write(f"# {describe()}\n")
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    write_between(ROOT / "research" / "lab" / "service.md", "forwarding-cost", table(rows))


def measured(server: Any, folder: Path, seconds: float) -> list[dict[str, Any]]:
    from tests.integration.service.houses import SHOP
    from tests.integration.service.neighbourhood import street

    rows = []
    with street(server, folder) as shards:
        first, second = shards.start(), shards.start()
        assert first.ask("POST", "/v1/agents", SHOP)[0] == 201
        owner, other = (first, second) if shards.owner() == first.url else (second, first)
        asked = request(
            "/v1/agents/shop/choose", {"context": {"age": 31, "device": "phone"}}, shards.token
        )
        for connections in CONNECTIONS:
            for where, shard in (("the owner", owner), ("the other shard", other)):
                asyncio.run(loaded(shard.port, connections, 0.5, lambda _: asked, lambda _: None))
                load = loaded(shard.port, connections, seconds, lambda _: asked, lambda _: None)
                count, took, passed = asyncio.run(load)
                took.sort()
                half, most = (1000 * took[int(share * len(took))] for share in (0.5, 0.99))
                rows.append(
                    {"asked": where, "connections": connections, "decisions/s": round(count / passed),
                     "p50 ms": round(half, 2), "p99 ms": round(most, 2)}
                )  # fmt: skip
                print(rows[-1], flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    lines += ["| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
