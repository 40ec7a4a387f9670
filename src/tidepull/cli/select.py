"""`tidepull select DIR`: the best and the default settings of a search, and the suite that reports
them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from tidepull._internal.files import write_whole
from tidepull.cli import options
from tidepull.cli.console import print_json, print_table, say
from tidepull.cli.store import say_gaps
from tidepull.errors import ParameterError, WrongStoreError
from tidepull.experiments.grid import searched_suite, seeds_text
from tidepull.experiments.rows import Row, Rows
from tidepull.experiments.selection import Selection, kinds_of, open_search, selected_suite
from tidepull.experiments.selection import select as choose
from tidepull.experiments.spec import load_modules
from tidepull.paper.reproduce import papers_place


def select(
    directory: Annotated[
        Path,
        Argument(
            metavar="DIR",
            help="Store of a search, or its trials as CSV (`tidepull store archive`).",
        ),
    ],
    suite: Annotated[
        str | None, Option(help="Suite that searched. Default: the only one of the store.")
    ] = None,
    out: Annotated[Path | None, Option(help="Suite to write. Default: DIR/selected.toml.")] = None,
    seeds: Annotated[
        str, Option(help=f"Seeds of that suite, none of which the search used: {options.SEEDS}")
    ] = "0-9",
    horizon: Annotated[
        int | None, Option(min=1, help="Rounds in that suite. Default: the problems' usual length.")
    ] = None,
    partial: Annotated[
        bool, Option("--partial", help="Choose even if trials are missing.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Choose the best setting for each problem and one default for all, as the paper does."""
    source = open_search(directory)
    name = source.suite_name(suite)
    modules = source.modules(name)
    load_modules(modules)
    loaded = source.rows(name)
    unfinished = source.unfinished(name)
    for problem, policy in unfinished:
        say(f"[yellow]nothing chosen[/] {policy} on {problem}: its search is not finished")
    _check(loaded, partial=partial)
    report_seeds = _report_seeds(seeds, loaded.rows)
    selection = choose(loaded.rows, kinds_of(loaded.rows), unfinished)
    if not selection.best:
        raise WrongStoreError(
            f"the suite '{name}' has no policy with several settings to choose from"
        )
    chosen = searched_suite(name), selection, loaded.rows, report_seeds, horizon
    text = selected_suite(*chosen, modules, source.settings(name))
    path = out or directory / "selected.toml"
    write_whole(path, text.encode())
    if json:
        gaps = {"missing": loaded.missing, "damaged": loaded.damaged, "failed": loaded.failed}
        print_json({**asdict(selection), **gaps, "suite": str(path)})
        return
    _show(selection)
    say_gaps(loaded)
    say(f"next: tidepull sweep {path}")


def _check(loaded: Rows, *, partial: bool) -> None:
    gaps = (*loaded.missing, *loaded.damaged, *loaded.failed)
    if gaps and not partial:
        say_gaps(loaded)
        raise WrongStoreError(
            f"{len(gaps):,} trials are not there (such as {gaps[0]}): "
            "sweep again, or choose from the rest with --partial"
        )


def _report_seeds(text: str, rows: tuple[Row, ...]) -> tuple[int, ...]:
    seeds = options.seeds_of(text)
    seen = sorted({row.seed for row in rows}.intersection(seeds))
    if seen:
        raise ParameterError(
            f"--seeds: the search has seen {seeds_text(seen)}; report on other seeds"
        )
    return seeds


def _show(selection: Selection) -> None:
    print_table(
        "Best setting of each problem (highest mean cumulative reward)",
        ["problem", "policy", "settings", "trials", "mean reward", "setting"],
        [
            [b.problem, b.name, str(b.settings), str(len(b.seeds)), f"{b.reward:.1f}", b.setting]
            for b in selection.best
        ],
        right=(2, 3, 4),
    )
    rows = [
        [f"{len(d.scores)} {d.kind}", d.name, f"{d.score:.3f}", d.setting]
        for d in selection.default
    ]
    title = "Default setting (highest mean normalised score)"
    print_table(title, ["problems", "policy", "score", "setting"], rows, right=(2,))
    for default in selection.default:
        if place := papers_place(default):
            say(f"{default.name}, {default.kind}: {place}")
    for reason in selection.skipped:
        say(f"[yellow]nothing chosen[/] {reason}")
