"""`tide` between who knows the structure of a world and who guesses, on every kind of random world.

    python -m research.benchmarks.tide_yardstick run --out research/results/tide_yardstick.csv
    --dry-run python -m research.benchmarks.tide_yardstick run --out
    research/results/tide_yardstick.csv python -m research.benchmarks.tide_yardstick table
    research/results/tide_yardstick.csv --write

Five worlds of a kind, two seeds each, 2,048 rounds (wide contexts: 1,024); no version was made on
worlds from 64,000 on. `--columns` plays some of these alone, `--tide JSON --label NAME` adds
another `tide` to the file:

- `specialist`: the policy that is told the structure and has only values to learn;
- `tuned`: the best conventional policy with the best of seven discounts or eight windows, or none;
  `tuned both`: also with the best of three widths of its bounds (1, 0.1 and 0.03 times the usual
  one). Arms: D-, SW- and plain UCB, and Thompson sampling where rewards are 0 and 1. Vectors: D-,
  SW- and plain LinUCB, and LinTS. Observations: all of them;
- `published`: GLR-klUCB, told the number of changes (`glr.py`), and the discounted Thompson
  sampling of SMPyBandits (left out where that is not installed) with the best of seven discounts,
  where rewards are 0 and 1 and change at unknown times.

The best setting is chosen in hindsight for each world, by the mean regret of its two trials. All
settings play the first seed; the second one only the best quarter of a policy's settings (at least
two), of the usual width and of all. A width of 0.3 was tried on world 60,000 of twelve kinds, and
was the best on none of them.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from research.benchmarks.glr import GLRklUCB
from research.benchmarks.tide_dev import DISCOUNTS, grid, is_binary, trial, widths_of
from research.benchmarks.world_trials import (
    Row,
    Settings,
    Trial,
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
from tidepull._internal.extras import Package
from tidepull.problems import build_problem
from tidepull.problems.random_worlds import DRAWN, KINDS

FIRST, ROUNDS = 64_000, 2048
FIELDS = (
    "kind", "world", "seed", "horizon", "column", "policy", "parameters", "tried", "regret", "seconds", "explanation",
)  # fmt: skip
EXPLORATIONS = (1.0, 0.1, 0.03)
TUNED, BOTH, GLR, FADING = "tuned", "tuned both", "GLR-klUCB", "discounted TS"
RIVALS = ("specialist", TUNED, BOTH, GLR, FADING)
GROUPS = {
    "random": ("random",),
    "specialist": ("specialist",),
    "tuned": (TUNED, BOTH),
    "published": (GLR, FADING),
}
CHANGING = ("clicks-few-changes", "clicks-many-changes", "clicks-returning")
LIMITS = (1.1, 1.3)

Shares = dict[str, dict[str, dict[Trial, float]]]
"""Regret over random's by kind, column and trial."""


class Job(NamedTuple):
    """A policy on a world, with all settings from which the best one stands in each of the
    columns."""

    kind: str
    world: int
    policy: str
    options: Sequence[Settings]
    columns: tuple[str, ...]

    @property
    def usual(self) -> list[bool]:
        """Which settings leave exploration as it is."""
        return [not {"xi", "exploration"} & option.keys() for option in self.options]


def jobs(kind: str, world: int, tide: Settings, label: str) -> Iterator[Job]:
    """Everybody who plays on a world."""
    yield Job(kind, world, "random", [{}], ("random",))
    yield Job(kind, world, "specialist", [{}], ("specialist",))
    yield Job(kind, world, "tide", [tide], (label,))
    for policy, options in conventional(kind, is_binary(world, kind)).items():
        yield Job(kind, world, policy, options, (TUNED, BOTH))
    if kind in CHANGING:
        yield Job(kind, world, "glr-klucb", [{}], (GLR,))
        if Package("SMPyBandits", "smpybandits").installed:
            yield Job(
                kind, world, "smpy-discounted-ts", [{"gamma": g} for g in DISCOUNTS], (FADING,)
            )


def conventional(kind: str, binary: bool) -> Mapping[str, list[Settings]]:
    """The settings that are tried of every conventional policy that can play the kind."""
    found = grid(kind, EXPLORATIONS)
    if not kind.startswith("vectors"):
        found["ucb"] = widths_of(kind, EXPLORATIONS)
        if binary:
            found["bernoulli-ts"] = [{}]
    if kind.startswith(("labels", "paths")):
        found |= grid("vectors", EXPLORATIONS)
    return found


def finalists(regrets: Sequence[float], usual: Sequence[bool]) -> list[int]:
    """Who plays the second seed: the best quarter, at least two, of those of the usual exploration,
    and of all."""
    order = sorted(range(len(regrets)), key=lambda i: regrets[i])
    groups = ([i for i in order if usual[i]], order)
    return sorted({i for group in groups for i in group[: max(2, math.ceil(len(group) / 4))]})


def play(job: Job, rounds: int) -> Iterator[dict[str, Any]]:
    """Two rows, one a seed, for every column of the job."""
    horizon = horizon_of(job.kind, rounds)
    first, second = seeds_of(job.world)
    tried = [_trial(job, option, horizon, first) for option in job.options]
    again = {
        i: _trial(job, job.options[i], horizon, second)
        for i in finalists([row["regret"] for row in tried], job.usual)
    }
    for column in job.columns:
        allowed = [i for i in range(len(tried)) if column != TUNED or job.usual[i]]
        best = min(
            (i for i in allowed if i in again),
            key=lambda i: tried[i]["regret"] + again[i]["regret"],
        )
        for row in (tried[best], again[best]):
            yield {**row, "column": column, "tried": len(allowed)}


def _trial(job: Job, option: Settings, horizon: int, seed: int) -> dict[str, Any]:
    told = _told_changes(job, horizon, seed) if job.policy == "glr-klucb" else None
    row = trial(job.world, job.kind, job.policy, option, horizon, seed=seed, learner=told)
    return {**row, "seed": seed, "regret": round(row["regret"], 3)}


def _told_changes(job: Job, horizon: int, seed: int) -> GLRklUCB:
    problem: Any = build_problem(
        ("random-world", {"world": job.world, "kind": job.kind}), seed=seed
    )
    means = np.array([problem.drift(t) for t in range(horizon)])
    changes = np.any(np.diff(means, axis=0) != 0, axis=1).sum()
    return GLRklUCB(problem.n_arms, horizon, int(changes))


def wanted(columns: Sequence[str], label: str) -> set[str]:
    """The columns of the table that are asked for; `tide` has the name that was given."""
    groups = {**GROUPS, "tide": (label,)}
    for name in columns:
        if name not in groups:
            raise SystemExit(f"--columns: there is no '{name}'; one of: {', '.join(groups)}")
    if label in (name for group in GROUPS.values() for name in group):
        raise SystemExit(f"--label: '{label}' is a column of its own; take another name")
    return {name for group in columns for name in groups[group]}


def missing(given: argparse.Namespace, rows: Iterable[Row]) -> Iterator[Job]:
    """The jobs of a campaign that are not in the file; one that was interrupted is played again."""
    asked = wanted(given.columns.split(","), given.label)
    done = {
        (row["kind"], int(row["world"]), row["column"], row["policy"])
        for row in rows
        if _is_second(row)
    }
    for kind, world in places(given):
        for job in jobs(kind, world, given.tide, given.label):
            last = job.columns[-1]
            if last in asked and (kind, world, last, job.policy) not in done:
                yield job


def _is_second(row: Row) -> bool:
    world, seed = trial_of(row)
    return seed == seeds_of(world)[1]


def estimate(todo: Iterable[Job], rounds: int) -> str:
    """Trials and processor time of jobs, by column."""
    trials: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    for job in todo:
        played = len(job.options) + len(finalists([0.0] * len(job.options), job.usual))
        trials[job.columns[0]] += played
        seconds[job.columns[0]] += played * seconds_of(
            job.kind, job.policy, horizon_of(job.kind, rounds)
        )
    lines = [
        f"{name}: {trials[name]} trials, about {seconds[name] / 60:.1f} minutes" for name in trials
    ]
    total = f"all: {sum(trials.values())} trials, about {sum(seconds.values()) / 60:.1f} minutes of one core"
    return "\n".join([*lines, total])


def run(given: argparse.Namespace) -> None:
    """Whatever is not in the file yet."""
    book = opened(given, FIELDS, lambda row: row["column"] == given.label)
    todo = list(missing(given, book.rows))
    if given.dry_run:
        print(estimate(todo, given.rounds))
        return
    for job in todo:
        for row in play(job, given.rounds):
            book.add(row)


def shares(rows: Iterable[Row]) -> Shares:
    """Regret over random's. Where several policies play for a column, the best one of each world
    stands in it."""
    rows = list(rows)
    played: dict[tuple[str, str, int], dict[str, dict[Trial, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in rows:
        world = played[row["kind"], row["column"], int(row["world"])]
        world[row["policy"]][trial_of(row)] = float(row["regret"])
    random = regret_of_random(rows)
    found: Shares = defaultdict(lambda: defaultdict(dict))
    for (kind, column, _), policies in played.items():
        most = max(map(len, policies.values()))
        best = min((p for p in policies.values() if len(p) == most), key=lambda p: sum(p.values()))
        for key, regret in best.items():
            if (kind, key) in random:
                found[kind][column][key] = regret / random[kind, key]
    return found


def means(found: Shares, tide: str) -> dict[str, dict[str, float]]:
    """Mean share by kind and column over the trials of `tide`; nothing of whoever has not played
    them all."""
    made = {}
    for kind, columns in sorted(found.items(), key=lambda item: KINDS.index(item[0])):
        keys = columns.get(tide, {}).keys()
        if keys:
            made[kind] = {
                name: float(np.mean([trials[key] for key in keys]))
                for name, trials in columns.items()
                if keys <= trials.keys()
            }
    return made


def averaged(lines: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean over kinds, of columns that all of them have."""
    names = set.intersection(*(set(line) for line in lines)) if lines else set()
    return {name: float(np.mean([line[name] for line in lines])) for name in names}


def ratio(line: Mapping[str, float], tide: str, rival: str) -> float:
    """Of the mean shares; NaN where one is missing."""
    return line[tide] / line[rival] if line.get(rival) else math.nan


def table(rows: Iterable[Row], tide: str) -> str:
    """Mean shares and their ratios by kind, then means over kinds and how many kinds lie above the
    limits."""
    found = shares(rows)
    by_kind = means(found, tide)
    shown = [tide, *(name for name in RIVALS if any(name in line for line in by_kind.values()))]
    over = [name for name in (TUNED, BOTH, "specialist") if name in shown]
    head = ["kind", "trials", *shown, *(f"{tide} / {name}" for name in over)]

    def cells(line: Mapping[str, float]) -> list[str]:
        return [
            *(f"{line[name]:.3f}" if name in line else "" for name in shown),
            *(
                "" if math.isnan(r) else f"{r:.2f}"
                for r in (ratio(line, tide, name) for name in over)
            ),
        ]

    lines = [[kind, str(len(found[kind][tide])), *cells(line)] for kind, line in by_kind.items()]
    drawn = [line for kind, line in by_kind.items() if kind in DRAWN]
    for words, some in (
        (f"**mean of {len(drawn)} of the {len(DRAWN)} kinds that take turns**", drawn),
        (f"mean of all {len(by_kind)} kinds", list(by_kind.values())),
    ):
        if some:
            lines.append([words, "", *cells(averaged(some))])
    ratios = {
        name: {kind: ratio(line, tide, name) for kind, line in by_kind.items()} for name in over
    }
    above = [" / ".join(str(len(_above(ratios[name], limit))) for limit in LIMITS) for name in over]
    lines.append(
        ["kinds above " + " / above ".join(map(str, LIMITS)), "", *[""] * len(shown), *above]
    )
    return "\n".join([markdown(head, lines), "", *_named(ratios)])


def _above(ratios: Mapping[str, float], limit: float) -> list[str]:
    return [kind for kind, value in ratios.items() if value > limit]


def _named(ratios: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Which kinds lie above the limit that is meant for a column."""
    for name, limit in zip((TUNED, BOTH), LIMITS, strict=True):
        if name in ratios:
            kinds = [f"{kind} {ratios[name][kind]:.2f}" for kind in _above(ratios[name], limit)]
            yield f"- Above {limit} of {name}: {', '.join(kinds) or 'none'}."


def main() -> None:
    def more(running: argparse.ArgumentParser, showing: argparse.ArgumentParser) -> None:
        running.add_argument("--columns", default=",".join(["tide", *GROUPS]))
        running.add_argument(
            "--label", default="tide", help="the column of these parameters of tide"
        )
        showing.add_argument(
            "--of", default="tide", help="the column of tide whose trials are counted"
        )

    given = parsed(__doc__, FIRST, ROUNDS, more)
    if given.command == "run":
        run(given)
    else:
        rows = read_rows(given.file)
        played = provenance([row for row in rows if row["column"] == given.of])
        show(f"{played}\n\n{table(rows, given.of)}", "yardstick", given.write)


if __name__ == "__main__":
    main()
