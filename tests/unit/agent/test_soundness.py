"""Damage of a ledger shows: `check` and the scrub compare hashes of records, snapshots with records
and with a replay."""

from __future__ import annotations

import lzma
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.golden.agents.__main__ import BETWEEN, FOLDER, START, VISITS
from tidepull import Agent
from tidepull import state as snapshots
from tidepull.agent.records import Kind, pack_reward
from tidepull.agent.replay import Scrub
from tidepull.errors import LedgerError

MADE: dict[str, Any] = {
    "arms": ["a", "b"], "context": {"age": float}, "policy": "lin-ts", "seed": 1,
    "training": "inline", "snapshot_every": 30,
}  # fmt: skip


def lived(place: str | Path, visits: int = 40, **given: Any) -> Agent:
    agent = Agent(place, **{**MADE, **given})
    for n in range(visits):
        at = START + 60.0 * n
        decision = agent.choose({"age": n}, subject=f"user {n % 5}", at=at, id=f"visit {n}")
        agent.reward(decision, float(n % 3 == 0), at=at + 5)
    return agent


def edited(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> None:
    with closing(sqlite3.connect(path)) as file:
        for statement, values in statements:
            assert file.execute(statement, values).rowcount > 0
        file.commit()


def checked(path: Path) -> Any:
    with Agent(path, read_only=True) as agent:
        return agent.check()


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("UPDATE records SET body = ? WHERE seq = (SELECT max(seq) FROM records WHERE kind = 2)",
         (pack_reward(0.5),)),
        ("UPDATE records SET context = ? WHERE seq = 21", (b'{"age":11.0}',)),
        ("UPDATE records SET at = at + ? WHERE seq = 21", (1.0,)),
        ("UPDATE records SET subject = ? WHERE seq = 21", (b"somebody",)),
        ("UPDATE records SET name = ? WHERE seq = 21", ("another",)),
        ("DELETE FROM records WHERE seq = ?", (22,)),
    ],
    ids=["last reward", "context", "moment", "subject", "name", "deletion"],
)  # fmt: skip
def test_one_changed_record_is_found(tmp_path: Path, statement: str, values: Any) -> None:
    path = tmp_path / "a.db"
    lived(path).close()
    assert checked(path).sound
    edited(path, (statement, values))
    found = checked(path)
    assert not found.sound
    assert found.damaged_records == 1
    assert "is not as it was written" in str(found)


def test_missing_end_that_a_snapshot_knows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    lived(path).close()
    edited(path, ("DELETE FROM records WHERE seq > ?", (40,)))
    for read_only in (True, False):
        with pytest.raises(LedgerError, match="ends at record 40, and has a snapshot of record 8"):
            Agent(path, read_only=read_only)


def test_snapshot_that_is_not_what_its_records_make_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with lived(path) as agent:
        ledger = agent._commands.ledger
        agent.save()
        seq = ledger.snapshots()[0]
        altered = snapshots.load(ledger.snapshot(seq))
        altered["rewards"] += 1
    packed = zlib.compress(snapshots.dump(altered), 1)
    change = "UPDATE snapshots SET checksum = ?, data = ? WHERE seq = ?"
    edited(path, (change, (zlib.crc32(packed), packed, seq)))
    assert f"The snapshot of record {seq} is not what a replay makes." in str(checked(path))


def test_snapshot_of_another_ledger_is_found(tmp_path: Path) -> None:
    for name, seed in (("a.db", 1), ("b.db", 2)):
        lived(tmp_path / name, seed=seed).close()
    with closing(sqlite3.connect(tmp_path / "b.db")) as other:
        (row,) = other.execute("SELECT * FROM snapshots ORDER BY seq DESC LIMIT 1").fetchall()
    edited(tmp_path / "a.db", ("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", row))
    assert f"The snapshot of record {row[0]} is of another ledger" in str(
        checked(tmp_path / "a.db")
    )


REMOVALS: dict[str, Callable[[Agent, Path], int]] = {
    "forget": lambda agent, _: agent.forget("user 3"),
    "compact": lambda agent, folder: agent.compact(folder / "old.jsonl", START + 60.0 * 20),
    "both": lambda agent, folder: (
        agent.compact(folder / "old.jsonl", START + 60.0 * 20) + agent.forget("user 3")
    ),
}


@pytest.mark.parametrize("kind", REMOVALS)
def test_what_was_deleted_on_purpose_is_no_damage_and_hides_none(
    place: str, kind: str, tmp_path: Path
) -> None:
    with lived(place) as agent:
        assert REMOVALS[kind](agent, tmp_path) >= 8
        for n in range(50, 60):
            agent.reward(agent.choose({"age": n}), 1.0)
        assert agent.check().sound
    with Agent(place) as agent:
        agent.choose({"age": 1})
        ledger = agent._commands.ledger
        assert agent.check().sound
        records = list(ledger.tail(0))
        removed = [record for record in records if record.kind is Kind.REMOVED]
        assert removed
        assert not any(r.context or r.body or r.subject or r.name for r in removed)
        assert (Kind.REMOVED, Kind.REMOVED) not in pairwise(record.kind for record in records)


def test_damage_after_a_removal_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with lived(path) as agent:
        agent.forget("user 3")
    assert checked(path).sound
    edited(path, ("DELETE FROM records WHERE seq = ?", (5,)))
    assert checked(path).damaged_records == 1


def test_contexts_that_were_dropped_are_no_damage_and_the_rest_of_their_records_is_checked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    lived(path, retention=300.0).close()
    with closing(sqlite3.connect(path)) as file:
        dropped = file.execute("SELECT seq FROM records WHERE kind = 1 AND context IS NULL")
        seq = dropped.fetchall()[3][0]
    assert checked(path).sound
    edited(path, ("UPDATE records SET at = at + ? WHERE seq = ?", (1.0, seq)))
    assert checked(path).damaged_records == 1


def test_ledger_before_hashes_is_read_as_it_is_and_gets_hashes_when_it_is_written(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lin-ts.db"
    path.write_bytes(lzma.decompress((FOLDER / "0.2.0" / "lin-ts.db.xz").read_bytes()))
    assert checked(path).sound
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (1,)
    now = START + BETWEEN * VISITS
    with Agent(path, training="inline", now=lambda: now) as agent:
        agent.choose({"age": 30.0}, id="new")
        last = agent.state().records
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (2,)
    assert checked(path).sound
    edited(path, ("UPDATE records SET at = at + ? WHERE seq = ?", (1.0, last)))
    assert checked(path).damaged_records == 1


def test_scrub_finds_damage_a_few_records_at_a_time_and_begins_again(tmp_path: Path) -> None:
    path, scrub = tmp_path / "a.db", Scrub()
    lived(path).close()
    with Agent(path) as agent:
        ledger, last = agent._commands.ledger, agent.state().records
        passes = [scrub.step(ledger, 30) for _ in range(-(-last // 30) + 1)]
        assert sum(read for read, _ in passes) >= last
        assert not any(damaged for _, damaged in passes)
        edited(path, ("UPDATE records SET at = at + ? WHERE seq = ?", (1.0, 50)))
        found = [scrub.step(ledger, 30)[1] for _ in range(2 * (-(-last // 30) + 1))]
        assert [50] in found
        agent.forget("user 3")
        fresh = Scrub()
        assert all(set(fresh.step(ledger, 7)[1]) <= {50} for _ in range(20))
