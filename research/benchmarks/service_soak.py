"""Half an hour of mixed load on fifty agents: errors, memory of the server, and latency, minute by
minute.

    python -m research.benchmarks.service_soak [--minutes 30] [--agents 50] [--rate 40]
    python -m research.benchmarks.service_soak --changes --minutes 10
    python -m research.benchmarks.service_soak [--changes] --table

One agent in five is `tide`, the others `bernoulli-ts`. Visits come at random moments, `--rate` a
second in all: a decision, and its reward a little later; one in twenty is a batch of 20. Every
second somebody looks at an agent (state, explain, lift, history, heatmap, waiting). Where the
machine stood still (the generator's own clock jumped by more than half a second), the time is in
`stood_still_s`, and answers that were under way are not timed. Latency beside other work says
little of the server, so its own share is kept too: `processor_ms` that it used for a decision (with
its reward, upkeep and looks), and `waited_s`, the seconds in a minute that it could have run and
had no core. With `--changes`, every two seconds an agent is exported and gets two more arms, and an
agent of an earlier release is opened. Writes research/results/service_soak.csv (with `--changes`
service_soak_changes.csv); `--table` writes research/lab/figures/service_soak.svg and research/lab/service.md.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import itertools
import json
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.machine import describe
from research.benchmarks.regret_rows import ROOT, write_between
from research.benchmarks.service_waiting import write_old_agent
from research.benchmarks.wire import Connection, request

OUT = ROOT / "research" / "results" / "service_soak.csv"
CHANGES = ROOT / "research" / "results" / "service_soak_changes.csv"
CHANGE, CHANGE_INTERVAL = ("export", "growth", "upgrade"), 2.0
FIGURE = ROOT / "research" / "lab" / "figures" / "service_soak.svg"
LOOKS = ("state", "explain", "lift", "history", "heatmap", "waiting")
FIELDS = {"device": ["phone", "desktop"], "age": "number", "member": "boolean"}
BATCH, STILL = 20, 0.5


class Soak:
    """The generator: what it asked in this minute, and how that went."""

    def __init__(self, service: Any, agents: int, rate: float) -> None:
        self.service, self.rate = service, rate
        self.names = [f"shop-{n}" for n in range(agents)]
        self.rng = random.Random(0)
        self.took: dict[str, list[float]] = {}
        self.errors = self.decisions = self.reconnected = 0
        self.stood_still, self.last_jump = 0.0, 0.0
        self.used = self.waited = 0.0
        self.changes = False
        self._idle: list[Connection] = []

    async def ask(self, kind: str, method: str, path: str, body: Any = None) -> Any:
        """One request over a kept connection."""
        connection = self._idle.pop() if self._idle else await Connection.to(self.service.port)
        data = request(path, body or {}, self.service.token)
        if method == "GET":
            head = ["host: localhost", f"authorization: Bearer {self.service.token}"]
            data = "\r\n".join([f"GET {path} HTTP/1.1", *head, "\r\n"]).encode()
        started = time.perf_counter()
        try:
            status, answer = await connection.ask(data)
        except (
            OSError,
            asyncio.IncompleteReadError,
        ):  # closed by the server, which keeps idle ones for 75 s
            self.reconnected += 1
            connection = await Connection.to(self.service.port)
            status, answer = await connection.ask(data)
        ended = time.perf_counter()
        self._idle.append(connection)
        if self.last_jump < started:
            self.took.setdefault(kind, []).append(ended - started)
        if status not in (200, 201):
            self.errors += 1
            print(kind, path, status, answer[:300], flush=True)
            return None
        return json.loads(answer)

    async def made(self) -> None:
        """All agents, and nothing of that is timed."""
        for n, name in enumerate(self.names):
            policy = "tide" if n % 5 == 0 else "bernoulli-ts"
            body = {
                "name": name,
                "arms": ["a", "b", "c"],
                "context": FIELDS,
                "policy": policy,
                "seed": n,
            }
            await self.ask("make", "POST", "/v1/agents", body)
        assert not self.errors
        self.took = {}
        self.spent()

    async def visit(self) -> None:
        """Somebody comes; what it was worth is known a little later."""
        path = f"/v1/agents/{self.rng.choice(self.names)}"
        if self.rng.random() < 0.05:
            body = {"decisions": [{"context": self.context()} for _ in range(BATCH)]}
            found = await self.ask("batch of 20", "POST", f"{path}/choose/batch", body)
            ids = [one["id"] for one in found["decisions"]] if found else []
        else:
            found = await self.ask(
                "decision", "POST", f"{path}/choose", {"context": self.context()}
            )
            ids = [found["id"]] if found else []
        self.decisions += len(ids)
        await asyncio.sleep(self.rng.expovariate(1 / 2.0))
        rewards = [{"id": id, "reward": int(self.rng.random() < 0.3)} for id in ids]
        await self.ask("reward", "POST", f"{path}/rewards", {"rewards": rewards})

    def context(self) -> dict[str, Any]:
        return {
            "device": self.rng.choice(["phone", "desktop"]),
            "age": round(self.rng.gauss(40, 10)),
            "member": self.rng.random() < 0.3,
        }

    async def looking(self) -> None:
        """Somebody has the page open."""
        while True:
            await asyncio.sleep(1.0)
            path = f"/v1/agents/{self.rng.choice(self.names)}/{self.rng.choice(LOOKS)}"
            await self.ask("look", "GET", path)

    async def changing(self) -> None:
        """Exports, more arms than there is room for, and agents of an earlier release, in turn."""
        for turn in itertools.count():
            await asyncio.sleep(CHANGE_INTERVAL)
            path = f"/v1/agents/{self.names[turn % len(self.names)]}"
            await self.fetch("export", f"{path}/export")
            for n in range(2):
                body = {"op": "add", "label": f"arm {turn} {n}"}
                await self.ask("growth", "POST", f"{path}/arms", body)
            await self.upgrade(f"old{turn}")

    async def fetch(self, kind: str, path: str) -> None:
        """Ask for a file; whether it comes whole counts."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.service.port)
        head = f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer "
        started = time.perf_counter()
        writer.write(f"{head}{self.service.token}\r\n\r\n".encode())
        answer, _, data = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        self.took.setdefault(kind, []).append(time.perf_counter() - started)
        length = int(answer.lower().partition(b"content-length: ")[2].split()[0])
        self.errors += not answer.startswith(b"HTTP/1.1 200") or len(data) != length

    async def upgrade(self, name: str) -> None:
        """An agent of an earlier release is opened; its requests are refused until it is ready."""
        await asyncio.to_thread(write_old_agent, self.service.root / f"{name}.db", "lin-ts")
        started = time.perf_counter()
        while True:
            status, answer = await asyncio.to_thread(
                self.service.ask, "POST", f"/v1/agents/{name}/choose", {"context": {}}
            )
            if status == 200:
                break
            if status != 503 or "is being rebuilt" not in answer["detail"]:
                self.errors += 1
                print("upgrade", status, answer, flush=True)
                return
            await asyncio.sleep(0.05)
        self.took.setdefault("upgrade", []).append(time.perf_counter() - started)

    async def watching(self) -> None:
        """Does the machine stand still?"""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.05)
            late = time.perf_counter() - before - 0.05
            if late > STILL:
                self.stood_still += late
                self.last_jump = time.perf_counter()

    def memory(self) -> float:
        """Megabytes that the server holds."""
        status = Path(f"/proc/{self.service.pid}/status").read_text()
        return next(
            int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")
        )

    def spent(self) -> tuple[float, float]:
        """Seconds since the last call that the server used, and that its loop could have run but
        for other work."""
        stat = Path(f"/proc/{self.service.pid}/stat").read_text().rpartition(")")[2].split()
        used = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
        waited = int(Path(f"/proc/{self.service.pid}/schedstat").read_text().split()[1]) / 1e9
        before, self.used, self.waited = (self.used, self.waited), used, waited
        return used - before[0], waited - before[1]

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Keep what is known so far."""
        with (CHANGES if self.changes else OUT).open("w", newline="") as handle:
            said = f"{len(self.names)} agents, {self.rate:g} visits a second, beside other work"
            handle.write(f"# {said}; {describe()}\n")
            writer = csv.DictWriter(handle, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    async def run(self, minutes: int) -> list[dict[str, Any]]:
        """All minutes."""
        await self.made()
        others = [asyncio.create_task(self.looking()), asyncio.create_task(self.watching())]
        if self.changes:
            others.append(asyncio.create_task(self.changing()))
        under_way: set[asyncio.Task[None]] = set()
        rows, end = [], time.perf_counter()
        for minute in range(minutes):
            end += 60
            while time.perf_counter() < end:
                await asyncio.sleep(self.rng.expovariate(self.rate))
                task = asyncio.create_task(self.visit())
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            rows.append(self.row(minute + 1))
            print(rows[-1], flush=True)
            self.write(rows)
            end = max(end, time.perf_counter())
        await asyncio.gather(*under_way)
        for other in others:
            other.cancel()
        return rows

    def row(self, minute: int) -> dict[str, Any]:
        """What this minute was like; the next one begins."""
        row: dict[str, Any] = {"minute": minute, "decisions": self.decisions, "errors": self.errors}
        for kind in ("decision", "batch of 20", "reward", "look", *(CHANGE * self.changes)):
            took = 1000 * np.array(self.took.get(kind, [np.nan]))
            name = kind.replace(" ", "_")
            row[f"{name}_p50_ms"], row[f"{name}_p99_ms"] = np.round(
                np.quantile(took, [0.5, 0.99]), 2
            ).tolist()
        row |= {"memory_mb": round(self.memory(), 1), "stood_still_s": round(self.stood_still, 1)}
        row |= {f"{kind}s": len(self.took.get(kind, ())) for kind in CHANGE * self.changes}
        row["reconnected"], self.reconnected = self.reconnected, 0
        used, waited = self.spent()
        row |= {
            "processor_ms": round(1000 * used / max(1, self.decisions), 3),
            "waited_s": round(waited, 1),
        }
        self.took, self.decisions, self.errors, self.stood_still = {}, 0, 0, 0.0
        return row


def soaked(agents: int, rate: float, minutes: int, changes: bool) -> list[dict[str, Any]]:
    from tests.integration.service.running import running

    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as service:
        soak = Soak(service, agents, rate)
        soak.changes = changes
        return asyncio.run(soak.run(minutes))


def changes_table() -> str:
    """What the committed result with changes says."""
    with CHANGES.open() as handle:
        said = handle.readline().lstrip("# ").strip()
        rows = [
            {name: float(value) for name, value in row.items()} for row in csv.DictReader(handle)
        ]
    counts = {name: sum(row[name] for row in rows) for name in (f"{kind}s" for kind in CHANGE)}
    total, errors = sum(row["decisions"] for row in rows), sum(row["errors"] for row in rows)
    used = float(np.nanmedian([row["processor_ms"] for row in rows]))
    without = float(np.nanmedian([row["waited_s"] for row in rows]))
    half, most = ([row[f"decision_{p}_ms"] for row in rows] for p in ("p50", "p99"))
    return (
        f"{len(rows)} minutes, {total:,.0f} decisions, {counts['exports']:.0f} exports, "
        f"{counts['growths']:.0f} new arms, {counts['upgrades']:.0f} agents rebuilt, "
        f"{errors:.0f} errors. A decision takes {np.median(half):.1f} ms in the middle and "
        f"{np.median(most):.0f} ms at the 99th percentile of a usual minute ({max(most):.0f} of the "
        f"worst), and {used:.2f} ms of processor time with all of that. "
        f"In a minute the loop could have run for {without:.0f} s and had no core. {said.partition(';')[0]}."
    )


def table() -> str:
    """What the committed result says: the first and the last ten minutes, and a figure of all."""
    import matplotlib.pyplot as plt

    with OUT.open() as handle:
        said = handle.readline().lstrip("# ").strip()
        rows = [
            {name: float(value) for name, value in row.items()} for row in csv.DictReader(handle)
        ]
    minutes = [row["minute"] for row in rows]
    figure, (top, middle, bottom) = plt.subplots(
        3, 1, figsize=(8, 7), sharex=True, layout="constrained"
    )
    for name, label in (("decision_p50_ms", "half of them"), ("decision_p99_ms", "99 of 100")):
        top.plot(minutes, [row[name] for row in rows], label=label)
    top.set(ylabel="a decision, ms", yscale="log", title="Fifty agents, minute by minute")
    for marks in (top.yaxis.set_major_formatter, top.yaxis.set_minor_formatter):
        marks(lambda ms, _: f"{ms:g}")
    top.legend()
    middle.plot(
        minutes, [row["processor_ms"] for row in rows], label="processor for a decision, ms"
    )
    middle.plot(
        minutes, [row["waited_s"] / 60 for row in rows], label="share of the time without a core"
    )
    middle.set(ylim=(0, None))
    middle.legend()
    bottom.plot(minutes, [row["memory_mb"] for row in rows])
    bottom.set(ylabel="server's memory, MB", xlabel="minute", ylim=(0, None))
    figure.savefig(FIGURE)
    third = max(1, len(rows) // 3)
    made = ["| | first third | last third |", "|---|---|---|"]
    for name, label in (
        ("decision_p50_ms", "a decision, ms, half of them"),
        ("decision_p99_ms", "a decision, ms, 99 of 100"),
        ("batch_of_20_p50_ms", "a batch of 20, ms, half of them"),
        ("reward_p50_ms", "a reward, ms, half of them"),
        ("look_p99_ms", "a look, ms, 99 of 100"),
        (
            "processor_ms",
            "processor time of the server for a decision, its reward, upkeep and looks, ms",
        ),
        ("waited_s", "seconds in a minute in which the server could have run and had no core"),
        ("memory_mb", "server's memory, MB"),
    ):
        places = 2 if name == "processor_ms" else 1
        parts = [
            float(np.nanmedian([row[name] for row in some]))
            for some in (rows[:third], rows[-third:])
        ]
        made.append(
            f"| {label} (median of minutes) | {parts[0]:,.{places}f} | {parts[1]:,.{places}f} |"
        )
    total, errors = sum(row["decisions"] for row in rows), sum(row["errors"] for row in rows)
    again = sum(row["reconnected"] for row in rows)
    still = sum(row["stood_still_s"] for row in rows)
    words = (
        f"{len(rows)} minutes, {total:,.0f} decisions, {errors:.0f} errors; the machine stood "
        f"still for {still:.0f} s; "
        f"{again:.0f} requests found a kept connection closed, and were sent again. {said}."
    )
    return "\n".join(
        [words, "", *made, "", "![Latency and memory by the minute](figures/service_soak.svg)"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--rate", type=float, default=40.0)
    parser.add_argument(
        "--changes", action="store_true", help="also export, add arms, and upgrade agents"
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="write the table of research/lab/service.md, load nothing",
    )
    given = parser.parse_args()
    if given.table:
        if given.changes:
            write_between(ROOT / "research" / "lab" / "service.md", "changes", changes_table())
        else:
            write_between(ROOT / "research" / "lab" / "service.md", "soak", table())
        return
    soaked(given.agents, given.rate, given.minutes, given.changes)


if __name__ == "__main__":
    main()
