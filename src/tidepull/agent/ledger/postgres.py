"""A ledger in a PostgreSQL database that many agents share: one statement writes all that waits, if
the lease holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tidepull.agent.ledger.base import COLUMNS, SqlLedger
from tidepull.agent.ledger.commits import GroupCommit
from tidepull.agent.ledger.database import LONG_PATIENCE, PATIENCE
from tidepull.agent.ledger.leases import LENGTH, Leases
from tidepull.agent.records import Record, record_of
from tidepull.errors import HeldError, ParameterError, UnreachableError, WrongStoreError

_HELD = (
    "UPDATE tidepull_agents SET expires = clock_timestamp() + make_interval(secs => length) "
    "WHERE id = %s AND epoch = %s RETURNING id"
)
_INSERT = f"""
WITH held AS ({_HELD})
INSERT INTO tidepull_records (agent, {COLUMNS}) SELECT held.id, r.* FROM held,
  unnest(%s::int2[], %s::float8[], %s::int8[], %s::int8[], %s::bytea[], %s::bytea[], %s::bytea[], %s::bytea[],
         %s::int8[], %s::bytea[]) AS r ({COLUMNS})
"""


@dataclass(frozen=True, slots=True)
class Place:
    """An agent in a database. `url` is where this process takes requests for it, told to others by
    the lease, which is `lease` seconds long. `wait`: where an owner has crashed, wait for the
    moment when its lease can be taken."""

    database: str
    agent: str
    lease: float = LENGTH
    url: str = ""
    wait: bool = True

    def __post_init__(self) -> None:
        if not 0 < len(self.agent) <= 200 or not self.agent.isprintable():
            raise ParameterError(
                f"the name of an agent must be 1 to 200 printable characters, got {self.agent!r}: "
                "write postgresql://user@host/database?agent=NAME"
            )
        if not 0.1 <= self.lease <= 3600:
            raise ParameterError(f"lease must be from 0.1 to 3600 seconds, got {self.lease:g}")


class PostgresLedger(SqlLedger):
    """The ledger of one agent, made if there is none (unless it is only read)."""

    def __init__(self, place: Place, *, read_only: bool = False) -> None:
        self._leases = Leases.shared(place.database)
        self._database = self._leases.database
        self.where = f"{self._database.where}?agent={place.agent}"
        self._lease = None
        try:
            version = self._database.prepare(write=not read_only)
            self._columns = COLUMNS if version > 2 else COLUMNS.replace("hash", "NULL::bytea")
            if not read_only:
                self._lease = self._leases.acquire(
                    place.agent, length=place.lease, url=place.url, wait=place.wait
                )
            self._id = self._lease.id if self._lease is not None else self._known(place.agent)
            self._names = {
                "records": "tidepull_records", "snapshots": "tidepull_snapshots",
                "texts": "tidepull_texts", "mine": f"agent = {self._id}",
                "of": "agent, ", "id": f"{self._id}, ",
            }  # fmt: skip
            self._commits = GroupCommit(self._stored(), self._write, self.where)
        except BaseException:
            self.close()
            raise

    def _known(self, agent: str) -> int:
        rows = self._database.rows("SELECT id FROM tidepull_agents WHERE name = %s", agent)
        if not rows:
            raise WrongStoreError(f"there is no agent at {self.where}")
        return int(rows[0][0])

    def _stored(self) -> int:
        query = "SELECT coalesce(max(seq), 0) FROM tidepull_records WHERE agent = %s"
        return int(self._database.rows(query, self._id)[0][0])

    def _write(self, records: list[Record]) -> None:
        """Where the connection dies, it is not known whether they were written: under a new epoch
        nothing that was sent before can be any more, so looking settles it."""
        try:
            self._insert(records)
        except UnreachableError:
            assert self._lease is not None
            if not self._leases.regain(self._lease):
                raise self._taken_over() from None
            if self._stored() < records[-1].seq:
                self._insert(records)

    def _insert(self, records: list[Record]) -> None:
        assert self._lease is not None
        columns: list[list[Any]] = [
            list(column) for column in zip(*map(_row, records), strict=True)
        ]
        with self._database.connection("write to") as connection:
            values = (self._lease.id, self._lease.epoch, *columns)
            written = connection.execute(_INSERT, values, binary=True).rowcount
        if written != len(records):
            raise self._taken_over()

    def _taken_over(self) -> HeldError:
        assert self._lease is not None
        owner = self._leases.owner_of(self._lease.agent)
        return HeldError(
            f"{self.where} was taken over by {owner or 'another process'} while nothing was heard "
            "of this one; "
            "what was not acknowledged is not kept"
        )

    def recover(self) -> None:
        """Hold the lease again, which ends all that is still under way, and go on after what is
        stored."""
        assert self._lease is not None
        with self._commits.lock:
            self._leases.regain(self._lease)
            self._contexts_from = 0
        self._commits.recover(self._stored())

    # ---- reading

    def _records(self, where: str, *values: Any) -> list[Record]:
        values = tuple(value.encode() if isinstance(value, str) else value for value in values)
        query = f"SELECT {self._columns} FROM tidepull_records WHERE agent = ? AND {where}".replace(
            "?", "%s"
        )
        return [_record(row) for row in self._database.rows(query.encode(), self._id, *values)]

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return self._database.rows(self._statement(query), *values)

    def _statement(self, text: str) -> bytes:
        return text.format(**self._names).replace("?", "%s").encode()

    def remove(self, *, upto: int = 0, subject: bytes | None = None) -> int:
        """Delete decisions; the server may use their space again."""
        count = super().remove(upto=upto, subject=subject)
        with self._database.connection("write to", LONG_PATIENCE) as connection:
            connection.execute("VACUUM tidepull_records, tidepull_snapshots")
        return count

    def faults(self) -> list[str]:
        """Settings of the server with which it can lose what it has acknowledged."""
        rows = self._database.rows(
            "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting "
            "= 'off'"
        )
        return [
            f"{row[0]} is off in the server: a crash of its machine can lose or damage data."
            for row in rows
        ]

    def now(self) -> float:
        """By the server's clock, which all shards share."""
        return self._leases.now() if self._lease is not None else time.time()

    def close(self) -> None:
        """Write what waits and let others have the agent."""
        try:
            if self._lease is not None:
                self._flush_all()
        finally:
            try:
                if self._lease is not None:
                    self._leases.release(self._lease)
            finally:
                self._leases.close()

    @contextmanager
    def _writing(self, *, long: bool = False) -> Iterator[Callable[..., Any]]:
        """A transaction that is only committed if the lease holds; nobody can take it before
        then."""
        assert self._lease is not None
        patience = LONG_PATIENCE if long else PATIENCE
        with (
            self._commits.lock,
            self._database.connection("write to", patience) as connection,
            connection.transaction(),
        ):
            if connection.execute(_HELD, (self._lease.id, self._lease.epoch)).fetchone() is None:
                raise self._taken_over()
            yield lambda text, *values: connection.execute(self._statement(text), values)


def _row(record: Record) -> tuple[Any, ...]:
    name = None if record.name is None else record.name.encode()
    return (int(record.kind), *record[1:7], name, *record[8:])


def _record(row: tuple[Any, ...]) -> Record:
    *first, name, seq, hash = row
    return record_of((*first, None if name is None else name.decode(), seq, hash))
