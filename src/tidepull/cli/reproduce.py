"""`tidepull reproduce`: run what is missing of the paper's experiments, then report them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial as partial_of
from pathlib import Path
from typing import Any, Literal

import typer

from tidepull.bench.running.executors import usable_cpus
from tidepull.bench.running.runner import estimator, prepare
from tidepull.bench.store.plan import read_plans
from tidepull.bench.store.rows import load_rows
from tidepull.bench.store.store import Store
from tidepull.bench.suites.suite import Suite, find_suite, load_suite, parse_suite
from tidepull.cli.console import INTERRUPTED, err, print_json, say
from tidepull.cli.readiness import PARTIAL, ready
from tidepull.cli.report import announce
from tidepull.cli.select import select
from tidepull.cli.sweep import sweep
from tidepull.errors import ParameterError
from tidepull.files import write_whole
from tidepull.report.build import build_report
from tidepull.report.duration import duration

WHERE: Literal["local", "here"] = "local"


class Target(StrEnum):
    """What of the paper."""

    table = "table"
    curves = "curves"
    sensitivity = "sensitivity"
    criteo = "criteo"
    stationary = "stationary"
    exploration = "exploration"
    all = "all"


SEARCHES = ("paper-grid-noncontextual", "paper-grid-contextual", "paper-exploration")
"""Suites whose best settings are reported on other seeds afterwards."""
_OF_TABLE = SEARCHES[:2]
_SUITES = {
    Target.table: ("paper-table",),
    Target.curves: ("paper-table",),
    Target.stationary: ("paper-stationary",),
    Target.criteo: ("paper-criteo",),
    Target.sensitivity: _OF_TABLE,
    Target.exploration: ("paper-exploration",),
}
_QUICK = {target: (f"quick-{target.value}",) for target in _SUITES} | {Target.curves: ("quick-table",)}


def reproduce(
    target: Target = typer.Argument(Target.all, help="A part of the paper, or all of it."),
    trials: int = typer.Option(None, min=1, help="Trials that are reported (the paper's ten if not given)."),
    quick: bool = typer.Option(False, "--quick", help="Fewer and shorter trials: minutes instead of days."),
    out: Path = typer.Option(None, help="The store (out/reproduce, or out/reproduce-quick)."),
    workers: int = typer.Option(None, min=1, help="Processes (one for each core if not given)."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Count and estimate; run nothing."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Run failed trials again too."),
    partial: bool = typer.Option(False, "--partial", help=PARTIAL),
    json: bool = typer.Option(False, "--json", help="Only JSON on stdout."),
) -> None:
    """Run what is missing of the paper's experiments, then report; the same command continues."""
    directory = out or Path("out") / ("reproduce-quick" if quick else "reproduce")
    names = suites_of(target, quick=quick)
    suites = [_with_trials(name, trials) for name in names]
    searches = () if quick else _searched(target)
    counts = _announce_all(suites, directory, retry_failed=retry_failed, partial=partial or dry_run)
    if dry_run:
        for search in searches:
            say(
                f"then what {search} chooses is run on seeds that it has not seen; how many trials, it decides"
            )
        if json:
            print_json({**counts, "then": [f"{search}-selected" for search in searches]})
        return
    files = [_written(suite, directory) for suite in suites]
    complete = True
    run = partial_of(_run, directory=directory, workers=workers, retry_failed=retry_failed, partial=partial)
    with redirect_stdout(sys.stderr):  # the standard output is for results alone
        for number, (name, file) in enumerate(zip(names, files, strict=True), 1):
            say(f"[bold]{name}[/] ({number} of {len(names)})")
            complete &= run(file)
        for search in searches:
            complete &= _run_selected(search, directory, trials, run)
    with err.status("writing the report", spinner="dots"):
        made = build_report([Store.open(directory)], directory / "report")
    announce(made, json=json)
    if not complete:
        raise typer.Exit(1)


def suites_of(target: Target, *, quick: bool) -> list[str]:
    """The suites that a target needs, the shortest first."""
    table = _QUICK if quick else _SUITES
    targets = table if target is Target.all else (target,)
    return list(dict.fromkeys(name for wanted in targets for name in table[wanted]))


def _searched(target: Target) -> tuple[str, ...]:
    """The searches whose best settings belong to a target."""
    if target is Target.all:
        return SEARCHES
    if target is Target.exploration:
        return SEARCHES[2:]
    return _OF_TABLE if target in (Target.table, Target.curves, Target.sensitivity) else ()


@dataclass(frozen=True, slots=True)
class _Part:
    """A suite of the paper; `text` is there when it is not on its own seeds."""

    name: str
    text: str = ""


def _with_trials(name: str, trials: int | None) -> _Part:
    """The suite itself, or a copy of it on fewer or more seeds; searches keep theirs."""
    if trials is None or name in SEARCHES or name == "quick-sensitivity":
        return _Part(name)
    text, changed = re.subn(
        r'(?m)^seeds = ".*"$', f'seeds = "0-{trials - 1}"', find_suite(name).read_text(), count=1
    )
    if not changed:
        raise ParameterError(f"--trials: the suite {name} does not say its seeds in one line")
    return _Part(name, text)


def _written(part: _Part, directory: Path) -> str:
    """What `sweep` is to run: the name, or the file of the copy."""
    if not part.text:
        return part.name
    path = directory / "suites" / f"{part.name}.toml"
    write_whole(path, part.text.encode())
    return str(path)


def _loaded(part: _Part) -> Suite:
    if not part.text:
        return load_suite(part.name)
    return parse_suite(part.text, where=part.name, folder=find_suite(part.name).parent)


def _announce_all(
    parts: list[_Part], directory: Path, *, retry_failed: bool, partial: bool
) -> dict[str, Any]:
    """What there is to do in all suites together, each trial once, and how long that will take as far as is known.

    What cannot run here is an error before anything starts; with `partial` it is named and left out.
    """
    store = Store(directory)
    specs = tuple({spec.hash: spec for part in parts for spec in _loaded(part).specs}.values())
    work = prepare(Suite("reproduce", "", "", specs), store, retry_failed=retry_failed)
    able = ready(work.todo, partial=partial)
    seconds, unknown = estimator(store, replace(work, todo=able)).seconds_left()
    failed, unable = len(work.failed_before), len(work.todo) - len(able)
    counts = {"total": work.total, "done": work.done, "failed": failed, "unable": unable, "todo": len(able)}
    suites = f"{len(parts)} suites" if len(parts) > 1 else "one suite"
    others = f", {failed:,} failed earlier (--retry-failed runs them again)" if failed else ""
    others += f", {unable:,} cannot run here" if unable else ""
    say(f"{work.total:,} trials in {suites}, {work.done:,} done{others}, {len(able):,} to do, in {directory}")
    if able and seconds:
        more_text = f", and {unknown:,} trials of unknown length" if unknown else ""
        say(f"about {duration(seconds)} of CPU time are left{more_text}")
    found: dict[str, Any] = {"suites": [part.name for part in parts], **counts}
    return found | {"cpu_seconds_left": seconds, "unknown": unknown}


def _run(suite: str, *, directory: Path, workers: int | None, retry_failed: bool, partial: bool) -> bool:
    """Sweep with the time left on display; False when trials failed. Ctrl-C ends the whole command."""
    try:
        sweep(
            suite=suite,
            out=directory,
            workers=workers or usable_cpus(),
            only=[],
            dry_run=False,
            retry_failed=retry_failed,
            partial=partial,
            on=WHERE,
            address=None,  # type: ignore[arg-type]  # there is none
            json=False,
        )
    except typer.Exit as end:
        if end.exit_code == INTERRUPTED:
            raise
        return False
    return True


def _run_selected(name: str, directory: Path, trials: int | None, run: Callable[[str], bool]) -> bool:
    """Report the best settings of a search on seeds that it never saw; a search that is not there is named."""
    store = Store.open(directory)
    if name not in {plan.suite for plan in read_plans(store)}:
        say(f"[yellow]no best settings from {name}[/]: `tidepull reproduce sensitivity` searches for them")
        return True
    loaded = load_rows(store, name)
    lost = len(loaded.missing) + len(loaded.damaged) + len(loaded.failed)
    if lost:
        say(f"[yellow]{name} lacks {lost:,} trials[/]; its best settings are chosen from the others")
    chosen = directory / "suites" / f"{name}-selected.toml"
    select(
        directory=directory,
        suite=name,
        out=chosen,
        seeds=f"0-{(trials or 10) - 1}",
        horizon=None,  # type: ignore[arg-type]  # the problems' usual length
        partial=True,
        json=False,
    )
    return run(str(chosen))
