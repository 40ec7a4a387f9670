"""The shop of the front page over several seeds: what the agent gains, and from which day.

    python -m research.benchmarks.shop_seeds run [--seeds 0:10]
    python -m research.benchmarks.shop_seeds table

The world and the rivals are those of `examples/shop_by_hour.py`; seed 0 is its own trial. A seed
draws visitors, their luck and the agent's choices. `gain` is clicks beyond the A/B test after 28
days. `ahead` is the first day from whose end on the agent always has more clicks than the sliding
window. Writes to research/results/shop_seeds.csv, and goes on where it stopped; the figures are in
research/lab/tide.md.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from examples.shop_by_hour import BANNERS, MONDAY, RIVALS, best_banner, visitors
from tidepull.agent.agent import Agent
from tidepull.types import FloatArray

OUT = Path(__file__).parents[1] / "results" / "shop_seeds.csv"
FIELDS = ("seed", "visitors", *RIVALS, "ahead")
DAYS, AGENT, WINDOW, TEST = 28, "the agent (tide)", "sliding window", "A/B test"


def clicks(name: str, seed: int, times: list[float]) -> FloatArray:
    """All clicks of one rival, visitor by visitor."""
    agent = Agent.memory(
        arms=BANNERS,
        context={"device": ["phone", "desktop"]},
        seed=seed,
        training="inline",
        **RIVALS[name],
    )
    found = np.empty(len(times))
    for n, at in enumerate(times):
        luck = np.random.default_rng([n, 7, seed]).random()
        decision = agent.choose({"device": "phone" if n % 3 else "desktop"}, at=at)
        found[n] = float(luck < (0.35 if decision.arm == best_banner(at) else 0.1))
        agent.reward(decision.id, found[n], at=at + 300)
    return found


def first_day_ahead(lead: FloatArray, times: list[float]) -> int:
    """The day after the last one at whose end the lead was nothing or less."""
    ends = np.searchsorted(times, [MONDAY + 86_400 * day for day in range(1, DAYS + 1)])
    behind = np.flatnonzero(np.cumsum(lead)[ends - 1] <= 0)
    return int(behind[-1]) + 2 if len(behind) else 1


def play(seed: int) -> dict[str, Any]:
    """One seed: the clicks of all rivals."""
    times = visitors(DAYS, np.random.default_rng(seed))
    found = {name: clicks(name, seed, times) for name in RIVALS}
    ahead = first_day_ahead(found[AGENT] - found[WINDOW], times)
    totals = {name: int(one.sum()) for name, one in found.items()}
    return {"seed": seed, "visitors": len(times), **totals, "ahead": ahead}


def run(out: Path, seeds: range) -> None:
    """All seeds that are not in the file yet."""
    done = set()
    if out.exists():
        with out.open() as file:
            done = {row["seed"] for row in csv.DictReader(file)}
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for seed in seeds:
            if str(seed) not in done:
                writer.writerow(play(seed))
                file.flush()


def table(out: Path) -> str:
    """Gains and days, seed by seed, and their means."""
    with out.open() as file:
        rows = list(csv.DictReader(file))
    lines = ["| seed | gain of the agent | Thompson sampling | sliding window | ahead from day |",
             "|---:|---:|---:|---:|---:|"]  # fmt: skip
    names = (AGENT, "Thompson sampling", WINDOW)
    gains = np.array([[int(row[name]) - int(row[TEST]) for name in names] for row in rows])
    days = [int(row["ahead"]) for row in rows]
    for row, gain, day in zip(rows, gains, days, strict=True):
        lines.append(f"| {row['seed']} | " + " | ".join(map(str, gain)) + f" | {day} |")
    means = " | ".join(f"{one:.0f}" for one in gains.mean(axis=0))
    lines.append(f"| mean | {means} | {np.mean(days):.1f} (median {np.median(days):g}) |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--seeds", default="0:10", help="first:stop")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    if given.what == "run":
        run(given.out, range(*map(int, given.seeds.split(":"))))
    print(table(given.out))


if __name__ == "__main__":
    main()
