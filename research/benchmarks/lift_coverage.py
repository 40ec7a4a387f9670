"""How often the intervals of `lift()` cover the true gain when they are looked at every day.

    python -m research.benchmarks.lift_coverage [--shops 400] [--days 42]

Every shop is a log that is drawn at once: arms whose rewards swing with the hour and depend on a
context, a policy that finds the better arms as days go by, and a control group. Shops differ in
traffic, share of the control, rate and kind of rewards (clicks or money), and whether subjects come
back. A look is the gain by all decisions up to the end of a day; the truth is the mean of the
expected gain of the same decisions. Writes research/results/lift_coverage.csv, shop by shop; the table is
in research/lab/agent.md.
"""

from __future__ import annotations

import argparse
import csv
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.agent.lift import lift_of
from tidepull.agent.log import WIDTH, DecisionLog
from tidepull.types import FloatArray

OUT = Path(__file__).parents[1] / "results" / "lift_coverage.csv"
MONDAY, DAY = 1_780_272_000.0, 86_400.0
SHARES, TRAFFIC = (0.05, 0.1, 0.2, 0.5), (100, 300, 1000)


@dataclass(frozen=True)
class Shop:
    """A log, and the expected gain of each of its decisions."""

    log: DecisionLog
    gain: FloatArray
    words: dict[str, Any]


def shop(seed: int, days: int) -> Shop:
    """One shop; in a quarter of them the policy gains nothing."""
    rng = np.random.default_rng(seed)
    share, traffic = SHARES[seed % 4], TRAFFIC[seed // 4 % 3]
    money, returning = seed // 12 % 2 == 1, seed // 24 % 2 == 1
    skill = 0.0 if seed // 48 % 4 == 0 else rng.uniform(0, 1)
    n = traffic * days
    at = np.sort(_times(rng, n, days))
    subject = rng.integers(0, n // 8, n) if returning else -np.arange(1, n + 1)
    control = rng.random(n)[subject] < share
    age = rng.normal(size=n)
    means = _means(rng, at, age)
    found = skill * (1 - np.exp(-(at - MONDAY) / (10 * DAY)))
    random = (rng.random(n) >= found) | control
    arm = np.where(random, rng.integers(0, 3, n), means.argmax(axis=1))
    eager = np.exp(rng.normal(0, 0.3, n)[subject] - 0.045) if returning else np.ones(n)
    clicks = rng.random(n) < np.minimum(means[np.arange(n), arm] * eager, 1.0)
    worth = np.exp(rng.normal(0, 0.75, n) - 0.75**2 / 2) if money else 1.0
    x = np.zeros((n, WIDTH))
    x[:, 0] = age
    log = DecisionLog(
        np.arange(1, n + 1), at, arm, control.astype(np.int64), np.ones(n), clicks * worth, at,
        subject, np.full(n, -1), np.full(n, share), x,
    )  # fmt: skip
    gain = found * (means.max(axis=1) - means.mean(axis=1)) * eager
    words = {"control": share, "traffic": traffic, "money": money, "subjects": returning}
    return Shop(log, gain, {**words, "gain": gain.mean()})


def _times(rng: np.random.Generator, n: int, days: int) -> FloatArray:
    """More in the evening than at night."""
    weights = 1.2 + np.cos(math.tau * (np.arange(24) - 19) / 24)
    hours = rng.choice(24, n, p=weights / weights.sum())
    return MONDAY + DAY * rng.integers(0, days, n) + 3600 * (hours + rng.random(n))


def _means(rng: np.random.Generator, at: FloatArray, age: FloatArray) -> FloatArray:
    """The click rate of three arms, between 1 and 60%."""
    level = rng.uniform(math.log(0.02), math.log(0.2))
    swing, phase, slope = rng.uniform(0, 0.6, 3), rng.random(3), rng.normal(0, 0.3, 3)
    waves = swing * np.cos(math.tau * (at[:, None] / DAY - phase))
    means = np.exp(level + rng.normal(0, 0.2, 3) + waves + slope * age[:, None])
    return np.asarray(np.clip(means, 0.01, 0.6))


def looks(one: Shop, days: int) -> dict[str, Any]:
    """All daily looks at a shop: whether each interval covered the truth at every look and at the
    last one, and how wide it was then; how much wider the fixed interval is without what was known
    before decisions."""
    ends = np.searchsorted(one.log.at, MONDAY + DAY * np.arange(1, days + 1))
    truth = np.cumsum(one.gain)[ends - 1] / ends
    always, fixed = [], []
    for end, gain in zip(ends.tolist(), truth.tolist(), strict=True):
        found = lift_of(one.log.where(slice(0, end)))
        if found.known:
            always.append(found.low <= gain <= found.high)
            fixed.append(found.fixed_low <= gain <= found.fixed_high)
    blind = replace(one.log, x=np.zeros_like(one.log.x))
    unaided = lift_of(blind)
    return {
        **one.words,
        "looks": len(always),
        "always_all": all(always),
        "fixed_all": all(fixed),
        "fixed_last": fixed[-1],
        "always_width": found.high - found.low,
        "fixed_width": found.fixed_high - found.fixed_low,
        "blind_width": unaided.fixed_high - unaided.fixed_low,
        "significant": found.significant,
    }


def main() -> None:
    """Look at all shops."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--shops", type=int, default=400)
    parser.add_argument("--days", type=int, default=42)
    given = parser.parse_args()
    rows = [
        {"seed": seed, **looks(shop(seed, given.days), given.days)} for seed in range(given.shops)
    ]
    with OUT.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, rows[0])
        writer.writeheader()
        writer.writerows(
            {
                name: f"{value:.6g}" if isinstance(value, float) else value
                for name, value in row.items()
            }
            for row in rows
        )
    for name in ("always_all", "fixed_all", "fixed_last"):
        print(f"{name}: {np.mean([row[name] for row in rows]):.1%} of {len(rows)} shops")
    ratio = np.median([row["always_width"] / row["fixed_width"] for row in rows])
    print(
        f"the sequence is {ratio:.2f} times as wide as the fixed interval at the last look (median)"
    )


if __name__ == "__main__":
    main()
