"""A service while locks, files and sockets of one of its agents hang, one after the other.

    python -m research.benchmarks.service_waiting [--seconds 5] [--ledger postgres] [--only WORD] [--young N]
    python -m research.benchmarks.service_waiting --table

Every 50 ms `/healthz` and a decision of another agent are asked for, and beside them a server that
does nothing, which shows what the machine adds. Meanwhile a lock is held, a file or a pipe does not
answer, clients neither send nor read, or an agent replays its ledger (arms, rollback, export,
another release). `--young N` lets visitors decide with N new agents of `tide` meanwhile. Writes
research/results/service_waiting.csv; `--table` writes what that says into
research/lab/service.md.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import http.client
import json
import lzma
import multiprocessing
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.machine import describe
from research.benchmarks.regret_rows import ROOT, write_between

OUT = ROOT / "research" / "results" / "service_waiting.csv"
OLD_AGENTS = ROOT / "tests" / "golden" / "agents" / "0.2.0"
INTERVAL = 0.05
PROCESSES = multiprocessing.get_context("forkserver")
COLUMNS = ("ledger", "held", "seconds", "asked", "health_p99", "health_max", "choose_p99",
           "choose_max", "bare_p99", "bare_max", "refused")  # fmt: skip


# ---- in the server's process


class Held:
    """A function that waits while its lock is held."""

    def __init__(self, owner: Any, name: str, only: Callable[..., bool] = lambda *_: True) -> None:
        self.lock = threading.Lock()
        real = getattr(owner, name)

        def wrapped(*given: Any, **named: Any) -> Any:
            if only(*given):
                with self.lock:
                    pass
            return real(*given, **named)

        setattr(owner, name, wrapped)


def gates() -> dict[str, Held]:
    """Calls of disks and databases that can be made to hang."""
    from tidepull.agent.ledger.sqlite import SqliteLedger
    from tidepull.service.auth import Tokens
    from tidepull.service.logs import RequestLog
    from tidepull.service.stores import Directory

    def of_shop(ledger: Any, *_: Any) -> bool:
        return "shop" in ledger.where

    return {
        "commit of an agent": Held(SqliteLedger, "_insert", of_shop),
        "read of an agent": Held(SqliteLedger, "_rows", of_shop),
        "snapshot of an agent": Held(SqliteLedger, "save", of_shop),
        "audit trail": Held(RequestLog, "_write_audit"),
        "look at the disk": Held(Directory, "health"),
        "list of agents": Held(Directory, "names"),
        "opening an agent": Held(Directory, "open", lambda _, name: name == "late"),
        "tokens file": Held(Tokens, "reload"),
    }


def locks(service: Any) -> dict[str, Any]:
    """Locks of the agent `shop`."""
    agent = service.hosting.hosted("shop").agent
    ledger = agent._commands.ledger
    found = {
        "lock of an agent": agent._lock,
        "lock of its changes": agent._changing,
        "lock of its commits": ledger._commits.lock,
        "lock of its queue": ledger._commits._mutex,
    }
    if hasattr(ledger, "_reading"):
        found["lock of its reads"] = ledger._reading
    if hasattr(ledger, "_leases"):
        found["lock of leases"] = ledger._leases._mutex
        found["lock of connections"] = ledger._database._mutex
    return found


def serve(root: str, given: dict[str, Any], pipe: Any) -> None:
    """A service whose locks can be held: `pipe` takes names and seconds."""
    from tidepull.service import server

    held = {name: gate.lock for name, gate in gates().items()}
    folder = Path(root)
    chosen = {
        "db": root,
        "warm": True,
        "tokens": folder / "tokens.json",
        "audit": folder / "audit.jsonl",
    }
    app = server.prepare(server.ServerConfig(**{**chosen, **given}))

    def control() -> None:
        while True:
            name, seconds = pipe.recv()
            with {**held, **locks(app.service)}[name]:
                pipe.send("held")
                time.sleep(seconds)
            pipe.send("free")

    def ready(url: str) -> None:
        pipe.send(url)
        threading.Thread(target=control, daemon=True).start()

    server.serve(app, "127.0.0.1", 0, ready)


def serve_nothing(pipe: Any) -> None:
    """The least that a server can do, as a yardstick of the machine."""
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                await writer.drain()

    async def run() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


# ---- asking


@dataclass
class Prober:
    """Asks the same thing every 50 ms over one connection; how long answers took, in seconds."""

    port: int
    method: str
    path: str
    body: str | None = None
    token: str = ""
    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    _stop: bool = False

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop = True
        self._thread.join(60)

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        while not self._stop:
            started = time.perf_counter()
            connection.request(self.method, self.path, self.body, headers)
            answer = connection.getresponse()
            answer.read()
            took = time.perf_counter() - started
            self.seconds.append(took)
            self.refused += answer.status != 200
            time.sleep(max(0.0, INTERVAL - took))
        connection.close()


class Service:
    """A running service with the agents `shop`, which is held, and `bar`, which is asked."""

    def __init__(self, root: Path, decisions: int, policy: str, **given: Any) -> None:
        from tidepull.service.auth import new_token, write_tokens

        self.root = root
        self.old = "tide" if policy == "tide" else "lin-ts"  # an agent of an earlier release
        self.token, token = new_token(("*",), ("admin",))
        write_tokens(root / "tokens.json", {token.id: token})
        self._pipe, there = PROCESSES.Pipe()
        self.process = PROCESSES.Process(target=serve, args=(str(root), given, there), daemon=True)
        self.process.start()
        assert self._pipe.poll(60), "the service did not start"
        self.port = int(self._pipe.recv().rsplit(":", 1)[1])
        agent = {"arms": ["a", "b", "c", "d"], "context": {"x": "number"}, "capacity": 4}
        assert self.ask("POST", "/v1/agents", {"name": "bar", **agent, "policy": "bernoulli-ts"})
        assert self.ask("POST", "/v1/agents", {"name": "shop", **agent, "policy": policy})
        while b'"ok"' not in self.ask("GET", "/readyz"):
            time.sleep(0.1)
        for start in range(0, decisions, 500):
            self._fill(start, min(500, decisions - start))

    def _fill(self, start: int, count: int) -> None:
        wishes = [{"context": {"x": n % 7}, "id": f"v{start + n}"} for n in range(count)]
        self.ask("POST", "/v1/agents/shop/choose/batch", {"decisions": wishes})
        rewards = [{"id": f"v{start + n}", "reward": n % 2} for n in range(count)]
        self.ask("POST", "/v1/agents/shop/rewards", {"rewards": rewards})

    def visit(self, young: int, seconds: float = 3.0) -> None:
        """Let visitors decide with new agents of `tide` from now on; some seconds pass."""
        agent = {"arms": ["a", "b", "c"], "context": {"x": "number"}, "policy": "tide"}
        for n in range(young):
            self.ask("POST", "/v1/agents", {"name": f"young{n}", **agent})
            threading.Thread(target=self._visit, args=(f"young{n}",), daemon=True).start()
        time.sleep(seconds if young else 0.0)

    def _visit(self, name: str) -> None:
        while self.process.is_alive():
            made = self.ask(
                "POST", f"/v1/agents/{name}/choose", {"context": {"x": time.time() % 7}}
            )
            if made:
                reward = {"id": json.loads(made).get("id"), "reward": time.time_ns() % 2}
                self.ask("POST", f"/v1/agents/{name}/reward", reward)
            time.sleep(INTERVAL)

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """Ask something; what goes wrong is not of interest here."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        with closing(connection), suppress(OSError, http.client.HTTPException):
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            return connection.getresponse().read()
        return b""

    def provoke(self) -> None:
        """Ask for all that can get stuck, without waiting for answers."""
        asked: list[tuple[str, str, Any]] = [
            ("POST", "/v1/agents/shop/choose", {"id": f"new {time.time()}"}),
            ("POST", "/v1/agents/shop/choose", {"id": "v1"}),
            ("GET", "/v1/agents/shop", None),
            ("GET", "/v1/agents/shop/lift", None),
            ("POST", "/v1/agents/shop/freeze", None),
            ("POST", "/v1/agents/shop/unfreeze", None),
            ("GET", "/v1/agents", None),
            ("GET", "/v1/agents/late", None),
        ]
        for one in asked:
            threading.Thread(target=self.ask, args=one, daemon=True).start()

    def hold(self, name: str, seconds: float) -> None:
        """Hold a lock in the service for some time."""
        self._pipe.send((name, seconds))
        assert self._pipe.recv() == "held"
        self.provoke()
        assert self._pipe.recv() == "free"

    def close(self) -> None:
        self.process.kill()
        self.process.join()


# ---- what is held


def file_lock(service: Service, seconds: float) -> None:
    """Another program locks an agent's file."""
    other = sqlite3.connect(service.root / "shop.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    service.provoke()
    time.sleep(seconds)
    other.execute("ROLLBACK")
    other.close()


def silent_clients(service: Service, seconds: float) -> None:
    """Clients that begin a request, or send nothing."""
    with ExitStack() as stack:
        for n in range(200):
            client = socket.create_connection(("127.0.0.1", service.port))
            stack.callback(client.close)
            if n % 2:
                client.sendall(b"POST /v1/agents/shop/choose HTTP/1.1\r\nhost: x\r\nconte")
        time.sleep(seconds)


def unread_answers(service: Service, seconds: float) -> None:
    """Clients that ask for exports and do not read them."""
    head = (
        f"GET /v1/agents/shop/export HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {service.token}"
    )
    with ExitStack() as stack:
        for _ in range(5):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", service.port))
            stack.callback(client.close)
            client.sendall(f"{head}\r\n\r\n".encode())
        time.sleep(seconds)


def unread_log(service: Service, seconds: float) -> None:
    """The access log is a pipe that is not read; it was full before."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        service.ask("GET", "/v1/agents")


def tokens_pipe(service: Service, seconds: float) -> None:
    """The tokens file is replaced by something that does not answer when it is read."""
    file = service.root / "tokens.json"
    text = file.read_text()
    os.mkfifo(service.root / "pipe")
    (service.root / "pipe").replace(file)
    time.sleep(seconds)
    with file.open("w") as pipe:
        pipe.write(text)
    file.unlink()
    file.write_text(text)


def working(method: str, path: str, bodies: Callable[[int], Any]) -> Callable[..., None]:
    """An agent does something that takes long, again and again."""

    def work(service: Service, seconds: float) -> None:
        deadline, n = time.monotonic() + seconds, 0
        while time.monotonic() < deadline or n == 0:
            service.ask(method, f"/v1/agents/shop{path}", bodies(n))
            n += 1

    return work


def write_old_agent(path: Path, name: str) -> None:
    """An agent of an earlier release, whose policy behaved differently."""
    path.write_bytes(lzma.decompress((OLD_AGENTS / f"{name}.db.xz").read_bytes()))
    with closing(sqlite3.connect(path)) as file, file:
        (text,) = file.execute("SELECT value FROM texts WHERE key = 'settings'").fetchone()
        text = json.dumps({**json.loads(text), "policy_version": 0})
        file.execute("UPDATE texts SET value = ? WHERE key = 'settings'", (text,))


def upgrade(service: Service, seconds: float) -> None:
    """Agents of an earlier release are opened and made anew."""
    deadline, n = time.monotonic() + seconds, 0
    while time.monotonic() < deadline or n == 0:
        write_old_agent(service.root / f"old{n}.db", service.old)
        service.ask("GET", f"/v1/agents/old{n}")
        n += 1


ROWS: dict[str, Callable[[Service, float], None]] = {
    "file locked by another program": file_lock,
    "silent clients": silent_clients,
    "clients that do not read": unread_answers,
    "access log that is not read": unread_log,
    "tokens file that does not answer": tokens_pipe,
    "arms grow": working("POST", "/arms", lambda n: {"op": "add", "label": f"n{n}"}),
    "rollback": working("POST", "/rollback", lambda _: {"to": "v400"}),
    "export": working("GET", "/export", lambda _: None),
    "charts": working("GET", "/lift?points=100", lambda _: None),
    "agents of an earlier release": upgrade,
}


def in_process(name: str) -> Callable[[Service, float], None]:
    return lambda service, seconds: service.hold(name, seconds)


SQLITE = {
    **{name: in_process(name) for name in (
        "lock of an agent", "lock of its changes", "lock of its commits", "lock of its queue",
        "lock of its reads", "commit of an agent", "read of an agent", "snapshot of an agent",
        "audit trail", "look at the disk", "list of agents", "opening an agent", "tokens file",
    )},
    **ROWS,
}  # fmt: skip


def database_stops(server: Any) -> Callable[[Service, float], None]:
    """All processes of PostgreSQL stand still."""

    def stop(service: Service, seconds: float) -> None:
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(server.process.pid)], capture_output=True, text=True
        )
        pids = [server.process.pid, *map(int, listed.stdout.split())]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            service.provoke()
            time.sleep(seconds)
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    return stop


def row_lock(db: str) -> Callable[[Service, float], None]:
    """Another session locks an agent's row."""

    def lock(service: Service, seconds: float) -> None:
        import psycopg

        with psycopg.connect(db) as other:
            other.execute("SELECT FROM tidepull_agents WHERE name = 'shop' FOR UPDATE")
            service.provoke()
            time.sleep(seconds)

    return lock


def postgres_holds(server: Any, db: str) -> dict[str, Callable[[Service, float], None]]:
    """What can be held where agents are in PostgreSQL."""
    names = ("lock of an agent", "lock of its changes", "lock of its commits", "lock of leases")
    shared = ("arms grow", "rollback", "export", "charts")
    return {
        **{name: in_process(name) for name in names},
        "row locked by another session": row_lock(db),
        **{name: ROWS[name] for name in shared},
        "database that stands still": database_stops(server),
    }


# ---- measuring


@contextmanager
def bare_server() -> Iterator[int]:
    """The port of a server that does nothing."""
    here, there = PROCESSES.Pipe()
    process = PROCESSES.Process(target=serve_nothing, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


def measure(
    service: Service, bare: int, hold: Callable[[Service, float], None], seconds: float
) -> dict[str, Prober]:
    """Ask while something is held."""
    probers = {
        "health": Prober(service.port, "GET", "/healthz"),
        "choose": Prober(service.port, "POST", "/v1/agents/bar/choose", "{}", service.token),
        "bare": Prober(bare, "GET", "/"),
    }
    for prober in probers.values():
        prober.start()
    try:
        hold(service, seconds)
    finally:
        for prober in probers.values():
            prober.stop()
    return probers


def row_of(ledger: str, held: str, seconds: float, probers: dict[str, Prober]) -> dict[str, Any]:
    """What became of it, in milliseconds."""
    row: dict[str, Any] = {"ledger": ledger, "held": held, "seconds": seconds}
    row["asked"] = len(probers["health"].seconds)
    for name, prober in probers.items():
        row[f"{name}_p99"] = round(1000 * float(np.quantile(prober.seconds, 0.99)), 1)
        row[f"{name}_max"] = round(1000 * max(prober.seconds), 1)
    row["refused"] = probers["choose"].refused
    return row


@contextmanager
def started(
    ledger: str, decisions: int, policy: str, folder: Path | None = None
) -> Iterator[tuple[Service, dict[str, Callable[[Service, float], None]]]]:
    """A service, and what of it can be held."""
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="tidepull-waiting-", dir=folder))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        log = root / "access.fifo"
        os.mkfifo(log)
        reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)  # nobody reads it
        stack.callback(os.close, reader)
        given: dict[str, Any] = {"log": log}
        holds = SQLITE
        if ledger == "postgres":
            from tests.postgres import private

            server = stack.enter_context(private())
            given["db"] = server.url()
            holds = postgres_holds(server, server.url())
        service = Service(root, decisions, policy, **given)
        stack.callback(service.close)
        yield service, holds


def run(
    ledger: str, seconds: float, decisions: int, policy: str, only: str = "", young: int = 0
) -> list[dict[str, Any]]:
    rows = []
    with bare_server() as bare, started(ledger, decisions, policy) as (service, holds):
        service.visit(young)
        holds = {"nothing": lambda _, seconds: time.sleep(seconds), **holds}
        for name, hold in holds.items():
            if only in name:
                rows.append(row_of(ledger, name, seconds, measure(service, bare, hold, seconds)))
                print(rows[-1], flush=True)
    return rows


def read() -> list[dict[str, str]]:
    if not OUT.exists():
        return []
    with OUT.open() as handle:
        return list(csv.DictReader(line for line in handle if not line.startswith("#")))


def keep(ledger: str, rows: list[dict[str, Any]]) -> None:
    """Write rows down in the place of earlier ones of the same ledger."""
    rows = [*(row for row in read() if row["ledger"] != ledger), *rows]
    with OUT.open("w", newline="") as handle:
        load = os.getloadavg()[1]
        handle.write(f"# {load:.0f} processes wanted to run at a time; {describe()}\n")
        writer = csv.DictWriter(handle, COLUMNS)
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: row["ledger"], reverse=True))


def table() -> str:
    """What the committed results say."""
    lines = [
        "| ledger | held | `/healthz` p99 | longest | another agent's `choose` p99 | longest "
        "| bare server p99 | longest ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    shown = (
        "ledger", "held", "health_p99", "health_max", "choose_p99", "choose_max", "bare_p99", "bare_max",
    )  # fmt: skip
    lines += ["| " + " | ".join(row[name] for name in shown) + " |" for row in read()]
    with OUT.open() as handle:
        said = handle.readline().lstrip("# ").strip()
    return "\n".join([*lines, "", f"{said}."])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ledger", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seconds", type=float, default=5.0, help="for which each is held")
    parser.add_argument("--decisions", type=int, default=3000, help="in the agent that is held")
    parser.add_argument("--policy", default="tide", help="of the agent that is held")
    parser.add_argument("--only", default="", help="only what has this word in its name")
    parser.add_argument("--young", type=int, default=0, help="new agents of tide with visitors")
    parser.add_argument("--table", action="store_true", help="only write the table of the manual")
    given = parser.parse_args()
    if given.table:
        write_between(ROOT / "research" / "lab" / "service.md", "waiting", table())
        return
    rows = run(given.ledger, given.seconds, given.decisions, given.policy, given.only, given.young)
    if not (given.only or given.young):
        keep(given.ledger, rows)


if __name__ == "__main__":
    main()
