"""Policies on worlds drawn at random: the only problems on which `tide` was developed.

    python research/benchmarks/tide_dev.py --worlds 50000:50003 --policies tide --out research/results/tide_dev.csv

One row for each trial; those in the file already are not run again. Regret is divided by that of
`random` on the same world and seed. `tuned` runs a grid of D-/SW-(Lin)UCB on every world and keeps
the best one of each, chosen in hindsight; with `--explorations 1,0.3,0.1,0.03` every discount and
window with each of these factors on the width of its bounds. `rnlps` and `nlps` have the paper's
default settings.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tidepull.experiments.loop import run_trial
from tidepull.problems import build_problem
from tidepull.problems.random_worlds import DRAWN, KINDS
from tidepull.protocols import Learner

DISCOUNTS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
WINDOWS = (5, 10, 25, 50, 100, 200, 400, 1000)
FIELDS = (
    "world",
    "kind",
    "horizon",
    "policy",
    "parameters",
    "regret",
    "normalised",
    "seconds",
    "explanation",
)


def widths_of(kind: str, explorations: Sequence[float]) -> list[dict[str, Any]]:
    """The bounds' usual width, and so many times it."""
    if kind.startswith("vectors"):
        return [{"exploration": factor} if factor != 1 else {} for factor in explorations]
    return [{"xi": 0.5 * factor**2} if factor != 1 else {} for factor in explorations]


def grid(kind: str, explorations: Sequence[float]) -> dict[str, list[dict[str, Any]]]:
    """The settings that `tuned` chooses from."""
    widths = widths_of(kind, explorations)
    if kind.startswith("vectors"):
        return {
            "d-lin-ucb": [{"discount": g, **width} for g in DISCOUNTS for width in widths],
            "sw-lin-ucb": [{"window": w, **width} for w in WINDOWS for width in widths],
            "lin-ucb": [*widths],
            "lin-ts": [*widths],
        }
    return {
        "d-ucb": [{"discount": g, **width} for g in DISCOUNTS for width in widths],
        "sw-ucb": [{"window": w, **width} for w in WINDOWS for width in widths],
    }


def trial(
    world: int,
    kind: str,
    policy: str,
    parameters: dict[str, Any],
    horizon: int,
    *,
    seed: int | None = None,
    learner: Learner | None = None,
) -> dict[str, Any]:
    """One row of the table. The seed is the world's number unless one is given; `learner` plays
    under the name of `policy` where that is no id."""
    named = ("random-world", {"world": world, "kind": kind})
    started = time.process_time()
    seed = world if seed is None else seed
    result = run_trial(named, learner or (policy, parameters), horizon=horizon, seed=seed)
    return {
        "world": world,
        "kind": kind,
        "horizon": horizon,
        "policy": policy,
        "parameters": json.dumps(parameters),
        "regret": float(result.regret[-1]),
        "seconds": round(time.process_time() - started, 2),
        "explanation": result.diagnostics.get("explanation", ""),
    }


def rows(
    world: int,
    kind: str,
    names: list[str],
    settings: dict[str, Any],
    horizon: int,
    explorations: list[float],
) -> Iterator[dict[str, Any]]:
    """All rows of one world."""
    baseline = trial(world, kind, "random", {}, horizon)
    made = [baseline]
    for name in names:
        if name == "tuned":
            for policy, options in grid(kind, explorations).items():
                tried = [trial(world, kind, policy, option, horizon) for option in options]
                made.append(min(tried, key=lambda row: float(row["regret"])))
        elif name == "bernoulli-ts":
            if is_binary(world, kind):
                made.append(trial(world, kind, name, {}, horizon))
        else:
            made.append(trial(world, kind, name, settings if name == "tide" else {}, horizon))
    for row in made:
        yield {
            **row,
            "normalised": round(row["regret"] / baseline["regret"], 5),
            "regret": round(row["regret"], 3),
        }


def _key(row: dict[str, str]) -> tuple[int, str, str, str]:
    parameters = row["parameters"] if row["policy"] == "tide" else ""
    return int(row["world"]), row["kind"], row["policy"], parameters


def _is_done(
    world: int, kind: str, name: str, settings: dict[str, Any], done: set[tuple[int, str, str, str]]
) -> bool:
    if name == "tuned":
        return all((world, kind, policy, "") in done for policy in grid(kind, [1.0]))
    return (world, kind, name, json.dumps(settings) if name == "tide" else "") in done


def is_binary(world: int, kind: str) -> bool:
    """Whether rewards are 0 and 1."""
    problem = build_problem(("random-world", {"world": world, "kind": kind}), seed=world)
    return all(problem.step(0) in (0.0, 1.0) for _ in range(8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", default="50000:50017", help="first:stop")
    parser.add_argument(
        "--kinds", default="", help="comma-separated (default: by turns of the world's number)"
    )
    parser.add_argument("--policies", default="tide")
    parser.add_argument("--parameters", default="{}", help="JSON, of tide")
    parser.add_argument("--horizon", type=int, default=2048)
    parser.add_argument(
        "--explorations", default="1", help="factors on the exploration that `tuned` tries"
    )
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    first, stop = map(int, given.worlds.split(":"))
    kinds = {"all": list(KINDS), "drawn": list(DRAWN)}.get(
        given.kinds, [k for k in given.kinds.split(",") if k]
    )
    settings = json.loads(given.parameters)
    explorations = [float(factor) for factor in given.explorations.split(",")]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    fresh = not given.out.exists()
    done: set[tuple[int, str, str, str]] = set()
    if not fresh:
        with given.out.open() as file:
            done = {_key(row) for row in csv.DictReader(file)}
    with given.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if fresh:
            writer.writeheader()
        for world in range(first, stop):
            for kind in kinds or [DRAWN[world % len(DRAWN)]]:
                wanted = [
                    n
                    for n in given.policies.split(",")
                    if not _is_done(world, kind, n, settings, done)
                ]
                for row in (
                    rows(world, kind, wanted, settings, given.horizon, explorations)
                    if wanted
                    else []
                ):
                    if row["policy"] == "random" and (world, kind, "random", "") in done:
                        continue
                    writer.writerow(row)
                    file.flush()


if __name__ == "__main__":
    main()
