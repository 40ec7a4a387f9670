"""Successive halving against the whole recurrent grid on the problems without contexts: what it
finds, at what cost.

    python -m research.benchmarks.halving

Compares the searches by halving in research/results/halving (from `tidepull store archive`) with
the averages of all settings in research/results/search_noncontextual.csv; the table goes into
research/lab/searches.md. A search:

    tidepull search paper-grid-noncontextual --only '*/rnlps/*' --eta 4 --rungs 1/4:1,1/2:1,1:5 --out DIR
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from research.benchmarks.regret_rows import ROOT, write_between
from tidepull.experiments.archive import Archive, is_archive, read_archive
from tidepull.experiments.grid import rung_number
from tidepull.experiments.rows import Row
from tidepull.experiments.search import rank_correlation

POLICY = "rnlps"
HALVED = ROOT / "research" / "results" / "halving"
EXHAUSTIVE = ROOT / "research" / "results" / "search_noncontextual.csv"
RULES = {"1/4:1, 1/2:1, 1:5": "one-seed", "1/4:3, 1/2:3, 1:5": "three-seeds"}
PAGE = ROOT / "research" / "lab" / "searches.md"


@dataclass(frozen=True, slots=True)
class Setting:
    """Averages of one setting in the exhaustive search."""

    reward: float
    reward_std: float
    regret: float
    trials: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One problem: both choices as the whole search averages them, and the costs in CPU seconds as
    of that day."""

    problem: str
    settings: int
    best: Setting
    chosen: Setting
    same: bool
    place: int
    correlations: tuple[float, ...]
    halved_seconds: float
    exhaustive_seconds: float

    @property
    def standard_errors(self) -> float:
        """How far the choice's mean reward is below the best one's, in standard errors of the
        difference."""
        if self.same:
            return 0.0
        parts = [s.reward_std**2 / s.trials for s in (self.best, self.chosen)]
        return (self.best.reward - self.chosen.reward) / math.sqrt(sum(parts))


def exhaustive() -> dict[str, dict[str, Setting]]:
    found: dict[str, dict[str, Setting]] = {}
    with EXHAUSTIVE.open(newline="") as text:
        for line in csv.DictReader(text):
            if line["name"] == POLICY:
                found.setdefault(line["problem"], {})[line["setting"]] = Setting(
                    float(line["reward_mean"]),
                    float(line["reward_std"]),
                    float(line["regret_mean"]),
                    int(line["trials"]),
                    float(line["cpu_seconds"]),
                )
    return found


Halved: TypeAlias = dict[str, dict[int, dict[str, list[Row]]]]
"""Rows of the searched policy by problem, rung and setting; none for what has not been played
yet."""


def rungs(archive: Archive) -> Halved:
    """What a search by halving played."""
    found: Halved = {}
    for suite in archive.rows:
        rung = rung_number(suite)
        for row in archive.rows[suite]:
            if rung and row.name == POLICY:
                _settings(found, row.problem, rung).setdefault(row.setting, []).append(row)
        for trial, _ in archive.lost[suite]:
            if rung and trial.name == POLICY:
                _settings(found, trial.problem, rung).setdefault(trial.setting, [])
    return found


def _settings(found: Halved, problem: str, rung: int) -> dict[str, list[Row]]:
    return found.setdefault(problem, {}).setdefault(rung, {})


def compare(
    problem: str,
    halved: Mapping[int, Mapping[str, Sequence[Row]]],
    grid: Mapping[str, Setting],
    slower: float,
) -> Compared:
    """The last rung's trials are the whole search's own (same rounds, same seeds): its averages
    choose."""
    last = max(halved)
    check_last(halved[last], grid)
    chosen = max(halved[last], key=lambda text: grid[text].reward)
    ordered = sorted(grid, key=lambda text: -grid[text].reward)
    means = {
        rung: {
            text: float(np.mean([row.reward for row in rows])) for text, rows in settings.items()
        }
        for rung, settings in halved.items()
        if rung < last
    }
    short = sum(row.cpu_seconds for rung in means for rows in halved[rung].values() for row in rows)
    all_means = {text: setting.reward for text, setting in grid.items()}
    correlations = (rank_correlation(means[rung], all_means)[1] for rung in sorted(means))
    return Compared(
        problem=problem,
        settings=len(grid),
        best=grid[ordered[0]],
        chosen=grid[chosen],
        same=chosen == ordered[0],
        place=ordered.index(chosen) + 1,
        correlations=tuple(value for value in correlations if value is not None),
        halved_seconds=short / slower + sum(grid[text].cpu_seconds for text in halved[last]),
        exhaustive_seconds=sum(setting.cpu_seconds for setting in grid.values()),
    )


def check_last(settings: Mapping[str, Sequence[Row]], grid: Mapping[str, Setting]) -> None:
    """Where all trials of the last rung were played, they must be those of the whole search."""
    for text, rows in settings.items():
        mean = (
            float(np.mean([row.reward for row in rows])) if len(rows) == grid[text].trials else None
        )
        if mean is not None and abs(mean - grid[text].reward) > 1e-5:
            raise ValueError(
                f"{rows[0].problem}, {text}: {mean} now, {grid[text].reward} in the whole search"
            )


def slowness(searches: Iterable[Halved], grids: Mapping[str, Mapping[str, Setting]]) -> float:
    """CPU seconds now for one of the whole search's: trials of last rungs were played in both, on
    other days."""
    now, then = 0.0, 0.0
    for halved in searches:
        for problem, by_rung in halved.items():
            for text, rows in by_rung[max(by_rung)].items():
                setting = grids[problem][text]
                now += sum(row.cpu_seconds for row in rows)
                then += len(rows) * setting.cpu_seconds / setting.trials
    return now / then


def table(found: Mapping[str, Sequence[Compared]]) -> str:
    lines = [
        "| rungs | problem | best of all | halving's choice | its place | difference (s.e.) | "
        "regret, best of all | "
        "regret, halving's choice | rank correlation of rungs 1 and 2 with the whole search | "
        "share of the cost |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for rule, several in found.items():
        for one in several:
            correlations = ", ".join(f"{value:.2f}" for value in one.correlations)
            lines.append(
                f"| {rule} | `{one.problem}` | {one.best.reward:,.1f} | {one.chosen.reward:,.1f} | "
                f"{one.place} of "
                f"{one.settings} | {one.standard_errors:.1f} | {one.best.regret:,.1f} | "
                f"{one.chosen.regret:,.1f} | "
                f"{correlations} | {one.halved_seconds / one.exhaustive_seconds:.0%} |"
            )
        share = sum(one.halved_seconds for one in several) / sum(
            one.exhaustive_seconds for one in several
        )
        lines.append(f"| {rule} | all | | | | | | | | {share:.0%} |")
    return "\n".join(lines)


def text() -> str:
    """The table of what is kept."""
    grids = exhaustive()
    folders = {
        rule: HALVED / folder for rule, folder in RULES.items() if is_archive(HALVED / folder)
    }
    searches = {rule: rungs(read_archive(folder)) for rule, folder in folders.items()}
    slower = slowness(searches.values(), grids)
    found = {
        rule: [
            compare(problem, by_rung, grids[problem], slower) for problem, by_rung in halved.items()
        ]
        for rule, halved in searches.items()
    }
    return table(found)


def main() -> None:
    print(text())
    write_between(PAGE, "halving", text())


if __name__ == "__main__":
    main()
