"""`tidepull diagnose` on simulated logs whose time structure is known: what it is called, and false
alarms.

    python -m research.benchmarks.log_diagnosis run [--kinds nothing,drift,changes] [--logs 20]
    [--rows 1000] python -m research.benchmarks.log_diagnosis alarms [--logs 200] [--logging
    uniform,greedy] python -m research.benchmarks.log_diagnosis table

Three arms that pay 0 or 1, about 20 days of decisions whose number follows the hour. Logging is
uniform, or epsilon-greedy (0.2) on running means. `run` adds the kinds that are not in
`research/results/log_diagnosis.csv` yet; `alarms` has only the test, on logs in which nothing
changes, and adds to `research/results/log_alarms.csv`.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from tidepull.logs import Log, diagnose
from tidepull.logs.diagnosis.events import events_of
from tidepull.logs.diagnosis.structure import KINDS
from tidepull.logs.diagnosis.testing import time_test
from tidepull.logs.log import ReadSummary
from tidepull.types import FloatArray

ARMS, DAY, DAYS, EPSILON = 3, 86_400.0, 20, 0.2
TRUE = ("nothing", "drift", "changes", "rounds", "clock", "regimes")
COLUMNS = ("true", "logging", "rows", "seed", "p", "named", *KINDS)
ALARM_COLUMNS = ("logging", "rows", "logs", "alarms", "at_5_percent")


def make_log(kind: str, logging: str, rows: int, seed: int) -> Log:
    """A log of a world of that kind."""
    rng = np.random.default_rng([seed, rows, TRUE.index(kind)])
    time = _visits(rows, rng)
    means = np.clip(_means(kind, time, rng), 0.02, 0.98)
    arm, chance, reward = _played(means, logging, rng)
    labels = tuple("abc"[:ARMS])
    return Log(
        labels,
        arm,
        reward,
        time,
        chance,
        None,
        None,
        {},
        True,
        "UTC",
        ReadSummary("made", "made", {}),
    )


def _visits(rows: int, rng: np.random.Generator) -> FloatArray:
    """Times of decisions, faster by day than by night."""
    now, made = 1_767_225_600.0, np.empty(rows)
    steps = rng.exponential(DAY * DAYS / rows, rows)
    for n in range(rows):
        busy = 0.15 + 0.85 * (1 + np.cos(2 * np.pi * (now % DAY / DAY - 2 / 3))) / 2
        now += steps[n] * 0.575 / busy
        made[n] = now
    return made


def _means(kind: str, time: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Every arm's mean in every row: levels of 0.2 to 0.6 that stay, wander by 0.6 in all (one
    standard deviation), are drawn anew twice, swing by 0.2 every 20 to 200 rounds or every day, or
    are one of three sets that take turns for about an eighth of the log."""
    rows = len(time)
    base, phase, n = rng.uniform(0.2, 0.6, ARMS), rng.random(ARMS), np.arange(rows)
    if kind == "drift":
        wandered: FloatArray = base + rng.normal(0, 0.6 / rows**0.5, (rows, ARMS)).cumsum(axis=0)
        return wandered
    if kind == "changes":
        cuts = np.sort(rng.choice(np.arange(rows // 8, rows - rows // 8), 2, replace=False))
        return rng.uniform(0.1, 0.8, (3, ARMS))[np.searchsorted(cuts, n, side="right")]
    if kind == "rounds":
        return base + 0.2 * np.cos(2 * np.pi * (n[:, None] / rng.uniform(20, 200) + phase))
    if kind == "clock":
        return base + 0.2 * np.cos(2 * np.pi * (time[:, None] / DAY + phase))
    if kind == "regimes":
        lengths = rng.geometric(8 / rows, rows)
        turn = np.searchsorted(np.cumsum(lengths), n, side="right")
        ruling = np.cumsum(rng.integers(1, 3, rows)) % 3
        return rng.uniform(0.1, 0.8, (3, ARMS))[ruling[turn]]
    steady: FloatArray = np.tile(base, (rows, 1))
    return steady


def _played(
    means: FloatArray, logging: str, rng: np.random.Generator
) -> tuple[Any, FloatArray, FloatArray]:
    rows = len(means)
    noise, counts, sums = rng.random((rows, 2)), np.zeros(ARMS), np.zeros(ARMS)
    arm, chance, reward = np.empty(rows, np.int64), np.empty(rows), np.empty(rows)
    for n in range(rows):
        shares = np.full(ARMS, 1 / ARMS)
        if logging == "greedy":
            shares = np.full(ARMS, EPSILON / ARMS)
            shares[
                int(np.argmax(np.divide(sums, counts, out=np.ones(ARMS), where=counts > 0)))
            ] += 1 - EPSILON
        arm[n] = min(int(np.searchsorted(np.cumsum(shares), noise[n, 0])), ARMS - 1)
        chance[n] = shares[arm[n]]
        reward[n] = float(noise[n, 1] < means[n, arm[n]])
        counts[arm[n]] += 1
        sums[arm[n]] += reward[n]
    return arm, chance, reward


def run(out: Path, kinds: Sequence[str], logs: int, rows: int, logging: str) -> None:
    """Diagnose logs of these kinds, those that are not in the file yet."""
    known = _read(out)
    done = {(row["true"], row["logging"], row["rows"], row["seed"]) for row in known}
    for kind in kinds:
        for seed in range(logs):
            if (kind, logging, str(rows), str(seed)) in done:
                continue
            found = diagnose(make_log(kind, logging, rows, seed))
            assert found.structure is not None
            shares = {name: f"{weight:.4f}" for name, weight in found.structure.weights.items()}
            known.append(
                {
                    "true": kind, "logging": logging, "rows": rows, "seed": seed, "p": f"{found.test.p:.4f}",
                    "named": found.kind, **shares,
                }
            )  # fmt: skip
            _write(out, COLUMNS, known)


def alarms(out: Path, logs: int, rows: int, loggings: Sequence[str]) -> None:
    """How often the test alone calls logs in which nothing changes."""
    known = _read(out)
    for logging in loggings:
        if any(
            (row["logging"], row["rows"], row["logs"]) == (logging, str(rows), str(logs))
            for row in known
        ):
            continue
        tests = [
            time_test(events_of(make_log("nothing", logging, rows, 1000 + seed)), shuffles=499)
            for seed in range(logs)
        ]
        called, at_5 = sum(test.matters for test in tests), sum(test.p <= 0.05 for test in tests)
        known.append(
            {"logging": logging, "rows": rows, "logs": logs, "alarms": called, "at_5_percent": at_5}
        )
        _write(out, ALARM_COLUMNS, known)


def table(out: Path, alarmed: Path) -> None:
    """Markdown: true against named structure; false alarms."""
    rows = _read(out)
    print("| true \\ named | " + " | ".join(KINDS[kind] for kind in KINDS) + " |")
    print("|---|" + "---|" * len(KINDS))
    for kind in TRUE:
        mine = [row["named"] for row in rows if row["true"] == kind]
        print(
            f"| {KINDS[kind]} | " + " | ".join(str(mine.count(name) or "") for name in KINDS) + " |"
        )
    print("\n| logging | decisions | logs | false alarms | 95% interval |\n|---|---|---|---|---|")
    for row in _read(alarmed):
        called, logs = int(row["alarms"]), int(row["logs"])
        low, high = stats.binomtest(called, logs).proportion_ci(method="wilson")
        print(
            f"| {row['logging']} | {row['rows']} | {logs} | {called} ({called / logs:.1%}) | "
            f"{low:.1%} to {high:.1%} |"
        )


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def _write(path: Path, columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "alarms", "table"))
    parser.add_argument("--out", type=Path, default=Path("research/results/log_diagnosis.csv"))
    parser.add_argument("--alarms-out", type=Path, default=Path("research/results/log_alarms.csv"))
    parser.add_argument("--kinds", default=",".join(TRUE))
    parser.add_argument("--logs", type=int)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument(
        "--logging", default="uniform", help="uniform or greedy; several for alarms"
    )
    given = parser.parse_args()
    if given.what == "run":
        run(given.out, given.kinds.split(","), given.logs or 20, given.rows, given.logging)
    elif given.what == "alarms":
        alarms(given.alarms_out, given.logs or 200, given.rows, given.logging.split(","))
    else:
        table(given.out, given.alarms_out)


if __name__ == "__main__":
    main()
