"""Durable decisions per second of `tidepull serve` on loopback, and where the time goes.

    python -m research.benchmarks.service_load [--seconds 10] [--quick]
    python -m research.benchmarks.service_load --against COMMIT [--rounds 5] [--seconds 4]
    python -m research.benchmarks.service_load --table

Server and generator are two processes of one machine; every commit is synced. The generator keeps
1, 8 or 32 connections busy with single decisions or batches of 50, and sends every reward a little
later, so that upkeep runs. In the same run the bare framework does the same without a policy: it
parses the same bodies and commits rows of the same size, one transaction for each turn of the loop.
Writes research/results/service_load.csv; `--table` writes what it says into research/lab/service.md.
`--against` plays a commit and the present tree in turn, with 8 connections and `bernoulli-ts`, and
prints medians; about four minutes.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import csv
import functools
import json
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.machine import describe
from research.benchmarks.regret_rows import ROOT, write_between
from research.benchmarks.wire import Connection, loaded, ready, request

OUT = ROOT / "research" / "results" / "service_load.csv"
FIELDS = {
    "device": ["phone", "desktop"], "age": "number", "basket": "number", "member": "boolean",
    "country": ["de", "fr", "us"],
}  # fmt: skip
ARMS = [f"arm {k}" for k in range(5)]
BATCH = 50
POLICIES = ["none", "bernoulli-ts", "tide"]


def visit(rng: random.Random) -> dict[str, Any]:
    return {
        "device": rng.choice(["phone", "desktop"]),
        "age": round(rng.gauss(40, 10), 1),
        "basket": round(rng.expovariate(1 / 30), 2),
        "member": rng.random() < 0.3,
        "country": rng.choice(["de", "fr", "us"]),
    }


def bodies(name: str, batch: bool) -> list[bytes]:
    rng = random.Random(0)
    path = f"/v1/agents/{name}/choose"
    if not batch:
        return [request(path, {"context": visit(rng)}) for _ in range(2000)]
    many = [{"decisions": [{"context": visit(rng)} for _ in range(BATCH)]} for _ in range(100)]
    return [request(f"{path}/batch", body) for body in many]


# ---- the servers, each in a process of its own


class Spent:
    """Seconds inside some functions, added up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, what: str, function: Any) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **given: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args, **given)
            finally:
                self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - started

        return wrapped


def server(folder: str, pipe: Any, bare: bool) -> None:
    """Serve until asked for the times spent."""
    import threading

    import uvicorn

    from tidepull.service.connections import Connections
    from tidepull.service.server import Server, make_server

    spent = Spent()
    if bare:
        config = uvicorn.Config(
            bare_app(Path(folder), spent),
            host="127.0.0.1",
            port=0,
            http=Connections(1000).make,  # type: ignore[arg-type]
            log_config=None,
            access_log=False,
            ws="none",
            proxy_headers=False,
        )
        running = Server(config, pipe.send)
    else:
        running = make_server(real_app(folder, spent), "127.0.0.1", 0, pipe.send)

    def answer() -> None:
        while True:
            pipe.recv()
            seconds, spent.seconds = spent.seconds, {}
            pipe.send({**seconds, "processor": time.process_time()})

    threading.Thread(target=answer, daemon=True).start()
    running.run()


def real_app(folder: str, spent: Spent) -> Any:
    """The service, with a watch on its parts."""
    from tidepull.agent.served import ServedAgent
    from tidepull.service import app as door
    from tidepull.service.auth import Limits
    from tidepull.service.operations import Operation
    from tidepull.service.server import ServerConfig, prepare

    ServedAgent.choose_ahead = spent.timed("deciding", ServedAgent.choose_ahead)
    ServedAgent.choose_each_ahead = spent.timed("deciding", ServedAgent.choose_each_ahead)
    ServedAgent.reward_ahead = spent.timed("learning", ServedAgent.reward_ahead)
    ServedAgent.commit = spent.timed("disk", ServedAgent.commit)  # type: ignore[method-assign]
    ServedAgent.slice = spent.timed("upkeep", ServedAgent.slice)  # type: ignore[method-assign]
    Operation.read = spent.timed("json", Operation.read)  # type: ignore[method-assign]
    door.msgspec.json.encode = spent.timed("json", door.msgspec.json.encode)  # type: ignore[attr-defined]
    log = Path(folder) / "access.jsonl"
    limits = Limits(requests=1e9, address_requests=1e9)  # every item of a batch counts
    return prepare(ServerConfig(folder, insecure=True, log=log, warm=True, limits=limits))


def bare_app(folder: Path, spent: Spent) -> Any:
    """The framework alone: parse, hand a row to the ledger, commit once for each turn, answer."""
    import msgspec
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from tidepull.agent.ledger.sqlite import SqliteLedger
    from tidepull.agent.records import Kind, Record
    from tidepull.service.messages import ChooseBatch, ChooseBody, DecisionMade, DecisionsMade

    ledger = SqliteLedger(folder / "bare.db")
    one, many = msgspec.json.Decoder(ChooseBody), msgspec.json.Decoder(ChooseBatch)
    waiting: list[asyncio.Future[None]] = []
    flush = spent.timed("disk", ledger.flush)

    def commit() -> None:
        flush(ledger.last)
        for future in waiting:
            future.set_result(None)
        waiting.clear()

    async def kept(contexts: list[Any]) -> list[DecisionMade]:
        made = []
        for context in contexts:
            text, seq = msgspec.json.encode(context), ledger.last + 1
            ledger.append(Record(Kind.DECISION, time.time(), body=b"x" * 88, context=text, seq=seq))
            made.append(
                DecisionMade(
                    id=str(seq), arm="arm 0", propensity=0.5, group="policy", at=time.time()
                )
            )
        loop = asyncio.get_running_loop()
        if not waiting:
            loop.call_soon(commit)
        waiting.append(loop.create_future())
        await waiting[-1]
        return made

    async def choose(request: Request) -> Response:
        (made,) = await kept([one.decode(await request.body()).context])
        return Response(msgspec.json.encode(made), media_type="application/json")

    async def batch(request: Request) -> Response:
        made = await kept([body.context for body in many.decode(await request.body()).decisions])
        return Response(
            msgspec.json.encode(DecisionsMade(decisions=made)), media_type="application/json"
        )

    methods = ["POST"]
    return Starlette(
        routes=[
            Route("/v1/agents/{name}/choose", choose, methods=methods),
            Route("/v1/agents/{name}/choose/batch", batch, methods=methods),
        ]
    )


# ---- the load


async def load(
    port: int, name: str, connections: int, batch: bool, seconds: float, rewards: bool
) -> dict[str, float]:
    made = bodies(name, batch)
    ids: deque[str] = deque(maxlen=5000)
    done = asyncio.Event()

    def heard(body: bytes) -> None:
        found = json.loads(body)
        ids.extend(one["id"] for one in found["decisions"]) if batch else ids.append(found["id"])

    async def paying() -> None:
        connection, rng = await Connection.to(port), random.Random(1)
        while not done.is_set():
            await asyncio.sleep(0.02)
            late = [ids.popleft() for _ in range(min(BATCH, len(ids)))]
            if late:
                body = {"rewards": [{"id": one, "reward": int(rng.random() < 0.3)} for one in late]}
                status, answer = await connection.ask(request(f"/v1/agents/{name}/rewards", body))
                assert status == 200, answer
        connection.close()

    payer = asyncio.create_task(paying()) if rewards else None
    count, took, passed = await loaded(
        port, connections, seconds, lambda n: made[n % len(made)], heard
    )
    done.set()
    if payer is not None:
        await payer
    p50, p99, p999 = 1000 * np.quantile(took, [0.5, 0.99, 0.999])
    each = BATCH if batch else 1
    return {
        "per_second": each * count / passed,
        "p50_ms": p50,
        "p99_ms": p99,
        "p99.9_ms": p999,
        "decisions": each * count,
    }


async def make_agent(port: int, policy: str) -> None:
    connection = await Connection.to(port)
    body = {"name": "shop", "arms": ARMS, "context": FIELDS, "policy": policy, "seed": 0}
    status, answer = await connection.ask(request("/v1/agents", body))
    assert status == 201, answer
    connection.close()


def measured(policy: str, cases: list[tuple[int, bool]], seconds: float) -> list[dict[str, Any]]:
    bare = policy == "none"
    rows = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("TIDEPULL_BENCH_DIR")) as folder:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=server, args=(folder, there, bare), daemon=True
        )
        process.start()
        port = int(here.recv().rsplit(":", 1)[1])
        if not bare:
            asyncio.run(ready(port))
            asyncio.run(make_agent(port, policy))
        for connections, batch in cases:
            asyncio.run(
                load(port, "shop", connections, batch, min(1.0, seconds), not bare)
            )  # to warm up
            here.send("begin")
            before = here.recv()["processor"]
            found = asyncio.run(load(port, "shop", connections, batch, seconds, not bare))
            here.send("end")
            spent = here.recv()
            used = spent.pop("processor") - before
            row = {
                "policy": policy,
                "connections": connections,
                "batch": BATCH if batch else 1,
                **found,
            }
            row["processor_us"] = 1e6 * used / found["decisions"]
            row |= {
                f"{part}_us": 1e6 * seconds_in / found["decisions"]
                for part, seconds_in in spent.items()
            }
            rows.append(row)
            print(
                {
                    name: round(value, 2) if isinstance(value, float) else value
                    for name, value in row.items()
                },
                flush=True,
            )
        process.terminate()
        process.join()
    return rows


def runs() -> list[dict[str, Any]]:
    """All rows that were ever measured."""
    with OUT.open() as handle:
        handle.readline()
        return list(csv.DictReader(handle))


def quietest(rows: list[dict[str, Any]]) -> str:
    """The run to show: complete, and that in which the bare framework, not the service, waited
    least for the disk."""
    waited: dict[str, float] = {}
    for run in dict.fromkeys(row["run"] for row in rows):
        mine = [row for row in rows if row["run"] == run]
        if {row["policy"] for row in mine} >= set(POLICIES):
            bare = next(
                r for r in mine if (r["policy"], r["connections"], r["batch"]) == ("none", "8", "1")
            )
            waited[run] = float(bare["disk_us"])
    return min(waited, key=lambda run: waited[run])


def others(rows: list[dict[str, Any]], shown: str) -> str:
    """What the other runs gave at 8 connections, single decisions."""
    said = []
    for run in dict.fromkeys(row["run"] for row in rows if row["run"] != shown):
        found = [
            r for r in rows if r["run"] == run and (r["connections"], r["batch"]) == ("8", "1")
        ]
        rates = ", ".join(f"{row['policy']} {float(row['per_second']):,.0f}" for row in found)
        said.append(f"{run}: {rates}")
    return "; ".join(said) or "none"


def table() -> str:
    """What the committed result says."""
    rows = runs()
    run = quietest(rows)
    made = [
        "| policy | connections | in a request | decisions a second | p50 | p99 | p99.9 ms | "
        "processor | deciding "
        "| learning | upkeep | JSON | disk us |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["run"] != run:
            continue
        name = "none (the bare framework)" if row["policy"] == "none" else f"`{row['policy']}`"
        times = [f"{float(row[part]):.1f}" for part in ("p50_ms", "p99_ms", "p99.9_ms")]
        parts = ("processor", "deciding", "learning", "upkeep", "json", "disk")
        spent = [f"{float(row.get(f'{part}_us') or 0):.0f}" for part in parts]
        cells = [
            name,
            row["connections"],
            row["batch"],
            f"{float(row['per_second']):,.0f}",
            *times,
            *spent,
        ]
        made.append(f"| {' | '.join(cells)} |")
    words = (
        f"The run of {run}: of the complete ones, that in which the bare framework waited least "
        "for the disk. "
        "All runs are in research/results/service_load.csv, those with far lower rates made on a "
        "busy machine. "
        f"Single decisions a second at 8 connections in the others: {others(rows, run)}. "
        f"{describe()}."
    )
    return "\n".join([*made, "", *shares([row for row in rows if row["run"] == run]), "", words])


def shares(rows: list[dict[str, Any]]) -> list[str]:
    """Of the time from one decision to the next at 8 connections, which share each part takes."""
    parts = ("deciding", "learning", "upkeep", "json", "disk")
    made = [
        "| at 8 connections | in a request | us from one decision to the next | deciding | "
        "learning | upkeep | JSON "
        "| disk | HTTP and the rest | us of the bare framework |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    busy = [row for row in rows if row["connections"] == "8"]
    bare = {row["batch"]: 1e6 / float(row["per_second"]) for row in busy if row["policy"] == "none"}
    for row in busy:
        if row["policy"] != "none":
            each = 1e6 / float(row["per_second"])
            found = [float(row.get(f"{part}_us") or 0) / each for part in parts]
            cells = [f"{share:.0%}" for share in [*found, max(0.0, 1 - sum(found))]]
            name = [f"`{row['policy']}`", row["batch"], f"{each:.0f}"]
            without = f"{bare[row['batch']]:.0f}"
            made.append(f"| {' | '.join([*name, *cells, without])} |")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument(
        "--quick", action="store_true", help="8 connections only, nothing is written"
    )
    parser.add_argument("--policies", nargs="*", default=POLICIES)
    parser.add_argument(
        "--table",
        action="store_true",
        help="write the table of research/lab/service.md, load nothing",
    )
    parser.add_argument("--against", metavar="COMMIT", help="play a commit in turn")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.against:
        against(given.against, given.rounds, given.seconds)
        return
    if given.table:
        write_between(ROOT / "research" / "lab" / "service.md", "load", table())
        return
    cases = (
        [(8, False), (8, True)]
        if given.quick
        else [(n, batch) for batch in (False, True) for n in (1, 8, 32)]
    )
    rows = [row for policy in given.policies for row in measured(policy, cases, given.seconds)]
    if given.quick:
        return
    write(rows)


def against(commit: str, rounds: int, seconds: float) -> None:
    """Medians of the present tree and of a commit's, played in turn, each by its own generator."""
    with tempfile.TemporaryDirectory() as folder:
        tree = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=tree.stdout, check=True)
        roots = {commit: Path(folder), "present": ROOT}
        for root in roots.values():  # kernels are compiled before anything is timed
            _rows_of(root, 1.0)
        found: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for _ in range(rounds):
            for name, root in roots.items():
                for row in _rows_of(root, seconds):
                    found.setdefault((name, row["batch"]), []).append(row)
    for batch in (1, BATCH):
        for what in ("per_second", "p99_ms", "processor_us"):
            old, new = (
                statistics.median(row[what] for row in found[name, batch]) for name in roots
            )
            said = f"{commit} {old:.5g}, present {new:.5g}, ratio {new / old:.3f}"
            print(f"batches of {batch}, {what}: {said}")


def _rows_of(root: Path, seconds: float) -> list[dict[str, Any]]:
    is_old = not (root / "research" / "benchmarks").is_dir()
    module = "benchmarks.service_load" if is_old else "research.benchmarks.service_load"
    program = [sys.executable, "-m", module, "--quick", "--seconds", str(seconds)]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    done = subprocess.run(
        [*program, "--policies", "bernoulli-ts"],
        cwd=root, env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    shown = re.sub(r"np\.float64\(([^)]*)\)", r"\1", done.stdout)
    return [ast.literal_eval(line) for line in shown.splitlines() if line.startswith("{")]


def write(rows: list[dict[str, Any]]) -> None:
    """Add a run to those that were made before; none is left out."""
    run = time.strftime("%Y-%m-%dT%H:%M", time.gmtime())
    made = [{"run": run, **row} for row in rows]
    before: list[dict[str, Any]] = runs() if OUT.exists() else []
    names = list(dict.fromkeys(name for row in [*before, *made] for name in row))
    with OUT.open("w", newline="") as handle:
        handle.write(f"# {describe()}\n")
        writer = csv.DictWriter(handle, names)
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
            for row in [*before, *made]
        )
    print(f"{OUT} written")


if __name__ == "__main__":
    main()
