"""`tidepull serve` is killed (SIGKILL) under load, again and again, and its ledger is audited each
time.

    python -m research.benchmarks.service_kills [--kills 100] [--ledger sqlite|postgres]
    python -m research.benchmarks.service_kills --table

Six connections make named decisions, repeat some of them, and pay rewards. What was answered must
be in the ledger as it was answered, once, behind all that was answered before it was asked for;
whatever is repeated after the restart gets the same answer. Writes
research/results/service_kills_LEDGER.csv; `--table` writes what they say into research/lab/service.md.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from research.benchmarks.machine import describe
from research.benchmarks.regret_rows import ROOT, write_between
from research.benchmarks.wire import Connection, request
from tidepull.agent.agent import Agent
from tidepull.agent.records import Choice, Kind, unpack_reward

LEDGERS = ("sqlite", "postgres")


def results(ledger: str) -> Path:
    return ROOT / "research" / "results" / f"service_kills_{ledger}.csv"


class Heard:
    """What callers were told, in the order of the answers: what it was about, the decision's name,
    and the answer."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, Any]] = []
        self.begun: dict[
            tuple[str, str], int
        ] = {}  # how much was told when a step was first asked for

    def asks(self, what: str, name: str) -> None:
        """A step is about to be asked for, perhaps again."""
        self.begun.setdefault((what, name), len(self.told))

    def hears(self, what: str, name: str, said: Any) -> None:
        """It was answered."""
        self.told.append((what, name, said))


class Shop(Heard):
    """Callers and what they were told."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0
        self._rng = random.Random(0)

    async def busy(self, port: int, token: str, connections: int) -> None:
        """Ask until nobody answers any more."""
        await asyncio.gather(*(self._caller(port, token) for _ in range(connections)))

    async def _caller(self, port: int, token: str) -> None:
        try:
            connection = await Connection.to(port)
        except OSError:
            return
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await self._visit(connection, token)
        connection.close()

    async def _visit(self, connection: Connection, token: str) -> None:
        n, self._next = self._next, self._next + 1
        if n and self._rng.random() < 0.2:  # somebody was not sure that he was heard
            n = self._rng.randrange(max(0, n - 300), n)
        body: dict[str, Any] = {
            "id": f"visit {n}",
            "context": {"age": 20 + n % 50, "device": "phone"},
        }
        self.asks("decided", f"visit {n}")
        made = await self._ask(connection, request("/v1/agents/shop/choose", body, token))
        self.hears("decided", f"visit {n}", made)
        if n % 7:
            body = {"id": f"visit {n}", "reward": n % 2}
            self.asks("paid", f"visit {n}")
            await self._ask(connection, request("/v1/agents/shop/reward", body, token))
            self.hears("paid", f"visit {n}", float(n % 2))

    async def _ask(self, connection: Connection, data: bytes) -> Any:
        status, answer = await connection.ask(data)
        while status == 503:  # the lease of the one that was killed has not ended yet
            await asyncio.sleep(0.05)
            status, answer = await connection.ask(data)
        if status != 200:
            raise RuntimeError(f"status {status}: {answer!r}")
        return json.loads(answer)

    def wait_and_kill(self, pid: int, wanted: int, wait: float) -> None:
        """Kill when so much was told and a little later."""
        end = time.monotonic() + 60
        while len(self.told) < wanted and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(wait)
        os.kill(pid, signal.SIGKILL)


def audited(path: str | Path, heard: Heard) -> list[str]:
    """What of all that was told is not in the ledger ("lost"), or is there otherwise ("changed"),
    or twice ("doubled"), or before what was answered before anybody asked for it ("order")."""
    with Agent(path, read_only=True) as agent:
        records = list(agent._commands.ledger.tail(0))
        labels = [label for label, _ in agent.state().arms]
        differences = agent._commands.state.differences
    decisions = {record.name: record for record in records if record.kind is Kind.DECISION}
    paid = {record.ref: record for record in records if record.kind is Kind.REWARD}
    faults = (
        [f"changed: {differences} decisions came out otherwise when repeated"]
        if differences
        else []
    )
    names = Counter(record.name for record in records if record.kind is Kind.DECISION)
    faults += [
        f"doubled: {name} is there {count} times" for name, count in names.items() if count > 1
    ]
    rewards = Counter(record.ref for record in records if record.kind is Kind.REWARD)
    faults += [
        f"doubled: decision {ref} was paid {count} times"
        for ref, count in rewards.items()
        if count > 1
    ]
    latest = [0]  # the highest number of the records of the first so many answers
    for what, name, said in heard.told:
        record = found = decisions.get(name)
        if record is None:
            faults.append(f"lost: {name}")
        elif what == "paid":
            found = paid.get(record.seq)
            if found is None:
                faults.append(f"lost: the reward of {name}")
            elif unpack_reward(found.body) != said:
                faults.append(
                    f"changed: the reward of {name} was {said}, and is {unpack_reward(found.body)}"
                )
        else:
            arm, _, propensity = Choice.head(record.body)
            there = {"id": name, "arm": labels[arm], "propensity": propensity, "at": record.at}
            if any(said[field] != value for field, value in there.items()):
                faults.append(f"changed: {name} was told {said}, the ledger has {there}")
        before = heard.begun[what, name]
        if found is not None and found.seq <= latest[before]:
            faults.append(
                f"order: {name}, {what}, is record {found.seq}, asked for after {latest[before]} "
                "was answered"
            )
        latest.append(max(latest[-1], 0 if found is None else found.seq))
    return faults


def killed(kills: int, policy: str, db: str | None, folder: Path) -> Iterator[dict[str, int]]:
    """Kill, audit, start again."""
    from tests.integration.service.houses import SHOP
    from tests.integration.service.running import running

    rng, shop = random.Random(1), Shop()
    given: dict[str, Any] = {} if db is None else {"db": db}
    where = str(folder / "shop.db") if db is None else f"{db}&agent=shop"
    for kill in range(kills):
        with running(folder, **given) as service:
            if kill == 0:
                assert service.ask("POST", "/v1/agents", {**SHOP, "policy": policy})[0] == 201
            wanted = len(shop.told) + rng.randrange(50, 400)
            killer = threading.Thread(
                target=shop.wait_and_kill, args=(service.pid, wanted, rng.random() * 0.02)
            )
            killer.start()
            asyncio.run(shop.busy(service.port, service.token, 6))
            killer.join()
        faults = audited(where, shop)
        yield {"kill": kill + 1, "told": len(shop.told), "faults": len(faults)}
        print(*faults[:3], end="", flush=True)


def run(kills: int, policy: str, ledger: str) -> None:
    from tests.postgres import private

    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        db = stack.enter_context(private()).url() if ledger == "postgres" else None
        for row in killed(kills, policy, db, folder):
            rows.append(row)
            print(row, flush=True)
    with results(ledger).open("w", newline="") as handle:
        handle.write(f"# {describe()}; {policy}, {ledger}\n")
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def table() -> list[str]:
    """What the committed results say."""
    made = [
        "| ledger | kills (SIGKILL) | answers that were audited | lost, doubled, changed or out of "
        "order |",
        "|---|---|---|---|",
    ]
    for ledger in LEDGERS:
        with results(ledger).open() as handle:
            rows = list(csv.DictReader(line for line in handle if not line.startswith("#")))
        faults = sum(int(row["faults"]) for row in rows)
        made.append(f"| {ledger} | {len(rows)} | {int(rows[-1]['told']):,} | {faults} |")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--policy", default="bernoulli-ts")
    parser.add_argument("--ledger", choices=LEDGERS, default="sqlite")
    parser.add_argument(
        "--table",
        action="store_true",
        help="write the table of research/lab/service.md, kill nothing",
    )
    given = parser.parse_args()
    if given.table:
        write_between(ROOT / "research" / "lab" / "service.md", "kills", "\n".join(table()))
    else:
        run(given.kills, given.policy, given.ledger)


if __name__ == "__main__":
    main()
