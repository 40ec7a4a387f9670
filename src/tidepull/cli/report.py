"""`tidepull report DIR`: results as one page, with figures and tables as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from tidepull.cli.console import err, print_json, say
from tidepull.errors import ParameterError, WrongStoreError
from tidepull.experiments.archive import is_archive
from tidepull.experiments.store import Store
from tidepull.paper.averages import FILE, read_averages
from tidepull.paper.combine import combined
from tidepull.paper.readme_table import update_table
from tidepull.paper.results_page import write_results
from tidepull.reporting.build import FORMATS, ReportFiles, build_report
from tidepull.reporting.comparison import verdict
from tidepull.reporting.frames import archived_frame
from tidepull.reporting.traces import read_curves

_KNOWN = ("svg", "pdf", "png")


def report(
    directories: list[Path] = typer.Argument(None, metavar="[DIR...]", help="One or more stores."),
    kept: Path = typer.Option(
        None,
        "--from",
        help="No store, but CSV that `tidepull store archive` kept: rebuilds results.md (in docs).",
    ),
    out: Path = typer.Option(None, help="Where to write (DIR/report if not given)."),
    formats: str = typer.Option(",".join(FORMATS), help=f"Formats of the figures, of {', '.join(_KNOWN)}."),
    docs: Path = typer.Option(None, help="Also write results.md and its figures into this folder."),
    readme: Path = typer.Option(None, help="Also put the table between the marks of this Markdown file."),
    json: bool = typer.Option(False, "--json", help="Only JSON on stdout."),
) -> None:
    """Build one self-contained HTML page of a store, with its figures and tables beside it."""
    if kept is not None:
        if directories:
            raise ParameterError(f"--from {kept} needs no store, got {directories[0]}; give one of them")
        _rebuild(kept, docs or Path("docs"), readme, json=json)
        return
    if not directories:
        raise ParameterError("name a store, or CSV that was kept of one: --from results")
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
    if docs is not None:
        command = f"tidepull report {' '.join(str(directory) for directory in directories)} --docs {docs}"
        say(f"results: [bold]{write_results(made.frame, docs, command=command)}[/]")
    if readme is not None:
        update_table(readme, combined(made.frame.studies), made.frame.suites)


def _rebuild(kept: Path, docs: Path, readme: Path | None, *, json: bool) -> None:
    """The page of results from what was kept, without any store."""
    folder = next((one for one in (kept, kept / "trials") if is_archive(one)), None)
    if folder is None:
        raise WrongStoreError(f"{kept} holds no trials that were kept; `tidepull store archive` writes them")
    frame = archived_frame(folder)
    command = f"tidepull report --from {kept} --docs {docs}"
    averages = read_averages(kept / FILE)
    page = write_results(frame, docs, command=command, known=read_curves(folder), averages=averages)
    if readme is not None:
        update_table(readme, combined(frame.studies), frame.suites, averages)
    if json:
        print_json({"page": str(page), "trials": frame.trials, "missing": len(frame.gaps.missing)})
    else:
        say(f"results: [bold]{page}[/], from {frame.trials:,} trials")


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
