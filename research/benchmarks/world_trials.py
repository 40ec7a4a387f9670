"""Campaigns on random worlds: which trials there are, the CSV file that keeps them, and shares of
random's regret.

A campaign plays world by world, all kinds of a world before the next, two seeds each, and writes
every trial as soon as it is played, so that one that was interrupted goes on where it was and has
whole worlds in its file.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from research.benchmarks.regret_rows import ROOT, write_between
from tidepull.problems.random_worlds import KINDS

Settings = dict[str, Any]
Row = dict[str, str]
Trial = tuple[int, int]
"""World and seed."""

LAB = ROOT / "research" / "lab" / "tide.md"
SHORT = 1024
"""Rounds of wide worlds: D-LinUCB factors matrices of 100 to 200 rows in every round."""

_MICROSECONDS: dict[str, dict[str, int]] = {
    "random": {"": 20, "vectors": 45, "vectors-wide": 150},
    "specialist": {"": 90, "vectors": 130, "arms-many": 3800, "vectors-wide": 400},
    "tide": {
        "": 500,
        "vectors": 800,
        "labels": 1000,
        "paths": 1300,
        "arms-clock": 1300,
        "arms-many": 1100,
        "vectors-wide": 2800,
        "labels-wide": 1700,
    },
    "ucb": {"": 32, "labels": 45, "paths": 42},
    "lin-ucb": {"": 75, "vectors-wide": 200, "labels-wide": 200},
    "d-lin-ucb": {"": 130, "labels": 160, "paths": 160, "vectors-wide": 450, "labels-wide": 1300},
    "glr-klucb": {"": 170},
    "smpy-discounted-ts": {"": 550},
}
"""Processor time of a round by policy and by kind or layout, roughly, as measured on a few worlds
in 2026."""
_LIKE = {
    "d-ucb": "ucb",
    "sw-ucb": "ucb",
    "bernoulli-ts": "ucb",
    "sw-lin-ucb": "lin-ucb",
    "lin-ts": "lin-ucb",
}


class Book:
    """A CSV file of trials: the rows that are in it, and one row more."""

    def __init__(self, path: Path, fields: Sequence[str]) -> None:
        self._path, self._fields = path, fields
        self.rows = read_rows(path)

    def add(self, row: dict[str, Any]) -> None:
        """Write a row at once, and print it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not self._path.exists()
        kept = {field: row[field] for field in self._fields}
        with self._path.open("a", newline="") as file:
            writer = csv.DictWriter(file, self._fields)
            if fresh:
                writer.writeheader()
            writer.writerow(kept)
        print(json.dumps(kept), flush=True)


def read_rows(path: Path) -> list[Row]:
    """All rows of a CSV file; none when there is no file yet."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def seeds_of(world: int) -> tuple[int, int]:
    """The two seeds of a world's trials."""
    return world, 10_000 + world


def horizon_of(kind: str, rounds: int) -> int:
    """Rounds of a trial; wide worlds have at most 1,024."""
    return min(rounds, SHORT) if kind.endswith("-wide") else rounds


def regret_of_random(rows: Iterable[Row]) -> dict[tuple[str, Trial], float]:
    """By kind and trial."""
    return {
        (row["kind"], trial_of(row)): float(row["regret"])
        for row in rows
        if row["policy"] == "random"
    }


def trial_of(row: Row) -> Trial:
    """World and seed of a row."""
    return int(row["world"]), int(row["seed"])


def seconds_of(kind: str, policy: str, rounds: int) -> float:
    """Roughly the processor time of a trial."""
    mine = _MICROSECONDS[_LIKE.get(policy, policy)]
    layout = kind.split("-")[0]
    return 1e-6 * rounds * mine.get(kind, mine.get(layout, mine[""]))


def same_settings(rows: Iterable[Row], settings: Settings) -> None:
    """Rows of one name must be of one `tide`."""
    others = {row["parameters"] for row in rows} - {json.dumps(settings)}
    if others:
        raise SystemExit(
            f"the file has trials of {others.pop()} under this name: take another one, or another "
            "--out"
        )


def same_rounds(rows: Iterable[Row], rounds: int) -> None:
    """All trials of a kind must be of one length."""
    others = {
        row["horizon"] for row in rows if int(row["horizon"]) != horizon_of(row["kind"], rounds)
    }
    if others:
        raise SystemExit(
            f"the file has trials of {others.pop()} rounds: take the same --rounds, or another "
            "--out"
        )


def opened(
    given: argparse.Namespace, fields: Sequence[str], is_whole: Callable[[Row], bool]
) -> Book:
    """The file of a campaign; `is_whole` knows the trials of `tide` with the parameters that were
    given."""
    book = Book(given.out, fields)
    same_settings(filter(is_whole, book.rows), given.tide)
    same_rounds(book.rows, given.rounds)
    return book


def provenance(rows: Sequence[Row]) -> str:
    """What was played, in one sentence, from the trials of the whole `tide`."""
    if not rows:
        raise SystemExit("the file has no trials of this tide")
    worlds = sorted({int(row["world"]) for row in rows})
    kinds = {row["kind"] for row in rows}
    return (
        f"Worlds {worlds[0]:,} to {worlds[-1]:,}, {len(rows)} trials of {len(kinds)} kinds; "
        f"`tide` with `{rows[0]['parameters']}`."
    )


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and all others numbers."""
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def parsed(
    about: str | None, first: int, rounds: int, more: Callable[..., None]
) -> argparse.Namespace:
    """`run` and `table` with what all campaigns can be told; `more` adds options to the two."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--kinds", default=",".join(KINDS))
    running.add_argument("--first", type=int, default=first, help="number of the first world")
    running.add_argument("--worlds", type=int, default=5)
    running.add_argument("--rounds", type=int, default=rounds)
    running.add_argument("--tide", type=json.loads, default={}, help="parameters of tide, JSON")
    running.add_argument(
        "--dry-run", action="store_true", help="what is to be played, and about how long"
    )
    showing = commands.add_parser("table")
    showing.add_argument("file", type=Path)
    showing.add_argument("--write", action="store_true", help="put it into research/lab/tide.md")
    more(running, showing)
    return parser.parse_args()


def places(given: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Kinds and worlds, world by world."""
    for world in range(given.first, given.first + given.worlds):
        for kind in given.kinds.split(","):
            yield kind, world


def show(text: str, marker: str, write: bool) -> None:
    """Print a table, and put it into the lab's log where that is wanted."""
    print(text)
    if write:
        write_between(LAB, marker, text)
