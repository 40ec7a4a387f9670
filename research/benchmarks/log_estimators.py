"""Estimators of `tidepull backtest` against truth: simulated logs whose policy value is known.

    python -m research.benchmarks.log_estimators run [--logs 200] [--rows 1000] [--loggers
    uniform,greedy,tide] [--keep FOLDER] python -m research.benchmarks.log_estimators table

Worlds pay 0 or 1: nothing changes, a daily swing, or other means from the middle on; 3 or 30 arms;
a decision every ten minutes. Logging: uniform; epsilon-greedy (0.2) on running means; `tide` with a
floor (a fifth of the choices uniform). The policy that is judged has fixed shares, drawn for each
log. The first command resumes: cells that are in the file already (`--out
research/results/log_estimators.csv`) are not run again; `--keep` is a folder for logs made by
`tide`, which cost most. Intervals were settled on greedy logs of seeds 0 to 199, so seeds here are
1000 to 1199, but for `tide`: 0 to 199. An interval is claimed to hold unless the estimate has a
warning (`Estimate.warning`).
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.logs import Log, Target, backtest
from tidepull.logs.estimators import ESTIMATORS
from tidepull.logs.log import ReadSummary
from tidepull.policies import build_policy
from tidepull.types import Context, Event, FloatArray, ProblemShape

WORLDS = ("stationary", "daily", "change")
LOGGERS = ("uniform", "greedy", "tide")
SIZES = (3, 30)
COLUMNS = (
    "world", "logging", "arms", "rows", "logs", "first", "estimator", "bias", "rmse", "coverage", "width", "effective",
    "claimed", "coverage_claimed",
)  # fmt: skip
STEP, FLOOR = 600.0, 0.2
FIRST = {"uniform": 1000, "greedy": 1000, "tide": 0}


def means_of(world: str, arms: int, rows: int, rng: np.random.Generator) -> FloatArray:
    """Every arm's mean in every row."""
    base, other = rng.uniform(0.1, 0.7, (2, arms))
    t = np.arange(rows)[:, None]
    if world == "daily":
        swing: FloatArray = base + 0.2 * np.sin(2 * np.pi * (t * STEP / 86_400 + rng.random(arms)))
        return np.clip(swing, 0, 1)
    steps: FloatArray = np.where((t < rows // 2) | (world == "stationary"), base, other)
    return steps


def make_log(
    world: str, logging: str, arms: int, rows: int, seed: int, keep: Path | None = None
) -> tuple[Log, FloatArray, float]:
    """A log, the shares of the policy to be judged, and its true mean reward."""
    rng = np.random.default_rng([seed, arms, rows])
    means = means_of(world, arms, rows, rng)
    kept = (
        None
        if keep is None or logging != "tide"
        else keep / f"{world}-{logging}-{arms}-{rows}-{seed}.npz"
    )
    if kept is not None and kept.exists():
        held = np.load(kept)
        arm, reward, chance = held["arm"], held["reward"], held["chance"]
        rng.random((rows, 2))  # what playing would have drawn
    else:
        arm, reward, chance = _played(means, logging, rng, seed)
        if kept is not None:
            np.savez(kept, arm=arm, reward=reward, chance=chance)
    time = 1.7e9 + STEP * np.arange(rows)
    labels = tuple(str(n) for n in range(arms))
    log = Log(
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
    shares = rng.dirichlet(np.ones(arms))
    return log, shares, float((means @ shares).mean())


def _played(
    means: FloatArray, logging: str, rng: np.random.Generator, seed: int
) -> tuple[Any, FloatArray, FloatArray]:
    rows, arms = means.shape
    if logging == "uniform":
        drawn = rng.integers(arms, size=rows)
        return drawn, _paid(means, drawn, rng), np.full(rows, 1 / arms)
    arm, reward, chance = np.empty(rows, np.int64), np.empty(rows), np.empty(rows)
    counts, sums = np.zeros(arms), np.zeros(arms)
    policy = build_policy("tide", ProblemShape(arms), seed=seed) if logging == "tide" else None
    noise = rng.random((rows, 2))
    for n in range(rows):
        if policy is None:
            shares = np.eye(arms)[
                np.argmax(np.divide(sums, counts, out=np.ones(arms), where=counts > 0))
            ]
        else:
            shares = np.zeros(arms)

        def pick(given: FloatArray, n: int = n) -> int:
            mixed = FLOOR / arms + (1 - FLOOR) * given
            drawn = min(
                int(np.searchsorted(np.cumsum(mixed), noise[n, 0] * mixed.sum())), len(mixed) - 1
            )
            chance[n] = mixed[drawn] / mixed.sum()
            return drawn

        context = Context(time=STEP * n)
        arm[n] = pick(shares) if policy is None else policy.choose_by(context, 16, pick)
        reward[n] = float(noise[n, 1] < means[n, arm[n]])
        counts[arm[n]] += 1
        sums[arm[n]] += reward[n]
        if policy is not None:
            policy.learn(Event(context, int(arm[n]), float(reward[n]), n))
            while policy.upkeep():
                pass
    return arm, reward, chance


def _paid(means: FloatArray, arm: Any, rng: np.random.Generator) -> FloatArray:
    paid: FloatArray = (rng.random(len(arm)) < means[np.arange(len(arm)), arm]).astype(float)
    return paid


def cell(
    world: str, logging: str, arms: int, rows: int, logs: int, keep: Path | None = None
) -> list[dict[str, Any]]:
    """Bias, error and coverage of every estimator over so many logs."""
    errors, inside, width, effective = defaultdict(list), defaultdict(list), defaultdict(list), []
    claimed, first = defaultdict(list), FIRST[logging]
    for seed in range(first, first + logs):
        log, shares, truth = make_log(world, logging, arms, rows, seed, keep)
        target = Target(
            "judged",
            lambda _, rows, shares=shares: np.tile(shares, (rows.stop - rows.start, 1)),  # type: ignore[misc]
        )
        found = backtest(log, [target])
        effective.append(found.weights["judged"].effective)
        for name in ESTIMATORS:
            one = found.of("judged", name)
            errors[name].append(one.value - truth)
            inside[name].append(one.low <= truth <= one.high)
            width[name].append(one.high - one.low)
            claimed[name].append(not one.warning)
    return [
        {
            "world": world, "logging": logging, "arms": arms, "rows": rows, "logs": logs, "first": first,
            "estimator": name,
            "bias": f"{np.mean(errors[name]):.5f}", "rmse": f"{np.sqrt(np.mean(np.square(errors[name]))):.5f}",
            "coverage": f"{np.mean(inside[name]):.3f}", "width": f"{np.mean(width[name]):.4f}",
            "effective": f"{np.mean(effective):.0f}", "claimed": sum(claimed[name]),
            "coverage_claimed": _share([hit for hit, sure in zip(inside[name], claimed[name], strict=True) if sure]),
        }
        for name in ESTIMATORS
    ]  # fmt: skip


def _share(hits: list[bool]) -> str:
    return f"{np.mean(hits):.3f}" if hits else ""


def run(
    out: Path, logs: int, rows: int, loggers: list[str], keep: Path | None, worlds: list[str], sizes: list[int]
) -> None:  # fmt: skip
    """Every cell that is not in the file yet; one of fewer logs is replaced."""
    known = _read(out) if out.exists() else []
    done = {(row["world"], row["logging"], row["arms"], row["rows"], row["logs"]) for row in known}
    for logging in loggers:
        for arms in sizes:
            for world in worlds:
                if (world, logging, str(arms), str(rows), str(logs)) in done:
                    continue
                mine = (world, logging, str(arms), str(rows))
                known = [
                    r
                    for r in known
                    if (r["world"], r["logging"], str(r["arms"]), str(r["rows"])) != mine
                ]
                known += cell(world, logging, arms, rows, logs, keep)
                with out.open("w", newline="") as handle:
                    writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(known)


def _read(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def table(out: Path) -> None:
    """Markdown: for every cell and estimator bias, root mean square error and coverage, in brackets
    coverage where it is claimed to hold, if that is not in all of the logs."""
    rows = _read(out)
    print("| logging, arms, world (effective rows) | " + " | ".join(ESTIMATORS) + " |")
    print("|---|" + "---|" * len(ESTIMATORS))
    cells: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for row in rows:
        few = "" if row["logs"] == "200" else f", {row['logs']} logs"
        key = (row["logging"], row["arms"], row["world"], row["effective"] + few)
        bias, rmse = 1000 * float(row["bias"]), 1000 * float(row["rmse"])
        cells[key][row["estimator"]] = (
            f"{bias:+.0f}, {rmse:.0f}, {100 * float(row['coverage']):.1f}%{_where_claimed(row)}"
        )
    for (logging, arms, world, effective), found in cells.items():
        print(
            f"| {logging}, {arms}, {world} ({effective}) | "
            + " | ".join(found[name] for name in ESTIMATORS)
            + " |"
        )


def _where_claimed(row: dict[str, Any]) -> str:
    claimed = int(row["claimed"])
    if claimed == int(row["logs"]):
        return ""
    return (
        f" [{100 * float(row['coverage_claimed']):.0f}% of {claimed}]" if claimed else " [no claim]"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=Path("research/results/log_estimators.csv"))
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--loggers", default="uniform,greedy,tide")
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--arms", default=",".join(map(str, SIZES)))
    parser.add_argument(
        "--keep", type=Path, help="a folder where logs made by tide are kept and found again"
    )
    given = parser.parse_args()
    if given.what == "run":
        sizes = [int(arms) for arms in given.arms.split(",")]
        loggers, worlds = given.loggers.split(","), given.worlds.split(",")
        run(given.out, given.logs, given.rows, loggers, given.keep, worlds, sizes)
    else:
        table(given.out)


if __name__ == "__main__":
    main()
