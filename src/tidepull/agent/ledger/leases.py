"""Who may write to an agent in a shared database: one process at a time, for as long as it says
that it lives.

A lease is a row: owner, epoch, and when it ends by the database's clock. Every taking raises the
epoch, and every write names its own in the same statement, so that an owner that was silent for too
long can write nothing any more. While it lives, an owner renews its leases, and holds an advisory
lock that ends with its session: who finds that lock free knows that the owner has crashed or lost
its connection, and need not wait for the end of the lease. A live owner that lost its connection is
back and renews within a third of a lease; so a free lock counts after half of one, or at once where
the owner ran on this machine and its process is gone.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from tidepull.agent.clock import elapsed
from tidepull.agent.ledger.database import LOCKS, LONG_PATIENCE, Connection, Database
from tidepull.errors import HeldError, LedgerError, TidepullError

_LOG = logging.getLogger("tidepull")

T = TypeVar("T")

LENGTH = 5.0
"""Seconds after which a silent owner may be replaced, unless said otherwise."""

_TAKE = """
UPDATE tidepull_agents SET epoch = epoch + 1, owner = %(owner)s, url = %(url)s, since = clock_timestamp(),
  length = %(length)s, expires = clock_timestamp() + make_interval(secs => %(length)s), locked = %(free)s
WHERE id = %(id)s AND (expires <= clock_timestamp() OR
  (locked AND %(free)s AND (owner = %(dead)s OR expires - make_interval(secs => length / 2) <= clock_timestamp())))
RETURNING epoch
"""
# A row that another session has locked is left out: all others would wait with it.
_RENEW = """
WITH l AS (SELECT * FROM unnest(%s::int[], %s::bigint[], %s::boolean[]) AS l (id, epoch, locked)),
free AS (SELECT a.id, a.epoch FROM tidepull_agents AS a JOIN l ON a.id = l.id FOR UPDATE OF a SKIP LOCKED),
renewed AS (
  UPDATE tidepull_agents AS a SET expires = clock_timestamp() + make_interval(secs => a.length), locked = l.locked
  FROM l JOIN free ON l.id = free.id AND l.epoch = free.epoch WHERE a.id = l.id)
SELECT l.id FROM l JOIN free ON l.id = free.id AND l.epoch <> free.epoch
"""
_OWNER = """
SELECT owner, url, to_char(since, 'YYYY-MM-DD"T"HH24:MI:SSOF'),
  extract(epoch FROM expires - clock_timestamp())::float8, epoch
FROM tidepull_agents WHERE name = %s AND expires > clock_timestamp()
"""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds an agent. `url` is where it takes requests, if it said so; `left` are
    the seconds until its lease ends, unless it renews it."""

    process: int
    host: str
    program: str
    url: str
    since: str
    left: float
    epoch: int

    def __str__(self) -> str:
        where = (
            "this process"
            if self.process == os.getpid() and self.host == socket.gethostname()
            else ""
        )
        at = f" at {self.url}" if self.url else ""
        return f"{where or f'process {self.process}'} ({self.program} on {self.host}{at}, since {self.since})"


@dataclass(slots=True)
class Lease:
    """The right to write to an agent, while `epoch` is the one in the database."""

    agent: str
    id: int
    epoch: int
    length: float
    url: str
    locked: bool
    wait: bool = True
    lost: bool = False


class LeaseState(NamedTuple):
    """Leases held, taken by others so far, and seconds until the first one ends unless renewed."""

    held: int
    taken_over: int
    seconds_left: float


class Leases:
    """The leases of this process in one database, renewed by a thread in the background."""

    _shared: dict[tuple[int, str], tuple[Leases, int]] = {}  # noqa: RUF012
    _sharing = threading.Lock()

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self._url = url
        self._held: dict[str, Lease] = {}
        self._mutex = threading.Lock()  # guards `_held` and `_session`
        self._session: Connection | None = None
        self._thread: threading.Thread | None = None
        self._changed = threading.Event()
        self._stop = False
        self._renewed = time.monotonic()
        self._taken_over = 0
        self._offset = 0.0  # of the database's clock to one of this machine that cannot jump

    def now(self) -> float:
        """The present moment by the database's clock, as it was when a lease was last taken or
        renewed."""
        return elapsed() + self._offset

    @classmethod
    def shared(cls, url: str) -> Self:
        """The leases of this process in a database; every `shared` wants a `close`."""
        key = (os.getpid(), url)
        with cls._sharing:
            leases, users = cls._shared.get(key) or (cls(url), 0)
            cls._shared[key] = (leases, users + 1)
        return leases  # type: ignore[return-value]

    def close(self) -> None:
        """Whoever is the last to close lets go of all connections."""
        key = (os.getpid(), self._url)
        with self._sharing:
            leases, users = self._shared.get(key, (self, 1))
            if leases is self and users > 1:
                self._shared[key] = (self, users - 1)
                return
            self._shared.pop(key, None)
        self._stop = True
        self._changed.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        with self._mutex:
            self._end_session()
        self.database.drop_idle()

    # ---- what callers want

    def acquire(
        self, agent: str, *, length: float = LENGTH, url: str = "", wait: bool = True
    ) -> Lease:
        """Take an agent, made if there is none; a `HeldError` names its owner. An owner whose
        session has ended is waited for, half a lease at most, unless one does not want to
        `wait`."""
        with self._mutex:
            if agent in self._held:
                raise self._refusal(agent)
        lease = Lease(agent, 0, 0, length, url, False, wait)
        self._take(lease)
        return lease

    def renew(self) -> list[str]:
        """Renew all leases now; the agents that others have taken meanwhile."""
        with self._mutex:
            held = [lease for lease in self._held.values() if not lease.lost]
            if not held:
                return []
            taken = self._in_session(lambda session: _renew(session, held))
            self._offset = self._in_session(_offset)
            gone = [lease for lease in held if lease.id in taken]
            for lease in gone:
                lease.lost = True
            self._renewed = time.monotonic()
            self._taken_over += len(gone)
            return [lease.agent for lease in gone]

    def state(self) -> LeaseState:
        """How leases stand; asks nobody."""
        held = [lease for lease in list(self._held.values()) if not lease.lost]
        since = time.monotonic() - self._renewed
        left = min((lease.length - since for lease in held), default=LENGTH)
        return LeaseState(len(held), self._taken_over, max(0.0, left))

    def regain(self, lease: Lease) -> bool:
        """After a failure: a new epoch for a lease, so that nothing which was sent under the old
        one can still be written. True if nobody else had it in between; a `HeldError` where
        somebody has it now."""
        with self._mutex:
            epoch = self._in_session(lambda session: _next_epoch(session, lease))
            if epoch is not None:
                lease.epoch, lease.lost = epoch, False
                return True
            self._held.pop(lease.agent, None)
        lease.lost = True
        self._take(lease)
        return False

    def release(self, lease: Lease) -> None:
        """Others may take the agent now. One that was never made is not kept."""
        with self._mutex:
            if self._held.get(lease.agent) is lease:
                del self._held[lease.agent]
            self._in_session(lambda session: _let_go(session, lease))

    def owner_of(self, agent: str) -> Owner | None:
        """Who holds an agent now: None where nobody does."""
        rows = self.database.rows(_OWNER, agent)
        return _owner(*rows[0]) if rows else None

    def delete(self, lease: Lease) -> None:
        """Delete an agent that one holds, for good."""
        tables = (
            "records WHERE agent",
            "snapshots WHERE agent",
            "texts WHERE agent",
            "agents WHERE id",
        )
        with (
            self.database.connection("write to", LONG_PATIENCE) as connection,
            connection.transaction(),
        ):
            mine = "SELECT FROM tidepull_agents WHERE id = %s AND epoch = %s FOR UPDATE"
            if connection.execute(mine, (lease.id, lease.epoch)).fetchone() is None:
                raise self._refusal(lease.agent)
            for table in tables:
                connection.execute(f"DELETE FROM tidepull_{table} = %s".encode(), (lease.id,))
        self.release(lease)

    def lost(self) -> list[str]:
        """Agents that others have taken, and that this process has not let go of yet."""
        with self._mutex:
            return [lease.agent for lease in self._held.values() if lease.lost]

    def agents(self) -> list[str]:
        """All agents of the database."""
        return [
            row[0] for row in self.database.rows("SELECT name FROM tidepull_agents ORDER BY name")
        ]

    # ---- inside

    def _take(self, lease: Lease) -> None:
        deadline = time.monotonic() + lease.length + 1.0
        waits = True
        while waits and time.monotonic() < deadline:
            with self._mutex:
                if lease.agent in self._held:
                    break
                epoch, waits = self._in_session(lambda session: _try_to_take(session, lease))
                if epoch is not None:
                    lease.epoch, lease.lost = epoch, False
                    self._offset = self._in_session(_offset)
                    self._renewed = time.monotonic() if not self._held else self._renewed
                    self._held[lease.agent] = lease
                    self._watch()
                    return
            waits = waits and lease.wait
            if waits:
                time.sleep(min(0.1, lease.length / 10))
        raise self._refusal(lease.agent)

    def _refusal(self, agent: str) -> HeldError:
        owner = self.owner_of(agent) or "another process"
        return HeldError(
            f"{self.database.where}?agent={agent} is held by {owner}; one process at a time can "
            "write to an agent: close it there, or open it with read_only=True"
        )

    def _in_session(self, ask: Callable[[Connection], T]) -> T:
        """Ask in the session that has the advisory locks; a session that has died is replaced,
        once."""
        for last in (False, True):
            if self._session is None:
                self._session = self.database.connect()
                for lease in self._held.values():
                    lease.locked = False
            try:
                with self.database.explained("hold the lease of an agent in"):
                    return ask(self._session)
            except LedgerError:
                if self._session.closed:
                    self._end_session()
                if last or self._session is not None:
                    raise
        raise AssertionError

    def _end_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _watch(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tidepull-leases", daemon=True)
            self._thread.start()
        self._changed.set()

    def _run(self) -> None:
        silent = False
        while not self._stop:
            lengths = [lease.length for lease in list(self._held.values())]
            self._changed.wait(min(lengths, default=3 * LENGTH) / 3)
            self._changed.clear()
            if self._stop:
                return
            try:
                for agent in self.renew():
                    _LOG.warning("the agent %s was taken over by another process", agent)
                silent = False
            except TidepullError as error:
                if not silent:
                    _LOG.warning("leases could not be renewed (said once): %s", error)
                silent = True


def _id_of(session: Connection, agent: str) -> int:
    session.execute(
        "INSERT INTO tidepull_agents (name) VALUES (%s) ON CONFLICT (name) DO NOTHING", (agent,)
    )
    row = session.execute("SELECT id FROM tidepull_agents WHERE name = %s", (agent,)).fetchone()
    assert row is not None
    return int(row[0])


def _try_to_take(session: Connection, lease: Lease) -> tuple[int | None, bool]:
    """The new epoch; or None, and whether the owner's session has ended, so that waiting is of
    use."""
    lease.id = _id_of(session, lease.agent)
    free = lease.locked or _lock(session, lease.id)
    row = session.execute("SELECT owner FROM tidepull_agents WHERE id = %s", (lease.id,)).fetchone()
    owner = row[0] if row else ""
    values = {
        "id": lease.id, "owner": _myself(), "url": lease.url, "length": lease.length, "free": free,
        "dead": owner if _is_dead(owner) else None,
    }  # fmt: skip
    taken = session.execute(_TAKE, values).fetchone()
    if taken is not None:
        lease.locked = free
        return int(taken[0]), False
    if free:
        _unlock(session, lease.id)
        lease.locked = False
    return None, free


def _renew(session: Connection, held: list[Lease]) -> set[int]:
    """Renew leases; the agents that others have taken."""
    for lease in held:
        lease.locked = lease.locked or _lock(session, lease.id)
    rows = session.execute(
        _RENEW,
        ([one.id for one in held], [one.epoch for one in held], [one.locked for one in held]),
    ).fetchall()
    return {row[0] for row in rows}


def _next_epoch(session: Connection, lease: Lease) -> int | None:
    lease.locked = lease.locked or _lock(session, lease.id)
    row = session.execute(
        "UPDATE tidepull_agents SET epoch = epoch + 1, expires = clock_timestamp() + "
        "make_interval(secs => length), "
        "locked = %s WHERE id = %s AND epoch = %s RETURNING epoch",
        (lease.locked, lease.id, lease.epoch),
    ).fetchone()
    return None if row is None else int(row[0])


def _let_go(session: Connection, lease: Lease) -> None:
    mine = (lease.id, lease.epoch)
    session.execute(
        "UPDATE tidepull_agents SET expires = '-infinity', locked = false WHERE id = %s AND epoch "
        "= %s",
        mine,
    )
    session.execute(
        "DELETE FROM tidepull_agents AS a WHERE id = %s AND epoch = %s "
        "AND NOT EXISTS (SELECT FROM tidepull_texts WHERE agent = a.id) "
        "AND NOT EXISTS (SELECT FROM tidepull_records WHERE agent = a.id)",
        mine,
    )
    if lease.locked:
        _unlock(session, lease.id)
        lease.locked = False


def _offset(session: Connection) -> float:
    """What the database's clock shows beyond one of this machine that cannot jump."""
    row = session.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert row is not None
    return float(row[0]) - elapsed()


def _lock(session: Connection, id: int) -> bool:
    row = session.execute("SELECT pg_try_advisory_lock(%s, %s)", (LOCKS, id)).fetchone()
    return bool(row and row[0])


def _unlock(session: Connection, id: int) -> None:
    session.execute("SELECT pg_advisory_unlock(%s, %s)", (LOCKS, id))


def _owner(text: str, url: str, since: str, left: float, epoch: int) -> Owner:
    about: dict[str, Any] = json.loads(text)
    return Owner(about["process"], about["host"], about["program"], url, since, left, epoch)


def _myself() -> str:
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    about = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "program": program,
        "machine": _machine(),
    }
    return json.dumps(about)


def _machine() -> str:
    """What process numbers are unique in: this start of this machine, and this container; empty
    where unknown."""
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {start} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _is_dead(owner: str) -> bool:
    """Whether an owner is known to be gone: it ran here, and no process has its number."""
    if not owner or not _machine():
        return False
    about = json.loads(owner)
    if about["machine"] != _machine():
        return False
    try:
        os.kill(about["process"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
