"""Plays trials of published tables again and compares them digit by digit.

    python -m research.benchmarks.same_bits CSV... [--policies tide] [--seeds 20030:20032]

CSV: research/results/tide_rows.csv, for example. Prints a line for each trial and appends it to
`--out`; ends with 1 if one came out differently.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

from research.benchmarks.machine import describe
from tidepull.experiments.loop import run_trial


def compared(row: dict[str, str]) -> tuple[float, float]:
    """The published regret of a trial and that of today, to the same number of digits."""
    parameters = json.loads(row.get("parameters") or row.get("setting") or "{}")
    trial = run_trial(
        row["problem"],
        (row["policy"], parameters),
        horizon=int(row["horizon"]),
        seed=int(row["seed"]),
    )
    digits = len(row["regret"].partition(".")[2])
    return float(row["regret"]), round(float(trial.regret[-1]), digits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--policies", default="", help="only these")
    parser.add_argument("--problems", default="", help="only these")
    parser.add_argument("--seeds", default="", help="only first:stop")
    parser.add_argument("--out", type=Path, default=Path("research/results/same_bits.csv"))
    given = parser.parse_args()
    first, stop = map(int, given.seeds.split(":")) if given.seeds else (0, sys.maxsize)
    played, same, fresh = 0, 0, not given.out.exists()
    with given.out.open("a", newline="") as out:
        writer = csv.writer(out)
        if fresh:
            writer.writerow(("table", "problem", "policy", "seed", "published", "today", "machine"))
        for table in given.tables:
            for row in csv.DictReader(table.read_text().splitlines()):
                wanted = (not given.policies or row["policy"] in given.policies.split(",")) and (
                    not given.problems or row["problem"] in given.problems.split(",")
                )
                if not wanted or not first <= int(row["seed"]) < stop:
                    continue
                published, today = compared(row)
                key = table.name, row["problem"], row["policy"], row["seed"]
                writer.writerow((*key, published, today, describe()))
                out.flush()
                played, same = played + 1, same + (published == today)
                print(
                    *key,
                    "same" if published == today else f"DIFFERENT: {published}, {today} today",
                    flush=True,
                )
    print(f"{same} of {played} trials came out the same")
    sys.exit(same != played)


if __name__ == "__main__":
    main()
