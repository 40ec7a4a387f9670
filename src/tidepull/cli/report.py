"""`tidepull report DIR`: results as one page, with figures and tables as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from tidepull.cli.console import err, print_json, say
from tidepull.errors import ParameterError
from tidepull.experiments.store import Store
from tidepull.reporting.build import FORMATS, ReportFiles, build_report
from tidepull.reporting.comparison import verdict

_KNOWN = ("svg", "pdf", "png")


def report(
    directories: list[Path] = typer.Argument(metavar="DIR...", help="One or more stores."),
    out: Path = typer.Option(None, help="Where to write (DIR/report if not given)."),
    formats: str = typer.Option(",".join(FORMATS), help=f"Formats of the figures, of {', '.join(_KNOWN)}."),
    json: bool = typer.Option(False, "--json", help="Only JSON on stdout."),
) -> None:
    """Build one self-contained HTML page of a store, with its figures and tables beside it."""
    wanted = [part.strip() for part in formats.split(",") if part.strip()]
    if unknown := [part for part in wanted if part not in _KNOWN]:
        raise ParameterError(f"--formats knows {', '.join(_KNOWN)}, got '{unknown[0]}'")
    stores = [Store.open(directory) for directory in directories]
    with err.status("reading", spinner="dots") as status:
        made = build_report(
            stores,
            out or directories[0] / "report",
            formats=wanted,
            on_study=lambda study: status.update(f"reading {study.suite} {study.problem}"),
        )
    announce(made, json=json)


def announce(made: ReportFiles, *, json: bool, **more: Any) -> None:
    """Say what was found and where it is; `more` stands in the JSON too."""
    gaps = made.frame.gaps
    if json:
        print_json(
            {
                "page": str(made.page),
                "figures": [str(path) for path in made.figures],
                "tables": [str(path) for path in made.tables],
                "trials": made.frame.trials,
                "failed": len(gaps.failed),
                "missing": len(gaps.missing),
                "damaged": len(gaps.damaged),
                "verdicts": [
                    {"suite": s.suite, "problem": s.title, "verdict": verdict(s)} for s in made.frame.studies
                ],
                **more,
            }
        )
        return
    if gaps:
        say(
            f"[yellow]not all trials are here[/]: {len(gaps.failed):,} failed, {len(gaps.missing):,} missing, "
            f"{len(gaps.damaged):,} damaged"
        )
    for study in made.frame.studies:
        print(f"{study.title}: {verdict(study)}")
    say(f"page: [bold]{made.page}[/], {len(made.figures)} figures and {len(made.tables)} tables beside it")
