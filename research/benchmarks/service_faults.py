"""`tidepull serve` under mixed load while syncs of its disk or statements of its database fail,
audited after a kill.

    python -m research.benchmarks.service_faults --ledger sqlite|postgres [--policy bernoulli-ts]
    [--seconds 30] [--fail syncs] python -m research.benchmarks.service_faults --table

Four connections decide and reward one at a time, two in batches of 50; all decisions are named,
some are repeated, and what was refused (503) is sent again with the same id. `syncs`: the kernel
answers some calls of fdatasync and fsync with EIO (needs `strace` and the right to use it), those
of the service, or those of the PostgreSQL server, which then crashes and recovers. `statements`:
PostgreSQL refuses every fifth insert of records, as if its disk were full. Then the service is
killed (SIGKILL), and every answer is compared with the ledger. Appends to
research/results/service_faults.csv; `--table` writes what that says into research/lab/service.md. `--code`
labels rows of other code.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol

import psycopg

from research.benchmarks.machine import describe
from research.benchmarks.regret_rows import ROOT, write_between
from research.benchmarks.service_kills import LEDGERS, Heard, audited
from research.benchmarks.wire import Connection, request
from tidepull.errors import TidepullError

OUT = ROOT / "research" / "results" / "service_faults.csv"
HERE = "here"
"""The label of rows of the code that the results were committed with."""

BATCH = 50
REWARDS, FAULTS = 600, 20
"""Rewards that are acknowledged and faults that are injected at least, however slow the machine
is."""

COUNTS = ("faults", "decisions", "rewards", "refused")
KINDS = ("lost", "doubled", "changed", "order")
SYNCS = {"sqlite": ("fdatasync,fsync", "4+9"), "postgres": ("fdatasync", "5+200")}
"""Which syncs fail, and which of each thread, as strace has it. PostgreSQL crashes, so that all
begin anew; its fsyncs are those of files that it can write again from its log."""

_FAILING = """
CREATE SEQUENCE failing_turns; CREATE SEQUENCE failing_faults;
CREATE FUNCTION failing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('failing_turns') % 5 = 4 THEN
    PERFORM nextval('failing_faults');
    RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER failing BEFORE INSERT ON tidepull_records FOR EACH STATEMENT EXECUTE FUNCTION failing();
"""


class MixedLoad(Heard):
    """Callers, one at a time and in batches, and what they were told."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0
        self.others: list[str] = []  # answers that are neither 200 nor 503
        self._next = 0
        self._rng = random.Random(0)

    async def busy(self, port: int, token: str, singles: int = 4, batches: int = 2) -> None:
        """Ask until nobody answers any more."""
        callers = [self._single] * singles + [self._batch] * batches
        await asyncio.gather(*(self._caller(port, token, visit) for visit in callers))

    async def _caller(
        self, port: int, token: str, visit: Callable[[Connection, str], Awaitable[None]]
    ) -> None:
        try:
            connection = await Connection.to(port)
        except OSError:
            return
        with suppress(OSError, EOFError):
            while True:
                await visit(connection, token)
        connection.close()

    def _visitor(self) -> int:
        n, self._next = self._next, self._next + 1
        if n and self._rng.random() < 0.2:  # somebody was not sure that he was heard
            n = self._rng.randrange(max(0, n - 300), n)
        return n

    async def _single(self, connection: Connection, token: str) -> None:
        n = self._visitor()
        name = f"visit {n}"
        self.asks("decided", name)
        made = await self._ask(connection, "choose", _wish(n), token)
        if made is None:
            return
        self.hears("decided", name, made)
        if n % 7:
            self.asks("paid", name)
            if await self._ask(connection, "reward", _worth(n), token) is not None:
                self.hears("paid", name, float(n % 2))

    async def _batch(self, connection: Connection, token: str) -> None:
        mine = sorted({self._visitor() for _ in range(BATCH)})
        for n in mine:
            self.asks("decided", f"visit {n}")
        made = await self._ask(
            connection, "choose/batch", {"decisions": [_wish(n) for n in mine]}, token
        )
        if made is None:
            return
        for n, decision in zip(mine, made["decisions"], strict=True):
            self.hears("decided", f"visit {n}", decision)
        wanted = [n for n in mine if n % 7]
        for n in wanted:
            self.asks("paid", f"visit {n}")
        while wanted:
            taken = await self._ask(
                connection, "rewards", {"rewards": [_worth(n) for n in wanted]}, token
            )
            if taken is None:
                return
            wanted = self._left(wanted, taken["rewards"])

    def _left(self, wanted: list[int], answers: list[dict[str, Any]]) -> list[int]:
        """Those of a batch whose reward was refused."""
        left = []
        for n, answer in zip(wanted, answers, strict=True):
            if answer["status"] == 200:
                self.hears("paid", f"visit {n}", float(n % 2))
            elif answer["status"] == 503:
                self.refused += 1
                left.append(n)
            else:
                self.others.append(f"the reward of visit {n}: {answer}")
        return left

    async def _ask(self, connection: Connection, what: str, body: Any, token: str) -> Any:
        """What was answered, however often one has to ask; None where it is a refusal for good."""
        data = request(f"/v1/agents/shop/{what}", body, token)
        steps = max((len(value) for value in body.values() if isinstance(value, list)), default=1)
        while True:
            status, answer = await connection.ask(data)
            if status == 200:
                return json.loads(answer)
            if status != 503:
                self.others.append(f"{what}: {status} {answer[:300]!r}")
                return None
            self.refused += steps
            await asyncio.sleep(0.01)

    def count(self, what: str) -> int:
        """How many different steps were acknowledged."""
        return len({name for kind, name, _ in self.told if kind == what})


def _wish(n: int) -> dict[str, Any]:
    return {"id": f"visit {n}", "context": {"age": 20 + n % 50, "device": "phone"}}


def _worth(n: int) -> dict[str, Any]:
    return {"id": f"visit {n}", "reward": n % 2}


class Faults(Protocol):
    """Something that fails until it is stopped."""

    def count(self) -> int:
        """How often it has failed."""

    def stop(self) -> None:
        """End it."""


class FailingSyncs:
    """The kernel answers syncs of processes, and of those that they begin, with EIO."""

    def __init__(self, pids: Sequence[int], which: tuple[str, str], log: Path) -> None:
        program = shutil.which("strace")
        if program is None:
            raise SystemExit(
                "strace is needed to make syncs fail: install it, or use --fail statements"
            )
        self._log = log
        calls, when = which
        self._strace = subprocess.Popen(
            [program, "-f", "-qq", "-o", str(log), "-e", f"trace={calls}",
             "-e", f"inject={calls}:error=EIO:when={when}", *(f"--attach={pid}" for pid in pids)],
        )  # fmt: skip
        while not all(_is_traced(pid) for pid in pids):
            if self._strace.poll() is not None:
                raise SystemExit(
                    "strace may not attach to the service here: run as root, or with SYS_PTRACE"
                )
            time.sleep(0.01)

    def count(self) -> int:
        return self._log.read_text().count("(INJECTED)")

    def stop(self) -> None:
        self._strace.terminate()
        try:
            self._strace.wait(5)
        except subprocess.TimeoutExpired:  # it may miss that a thread was killed
            self._strace.kill()
            self._strace.wait()


def _is_traced(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return not any(line.split() == ["TracerPid:", "0"] for line in status.splitlines())


def with_children(pid: int) -> list[int]:
    """A process and those that it has begun."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


class FailingStatements:
    """PostgreSQL refuses every fifth insert of records."""

    def __init__(self, db: str) -> None:
        self._db = db
        with psycopg.connect(db, autocommit=True) as connection:
            connection.execute(_FAILING.encode())

    def count(self) -> int:
        with psycopg.connect(self._db, autocommit=True) as connection:
            row = connection.execute(
                "SELECT last_value FROM failing_faults WHERE is_called"
            ).fetchone()
        return row[0] if row else 0

    def stop(self) -> None:
        with psycopg.connect(self._db, autocommit=True) as connection:
            connection.execute("DROP TRIGGER failing ON tidepull_records")


def kill_after(
    pid: int, seconds: float, enough: Callable[[], bool] = lambda: True
) -> threading.Thread:
    """Kill a process when so many seconds have passed, and it is enough or ten times as many have
    passed."""

    def wait_and_kill() -> None:
        end = time.monotonic() + 10 * seconds
        time.sleep(seconds)
        try:
            while time.monotonic() < end and not enough():
                time.sleep(1)
        finally:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    return thread


def audited_when_up(where: str, heard: Heard, patience: float = 60.0) -> list[str]:
    """The audit, as soon as the database is back."""
    end = time.monotonic() + patience
    while True:
        try:
            return audited(where, heard)
        except TidepullError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def run(ledger: str, fail: str, policy: str, seconds: float, code: str) -> dict[str, Any]:
    """One service, one load, one audit."""
    from tests.integration.service.houses import SHOP
    from tests.integration.service.running import running
    from tests.postgres import private

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(private()) if ledger == "postgres" else None
        given: dict[str, Any] = {} if server is None else {"db": server.url()}
        where = str(folder / "shop.db") if server is None else server.url("shop")
        service = stack.enter_context(running(folder, **given))
        assert service.ask("POST", "/v1/agents", {**SHOP, "policy": policy})[0] == 201
        assert (
            service.ask("POST", "/v1/agents/shop/choose", {"id": "first"})[0] == 200
        )  # all is compiled
        faults: Faults
        if fail == "statements":
            faults = FailingStatements(given["db"])
        elif server is None:
            faults = FailingSyncs([service.pid], SYNCS[ledger], folder / "strace")
        else:
            assert server.process is not None
            faults = FailingSyncs(
                with_children(server.process.pid), SYNCS[ledger], folder / "strace"
            )
        load = MixedLoad()
        started = time.monotonic()
        killer = kill_after(
            service.pid, seconds, lambda: load.count("paid") >= REWARDS and faults.count() >= FAULTS
        )
        try:
            asyncio.run(load.busy(service.port, service.token))
            seconds = round(time.monotonic() - started)
            killer.join()
        finally:
            faults.stop()
        injected = faults.count()
        found = audited_when_up(where, load)
    for fault in [*load.others[:5], *found[:5]]:
        print(fault)
    kinds = Counter(fault.split(":", 1)[0] for fault in found)
    return {
        "code": code, "ledger": ledger, "fail": fail, "policy": policy, "seconds": seconds, "faults": injected,
        "decisions": load.count("decided"), "rewards": load.count("paid"), "refused": load.refused,
        "other answers": len(load.others), **{kind: kinds[kind] for kind in KINDS},
    }  # fmt: skip


def read() -> list[dict[str, Any]]:
    if not OUT.exists():
        return []
    with OUT.open() as handle:
        return list(csv.DictReader(line for line in handle if not line.startswith("#")))


def keep(made: dict[str, Any]) -> None:
    """Write a row down, beside earlier runs."""
    rows = [*read(), made]
    with OUT.open("w", newline="") as handle:
        handle.write(f"# {describe()}\n")
        writer = csv.DictWriter(handle, list(made))
        writer.writeheader()
        writer.writerows(rows)


def table() -> str:
    """What the committed results say of this code, all runs of a setting together."""
    lines = [
        "| ledger | what fails | policy | runs | faults | decisions | rewards acknowledged | steps "
        "refused (503) "
        "| lost, doubled, changed or out of order |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows = [row for row in read() if row["code"] == HERE]
    for key in sorted({(row["ledger"], row["fail"], row["policy"]) for row in rows}, reverse=True):
        mine = [row for row in rows if (row["ledger"], row["fail"], row["policy"]) == key]
        counts = {field: sum(int(row[field]) for row in mine) for field in COUNTS + KINDS}
        told = " | ".join(f"{counts[field]:,}" for field in COUNTS)
        wrong = sum(counts[kind] for kind in KINDS)
        lines.append(f"| {key[0]} | {key[1]} | `{key[2]}` | {len(mine)} | {told} | {wrong} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ledger", choices=LEDGERS, default="sqlite")
    parser.add_argument("--fail", choices=["syncs", "statements"], default="syncs")
    parser.add_argument("--policy", default="bernoulli-ts")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="at least; ten times as long at most"
    )
    parser.add_argument("--code", default=HERE, help="what the rows are labelled with")
    parser.add_argument(
        "--table", action="store_true", help="only write the table of research/lab/service.md"
    )
    given = parser.parse_args()
    if given.table:
        write_between(ROOT / "research" / "lab" / "service.md", "faults", table())
        return
    if given.fail == "statements" and given.ledger != "postgres":
        parser.error("only statements of PostgreSQL can be made to fail: use --ledger postgres")
    made = run(given.ledger, given.fail, given.policy, given.seconds, given.code)
    print(made, flush=True)
    keep(made)


if __name__ == "__main__":
    main()
