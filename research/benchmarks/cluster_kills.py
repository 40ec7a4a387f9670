"""Shards that share one PostgreSQL database are killed (SIGKILL) or paused (SIGSTOP) under load,
and the ledgers are audited each time.

    python -m research.benchmarks.cluster_kills [--kills 50] [--on processes|ray] [--how kill|pause]
    [--policy bernoulli-ts] python -m research.benchmarks.cluster_kills --table        # only write
    the table into research/lab/service.md

Callers make named decisions and pay rewards, at any shard; what is not answered with 200 is sent
again, to the next shard, with the same id, until it is. A shard is killed (on Ray: the whole
machine that it is on), and replaced. Everything that was answered must be in the ledgers as it was
answered, once, and in order. `processes`: two shards, each as if on a machine of its own, so that
leases must lapse. `pause`: an owner stands still for 8 to 10 seconds, longer than its lease, and
goes on with what it was doing while another one has the agent. Appends to
research/results/cluster_kills.csv.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from research.benchmarks.machine import describe
from research.benchmarks.regret_rows import ROOT, write_between
from research.benchmarks.service_kills import Heard, audited
from research.benchmarks.wire import Connection, request

OUT = ROOT / "research" / "results" / "cluster_kills.csv"
PAUSE = (8.0, 10.0)
"""Seconds for which an owner is paused; its lease is 5 seconds long."""

AGENTS = ("shop", "bar")


class Told(Heard):
    """What callers of one agent were told, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[float] = []

    def longest_gap(self, since: float, until: float) -> float:
        """The longest time without an answer that touches a span."""
        moments = [since, *(at for at in self.at if since <= at <= until), until]
        return max(after - before for before, after in pairwise(moments))


class Callers:
    """Callers of all agents, in a thread of their own, until `stop`."""

    def __init__(
        self, ports: Sequence[int], token: str, each: int = 3, agents: Sequence[str] = AGENTS
    ) -> None:
        self.ports = list(ports)
        self.heard = {agent: Told() for agent in agents}
        self.refused = 0
        self.failed: list[str] = []
        self._token = token
        self._rng = random.Random(0)
        self._each = each
        self._next = 0
        self._stop = self.resting = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._all()))
        self._thread.start()

    @property
    def answers(self) -> int:
        return sum(len(told.told) for told in self.heard.values())

    def stop(self) -> None:
        self._stop = True
        self._thread.join()
        assert not self.failed, self.failed[:3]

    async def _all(self) -> None:
        await asyncio.gather(
            *(self._caller(agent, k) for agent in self.heard for k in range(self._each)),
            return_exceptions=False,
        )

    async def _caller(self, agent: str, k: int) -> None:
        line = Line(self, k)
        while not self._stop:
            if self.resting:
                await asyncio.sleep(0.02)
                continue
            n, self._next = self._next, self._next + 1
            if n and self._rng.random() < 0.2:  # somebody was not sure that he was heard
                n = self._rng.randrange(max(0, n - 200), n)
            name, told = f"visit {n}", self.heard[agent]
            body: dict[str, Any] = {"id": name, "context": {"age": 20 + n % 50, "device": "phone"}}
            told.asks("decided", name)
            made = await line.ask(f"/v1/agents/{agent}/choose", body, self._token)
            if made is None:
                break
            told.hears("decided", name, made)
            told.at.append(time.monotonic())
            paid = {"id": name, "reward": n % 2}
            if n % 7:
                told.asks("paid", name)
                if await line.ask(f"/v1/agents/{agent}/reward", paid, self._token) is not None:
                    told.hears("paid", name, float(n % 2))
        line.close()


class Line:
    """One caller's connection, to one shard after the other."""

    def __init__(self, callers: Callers, at: int) -> None:
        self._callers, self._at = callers, at
        self._connection: Connection | None = None

    async def ask(self, path: str, body: dict[str, Any], token: str) -> Any:
        """The answer, however often one has to ask; None where it never came."""
        until, status, answer = time.monotonic() + 60, 0, b""
        while time.monotonic() < until:
            try:
                if self._connection is None:
                    port = self._callers.ports[self._at % len(self._callers.ports)]
                    self._connection = await asyncio.wait_for(Connection.to(port), 5)
                asked = self._connection.ask(request(path, body, token))
                status, answer = await asyncio.wait_for(asked, 20)
            except (OSError, EOFError, TimeoutError):
                status, answer = 0, b""
            if status == 200:
                return json.loads(answer)
            if status not in (0, 502, 503):
                self._callers.failed.append(f"{path}: {status} {answer!r}")
                return None
            self._callers.refused += 1
            self.close()
            self._at += 1
            await asyncio.sleep(0.05)
        self._callers.failed.append(
            f"{path}: no answer for a minute; the last was {status} {answer!r}"
        )
        return None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def audit(db: str, callers: Callers) -> list[str]:
    """What was told until now and is not so, of all agents."""
    found = []
    for agent, told in callers.heard.items():
        now = Told()
        now.told, now.begun = list(told.told), dict(told.begun)
        found += [f"{agent}: {fault}" for fault in audited(f"{db}&agent={agent}", now)]
    return found


def wait_for(callers: Callers, more: int, seconds: float = 90.0) -> None:
    """Until so many more answers came for each agent."""
    wanted = {agent: len(told.told) + more for agent, told in callers.heard.items()}
    end = time.monotonic() + seconds
    while any(len(callers.heard[agent].told) < count for agent, count in wanted.items()):
        assert not callers.failed, callers.failed[:3]
        assert time.monotonic() < end, "decisions do not go on"
        time.sleep(0.01)


def one_kill(callers: Callers, rng: random.Random, kill: Callable[[], None]) -> float:
    """Kill under load; the longest time without a decision of any agent around it."""
    wait_for(callers, rng.randrange(20, 100))
    time.sleep(rng.random() * 0.05)
    since = time.monotonic()
    kill()
    wait_for(callers, 10)
    until = time.monotonic()
    return max(told.longest_gap(since, until) for told in callers.heard.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--on", choices=["processes", "ray"], default="processes")
    parser.add_argument("--how", choices=["kill", "pause"], default="kill")
    parser.add_argument("--policy", default="bernoulli-ts")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        write_between(ROOT / "research" / "lab" / "service.md", "cluster-kills", table())
        return
    if given.how == "pause" and given.on == "ray":
        parser.error("only processes can be paused: leave --on out")
    from tests.postgres import private

    with ExitStack() as stack:
        server = stack.enter_context(private())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        play = on_processes if given.on == "processes" else on_ray
        play(stack, server, folder, given)
    write_between(ROOT / "research" / "lab" / "service.md", "cluster-kills", table())


def keep(given: Any, kill: int, gap: float, callers: Callers, db: str) -> None:
    """Audit while callers rest, and write down what was found."""
    callers.resting = True
    faults = audit(db, callers)
    callers.resting = False
    made = {
        "on": given.on, "how": given.how, "policy": given.policy, "kill": kill, "seconds": round(gap, 3),
        "answers": callers.answers, "sent again": callers.refused, "faults": len(faults),
    }  # fmt: skip
    print(made, *faults[:3], flush=True)
    new = not OUT.exists()
    with OUT.open("a", newline="") as handle:
        if new:
            handle.write(f"# {describe()}\n")
        writer = csv.DictWriter(handle, list(made))
        if new:
            writer.writeheader()
        writer.writerow(made)


def on_processes(stack: ExitStack, server: Any, folder: Path, given: Any) -> None:
    from tests.integration.service.houses import SHOP
    from tests.integration.service.neighbourhood import street

    shards = stack.enter_context(street(server, folder))
    running = [shards.start(f"machine {k}") for k in range(2)]
    for agent in AGENTS:
        assert (
            running[0].ask("POST", "/v1/agents", {**SHOP, "name": agent, "policy": given.policy})[0]
            == 201
        )
    callers = Callers([shard.port for shard in running], shards.token)
    rng = random.Random(1)
    for kill in range(1, given.kills + 1):
        wait_for(callers, 5)
        place = [shard.url for shard in running].index(shards.owner(AGENTS[0]) or running[0].url)
        victim = running[place]
        if given.how == "pause":
            gap = one_kill(callers, rng, lambda victim=victim: pause(victim, shards, rng))  # type: ignore[misc]
        else:
            gap = one_kill(callers, rng, lambda victim=victim: victim.end(signal.SIGKILL))  # type: ignore[misc]
            running[place] = shards.start(f"machine {place} again {kill}", victim.port)
        keep(given, kill, gap, callers, shards.db)
    callers.stop()
    assert audit(shards.db, callers) == []


def pause(victim: Any, shards: Any, rng: random.Random) -> None:
    """Let an owner stand still until its lease is over; it goes on in the middle of what it was
    doing."""
    victim.send(signal.SIGSTOP)
    try:
        time.sleep(rng.uniform(*PAUSE))
        assert shards.owner(AGENTS[0]) != victim.url, "the lease of a paused owner has not lapsed"
    finally:
        victim.send(signal.SIGCONT)


def on_ray(stack: ExitStack, server: Any, folder: Path, given: Any) -> None:
    from tests.integration.service.on_ray import RayService
    from tests.machines import Machine, two_machines

    address, second = stack.enter_context(two_machines())
    service = stack.enter_context(RayService(server, address, folder))
    service.wait_for_shards(2)
    for agent in AGENTS:
        service.make(agent, given.policy)
    callers = Callers(service.ports, service.token)
    stack.callback(lambda: callers.stop())
    rng = random.Random(1)
    for kill in range(1, given.kills + 1):
        gap = one_kill(callers, rng, second.kill)
        keep(given, kill, gap, callers, service.db)
        second = Machine(folder, f"second {kill}", f"--address={address}")
        stack.callback(second.kill)
        second.wait_until_up()
        service.wait_for_shards(2)
        callers.ports = service.ports
        service.wait_until_spread(AGENTS)
    callers.stop()
    assert audit(service.db, callers) == []


def table() -> str:
    """What was measured, for the manual."""
    with OUT.open() as handle:
        rows = list(csv.DictReader(line for line in handle if not line.startswith("#")))
    lines = [
        "| on | how | policy | times | without a decision, median | at most | answers audited "
        "| lost, doubled, changed or out of order |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((row["on"], row["how"], row["policy"]) for row in rows):
        mine = [row for row in rows if (row["on"], row["how"], row["policy"]) == key]
        gaps = sorted(float(row["seconds"]) for row in mine)
        faults = sum(int(row["faults"]) for row in mine)
        ends = [
            one for one, next in pairwise([*mine, {"kill": "1"}]) if next["kill"] == "1"
        ]  # of each run
        answers = sum(int(row["answers"]) for row in ends)
        lines.append(
            f"| {key[0]} | {key[1]} | `{key[2]}` | {len(mine)} | {gaps[len(gaps) // 2]:.1f} s | "
            f"{gaps[-1]:.1f} s "
            f"| {answers:,} | {faults} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
