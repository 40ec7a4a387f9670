"""Conventional policies with published and with searched settings, from the per-trial totals in
research/results/rivals.csv.

    python -m research.benchmarks.searched_rivals [--write]

How the file came about is said in research/lab/policies.md; `--write` puts the tables into that page and
into research/lab/tide.md. The best conventional policy of a row is the one that earned most in the
search (research/results/search_rivals.csv), never the one that did best on the report seeds.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from research.benchmarks.regret_rows import write_between
from tidepull.reporting.stats import summarise

ROOT = Path(__file__).parents[2]
TRIALS, SEARCH = (
    ROOT / "research" / "results" / "rivals.csv",
    ROOT / "research" / "results" / "search_rivals.csv",
)
ROWS = ROOT / "research" / "results" / "tide_rows.csv"
PAGE, LAB = ROOT / "research" / "lab" / "policies.md", ROOT / "research" / "lab" / "tide.md"
PUBLISHED, SEARCHED = "-published", "-best"
REPORT, FRESH = range(10), range(20140, 20150)
VARIED = ("discount", "window", "xi", "exploration")
Regrets = dict[tuple[str, str], dict[int, float]]


def load() -> tuple[Regrets, dict[tuple[str, str], str]]:
    """Regret by problem and name, by seed; and the settings in words."""
    regrets: Regrets = defaultdict(dict)
    settings = {}
    with TRIALS.open() as file:
        for row in csv.DictReader(file):
            key = row["problem"], row["name"]
            regrets[key][int(row["seed"])] = float(row["regret"])
            settings[key] = in_words(json.loads(row["policy_parameters"]))
    return regrets, settings


def in_words(parameters: dict[str, float]) -> str:
    """`discount 0.7, exploration 0.03`: what was searched, as far as it is not the default."""
    return ", ".join(f"{name} {parameters[name]:.4g}" for name in VARIED if name in parameters)


def earned() -> dict[str, dict[str, float]]:
    """By problem and policy, the highest mean reward of a setting in the last rung of the
    search."""
    best: dict[str, dict[str, float]] = defaultdict(dict)
    with SEARCH.open() as file:
        for row in csv.DictReader(file):
            if row["name"] != "random" and row["suite"].endswith("-rung-2-of-2"):
                before = best[row["problem"]].get(row["name"], -np.inf)
                best[row["problem"]][row["name"]] = max(before, float(row["reward_mean"]))
    return best


def spread(trials: dict[int, float], seeds: range = REPORT) -> str:
    """Mean ± standard deviation, and the number of trials where it is not ten."""
    values = [trials[seed] for seed in seeds if seed in trials]
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:,.1f} (1 trial)"
    few = "" if len(values) == len(seeds) else f" ({len(values)} trials)"
    return f"{np.mean(values):,.1f} ± {np.std(values, ddof=1):,.1f}{few}"


def table(regrets: Regrets, settings: dict[tuple[str, str], str]) -> str:
    """A line for each problem and policy; the best of the search in bold."""
    leaders = {
        problem: max(rewards, key=lambda name: rewards[name])
        for problem, rewards in earned().items()
    }
    lines = [
        "| problem | policy | published setting | regret | searched setting | regret |",
        "|---|---|---|---:|---|---:|",
    ]
    pairs = dict.fromkeys(
        (problem, name.removesuffix(PUBLISHED).removesuffix(SEARCHED))
        for problem, name in regrets
        if name != "random"
    )
    for problem, policy in pairs:
        old, new = (problem, policy + PUBLISHED), (problem, policy + SEARCHED)
        cells = [settings.get(old, ""), spread(regrets.get(old, {})), settings.get(new, "")]
        last = spread(regrets.get(new, {}))
        cells.append(f"**{last}**" if leaders.get(problem) == policy else last)
        lines.append(f"| `{problem}` | `{policy}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def front(regrets: Regrets, settings: dict[tuple[str, str], str]) -> str:
    """The best conventional policy of each row beside `tide`, on the seeds on which `tide` was
    reported."""
    tide: dict[str, dict[int, float]] = defaultdict(dict)
    with ROWS.open() as file:
        for row in csv.DictReader(file):
            if row["policy"] == "tide":
                tide[row["problem"]][int(row["seed"])] = float(row["regret"])
    lines = [
        "| row | best conventional | setting | regret | `tide` | `tide` has less by, 95% interval "
        "| better in |",
        "|---|---|---|---:|---:|---|---|",
    ]
    for problem, rewards in earned().items():
        name = max(rewards, key=lambda policy: rewards[policy])
        key = problem, name + SEARCHED
        gains = np.array([regrets[key][seed] - tide[problem][seed] for seed in FRESH])
        gain = summarise(gains)
        cells = [
            f"`{name}`",
            settings[key],
            spread(regrets[key], FRESH),
            spread(tide[problem], FRESH),
        ]
        interval = f"{gain.mean - gain.half_width:,.1f} to {gain.mean + gain.half_width:,.1f}"
        cells += [f"{gain.mean:,.1f} ({interval})", f"{(gains > 0).sum()} of {len(gains)}"]
        lines.append(f"| {problem} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="into research/lab/policies.md and research/lab/tide.md",
    )
    given = parser.parse_args()
    regrets, settings = load()
    text = table(regrets, settings)
    beside_tide = front(regrets, settings)
    print(text, beside_tide, sep="\n\n")
    if given.write:
        write_between(PAGE, "searched-rivals", text)
        write_between(LAB, "searched-rivals", beside_tide)


if __name__ == "__main__":
    main()
