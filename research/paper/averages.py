"""Averages of trials that were not kept one by one.

The totals of every trial are kept as CSV (`tidepull store archive`). Where the trials of an earlier
store were not, the policy's average on the problem stands in a table of its own until they are
played again.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidepull._internal.files import explained
from tidepull.errors import InputError
from tidepull.reporting import published
from tidepull.reporting.frames import Study
from tidepull.reporting.tables import Cell, Table, number, spread, to_markdown

FILE = "averages.csv"


@dataclass(frozen=True, slots=True)
class Average:
    """Mean and standard deviation of final regret over the trials of a policy on a problem."""

    suite: str
    problem: str
    name: str
    horizon: int
    mean: float
    std: float
    trials: int


def read_averages(file: Path) -> tuple[Average, ...]:
    """What `tidepull store export --by-setting` wrote of trials that a suite asked for; none
    without the file."""
    if not file.is_file():
        return ()
    averages = []
    with explained("read", file), file.open(newline="", encoding="utf-8") as text:
        for place, line in enumerate(csv.DictReader(text), 2):
            try:
                names = (line["suite"], line["problem"], line["name"], int(line["horizon"]))
                mean, std = float(line["regret_mean"]), float(line["regret_std"])
                averages.append(Average(*names, mean, std, int(line["trials"])))
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(
                    f"{file}, line {place}: no average of trials ({error!r})"
                ) from None
    return tuple(one for one in averages if one.suite)


def averages_section(averages: Sequence[Average], shown: Sequence[Study]) -> Iterator[str]:
    """Those that neither the trials of the page nor its table have."""
    played = {
        (study.problem, group.name, study.horizon) for study in shown for group in study.groups
    }
    rows = []
    for one in averages:
        in_table = one.problem in published.REGRET and one.name in published.COLUMNS
        if not in_table and (one.problem, one.name, one.horizon) not in played:
            cells = (
                Cell(one.problem),
                Cell(one.name),
                number(one.trials, 0),
                spread(one.mean, one.std),
            )
            rows.append((*cells, Cell(one.suite)))
    if rows:
        yield "## Averages whose trials were not kept"
        yield (
            "Played earlier, on a processor with AVX2 only; totals were not kept one by one, so "
            "that no interval or "
            "verdict on this page rests on them. `tidepull sweep SUITE` plays them again."
        )
        columns = ("problem", "policy", "trials", "regret", "suite")
        yield to_markdown(Table("averages", "Averages", columns, tuple(rows)))
