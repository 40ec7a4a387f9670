"""`docs/results.md`, its details and figures, and the table in the README, from kept trials.

    python -m research.paper.results_page

The trials are those of `research/results/trials` (`tidepull store archive` writes them). The pages
name the command that writes them byte for byte into `out/reproduce`; this one puts them where they
belong.
"""

from __future__ import annotations

import csv
import json
import re
import statistics
from collections import Counter
from pathlib import Path

from tidepull._internal.files import write_whole
from tidepull.experiments.archive import read_archive
from tidepull.experiments.grid import searched_suite
from tidepull.paper.details import detail_blocks
from tidepull.paper.page import PaperResults, draw, paper_results, results_blocks, write_page
from tidepull.paper.reproduce import HOURS_FILE, measured_hours
from tidepull.paper.studies import in_column
from tidepull.reporting import published
from tidepull.reporting.frames import archived_frame
from tidepull.reporting.stats import summarise
from tidepull.reporting.tables import Cell, Table, spread, to_markdown
from tidepull.reporting.traces import read_curves

COMMAND = "tidepull reproduce --no-play --known research/results/trials"
ROOT = Path(__file__).parents[2]
COLUMN = "rnlps-default"
"""The column of the README's table: the paper's own method, with the settings that it prints."""


def write_all(root: Path, *, source: Path = ROOT) -> None:
    """Write every file that comes from the kept trials of `source` below `root`."""
    trials = source / "research" / "results" / "trials"
    results = paper_results(archived_frame(trials), read_curves(trials))
    write_page(results_blocks(results, COMMAND), root / "docs" / "results.md")
    write_page(detail_blocks(results, COMMAND), root / "research" / "paper" / "results.md")
    draw(results, root / "docs" / "results")
    readme = (source / "README.md").read_text()
    table = small_table(results, source / "research" / "results" / "tide_rows.csv")
    text = re.sub(
        r"(<!-- paper -->\n).*?(<!-- end of paper -->)",
        lambda match: match[1] + to_markdown(table) + match[2],
        readme,
        flags=re.S,
    )
    write_whole(root / "README.md", text.encode())
    lost = read_archive(trials).lost
    unplayed = Counter(searched_suite(suite) for suite, those in lost.items() for _ in those)
    hours = json.dumps(measured_hours(results.frame, unplayed), indent=1) + "\n"
    write_whole(root / "src" / "tidepull" / "paper" / HOURS_FILE, hours.encode())


def small_table(results: PaperResults, tide_rows: Path) -> Table:
    """Nine rows: the paper's default RNN, ours in the authors' world and across worlds, `tide`."""
    with tide_rows.open(newline="") as text:
        lines = [line for line in csv.DictReader(text) if line["policy"] == "tide"]
    there = {cell.row: cell.ours for cell in results.cells if cell.column == COLUMN}
    across = {one.study.problem: in_column(one.study, COLUMN) for one in results.reports}
    rows = []
    for problem, figures in published.REGRET.items():
        group, paper = across.get(problem), figures[COLUMN]
        ours = summarise(group.regrets) if group else None
        tide = [float(line["regret"]) for line in lines if line["problem"] == problem]
        figures_ = (paper, there.get(problem), ours)
        cells = [spread(one.mean, one.std) if one else Cell("–") for one in figures_]
        cells.append(spread(statistics.mean(tide), statistics.stdev(tide)))
        rows.append((Cell(f"`{problem}`"), *(Cell(cell.text, 0.0) for cell in cells)))
    columns = ("", "paper", "ours, authors' world", "ours, across worlds", "`tide`")
    return Table("paper-small", "Default RNN and tide", columns, tuple(rows))


if __name__ == "__main__":
    write_all(ROOT)
