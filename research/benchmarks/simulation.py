"""Thousands of short histories of the service over a simulated loop, disk, clock and process, each
of them audited.

    python -m research.benchmarks.simulation [--histories 20000] [--seed 0] [--replay SEED] [--planted 400]

Writes research/results/simulation.csv: for each ledger and kind of fault, what happened and in how
many histories callers were told something that is not so. `--planted` counts in how many histories
each planted fault is found, and writes research/results/simulation_planted.csv. `--replay` plays
one history and says everything.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from research.benchmarks import machine
from tests.property.simulation.history import play
from tests.property.simulation.plan import FAULTS, LEDGERS, plan
from tests.property.simulation.planted import PLANTED

RESULTS = Path(__file__).parents[1] / "results"
COUNTS = (
    "calls", "acknowledged", "refused", "unanswered", "crashes", "failed writes", "failed syncs", "clock jumps",
    "steps",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=int)
    parser.add_argument("--planted", type=int)
    given = parser.parse_args()
    if given.replay is not None:
        replay(given.replay)
    elif given.planted is not None:
        write(
            RESULTS / "simulation_planted.csv",
            f"{given.planted} histories each",
            list(planted(given.planted)),
        )
    else:
        rows, seconds = histories(range(given.seed, given.seed + given.histories))
        about = f"{given.histories:,} histories from seed {given.seed} in {seconds:.0f} s"
        write(RESULTS / "simulation.csv", about, rows)


def histories(seeds: range) -> tuple[list[dict[str, object]], float]:
    """A row for each ledger and kind of fault, and how long it took."""
    started = time.perf_counter()
    counts: dict[tuple[str, str], Counter[str]] = {
        pair: Counter() for pair in itertools.product(LEDGERS, FAULTS)
    }
    for n, seed in enumerate(seeds, 1):
        outcome = play(seed)
        of = counts[outcome.plan.ledger, outcome.plan.fault]
        of.update(outcome.counts)
        of.update(histories=1, violations=bool(outcome.violations))
        if outcome.violations:
            print(f"seed {seed}: {outcome.violations[0]}", flush=True)
        if n % 500 == 0:
            print(f"{n:,} histories, {time.perf_counter() - started:.0f} s", flush=True)
    names = ("histories", *COUNTS, "violations")
    rows: list[dict[str, object]] = [
        {"ledger": ledger, "fault": fault} | {name.replace(" ", "_"): of[name] for name in names}
        for (ledger, fault), of in counts.items()
    ]
    return rows, time.perf_counter() - started


def planted(most: int) -> Iterator[dict[str, object]]:
    """In how many histories each planted fault is found, and in which first."""
    for name, one in PLANTED.items():
        fitting = (
            seed
            for seed in itertools.count()
            if one.shows(plan(seed)) and plan(seed).policy != "tide"
        )
        with one.plant():
            found = [seed for seed in itertools.islice(fitting, most) if play(seed).violations]
        row: dict[str, object] = {"planted": name, "histories": most, "found": len(found)}
        yield row | {"first": found[0] if found else ""}
        print(row, flush=True)


def replay(seed: int) -> None:
    """One history, verbosely."""
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    outcome = play(seed, print)
    print(outcome.plan, dict(outcome.counts), sep="\n")
    print(*outcome.violations or ["Callers were told the truth."], sep="\n")


def write(path: Path, about: str, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="") as handle:
        handle.write(f"# {about}; {machine.describe()}, apsw {machine.version('apsw')}\n")
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(path)


if __name__ == "__main__":
    main()
