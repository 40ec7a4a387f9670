"""What each family of `tide` is worth: all of them against all but one, on every kind of random
world.

    python -m research.benchmarks.tide_families run --out research/results/tide_families.csv
    --dry-run python -m research.benchmarks.tide_families run --out
    research/results/tide_families.csv python -m research.benchmarks.tide_families table
    research/results/tide_families.csv --write

Five worlds of a kind, two seeds each, 1,024 rounds, worlds from 66,000 on. Each trial without a
family is paired with that of the whole on the same world and seed. A cell is the mean of (regret
without it - regret of the whole) over random's regret: positive where the family pays. Its standard
error is that over worlds, whose two trials count as one, and it is bold where it lies beyond two of
them. A family that has no model in a world (structural ones where no time is given, hidden
states where there are observations) changes nothing but rounding there: that is found out without
playing, and the cell is empty.

The rule, written down before anything was played. A family is *right* on the kinds where it gains
at least 0.01, beyond two standard errors, and wrong on all others in which it takes part; what it
costs there is minus the mean of their cells. Among forty kinds some cell lies beyond two standard
errors by chance, so being right somewhere is not enough:

- it *pays* if it is right somewhere, gains on the mean of all its kinds, and costs less than 0.005
  where it is wrong;
- it is *dear* if it is right somewhere and gains on the mean, but costs more elsewhere: its prior
  is too large;
- it *leaves* if it is right nowhere, or does not gain on the mean of all its kinds.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from research.benchmarks.tide_dev import trial
from research.benchmarks.world_trials import (
    Row,
    Settings,
    horizon_of,
    markdown,
    opened,
    parsed,
    places,
    provenance,
    read_rows,
    regret_of_random,
    seconds_of,
    seeds_of,
    show,
    trial_of,
)
from tidepull.policies import build_policy
from tidepull.problems import build_problem, shape_of
from tidepull.problems.random_worlds import KINDS
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.parameters import STRUCTURAL

FIRST, ROUNDS = 66_000, 1024
FIELDS = (
    "kind",
    "world",
    "seed",
    "horizon",
    "policy",
    "without",
    "parameters",
    "regret",
    "seconds",
    "explanation",
)
SURE, LEAST, CHEAP = 2.0, 0.01, 0.005


class Job(NamedTuple):
    """One trial: of `random`, of the whole `tide`, or without a family."""

    kind: str
    world: int
    seed: int
    policy: str
    without: str


class Gain(NamedTuple):
    """What a family gains on a kind, and the standard error of that."""

    mean: float
    error: float

    @property
    def sure(self) -> bool:
        """Whether it is no chance that it is not 0."""
        return abs(self.mean) > SURE * self.error

    @property
    def right(self) -> bool:
        """Whether the family is right here."""
        return self.sure and self.mean >= LEAST


class Verdict(NamedTuple):
    """What a family gains over all its kinds, where it is right, and what it costs elsewhere."""

    mean: Gain
    right: int
    gain: float
    cost: float
    word: str


def taking_part(kind: str, world: int, settings: Settings) -> list[str]:
    """Families that have models in a world; structural models wait for a time."""
    problem = build_problem(("random-world", {"world": world, "kind": kind}), seed=world)
    policy: Any = build_policy(("tide", settings), shape_of(problem), seed=world)
    timed = problem.context().time is not None
    return [name for name in policy.explain().families if timed or name != STRUCTURAL]


def jobs(kind: str, world: int, settings: Settings) -> Iterator[Job]:
    """All trials of a world, seed by seed."""
    families = taking_part(kind, world, settings)
    for seed in seeds_of(world):
        yield Job(kind, world, seed, "random", "")
        yield Job(kind, world, seed, "tide", "")
        for family in families:
            yield Job(kind, world, seed, "tide", family)


def is_whole(row: Row) -> bool:
    """Whether it is a trial of `tide` with all its families."""
    return row["policy"] == "tide" and not row["without"]


def parameters_of(job: Job, settings: Settings) -> Settings:
    """The settings of a trial's policy."""
    if job.policy == "random":
        return {}
    if not job.without:
        return settings
    return {**settings, "without": [*settings.get("without", []), job.without]}


def missing(given: argparse.Namespace, rows: Iterable[Row]) -> Iterator[Job]:
    """The trials of a campaign that are not in the file."""
    done = {Job(row["kind"], *trial_of(row), row["policy"], row["without"]) for row in rows}
    for kind, world in places(given):
        yield from (job for job in jobs(kind, world, given.tide) if job not in done)


def run(given: argparse.Namespace) -> None:
    """Whatever is not in the file yet."""
    book, settings = opened(given, FIELDS, is_whole), given.tide
    todo = list(missing(given, book.rows))
    if given.dry_run:
        seconds = sum(seconds_of(j.kind, j.policy, horizon_of(j.kind, given.rounds)) for j in todo)
        print(f"{len(todo)} trials, about {seconds / 60:.0f} minutes of one core")
        return
    for job in todo:
        horizon = horizon_of(job.kind, given.rounds)
        played = trial(
            job.world, job.kind, job.policy, parameters_of(job, settings), horizon, seed=job.seed
        )
        book.add({**played, **job._asdict(), "regret": round(played["regret"], 3)})


def gains(rows: Sequence[Row]) -> dict[str, dict[str, Gain]]:
    """By kind and family."""
    random = regret_of_random(rows)
    regrets = {
        (r["kind"], trial_of(r), r["without"]): float(r["regret"])
        for r in rows
        if r["policy"] == "tide"
    }
    by_world: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (kind, key, family), regret in regrets.items():
        if family and (kind, key, "") in regrets and (kind, key) in random:
            more = (regret - regrets[kind, key, ""]) / random[kind, key]
            by_world[kind, family][key[0]].append(more)
    found: dict[str, dict[str, Gain]] = defaultdict(dict)
    for (kind, family), worlds in sorted(
        by_world.items(), key=lambda item: KINDS.index(item[0][0])
    ):
        found[kind][family] = gain_of([float(np.mean(values)) for values in worlds.values()])
    return found


def gain_of(values: Sequence[float]) -> Gain:
    """Mean and standard error; that of one value is not known."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else math.inf
    return Gain(float(np.mean(values)), error)


def judged(cells: Sequence[Gain]) -> Verdict:
    """The rule, on the cells of a family."""
    mean = float(np.mean([cell.mean for cell in cells]))
    error = math.sqrt(sum(cell.error**2 for cell in cells)) / len(cells)
    right, wrong = ([c.mean for c in cells if c.right is side] for side in (True, False))
    cost = -float(np.mean(wrong)) if wrong else 0.0
    word = "leaves" if not right or mean <= 0 else "pays" if cost < CHEAP else "dear"
    return Verdict(
        Gain(mean, error), len(right), float(np.mean(right)) if right else 0.0, cost, word
    )


def table(rows: Sequence[Row]) -> str:
    """Kinds by families, then what the rule says."""
    found = gains(rows)
    families = [name for name in FAMILIES if any(name in cells for cells in found.values())]
    verdicts = {
        name: judged([cells[name] for cells in found.values() if name in cells])
        for name in families
    }
    lines = [
        [kind, *(_shown(cells[name]) if name in cells else "" for name in families)]
        for kind, cells in found.items()
    ]
    lines += _bottom([verdicts[name] for name in families])
    return markdown(["kind", *families], lines)


def _bottom(verdicts: Sequence[Verdict]) -> Iterator[list[str]]:
    yield ["**mean of its kinds**", *(_shown(v.mean) for v in verdicts)]
    yield ["standard error", *(f"{v.mean.error:.4f}" for v in verdicts)]
    yield ["kinds where it is right", *(str(v.right) for v in verdicts)]
    yield ["gain there", *(f"{v.gain:.3f}" if v.right else "" for v in verdicts)]
    yield ["cost elsewhere", *(f"{v.cost:.4f}" for v in verdicts)]
    yield ["**verdict**", *(v.word for v in verdicts)]


def _shown(cell: Gain) -> str:
    text = f"{cell.mean:+.3f}"
    return f"**{text}**" if cell.sure else text


def main() -> None:
    given = parsed(__doc__, FIRST, ROUNDS, lambda *_: None)
    if given.command == "run":
        run(given)
    else:
        rows = read_rows(given.file)
        played = provenance([row for row in rows if is_whole(row)])
        show(f"{played}\n\n{table(rows)}", "families", given.write)


if __name__ == "__main__":
    main()
