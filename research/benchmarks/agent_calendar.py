"""How an agent should tell `tide` the hour: as numbers of the calendar in contexts, or through
families of its own.

    python -m research.benchmarks.agent_calendar [--shops 7]

Development shops (seeds from 5000), which no other benchmark plays: the waves of `agent_shops`, and
the same with parts of the day instead of waves, weekends apart in every second one. `share` is how
much of the way from an A/B test to one who knows all was gone. Writes
research/results/agent_calendar.csv as it goes, and goes on from what is there.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.agent_shops import Shop, serve
from tidepull.types import FloatArray

OUT = Path(__file__).parents[1] / "results" / "agent_calendar.csv"
FIRST = 5000
VISITS = 3000
COLUMNS = ["world", "shop", "variant", "share", "earned", "seconds"]
VARIANTS: dict[str, tuple[dict[str, Any], bool]] = {
    "calendar numbers": ({}, True),
    "time": ({}, False),
}


class Parts(Shop):
    """Click rates by four parts of the day: steps instead of waves."""

    def __init__(self, seed: int, visits: int) -> None:
        super().__init__(seed, visits)
        rng = np.random.default_rng([seed, 9])
        rng.normal(0, 0.7, (2, 24, 5))
        edges = np.sort(rng.choice(np.arange(24), 4, replace=False))
        part = np.searchsorted(edges, np.arange(24), side="right") % 4
        steps = rng.normal(0, 0.8, (2, 4, 5))
        if rng.random() < 0.5:
            steps[1] = steps[0]
        self._steps = steps[:, part]

    def rates(self, n: int) -> FloatArray:
        """Every arm's click rate for visit n."""
        hour, weekend = int(self.at[n] // 3600) % 24, int((self.at[n] / 86_400 - 4) % 7 >= 5)
        return np.asarray(
            1
            / (
                1
                + np.exp(-(self._base + self._steps[weekend, hour] + self._device[self.device[n]]))
            )
        )


def play(shop: Shop, seed: int, variant: str) -> tuple[float, float, float]:
    """How far it got from even shares to knowing all, what it earned, and seconds of the
    processor."""
    parameters, calendar = VARIANTS[variant]
    rates = [shop.rates(n)[shop.open(n)] for n in range(len(shop))]
    best, even = np.mean([r.max() for r in rates]), np.mean([r.mean() for r in rates])
    started = time.process_time()
    earned = float(serve(shop, ("tide", parameters), seed, time_features=calendar)[1].mean())
    return float((earned - even) / (best - even)), earned, time.process_time() - started


def known() -> list[dict[str, Any]]:
    """Rows that were done before."""
    if not OUT.exists():
        return []
    with OUT.open(newline="") as handle:
        return list(csv.DictReader(handle))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shops", type=int, default=7)
    parser.add_argument("--variants", default="calendar numbers|time", help="some, between |")
    given = parser.parse_args()
    done = {(row["world"], int(row["shop"]), row["variant"]) for row in known()}
    with OUT.open("a", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        if not done:
            writer.writerow(COLUMNS)
        for seed in range(FIRST, FIRST + given.shops):
            for world, kind in (("waves", Shop), ("parts", Parts)):
                for variant in given.variants.split("|"):
                    if (world, seed, variant) in done:
                        continue
                    share, earned, seconds = play(kind(seed, VISITS), seed, variant)
                    writer.writerow(
                        [world, seed, variant, f"{share:.4f}", f"{earned:.4f}", f"{seconds:.1f}"]
                    )
                    handle.flush()


if __name__ == "__main__":
    main()
