"""`tidepull search SUITE`: successive halving over a suite's grids; the same command continues."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from tidepull.cli import options
from tidepull.cli.console import INTERRUPTED, print_json, print_table, say
from tidepull.cli.sweep import announce
from tidepull.cli.trials import check_address, executor_for, ready, run_work
from tidepull.experiments.archive import known_rewards
from tidepull.experiments.grid import rungs_text
from tidepull.experiments.halving import HalvingRun, halving_of, matching_suite, search_rule
from tidepull.experiments.runner import Progress, Work, prepare, start, without_known
from tidepull.experiments.search import Agreement, agreements
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite, load_suite

_RUNGS = "Shares of the horizon and numbers of seeds, such as 1/4:1,1/2:1,1. Default: the suite's."


def search(
    suite: Annotated[str, Argument(help="TOML file with grids, or name of a suite of tidepull.")],
    eta: Annotated[
        int | None,
        Option(help="Keep 1/N of the settings at each rung. Default: the suite's value, else 4."),
    ] = None,
    rungs: Annotated[str | None, Option(metavar="SHARE[:SEEDS],...", help=_RUNGS)] = None,
    budget: Annotated[
        str | None, Option(help="Start no trial after this time: 90s, 30m, 4h. Default: none.")
    ] = None,
    known: options.Known = None,
    out: options.Out = None,
    workers: options.Workers = None,
    only: options.Only = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Count the trials of each rung; run nothing.")
    ] = False,
    retry_failed: options.RetryFailed = False,
    partial: options.Partial = False,
    on: options.On = "local",
    address: options.Address = None,
    json: options.Json = False,
) -> None:
    """Search a suite's grids by successive halving: short trials for all settings, long ones for
    the best."""
    check_address(on, address)
    until = time.monotonic() + options.parse_budget(budget) if budget else float("inf")
    loaded = matching_suite(load_suite(suite), only or ())
    rule = search_rule(loaded, eta, rungs)
    loaded = replace(loaded, specs=ready(loaded.specs, partial=partial))
    store = Store(out or Path("out") / loaded.name)
    run = HalvingRun(loaded, halving_of(loaded, rule), store, known_rewards(known or ()))
    if dry_run:
        _describe(run, json=json)
        return
    Store.create(store.directory)
    with executor_for(on, workers, address, loaded.specs[0].modules) as (executor, width):

        def begin(rung: Suite) -> tuple[Work, Progress]:
            work = without_known(prepare(rung, store, retry_failed=retry_failed), run.known)
            announce(work, rung.name, store.directory)
            return work, start(rung, store, work)

        def play(work: Work, progress: Progress) -> bool:
            return bool(work.todo) and run_work(
                work, store, executor, progress, width, quiet=json, until=until
            )

        run.run(begin, play)
    _report(run, loaded.name, json=json)


def _describe(run: HalvingRun, *, json: bool) -> None:
    lines = run.describe()
    if json:
        print_json(lines)
        return
    for line in lines:
        waiting = ", ".join(line["waiting"])
        say(
            f"rung {line['rung']}, {line['share']} of the horizon: {line['trials']:,} trials, "
            f"{line['todo']:,} to do"
            + (f"; {waiting} when the rung before is played" if waiting else "")
        )


def _report(run: HalvingRun, suite: str, *, json: bool) -> None:
    ranks = agreements(run.halving.standings(run.rewards()))
    if json:
        rule = run.halving.rule
        print_json(
            {
                "suite": suite,
                "out": run.store.directory,
                "rule": rungs_text(rule.rungs),
                "eta": rule.eta,
                "complete": run.complete,
                "interrupted": run.interrupted,
                "rungs": run.lines,
                "cpu_hours": round(run.cpu_seconds / 3600, 4),
                "agreement": [_agreement_line(one) for one in ranks],
            }
        )
    else:
        _show_agreement(ranks)
        if run.complete:
            say(f"next: tidepull select {run.store.directory} --suite {suite}")
        elif not run.interrupted:
            left = run.lines[-1]["left"]
            say(
                f"the budget is used up: {left:,} trials of this rung are left; the same command "
                "continues"
            )
    if run.interrupted or run.failed:
        raise Exit(INTERRUPTED if run.interrupted else 1)


def _agreement_line(one: Agreement) -> dict[str, Any]:
    return {
        "problem": one.problem,
        "policy": one.name,
        "rungs": [one.first + 1, one.second + 1],
        "settings": one.settings,
        "correlation": round(one.correlation, 4),
    }


def _show_agreement(ranks: Sequence[Agreement]) -> None:
    if ranks:
        print_table(
            "How short trials rank long ones (Spearman's correlation over settings that played "
            "both)",
            ["problem", "policy", "rungs", "settings", "correlation"],
            [
                [
                    a.problem,
                    a.name,
                    f"{a.first + 1} and {a.second + 1}",
                    str(a.settings),
                    f"{a.correlation:.2f}",
                ]
                for a in ranks
            ],
            right=(3, 4),
        )
