"""One PostgreSQL database as a process sees it: shared connections, tables, errors in one sentence,
and shards."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from tidepull import __version__
from tidepull.agent.records import RELEASE_KEY, newer_store
from tidepull.errors import LedgerError, ParameterError, UnreachableError, WrongStoreError

PATIENCE = 4.0
"""Seconds within which a statement must be answered, less than a lease. A server that hangs
otherwise holds whoever asks it for as long as it hangs."""

KEPT_FOR_WRITES = 3
"""Connections that reads leave to commits, however many charts and exports are under way."""

LONG_PATIENCE = 600.0
"""The same for statements over all records of an agent."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed when the server does not answer for `patience` seconds."""

    patience = PATIENCE

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Wait for the server, with a limit."""
        try:
            return super().wait(self._limited(gen), *args, **kwargs)
        except _SilentError:
            self.close()
            raise psycopg.OperationalError("timeout: the server does not answer") from None

    def _limited(self, gen: Any) -> Any:
        deadline = time.monotonic() + self.patience
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready and time.monotonic() > deadline:
                    raise _SilentError
                state = gen.send(ready)
        except StopIteration as end:
            return end.value


class _SilentError(Exception):
    """The server has not answered in time."""


VERSION = 3
"""Version of the tables; raised with a step in `MIGRATIONS` when they change."""

_SHARDS = """
CREATE TABLE tidepull_shards (url text PRIMARY KEY, since timestamptz NOT NULL, expires timestamptz NOT NULL);
"""

MIGRATIONS: dict[int, str] = {1: _SHARDS, 2: "ALTER TABLE tidepull_records ADD COLUMN hash bytea"}
"""From a version to SQL that leads to the next one."""

LOCKS = 0x7D1E
"""First number of all advisory locks of tidepull; the second is an agent's, or 0 for the tables."""

_TABLES = f"""{_SHARDS}CREATE TABLE tidepull_meta (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE tidepull_agents (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,
  epoch bigint NOT NULL DEFAULT 0, owner text NOT NULL DEFAULT '', url text NOT NULL DEFAULT '',
  since timestamptz, length float8 NOT NULL DEFAULT 0, expires timestamptz NOT NULL DEFAULT '-infinity',
  locked boolean NOT NULL DEFAULT false) WITH (fillfactor = 50);
CREATE TABLE tidepull_texts (agent int NOT NULL REFERENCES tidepull_agents, key text, value text NOT NULL,
  PRIMARY KEY (agent, key));
CREATE TABLE tidepull_records (agent int NOT NULL, seq bigint, kind smallint NOT NULL,
  at float8 NOT NULL, slices bigint NOT NULL, ref bigint, body bytea NOT NULL, context bytea, subject bytea, name bytea,
  hash bytea, PRIMARY KEY (agent, seq));
CREATE INDEX tidepull_by_ref ON tidepull_records (agent, ref) WHERE ref IS NOT NULL;
CREATE INDEX tidepull_by_subject ON tidepull_records (agent, subject) WHERE subject IS NOT NULL;
CREATE INDEX tidepull_by_kind ON tidepull_records (agent, kind, seq) WHERE kind > 3;
CREATE UNIQUE INDEX tidepull_by_name ON tidepull_records (agent, name) WHERE name IS NOT NULL;
CREATE TABLE tidepull_snapshots (agent int NOT NULL REFERENCES tidepull_agents, seq bigint, at float8 NOT NULL,
  checksum bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (agent, seq));
"""

# A session that nobody is behind any more must not hold a row for long, and a commit must be on
# disk.
_SESSION = f"""
SELECT set_config('idle_in_transaction_session_timeout', '10000', false), set_config('lock_timeout', '3000', false),
  set_config('statement_timeout', '{1000 * PATIENCE:.0f}', false),
  set_config('default_transaction_isolation', 'read committed', false),
  set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '3', false),
  set_config('tcp_keepalives_count', '3', false),
  set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
             ELSE current_setting('synchronous_commit') END, false)
"""
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 3, "application_name": "tidepull", "keepalives_idle": 5, "keepalives_interval": 3,
    "keepalives_count": 3, "tcp_user_timeout": 10_000,
}  # fmt: skip


class Database:
    """Connections to a database, opened as they are needed and at most `most` at a time."""

    def __init__(self, url: str, most: int = 8) -> None:
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise ParameterError(
                f"the URL of the database cannot be read: {_first_line(error)}; write it as "
                "postgresql://user@host/database?agent=NAME"
            ) from None
        self._conninfo = make_conninfo("", **{**_DEFAULTS, **parts})
        self.where = _shown(parts)
        self._role = str(parts.get("user", ""))
        self._idle: list[Connection] = []
        self._mutex = threading.Lock()
        self._room = threading.Semaphore(most)
        self._reads = threading.Semaphore(most - KEPT_FOR_WRITES)

    def connect(self) -> Connection:
        """A connection of one's own, every statement a transaction by itself unless said
        otherwise."""
        with self.explained("reach"):
            connection = Connection.connect(self._conninfo, autocommit=True)
            try:
                connection.execute(_SESSION.encode())
            except BaseException:
                connection.close()
                raise
        return connection

    @contextmanager
    def connection(self, verb: str, patience: float = PATIENCE) -> Iterator[Connection]:
        """A connection for a short while; psycopg's errors become one sentence that begins with
        "cannot", `verb`. Every statement must be answered within `patience` seconds."""
        with self._room:
            with self._mutex:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self.connect()
            try:
                with self.explained(verb):
                    _be_patient(connection, patience)
                    yield connection
            finally:
                self._back(connection)

    def _back(self, connection: Connection) -> None:
        if connection.closed:
            self.drop_idle()  # what has ended one has most likely ended all
        elif connection.info.transaction_status == TransactionStatus.IDLE:
            with self._mutex:
                self._idle.append(connection)
        else:
            connection.close()

    def drop_idle(self) -> None:
        """Close connections that nobody uses now."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(psycopg.Error):
                connection.close()

    def rows(self, query: Any, *values: Any, binary: bool = True) -> list[tuple[Any, ...]]:
        """All rows of a query that changes nothing; asked once more where a connection had died."""
        try:
            return self._rows(query, values, binary)
        except UnreachableError:
            return self._rows(query, values, binary)

    def _rows(self, query: Any, values: tuple[Any, ...], binary: bool) -> list[tuple[Any, ...]]:
        with self._reads, self.connection("read") as connection:
            return connection.execute(query, values, binary=binary).fetchall()

    def prepare(self, *, write: bool) -> int:
        """See that the tables are there and of this version; make or migrate them if they may be
        written to. The version that they have."""
        version = self._version()
        if version is None and not write:
            raise WrongStoreError(f"there is no agent in {self.where}")
        if version is None or (version < VERSION and write):
            self._migrate()
        elif version > VERSION:
            named = self.rows("SELECT value FROM tidepull_meta WHERE key = %s", RELEASE_KEY)
            raise newer_store(
                self.where, named[0][0] if named else None, f" (tables of version {version})"
            )
        return VERSION if version is None or write else version

    def _version(self) -> int | None:
        if self.rows("SELECT to_regclass('tidepull_meta')::text")[0][0] is None:
            return None
        return int(self.rows("SELECT value FROM tidepull_meta WHERE key = 'version'")[0][0])

    def _migrate(self) -> None:
        """All steps or none; whoever else wants to do so waits, and finds it done."""
        with self.connection("make tables in", LONG_PATIENCE) as connection:
            # Before the transaction: one that has begun may not see tables that were made since.
            connection.execute("SELECT pg_advisory_lock(%s, 0)", (LOCKS,))
            try:
                with connection.transaction():
                    self._make_or_change(connection)
            finally:
                connection.execute("SELECT pg_advisory_unlock(%s, 0)", (LOCKS,))

    def _make_or_change(self, connection: Connection) -> None:
        there = connection.execute("SELECT to_regclass('tidepull_meta')::text").fetchone()
        if there is None or there[0] is None:
            connection.execute(_TABLES)
            connection.execute(
                "INSERT INTO tidepull_meta VALUES ('version', %s), (%s, %s)",
                (str(VERSION), RELEASE_KEY, __version__),
            )
            return
        row = connection.execute("SELECT value FROM tidepull_meta WHERE key = 'version'").fetchone()
        assert row is not None
        for old in range(int(row[0]), VERSION):
            connection.execute(MIGRATIONS[old].encode())
        connection.execute(
            "UPDATE tidepull_meta SET value = %s WHERE key = 'version'", (str(VERSION),)
        )
        connection.execute(
            "INSERT INTO tidepull_meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = "
            "EXCLUDED.value",
            (RELEASE_KEY, __version__),
        )

    @contextmanager
    def explained(self, verb: str) -> Iterator[None]:
        """One sentence for what psycopg raises: `UnreachableError` where the server or the way to
        it is gone."""
        try:
            yield
        except psycopg.Error as error:
            ended = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
            about_connection = ended and (error.sqlstate or "08")[:2] in (
                "08",
                "28",
                "3D",
                "53",
                "57",
            )
            if about_connection and not isinstance(error, errors.DiskFull):
                kind, fix = _connection_fix(str(error), self._role)
            else:
                kind, fix = LedgerError, _fix(error, self._role)
            raise kind(f"cannot {verb} {self.where}: {fix}") from error


def _be_patient(connection: Connection, patience: float) -> None:
    if connection.patience != patience:
        connection.patience = patience
        values = (f"{1000 * patience:.0f}",)
        connection.execute("SELECT set_config('statement_timeout', %s, false)", values)


def _shown(parts: dict[str, Any]) -> str:
    """A database without its password."""
    user = f"{parts['user']}@" if "user" in parts else ""
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


_AGAIN = "nothing that was acknowledged is lost, and the next call tries again"
_REFUSED = {
    "password authentication failed": "the password of '{role}' is wrong: correct it (URL, "
    "PGPASSWORD or ~/.pgpass)",
    "no password supplied": "it wants a password for '{role}': give it in the URL, PGPASSWORD or "
    "~/.pgpass",
    "no pg_hba.conf entry": "it does not let '{role}' in from here: change its pg_hba.conf",
    "authentication failed": "it does not let '{role}' in: check the user and how it proves itself",
    "could not translate host name": "there is no host of that name: correct the URL",
    "failed to resolve host": "there is no host of that name: correct the URL",
    "permission denied for database": "'{role}' may not connect to it: GRANT CONNECT, or choose "
    "another role",
}  # fmt: skip
_AWAY = {
    "Connection refused": "no server listens there: start it, or correct the URL",
    "No such file or directory": "no server listens there: start it, or correct the URL",
    "timeout": "it does not answer in time: is it running, and is the URL right?",
    "timed out": "it does not answer in time: is it running, and is the URL right?",
    "too many clients": "it has no connection left: raise its max_connections, or close other "
    "programs",
    "remaining connection slots": "it has no connection left: raise its max_connections, or close "
    "other programs",
    "starting up": f"the server is starting: {_AGAIN}",
    "in recovery mode": f"the server is starting: {_AGAIN}",
    "shutting down": f"the server is shutting down: {_AGAIN}",
}


def _connection_fix(text: str, role: str) -> tuple[type[LedgerError], str]:
    for sign, fix in _REFUSED.items():
        if sign in text:
            return LedgerError, fix.format(role=role)
    for kind, name in (("database", "the database"), ("role", "the role")):
        if f'{kind} "' in text and "does not exist" in text:
            return LedgerError, f"{name} does not exist there: create it, or correct the URL"
    for sign, fix in _AWAY.items():
        if sign in text:
            return UnreachableError, fix
    return UnreachableError, f"the connection was lost: {_AGAIN}"


def _fix(error: psycopg.Error, role: str) -> str:
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return "it is read-only (a standby, or default_transaction_read_only): use another, or give read_only=True"
    if isinstance(error, errors.InsufficientPrivilege):
        return f"'{role}' may not do that ({_first_line(error)}): grant it, or open the agent with read_only=True"
    if isinstance(error, errors.DiskFull):
        return "the server's disk is full: free some space; nothing that was acknowledged is lost"
    if isinstance(error, errors.LockNotAvailable):
        return f"another session has held the agent's row for too long: {_AGAIN}"
    if isinstance(error, errors.QueryCanceled):
        return f"it took longer than {PATIENCE:g} seconds: {_AGAIN}"
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn):
        return f"its tables are not as tidepull made them ({_first_line(error)}): restore a copy"
    return f"the server says: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].strip()


LENGTH = 5.0
"""Seconds after which a shard that says nothing counts as gone."""

_HERE = """
INSERT INTO tidepull_shards (url, since, expires)
VALUES (%(url)s, clock_timestamp(), clock_timestamp() + make_interval(secs => %(length)s))
ON CONFLICT (url) DO UPDATE SET expires = EXCLUDED.expires,
  since = CASE WHEN %(new)s THEN EXCLUDED.since ELSE tidepull_shards.since END
"""
_ALIVE = """
SELECT s.url, extract(epoch FROM clock_timestamp() - s.since)::float8,
  array_remove(array_agg(a.name ORDER BY a.name), NULL)
FROM tidepull_shards AS s LEFT JOIN tidepull_agents AS a ON a.url = s.url AND a.expires > clock_timestamp()
WHERE s.expires > clock_timestamp() GROUP BY s.url, s.since ORDER BY s.url
"""


@dataclass(frozen=True, slots=True)
class Shard:
    """A process that lives: where it takes requests, for how many seconds, and the agents that it
    holds."""

    url: str
    seconds: float
    agents: tuple[str, ...]


class Shards:
    """The list of them, in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._url = ""

    def announce(self, url: str) -> None:
        """This process takes requests at a URL; to be said again every second or so."""
        values = {"url": url, "length": LENGTH, "new": self._url != url}
        with self._database.connection("write to") as connection:
            connection.execute(_HERE, values)
            if self._url != url:
                connection.execute(
                    "DELETE FROM tidepull_shards WHERE expires < clock_timestamp() - interval '1 "
                    "day'"
                )
        self._url = url

    def leave(self) -> None:
        """This process takes no requests any more."""
        if self._url:
            with self._database.connection("write to") as connection:
                connection.execute("DELETE FROM tidepull_shards WHERE url = %s", (self._url,))
            self._url = ""

    def alive(self) -> list[Shard]:
        """All that were heard of lately."""
        return [
            Shard(url, seconds, tuple(agents))
            for url, seconds, agents in self._database.rows(_ALIVE)
        ]
