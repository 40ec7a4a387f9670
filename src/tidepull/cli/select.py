"""`tidepull select DIR`: the best and the default settings of a search, and the suite that reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer

from tidepull._internal.files import write_whole
from tidepull.cli.console import print_json, print_table, say
from tidepull.cli.found_trials import open_source
from tidepull.cli.options import SEEDS, renamed, seeds_of
from tidepull.cli.store import say_gaps
from tidepull.errors import ParameterError, WrongStoreError
from tidepull.experiments.delay import AT_ONCE
from tidepull.experiments.grid import searched_suite, seeds_text, setting_text
from tidepull.experiments.rows import Row, Rows
from tidepull.experiments.selection import BASELINE, Best, Default, Selection, kinds_of
from tidepull.experiments.selection import select as choose
from tidepull.experiments.spec import load_modules
from tidepull.experiments.suite import suite_text
from tidepull.problems import problems
from tidepull.reporting.published import DEFAULTS


def select(
    directory: Path = typer.Argument(
        metavar="DIR", help="The store of a search, or its trials as CSV (`tidepull store archive`)."
    ),
    suite: str = typer.Option(None, help="The suite that searched (needed when the store has several)."),
    out: Path = typer.Option(None, help="The suite of chosen settings (DIR/selected.toml if not given)."),
    _write: str = renamed("--write", "--out"),
    seeds: str = typer.Option("0-9", help=f"For that suite, none that the search has seen: {SEEDS}"),
    horizon: int = typer.Option(None, min=1, help="Rounds in that suite (the problems' usual length)."),
    partial: bool = typer.Option(
        False, "--partial", help="Choose from what is there when trials are missing."
    ),
    json: bool = typer.Option(False, "--json", help="Only JSON on stdout."),
) -> None:
    """Choose the best setting for each problem and one default for all, as the paper does."""
    source = open_source(directory)
    name = source.searched(suite)
    modules = source.modules(name)
    load_modules(modules)
    loaded = source.rows(name)
    for problem, policy in source.unfinished(name):
        say(f"[yellow]nothing chosen[/] {policy} on {problem}: its search is not finished")
    _check(loaded, partial=partial)
    report_seeds = _report_seeds(seeds, loaded.rows)
    selection = choose(loaded.rows, kinds_of(loaded.rows))
    if not selection.best:
        raise WrongStoreError(f"the suite '{name}' has no policy with several settings to choose from")
    text = _suite_text(
        searched_suite(name), selection, loaded.rows, report_seeds, horizon, modules, source.settings(name)
    )
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
    seeds = seeds_of(text)
    seen = sorted({row.seed for row in rows}.intersection(seeds))
    if seen:
        raise ParameterError(f"--seeds: the search has seen {seeds_text(seen)}; report on other seeds")
    return seeds


def _suite_text(
    name: str,
    selection: Selection,
    rows: tuple[Row, ...],
    seeds: tuple[int, ...],
    horizon: int | None,
    modules: tuple[str, ...],
    searched: Mapping[tuple[str, str], int],
) -> str:
    worlds = [
        {
            "id": row.problem_id,
            "name": problem if problem != row.problem_id else None,
            "delay": row.delay if row.delay != AT_ONCE else None,
            "horizon": horizon or problems.entry(row.problem_id).horizon,
            "parameters": row.problem_parameters,
        }
        for problem, row in {row.played: row for row in rows}.items()
    ]
    policies: list[dict[str, Any]] = []
    if any(row.name == BASELINE for row in rows):
        policies.append({"name": BASELINE})
    rounds = {row.played: row.horizon for row in rows}
    policies += [
        _policy(
            f"{b.name}-best", b.policy, [b.problem], b.parameters, _best_of(b, rounds[b.problem], searched)
        )
        for b in selection.best
    ]
    policies += [
        _policy(f"{d.name}-default", d.policy, list(d.scores), d.parameters, _default_of(d))
        for d in selection.default
    ]
    return suite_text(
        f"{name}-selected",
        f"The settings that {name} selected, on seeds that it never saw.",
        seeds=seeds,
        problems=worlds,
        policies=policies,
        modules=modules,
        problem_seed=_fixed_world(rows),
    )


def _fixed_world(rows: tuple[Row, ...]) -> int | None:
    """The `problem_seed` of the search, if it had one: its worlds are then the report's too."""
    return next((row.problem_seed for row in rows if row.problem_seed != row.seed), None)


def _policy(name: str, id: str, on: list[str], parameters: Mapping[str, Any], chosen: str) -> dict[str, Any]:
    return {"name": name, "id": id, "problems": on, "parameters": parameters, "chosen": chosen}


def _best_of(best: Best, rounds: int, searched: Mapping[tuple[str, str], int]) -> str:
    """How a best setting was chosen, for the suite that reports it; `searched` are the settings that halving had."""
    grid = searched.get((best.problem, best.name), best.settings)
    left = f" that successive halving left of {grid}" if grid > best.settings else ""
    few = len(best.seeds) == 1
    trials = (
        f"one trial of each (seed {best.seeds[0]}" if few else f"{len(best.seeds)} trials of each (seeds "
    )
    seeds = "" if few else seeds_text(best.seeds)
    return f"highest mean reward of {best.settings} settings{left}, {trials}{seeds}, {rounds:,} rounds)"


def _default_of(default: Default) -> str:
    return f"highest mean score of {len(default.ranking)} settings over {', '.join(default.scores)}"


def papers_place(default: Default) -> str:
    """How the paper's own default fares in this search; empty where it was not among the settings."""
    paper: Mapping[str, Any] = DEFAULTS.get((default.policy, default.kind), MappingProxyType({}))
    varied = [part.partition("=")[0] for part in default.setting.split(",")]
    text = setting_text({name: paper[name] for name in varied if name in paper})
    if text not in default.ranking:
        return ""
    place = list(default.ranking).index(text) + 1
    score = default.ranking[text]
    return f"the paper's default scores {score:.3f}, place {place} of {len(default.ranking)} ({text})"


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
    print_table(
        "Default setting (highest mean normalised score)",
        ["problems", "policy", "score", "setting"],
        [[f"{len(d.scores)} {d.kind}", d.name, f"{d.score:.3f}", d.setting] for d in selection.default],
        right=(2,),
    )
    for default in selection.default:
        if place := papers_place(default):
            say(f"{default.name}, {default.kind}: {place}")
    for reason in selection.skipped:
        say(f"[yellow]nothing chosen[/] {reason}")
