"""Are `tide`'s statements true? Worlds outside its models, and what `explain()` says in them.

    python -m research.benchmarks.tide_statements run [--seeds 57010:57014] [--worlds spike,swap]
    python -m research.benchmarks.tide_statements table

Four weeks of 150 visits a day; rewards come at once. At the end of days 7, 14, 21 and 28 every
statement that is made with a chance of 95% or more is compared with the truth: of the week to come,
or of that moment where arms do not follow the calendar. Hours ("arm 1 is best from 8:00 to 12:00 on
weekdays") are right if the arm is better than every other one in at least nine tenths of them. A
belief ("follows the hour of the day") is right if all that it names is part of the world: rewards
that depend on the hour, the weekend or the weekday, that move slowly, or that changed at once.
Writes to research/results/tide_statements.csv, and goes on where it stopped; the table is in
research/lab/tide.md.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.policies import build_policy
from tidepull.problems.shops import hour_of, is_weekend, visits
from tidepull.problems.tables import DAY, HOUR, MONDAY, WEEK
from tidepull.random import Streams
from tidepull.tide.hours import HourSpan
from tidepull.types import Context, Event, FloatArray, ProblemShape

OUT = Path(__file__).parents[1] / "results" / "tide_statements.csv"
FIELDS = ("world", "seed", "day", "kind", "statement", "right", "hours", "right_hours")
DAYS, PER_DAY, LOOKS, SURE = 28, 150, (7, 14, 21, 28), 0.95
_DAYS_OF = {"every day": range(7), "on weekdays": range(5), "on weekends": range(5, 7)}
_NAMES = {
    "hour of the day": "hour", "weekend": "weekend", "day of the week": "weekday",
    "slow deviation": "drift", "repeats every": "period",
}  # fmt: skip
"""What a belief of structural models names, and the fact that makes it true."""
UNTOLD = "no season"
"""What agents do not tell: small effects look like none for thousands of decisions."""


@dataclass(frozen=True)
class World:
    """Means of arms by time, how rewards scatter, and what is true of the differences of arms.

    `speaks` says whether an arm is clearly best at some hours, so that there is something to say;
    `by_calendar`, whether arms follow hours and weekdays.
    """

    means: Callable[[FloatArray, FloatArray], FloatArray]
    facts: tuple[str, ...] = ()
    speaks: bool = True
    rewards: str = "clicks"
    by_calendar: bool = True


def _cosine(time: FloatArray, peaks: FloatArray, period: float = DAY) -> FloatArray:
    return np.asarray(np.cos(2 * np.pi * (time[:, None] / period - peaks)))


def _hours(time: FloatArray, first: float, last: float) -> FloatArray:
    """1 from one hour of the day to another, else 0."""
    return ((hour_of(time) - first) % 24 < (last - first) % 24).astype(float)


def _even(time: FloatArray, _: FloatArray) -> FloatArray:
    return np.full((len(time), 3), 0.3)


def _one_best(time: FloatArray, luck: FloatArray) -> FloatArray:
    return np.tile(0.2 + 0.2 * (np.arange(3) == int(3 * luck[0])), (len(time), 1))


def _same_hours(time: FloatArray, luck: FloatArray) -> FloatArray:
    """All arms follow the hour, and one is best at all hours."""
    own = _one_best(time, luck)
    return np.asarray(own * (1 + 0.5 * _cosine(time, luck[1:2])))


def _twins(time: FloatArray, luck: FloatArray) -> FloatArray:
    """Two equally good arms and a bad one."""
    return np.tile(0.35 - 0.2 * (np.arange(3) == int(3 * luck[0])), (len(time), 1))


def _blocks(time: FloatArray, luck: FloatArray) -> FloatArray:
    part = ((hour_of(time) - 24 * luck[0]) % 24 // 8)[:, None]
    return np.where(part == np.arange(3), 0.45, 0.15)


def _spike(time: FloatArray, luck: FloatArray) -> FloatArray:
    """One arm is best but for three hours of another."""
    start, means = 24 * luck[0], np.tile([0.3, 0.15, 0.15], (len(time), 1))
    means[:, 1] += 0.5 * _hours(time, start, start + 3)
    return means


def _mondays(time: FloatArray, luck: FloatArray) -> FloatArray:
    """Another arm on one day of the week."""
    day = ((time - MONDAY) % WEEK // DAY == int(7 * luck[0])).astype(float)
    return np.stack([np.full(len(time), 0.3), 0.15 + 0.4 * day, np.full(len(time), 0.15)], 1)


def _late_weekend(time: FloatArray, luck: FloatArray) -> FloatArray:
    """Arms take turns by the hour on weekdays; one is best on weekends."""
    rest, means = is_weekend(time)[:, None], _blocks(time, luck)
    return np.asarray((1 - rest) * means + rest * np.array([0.2, 0.2, 0.5]))


def _swap(time: FloatArray, luck: FloatArray) -> FloatArray:
    """The best arm changes once, between days 9 and 12."""
    after = time - MONDAY >= DAY * (9 + 3 * luck[0])
    return np.where(after[:, None], [0.15, 0.45, 0.2], [0.45, 0.15, 0.2])


def _drift(time: FloatArray, luck: FloatArray) -> FloatArray:
    """One arm overtakes another slowly."""
    share = ((time - MONDAY) / (DAYS * DAY))[:, None]
    return np.asarray([0.4, 0.1, 0.15] + share * [-0.2 - 0.1 * luck[0], 0.4, 0.0])


def _odd_period(time: FloatArray, luck: FloatArray) -> FloatArray:
    """Arms take turns every 36 hours: no hour of the day is anybody's."""
    return np.asarray(0.3 + 0.15 * _cosine(time, luck[:3], 36 * HOUR))


def _walks(time: FloatArray, luck: FloatArray) -> FloatArray:
    """Arms wander, one level for a day."""
    rng = np.random.default_rng(int(1e9 * luck[0]))
    levels = 0.3 + np.cumsum(0.04 * rng.standard_normal((2 * DAYS, 3)), axis=0)
    return np.asarray(np.clip(levels[((time - MONDAY) // DAY).astype(int)], 0.05, 0.95))


WORLDS = {
    "even": World(_even, ("still",), speaks=False),
    "one best": World(_one_best, ("still",)),
    "same hours": World(_same_hours, ("hour",)),
    "twins": World(_twins, ("still",), speaks=False),
    "blocks": World(_blocks, ("hour",)),
    "spike": World(_spike, ("hour",)),
    "one weekday": World(_mondays, ("weekday", "weekend")),
    "weekend": World(_late_weekend, ("hour", "weekend", "weekday")),
    "swap": World(_swap, ("changes", "drift"), by_calendar=False),
    "drift": World(_drift, ("drift", "changes"), by_calendar=False),
    "36 hours": World(_odd_period, ("period", "drift"), speaks=False),
    "walks": World(_walks, ("drift", "changes"), speaks=False, by_calendar=False),
    "blocks, heavy tails": World(_blocks, ("hour", "drift"), rewards="heavy"),
    "even, heavy tails": World(_even, ("still", "drift"), speaks=False, rewards="heavy"),
    "blocks, money": World(_blocks, ("hour",), rewards="money"),
}


def draw(world: World, means: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rewards: clicks, a lognormal payment for a click, or the mean with autocorrelated Student
    noise that all arms share in part."""
    clicks = (rng.random(means.shape) < means).astype(float)
    if world.rewards == "clicks":
        return clicks
    if world.rewards == "money":
        return np.asarray(clicks * np.exp(3 + rng.standard_normal(means.shape)))
    shock = 0.3 * rng.standard_t(3, (len(means), 1 + means.shape[1]))
    for n in range(1, len(shock)):
        shock[n, 0] += 0.9 * shock[n - 1, 0]
    return np.asarray(means + shock[:, 1:] + 0.3 * shock[:, :1])


def truth(world: World, luck: FloatArray, day: int) -> FloatArray:
    """Mean reward of every arm in each hour of the week after a day, Monday first; by the last
    moment of that day where arms do not follow the calendar."""
    now = MONDAY + day * DAY
    times = now + HOUR * (np.arange(7 * 24 * 4) / 4 + 1 / 8)
    times = times if world.by_calendar else np.full_like(times, now - 1)
    means = world.means(times, luck).reshape(7 * 24, 4, -1).mean(axis=1)
    return np.asarray(means.reshape(7, 24, -1))  # days 7, 14, ... begin on a Monday


def judge_hours(span: HourSpan, means: FloatArray) -> tuple[int, int]:
    """Hours that a statement names, and those in which it is right."""
    days, length = _DAYS_OF[span.days], (span.stop - span.start) % 24 or 24
    hours = [(span.start + n) % 24 for n in range(length)]
    named = means[np.ix_(list(days), hours)]
    right = named[..., span.arm] > np.delete(named, span.arm, axis=-1).max(axis=-1)
    return right.size, int(right.sum())


def judge_belief(words: str, family: str, facts: tuple[str, ...]) -> bool:
    """Whether all that a belief names is true."""
    if family == "structural":
        return all(fact in facts for name, fact in _NAMES.items() if name in words)
    return "still" in facts if family == "stationary" else family in facts


def play(name: str, seed: int) -> list[dict[str, Any]]:
    """Statements of one trial; a row without one where none is made."""
    world, rng = WORLDS[name], np.random.default_rng(seed)
    luck, time = rng.random(4), visits(DAYS * PER_DAY, PER_DAY, Streams(seed).generator("traffic"))
    rewards = draw(world, world.means(time, luck), rng)
    policy: Any = build_policy("tide", ProblemShape(rewards.shape[1]), seed=seed)
    ends, rows = [int(np.searchsorted(time, MONDAY + day * DAY)) for day in LOOKS], []
    for n in range(len(time) + 1):
        for day, end in zip(LOOKS, ends, strict=True):
            if n == end:
                said = statements(policy, truth(world, luck, day), world.facts)
                rows += [{"world": name, "seed": seed, "day": day, **one} for one in said]
        if n < len(time):
            context = Context(time=float(time[n]))
            arm = policy.choose(context)
            policy.learn(Event(context, arm, float(rewards[n, arm])))
            while policy.upkeep():
                pass
    return rows or [{"world": name, "seed": seed, "day": DAYS, "kind": "none"}]


def statements(policy: Any, means: FloatArray, facts: tuple[str, ...]) -> list[dict[str, Any]]:
    """What is said now with 95% or more, and whether it is right."""
    explanation, found = policy.explain(), []
    for span in explanation.hours:
        count, right = judge_hours(span, means)
        found.append(("hours", str(span), right >= 0.9 * count, count, right))
    for belief in explanation.beliefs:
        if belief.weight >= SURE and belief.words != UNTOLD:
            right_now = judge_belief(belief.words, belief.family, facts)
            found.append(("belief", belief.words, right_now, 0, 0))
    return [dict(zip(FIELDS[3:], one, strict=True)) for one in found]


def run(out: Path, first: int, stop: int, worlds: list[str]) -> None:
    """All trials that are not in the file yet."""
    done = set()
    if out.exists():
        with out.open() as file:
            done = {(row["world"], row["seed"]) for row in csv.DictReader(file)}
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for seed in range(first, stop):
            for name in worlds:
                if (name, str(seed)) not in done:
                    writer.writerows(play(name, seed))
                    file.flush()


def table(out: Path) -> str:
    """Statements and how many are right, by world and in all."""
    trials: dict[str, dict[str, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    with out.open() as file:
        for row in csv.DictReader(file):
            trials[row["world"]][row["seed"]].append(row)
    lines = [
        "| world | trials | hours said | right | beliefs said | right | a right one by day 28 |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    rows = [row for seeds in trials.values() for found in seeds.values() for row in found]
    for world, seeds in trials.items():
        own = [row for found in seeds.values() for row in found]
        spoke = f"{_spoke(seeds):.0%}" if WORLDS[world].speaks else "nothing to say"
        lines.append(f"| {world} | {len(seeds)} | {_counts(own)} | {spoke} |")
    speaking = [seeds for world, seeds in trials.items() if WORLDS[world].speaks]
    spoke = f"{np.mean([_spoke(seeds) for seeds in speaking]):.0%}"
    count = sum(len(seeds) for seeds in trials.values())
    lines.append(f"| **all** | {count} | {_counts(rows)} | {spoke} |")
    return "\n".join(lines)


def _spoke(seeds: dict[str, list[dict[str, str]]]) -> float:
    """Share of trials in which hours are told and right."""
    right = [any(r["kind"] == "hours" and r["right"] == "True" for r in f) for f in seeds.values()]
    return float(np.mean(right))


def _counts(rows: list[dict[str, str]]) -> str:
    cells = []
    for kind in ("hours", "belief"):
        said = [row["right"] == "True" for row in rows if row["kind"] == kind]
        cells += [str(len(said)), f"{np.mean(said):.0%}" if said else ""]
    return " | ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seeds", default="57010:57014", help="first:stop")
    parser.add_argument("--worlds", default=";".join(WORLDS), help="separated by semicolons")
    given = parser.parse_args()
    first, stop = map(int, given.seeds.split(":"))
    if given.what == "run":
        run(given.out, first, stop, given.worlds.split(";"))
    print(table(given.out))


if __name__ == "__main__":
    main()
