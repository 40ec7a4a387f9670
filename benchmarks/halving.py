"""Successive halving against the whole recurrent grid on the problems without contexts: what it finds, at what cost.

python -m benchmarks.halving    compare results/halving (the search by halving, kept by `tidepull store archive`) with
                                the averages of all settings in results/search_noncontextual.csv; the table goes into
                                docs/lab/searches.md

The search: tidepull search paper-grid-noncontextual --only '*/rnlps/*' --eta 4 --rungs 1/4:1,1/2:1,1:5 --out DIR
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.regret_rows import ROOT, write_between
from tidepull.bench.search.agreement import rank_correlation
from tidepull.bench.store.archive import read_archive
from tidepull.bench.store.rows import Row
from tidepull.bench.suites.rungs import rung_number

POLICY = "rnlps"
HALVED = ROOT / "results" / "halving"
EXHAUSTIVE = ROOT / "results" / "search_noncontextual.csv"
PAGE = ROOT / "docs" / "lab" / "searches.md"


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
    """One problem: both choices as the exhaustive search averages them, and the costs in today's CPU seconds."""

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
        """How far the choice's mean reward is below the best one's, in standard errors of the difference."""
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


def rungs(rows: Mapping[str, Sequence[Row]]) -> dict[str, dict[int, dict[str, list[Row]]]]:
    """Rows of the searched policy by problem, rung and setting."""
    found: dict[str, dict[int, dict[str, list[Row]]]] = {}
    for suite, several in rows.items():
        for row in several:
            if row.name == POLICY:
                by_rung = found.setdefault(row.problem, {}).setdefault(rung_number(suite), {})
                by_rung.setdefault(row.setting, []).append(row)
    return found


def compare(
    problem: str, halved: Mapping[int, Mapping[str, Sequence[Row]]], grid: Mapping[str, Setting]
) -> Compared:
    last = max(halved)
    means = {
        rung: {text: float(np.mean([row.reward for row in rows])) for text, rows in settings.items()}
        for rung, settings in halved.items()
    }
    chosen = max(means[last], key=lambda text: means[last][text])
    ordered = sorted(grid, key=lambda text: -grid[text].reward)
    seconds = {
        row.hash: row.cpu_seconds
        for settings in halved.values()
        for rows in settings.values()
        for row in rows
    }
    # The last rung's trials were played in both searches, on other days: they say what a second then is now.
    now = sum(row.cpu_seconds for rows in halved[last].values() for row in rows)
    then = sum(grid[text].cpu_seconds for text in halved[last])
    all_means = {text: setting.reward for text, setting in grid.items()}
    correlations = (rank_correlation(means[rung], all_means)[1] for rung in sorted(means) if rung < last)
    return Compared(
        problem=problem,
        settings=len(grid),
        best=grid[ordered[0]],
        chosen=grid[chosen],
        same=chosen == ordered[0],
        place=ordered.index(chosen) + 1,
        correlations=tuple(value for value in correlations if value is not None),
        halved_seconds=sum(seconds.values()),
        exhaustive_seconds=sum(setting.cpu_seconds for setting in grid.values()) * now / then,
    )


def table(found: Sequence[Compared]) -> str:
    lines = [
        "| problem | best of all | halving's choice | its place | difference (s.e.) | regret, best of all | regret, "
        "halving's choice | rank correlation of rung 1, 2 with the whole search | share of the cost |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in found:
        correlations = ", ".join(f"{value:.2f}" for value in one.correlations)
        lines.append(
            f"| `{one.problem}` | {one.best.reward:,.1f} | {one.chosen.reward:,.1f} | {one.place} of {one.settings} | "
            f"{one.standard_errors:.1f} | {one.best.regret:,.1f} | {one.chosen.regret:,.1f} | {correlations} | "
            f"{one.halved_seconds / one.exhaustive_seconds:.0%} |"
        )
    share = sum(one.halved_seconds for one in found) / sum(one.exhaustive_seconds for one in found)
    lines.append(f"| all | | | | | | | | {share:.0%} |")
    return "\n".join(lines)


def main() -> None:
    grids = exhaustive()
    halved = rungs(read_archive(HALVED).rows)
    found = [compare(problem, by_rung, grids[problem]) for problem, by_rung in halved.items()]
    text = table(found)
    print(text)
    write_between(PAGE, "halving", text)


if __name__ == "__main__":
    main()
