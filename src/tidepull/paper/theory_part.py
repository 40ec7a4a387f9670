"""The theorem's part of a reproduction: the promises of the proof, measured once and kept beside the trials."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tidepull
from tidepull._internal.files import write_whole
from tidepull.paper.theory.simulate import configurations, simulate
from tidepull.paper.theory.tables import STEPS, simulation_report, worst_steps
from tidepull.reporting.tables import Cell, Table, number

FILE = "theory.json"
FULL = {"horizon": 2048, "seeds": 100, "seed": 0}
QUICK = {"horizon": 256, "seeds": 20, "seed": 0}


def measure(
    directory: Path, size: dict[str, int], *, on_round: Callable[[int], None] | None = None
) -> list[dict[str, Any]]:
    """Simulate every configuration, unless the file in `directory` has it already with this size and version."""
    wanted = {**size, "version": tidepull.__version__}
    kept = _kept(directory)
    if kept is not None and kept["size"] == wanted:
        reports: list[dict[str, Any]] = kept["reports"]
        return reports
    cases = configurations(**size)
    reports = [simulation_report(simulate(s, scenario, on_round=on_round)) for s, scenario in cases]
    write_whole(directory / FILE, json.dumps({"size": wanted, "reports": reports}).encode())
    return reports


def measured(directory: Path) -> list[dict[str, Any]]:
    """What was measured so far; empty where nothing was."""
    kept = _kept(directory)
    return [] if kept is None else list(kept["reports"])


def theory_table(reports: Sequence[dict[str, Any]]) -> Table:
    """One line for each configuration."""
    rows = tuple(
        (
            Cell(", ".join((r["adversary"], r["noise"], r["error"], r["schedule"]))),
            Cell(f"{r['d']}, {r['k']}, {r['epsilon']:g}, {r['sigma']:g}"),
            number(r["regret"]["worst"]),
            number(r["bound"], 0),
            number(r["potential"]["worst"] / r["potential"]["limit"] * 100, 0, unit="%"),
            Cell("yes" if r["promises"]["kept"] else "NO", best=not r["promises"]["kept"]),
        )
        for r in reports
    )
    columns = (
        "contexts, noise, error",
        "d, K, ε, σ",
        "worst regret",
        "the bound",
        "Σs of its limit",
        "every promise kept",
    )
    kept = sum(r["promises"]["kept"] for r in reports)
    each = f"{reports[0]['seeds']} trials of {reports[0]['horizon']:,} rounds each" if reports else ""
    title = f"{kept} of {len(reports)} configurations keep every promise of the proof ({each})"
    return Table("theory", title, columns, rows)


def steps_table(reports: Sequence[dict[str, Any]]) -> Table:
    """Every step of the proof: the worst of all configurations."""
    rows = tuple(tuple(Cell(text) for text in row) for row in worst_steps(reports))
    return Table("proof", "The steps of the proof, the worst of all configurations", STEPS, rows)


def _kept(directory: Path) -> dict[str, Any] | None:
    path = directory / FILE
    return json.loads(path.read_text()) if path.is_file() else None
