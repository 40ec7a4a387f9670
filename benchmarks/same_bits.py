"""Plays trials of published tables again and compares them digit by digit.

    python -m benchmarks.same_bits results/tide_rows.csv results/neural_rows.csv [--policies tide] [--seeds 20030:20032]

Prints a line for each policy and problem, and every trial that came out differently; ends with 1 if there is one.
`--out` keeps the comparison as a table.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import Counter
from pathlib import Path

from benchmarks.machine import describe
from tidepull.bench.trial import run_trial


def compared(row: dict[str, str]) -> tuple[float, float]:
    """The published regret of a trial and that of today, to the same number of digits."""
    parameters = json.loads(row.get("parameters") or row.get("setting") or "{}")
    trial = run_trial(
        row["problem"], (row["policy"], parameters), horizon=int(row["horizon"]), seed=int(row["seed"])
    )
    digits = len(row["regret"].partition(".")[2])
    return float(row["regret"]), round(float(trial.regret[-1]), digits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--policies", default="", help="only these")
    parser.add_argument("--problems", default="", help="only these")
    parser.add_argument("--seeds", default="", help="only first:stop")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    first, stop = map(int, given.seeds.split(":")) if given.seeds else (0, sys.maxsize)
    same: Counter[tuple[str, str, str]] = Counter()
    all_of: Counter[tuple[str, str, str]] = Counter()
    for table in given.tables:
        with table.open() as file:
            for row in csv.DictReader(file):
                wanted = (not given.policies or row["policy"] in given.policies.split(",")) and (
                    not given.problems or row["problem"] in given.problems.split(",")
                )
                if not wanted or not first <= int(row["seed"]) < stop:
                    continue
                key = table.name, row["problem"], row["policy"]
                published, today = compared(row)
                all_of[key] += 1
                same[key] += published == today
                mark = "same" if published == today else f"DIFFERENT: {published} published, {today} today"
                print(*key, f"seed {row['seed']}:", mark, flush=True)
    if given.out is not None:
        with given.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("table", "problem", "policy", "trials", "same", "machine"))
            writer.writerows([*key, count, same[key], describe()] for key, count in all_of.items())
    print(f"{sum(same.values())} of {sum(all_of.values())} trials came out the same")
    sys.exit(same != all_of)


if __name__ == "__main__":
    main()
