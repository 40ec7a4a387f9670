"""Make the agents of this release: `python -m tests.golden.agents`.

They go to a folder that is named after the release: `tide`, `lin-ts`, one whose schema was guessed,
one with `retention`, one that was compacted, as SQLite files (packed), and one with and one without
`retention` as a dump of PostgreSQL.
"""

from __future__ import annotations

import lzma
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import tidepull
from tests.postgres import binaries, private

FOLDER = Path(__file__).parent
START = 1_782_900_000.0
VISITS, BETWEEN = 120, 600.0
SHOP: dict[str, Any] = {
    "arms": ["blue", "green", "red"],
    "context": {"device": ["phone", "desktop"], "age": float},
    "seed": 7,
    "reward_within": 7200.0,
    "default_reward": 0.0,
}
OLD = {"retention": 3600.0}
TIDE = (
    "tide",
    {
        "without": [
            "network",
            "classes",
            "turns",
            "seasons",
            "fourier",
            "square",
            "regimes",
            "calendar",
            "changes",
            "discounted",
        ]
    },
)
AGENTS: dict[str, dict[str, Any]] = {
    "tide": {**SHOP, "policy": TIDE},
    "tide-retention": {**SHOP, "policy": TIDE, **OLD},
    "lin-ts": {**SHOP, "policy": "lin-ts"},
    "lin-ts-retention": {**SHOP, "policy": "lin-ts", **OLD},
    "guessed-retention": {"arms": ["blue", "green"], "policy": "lin-ts", "seed": 7, **OLD},
    "compacted": {**SHOP, "policy": "bernoulli-ts"},
}
IN_POSTGRES = ("lin-ts", "lin-ts-retention")


def visit(n: int) -> dict[str, Any]:
    """The context of a visit."""
    return {"device": ("phone", "desktop")[n * n % 3 % 2], "age": 20.0 + 7 * n % 40}


def play(agent: tidepull.Agent) -> None:
    """A day: late rewards, names, subjects, one more arm and a retired one."""
    ids: list[str] = []
    for n in range(VISITS):
        at = START + BETWEEN * n
        if n == 40:
            agent.add("pink", at=at)
        if n == 60:
            agent.retire("blue", at=at)
        decision = agent.choose(
            visit(n), at=at, id=f"visit {n}" if n % 4 == 0 else None, subject=f"user {n % 9}"
        )
        ids.append(decision.id)
        if n >= 3 and n % 5:
            agent.reward(ids[n - 3], float((n - 3) % 3 == 0), at=at + 5)


def made(name: str, place: str, folder: Path) -> None:
    """The agent of that name, at a path or a URL."""
    now = START + BETWEEN * VISITS
    with tidepull.Agent(
        place, training="inline", snapshot_every=60, now=lambda: now, **AGENTS[name]
    ) as agent:
        play(agent)
        agent.save()
        agent.save()
        if name == "compacted":
            agent.compact(folder / "old.jsonl", before=START + BETWEEN * 50)


def main() -> None:
    """All of them, in place of what was there."""
    target = FOLDER / tidepull.__version__
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in AGENTS:
            path = folder / f"{name}.db"
            made(name, str(path), folder)
            with sqlite3.connect(path) as connection:
                newest = "SELECT seq FROM snapshots ORDER BY seq DESC LIMIT 2"
                connection.execute(f"DELETE FROM snapshots WHERE seq NOT IN ({newest})")
            connection.execute("VACUUM")
            connection.close()
            (target / f"{name}.db.xz").write_bytes(lzma.compress(path.read_bytes()))
        programs = binaries()
        assert programs is not None
        with private() as server:
            for name in IN_POSTGRES:
                made(name, server.url(name), folder)
            dump = subprocess.run(
                [programs / "pg_dump", "--inserts", "--no-owner", "-h", server.folder, "-p",
                 str(server.port), "-U", "tidepull", "postgres"],
                check=True, capture_output=True,
            ).stdout  # fmt: skip
            (target / "postgres.sql.xz").write_bytes(lzma.compress(dump))
    sizes = {path.name: path.stat().st_size for path in sorted(target.iterdir())}
    sys.stdout.write(f"{target}: {sizes}\n")


if __name__ == "__main__":
    main()
