"""Agents' ledgers on record: what they hold, what becomes of them when they are opened again, and
what agents say then.

Every history is played on a SQLite file with a fixed seed (from which the salt follows), a clock of
its own and upkeep inline. The file is then opened twice: from its newest snapshot, and without any,
so that everything is repeated. Both must lead to equal states. The state is recorded as hashes of
its arrays without their names, so that names may change. `python -m tests.golden.test_replay`
records anew.

Only the history "clock" gives `at` or lets the clock go back.
"""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden import records
from tidepull import Agent, Decision, fields
from tidepull import state as snapshots
from tidepull.errors import TidepullError

NAME = "replay"
START = 1_782_900_000.0
HOUR = 3600.0
VISITS, BETWEEN = 84, 600.0
"""Visits of a shop, and seconds between two of them."""
LATE = 3
"""Visits after which most rewards come."""
AFTERWARDS = 12
"""Decisions after an agent was opened again."""

COLUMNS = ("kind", "at", "ref", "body", "context", "subject", "name")
FIELDS: dict[str, Any] = {"device": ["phone", "desktop"], "age": float}
MORE: dict[str, Any] = {
    "vip": bool,
    "hour": fields.Cyclic(24),
    "basket": fields.Tags(),
    "city": fields.Category(private=True),
}
SHOP: dict[str, Any] = {
    "arms": ["blue", "green", "red"],
    "context": {**FIELDS, **MORE},
    "seed": 7,
    "timezone": "Europe/Berlin",
    "capacity": 4,
    "control": 0.25,
    "reward_within": 6 * HOUR,
    "default_reward": 0.0,
}


class Time:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def visit(n: int) -> dict[str, Any]:
    """What is known of a visitor; now and then something is missing."""
    rng = np.random.default_rng(n)
    return {
        "device": ["phone", "desktop"][int(rng.integers(2))],
        "age": None if n % 9 == 0 else round(float(rng.normal(40, 9)), 3),
        "vip": bool(rng.integers(2)),
        "hour": n * BETWEEN / HOUR % 24,
        "basket": [name for name in ("tea", "milk", "salt") if rng.integers(2)],
        "city": ["Bonn", "Ulm", "Kiel"][int(rng.integers(3))],
    }


def worth(n: int, arm: str) -> float:
    """What a visit pays; the best arms by day are the worst by night."""
    chance = {"green": 0.8, "pink": 0.6, "blue": 0.4, "red": 0.3, "crimson": 0.3, "teal": 0.1}[arm]
    by_day = n * BETWEEN / HOUR % 24 < 7
    return float(np.random.default_rng([n, 1]).random() < (chance if by_day else 1 - chance))


def said(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What a call returns, or the sentence of its error."""
    try:
        return call(*given, **named)
    except TidepullError as error:
        return str(error)


def shop(agent: Agent, time: Time) -> Iterator[Any]:
    """A day of a shop: subjects, names, late, double, other, missing and expired rewards, and every
    change of arms."""
    made: list[Decision] = []
    changes: dict[int, Callable[[], Any]] = {
        14: lambda: agent.add("pink"),
        20: lambda: agent.rename("red", "crimson"),
        26: lambda: agent.retire("green"),
        32: lambda: agent.add("teal"),  # there is no room for a fifth arm
        38: agent.freeze,
        44: agent.unfreeze,
        50: agent.save,
        68: lambda: agent.rollback(made[60].id),
        74: lambda: agent.add("green"),
        75: lambda: agent.add("green"),
    }
    late = {52: 14, 60: 49}  # the first one has expired
    taken = agent.settings.context or {}
    for n in range(VISITS):
        time.now = START + BETWEEN * n
        if n in changes:
            yield said(changes[n])
        context = {name: value for name, value in visit(n).items() if name in taken}
        decision = agent.choose(
            context,
            subject=f"user {n % 13}" if n % 3 else None,
            arms=agent.arms[:2] if n % 10 == 4 else None,
            id=f"visit {n}" if n % 4 == 0 else None,
        )
        made.append(decision)
        if n % 16 == 0:
            yield agent.choose(context, id=f"visit {n}") == decision
        if n >= LATE and (n - LATE) % 7:
            paid = made[n - LATE]
            reward = worth(n - LATE, paid.arm)
            agent.reward(paid.id, reward)
            if n % 22 == 5:
                yield [said(agent.reward, paid.id, reward), said(agent.reward, paid.id, reward + 1)]
        if n in late:
            yield said(agent.reward, made[late[n]].id, 1.0)
    yield said(agent.reward, "visit 9999", 1.0)
    yield said(agent.choose, {"shoe": 1})


def adding(agent: Agent, time: Time) -> Iterator[Any]:
    """Rewards add up until their time is over, but for keys that came before."""
    for n in range(40):
        time.now = START + BETWEEN * n
        decision = agent.choose({"device": "phone"})
        yield [agent.reward(decision.id, 0.25 * (n % 3), key=f"click {k}") for k in (0, n % 2)]


def guessed(agent: Agent, time: Time) -> Iterator[Any]:
    """The kinds of fields are guessed from the first decisions; what does not fit later is
    refused."""
    for n in range(40):
        time.now = START + BETWEEN * n
        known = visit(n)
        decision = agent.choose({name: known[name] for name in ("device", "age", "vip")})
        if n % 5:
            yield agent.reward(decision.id, worth(n, decision.arm))
    yield said(agent.choose, {"age": "old"})


def clock(agent: Agent, time: Time) -> Iterator[Any]:
    """Moments that are given, as numbers, texts and otherwise, and a clock that goes back a little
    and far."""
    given: list[Any] = [
        START + 10,
        "2026-07-01T12:00",
        "2026-07-01T12:00:00+00:00",
        datetime(2026, 7, 1, 11, tzinfo=UTC),
        START - 9 * HOUR,
        "yesterday",
        True,
    ]
    for at in given:
        yield said(lambda moment: agent.choose({"device": "phone"}, at=moment).timestamp, at)
    for back in (0.0, 30.0, 59.0, 500.0, 7 * HOUR):
        time.now = START + 8 * HOUR - back
        decision = agent.choose({"device": "desktop"})
        yield decision.timestamp
        yield said(agent.reward, decision.id, 1.0, at=START + 9 * HOUR)
        yield said(agent.reward, decision.id, 1.0)
    yield said(agent.rollback, START + 8 * HOUR)


SMALL = {
    "arms": ["blue", "green"],
    "context": {"device": ["phone", "desktop"]},
    "seed": 3,
    "control": 0.25,
}
HISTORIES: dict[str, tuple[Callable[[Agent, Time], Iterator[Any]], dict[str, Any]]] = {
    "shop by tide": (shop, {**SHOP, "policy": "tide", "context": FIELDS}),
    "shop by bernoulli-ts": (shop, {**SHOP, "policy": "bernoulli-ts"}),
    "shop by lin-ts": (
        shop,
        {**SHOP, "policy": "lin-ts", "min_share": 0.1, "share_bounds": {"blue": (0.1, 0.5)}},
    ),
    "adding": (adding, {**SMALL, "policy": "d-ucb", "reward_within": HOUR, "on_duplicate": "add"}),
    "guessed": (guessed, {"arms": ["blue", "green"], "policy": "lin-ts", "seed": 5}),
    "clock": (clock, {**SMALL, "policy": "bernoulli-ts", "reward_within": 6 * HOUR}),
}


def rows(path: Path) -> list[tuple[Any, ...]]:
    """All records of a ledger, as they are on disk."""
    with sqlite3.connect(path) as connection:
        found = connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM records ORDER BY seq"
        ).fetchall()
    connection.close()
    return found


def drop_snapshots(path: Path) -> None:
    """From now on everything must be repeated."""
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM snapshots")
    connection.close()


def saved(path: Path) -> bytes:
    """The newest snapshot."""
    with sqlite3.connect(path) as connection:
        (data,) = connection.execute(
            "SELECT data FROM snapshots ORDER BY seq DESC LIMIT 1"
        ).fetchone()
    connection.close()
    return zlib.decompress(data)


def arrays(state: Any) -> Iterator[Any]:
    """All arrays of a state, wherever they are."""
    if isinstance(state, np.ndarray):
        yield state
    elif isinstance(state, dict | list):
        for part in state.values() if isinstance(state, dict) else state:
            yield from arrays(part)


def shown(agent: Agent) -> dict[str, Any]:
    """What an agent says of itself."""
    table = agent.history("rows")
    lift = {name: _rounded(value) for name, value in asdict(agent.lift()).items()}
    return {
        "explain": str(agent.explain()).split("\n"),
        "lift": lift,
        "columns": list(dict.fromkeys(name for row in table for name in row)),
        "history": records.digest(*(json.dumps(row) for row in table)),
        "check": str(agent.check()).split("\n"),
        "arms": agent.arms,
    }


def _rounded(value: float | str | None) -> float | str | None:
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else round(value, 9)


def afterwards(agent: Agent, time: Time) -> list[list[Any]]:
    """More decisions, each with its reward."""
    taken, decided = agent.state().context or {}, []
    for n in range(VISITS, VISITS + AFTERWARDS):
        time.now += BETWEEN
        made = agent.choose({name: value for name, value in visit(n).items() if name in taken})
        agent.reward(made.id, worth(n, made.arm))
        decided.append([made.id, made.arm, made.propensity, made.group])
    return decided


def reopened(path: Path, now: float) -> tuple[bytes, list[list[Any]]]:
    """The state of an agent that is opened again, and what it decides then."""
    time = Time()
    time.now = now
    with Agent(path, training="inline", now=time) as agent:
        agent.save()
        return saved(path), afterwards(agent, time)


def played(name: str, folder: Path) -> dict[str, Any]:
    """Everything that is recorded of a history."""
    play, given = HISTORIES[name]
    path, copy, time = folder / "agent.db", folder / "copy.db", Time()
    with Agent(path, training="inline", now=time, snapshot_every=100, **given) as agent:
        answers = list(play(agent, time))
        told = shown(agent)
        agent.close(save=False)  # so that the ledger has what was done, and no more
    found = rows(path)
    shutil.copyfile(path, copy)
    drop_snapshots(copy)
    state, decided = reopened(path, time.now)
    same, too = reopened(copy, time.now)
    assert state == same, f"{name}: a snapshot and a full replay lead to different states"
    assert decided == too, f"{name}: a snapshot and a full replay lead to different decisions"
    kinds = sorted({row[0] for row in found})
    return {
        "answers": answers,
        "counts": {str(kind): sum(row[0] == kind for row in found) for kind in kinds},
        "records": {
            str(kind): records.digest(*(repr(row) for row in found if row[0] == kind))
            for kind in kinds
        },
        "order": records.digest(*(repr(row) for row in found)),
        "state": sorted({records.digest(one)[:8] for one in arrays(snapshots.load(state))}),
        **told,
        "afterwards": decided,
    }


@pytest.mark.parametrize("name", HISTORIES)
def test_ledger_is_as_recorded_and_so_is_the_agent_when_opened_again(
    name: str, tmp_path: Path
) -> None:
    found, expected = played(name, tmp_path), records.read(NAME)["histories"][name]
    if not records.is_exact(NAME):
        found, expected = (
            {key: all[key] for key in ("counts", "columns", "arms")} for all in (found, expected)
        )
    differ = list(records.differences(json.loads(json.dumps(found)), expected, 0))
    assert not differ, "\n".join([name, *differ, records.advice(NAME)])


def record() -> None:
    histories = {}
    for name in HISTORIES:
        with tempfile.TemporaryDirectory() as folder:
            histories[name] = played(name, Path(folder))
    records.write(NAME, {"histories": histories})


if __name__ == "__main__":
    record()
