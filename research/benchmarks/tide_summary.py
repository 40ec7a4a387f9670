"""Markdown tables of research/lab/tide.md from the CSV files of the other scripts.

python research/benchmarks/tide_summary.py rows research/results/tide_rows.csv python
research/benchmarks/tide_summary.py dev research/results/tide_dev.csv python
research/benchmarks/tide_summary.py walk research/results/tide_dev.csv python
research/benchmarks/tide_summary.py parts results/tide_rows_ablation.csv
research/results/tide_rows.csv
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

PAPER_BEST = {
    "flipping-gaussian": 254.6,
    "flipping-bernoulli": 1151,
    "sinusoidal-bernoulli": 643.9,
    "circular-markov-chain": 895.2,
    "flipping-digits": 3014.9,
    "wall-following": 2348,
    "flipping-vector": 1052,
    "rotating-vector-32": 473.7,
    "rotating-vector-2048": 31.5,
}


def rows(path: Path) -> None:
    """Mean ± standard deviation over seeds, worst trial, paired differences."""
    table: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    with path.open() as file:
        for row in csv.DictReader(file):
            table[row["problem"]][row["policy"]][int(row["seed"])] = float(row["regret"])
    print(
        "| row | paper's best | `tide` | worst trial | trials | rival | rival, same seeds | `tide` "
        "better in |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for problem, policies in table.items():
        ours = policies["tide"]
        rivals: list[tuple[str, dict[int, float]]] = [
            pair for pair in policies.items() if pair[0] != "tide"
        ]
        for rival, theirs in rivals or [("", {})]:
            both = sorted(set(ours) & set(theirs))
            won = sum(ours[seed] < theirs[seed] for seed in both)
            print(
                f"| {problem} | {PAPER_BEST.get(problem, '')} | {_spread(list(ours.values()))} "
                f"| {max(ours.values()):.1f} | {len(ours)} | {rival} "
                f"| {_spread([theirs[seed] for seed in both])} | {won} of {len(both)} |"
            )


def dev(path: Path) -> None:
    """Regret over that of random by kind and policy; `tide` taken apart stands in columns of its
    own.

    `tuned` is the best of the two conventional policies of each world, in hindsight."""
    table: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    names: dict[str, None] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            name = _name(row)
            if name in ("random", "lin-ucb", "lin-ts"):
                continue
            names[name] = None
            worlds = table[row["kind"]][name]
            worlds[row["world"]] = min(float(row["normalised"]), worlds.get(row["world"], math.inf))
    print("| kind | worlds | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 2) + "|")
    for kind, policies in table.items():
        cells = [f"{np.mean(list(policies[n].values())):.3f}" if policies[n] else "" for n in names]
        print(f"| {kind} | {len(policies['tide'])} | " + " | ".join(cells) + " |")
    everything = {name: [v for p in table.values() for v in p[name].values()] for name in names}
    print("| **mean** | | " + " | ".join(f"{np.mean(v):.3f}" for v in everything.values()) + " |")
    print("| worst | | " + " | ".join(f"{np.max(v):.3f}" for v in everything.values()) + " |")
    print("| trials | | " + " | ".join(str(len(v)) for v in everything.values()) + " |")


def walk(path: Path) -> None:
    """Regret on random walks over that of the best discount, and of the better of discount and
    window."""
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    with path.open() as file:
        for row in csv.DictReader(file):
            if row["kind"].endswith("-walk"):
                found[row["kind"]][row["world"]][row["policy"]] = float(row["regret"])
    print(
        "| kind | worlds | over the best discount | by world | worlds above 1.3 | over discount or "
        "window |"
    )
    print("|---|---|---|---|---|---|")
    for kind, worlds in found.items():
        stem = "ucb" if kind.startswith("arms") else "lin-ucb"
        whole = [w for w in worlds.values() if {"tide", f"d-{stem}", f"sw-{stem}"} <= set(w)]
        tide, discount = (np.array([w[name] for w in whole]) for name in ("tide", f"d-{stem}"))
        either = np.array([min(w[f"d-{stem}"], w[f"sw-{stem}"]) for w in whole])
        ratios = tide / discount
        print(
            f"| {kind} | {len(whole)} | {tide.sum() / discount.sum():.2f} "
            f"| {ratios.min():.2f} to {ratios.max():.2f} | {(ratios > 1.3).sum()} "
            f"| {tide.sum() / either.sum():.2f} |"
        )


def parts(taken_apart: Path, whole: Path) -> None:
    """`tide` taken apart on the paper's rows: a line for each part, a column for each row, on
    common seeds."""
    regrets: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for path in (whole, taken_apart):
        with path.open() as file:
            for row in csv.DictReader(file):
                if row["policy"] == "tide":
                    regrets[_name(row)][row["problem"], row["seed"]] = float(row["regret"])
    wanted = {key for name, found in regrets.items() if name != "tide" for key in found}
    problems = [
        p for p in dict.fromkeys(p for p, _ in regrets["tide"]) if any(p == q for q, _ in wanted)
    ]
    print("| | " + " | ".join(problems) + " |")
    print("|---" * (len(problems) + 1) + "|")
    for name, found in regrets.items():
        cells = []
        for problem in problems:
            values = [v for key, v in found.items() if key in wanted and key[0] == problem]
            cells.append(f"{np.mean(values):.1f}" if values else "")
        print(f"| {name} | " + " | ".join(cells) + " |")


def _name(row: dict[str, str]) -> str:
    if row["policy"] in ("d-ucb", "sw-ucb", "d-lin-ucb", "sw-lin-ucb"):
        return "tuned"
    if row["policy"] != "tide" or row["parameters"] == "{}":
        return row["policy"]
    setting = json.loads(row["parameters"])
    left_out = setting["without"]
    return (
        "network and stationary only" if len(left_out) > 2 else "without " + " and ".join(left_out)
    )


def _spread(values: list[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else ""
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"


if __name__ == "__main__":
    tables: dict[str, Callable[..., None]] = {
        "rows": rows,
        "dev": dev,
        "walk": walk,
        "parts": parts,
    }
    tables[sys.argv[1]](*map(Path, sys.argv[2:]))
