"""`tidepull search SUITE`: successive halving over a suite's grids; the same command continues."""

from __future__ import annotations

import json as json_format
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import typer

from tidepull.cli.console import INTERRUPTED, print_json, print_table, say
from tidepull.cli.executor import check_address, executor_for
from tidepull.cli.options import KNOWN
from tidepull.cli.readiness import PARTIAL, ready
from tidepull.cli.sweep import announce, run_shown
from tidepull.cli.sweep_display import Display
from tidepull.cli.tune import parse_budget
from tidepull.errors import InputError
from tidepull.experiments.archive import known_rewards
from tidepull.experiments.grid import SearchRule, check_rule, parse_rungs, plan_name, rungs_text
from tidepull.experiments.rows import Census, Plan, entries, plan_of, read_plans, write_plan
from tidepull.experiments.runner import prepare, start, without_known
from tidepull.experiments.search import Agreement, Halving, agreements, world_of
from tidepull.experiments.selection import BASELINE, kind_of_problem
from tidepull.experiments.spec import TrialSpec
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite, load_suite
from tidepull.protocols import Executor


def search(
    suite: str = typer.Argument(
        help="A TOML file with grids, or the name of a suite that comes with tidepull."
    ),
    eta: int = typer.Option(
        None, help="One in so many settings goes on (as the suite says: 4 if it does not)."
    ),
    rungs: str = typer.Option(
        None, metavar="SHARE[:SEEDS],...", help="Shares of the horizon and numbers of seeds: 1/4:1,1/2:1,1."
    ),
    budget: str = typer.Option(None, help="Begin no trial after this time: 90s, 30m, 4h."),
    known: list[Path] = typer.Option([], help=KNOWN),
    out: Path = typer.Option(None, help="The store (out/NAME if not given)."),
    workers: int = typer.Option(None, help="Processes (one for each core if not given)."),
    only: list[str] = typer.Option(
        [], metavar="PATTERN", help="Only trials whose id fits, such as '*/rnlps/*'; may be given again."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what each rung asks for; run nothing."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Run failed trials again too."),
    partial: bool = typer.Option(False, "--partial", help=PARTIAL),
    on: Literal["local", "here", "ray"] = typer.Option(
        "local", help="Local processes, this process, or a Ray cluster."
    ),
    address: str = typer.Option(None, help="Of the Ray cluster (the one that runs on this machine)."),
    json: bool = typer.Option(False, "--json", help="Only a JSON summary on stdout."),
) -> None:
    """Search a suite's grids by successive halving: short trials for all settings, long ones for the best."""
    check_address(on, address)
    until = time.monotonic() + parse_budget(budget) if budget else float("inf")
    loaded = _fitting(load_suite(suite), only)
    rule = _rule(loaded, eta, rungs)
    specs = ready(loaded.specs, partial=partial)
    loaded = replace(loaded, specs=specs)
    halving = Halving(loaded, rule, _kinds(specs))
    store = Store(out or Path("out") / loaded.name)
    results = _Results(store, known_rewards(known))
    if dry_run:
        _describe(halving, results, json=json)
        return
    Store.create(store.directory)
    with executor_for(on, workers, address, loaded.specs[0].modules) as (executor, width):
        climb = _Climb(loaded, halving, store, results, executor, width, until, retry_failed, quiet=json)
        climb.run()
    _tell(climb, loaded.name, json=json)


@dataclass(slots=True)
class _Results:
    """Rewards from the store and from files."""

    store: Store
    known: Mapping[str, float]

    def rewards(self) -> dict[str, float | None]:
        """From every hash that has a result to its reward; None where the trial failed."""
        found: dict[str, float | None] = {record["hash"]: None for record in self.store.failures()}
        found.update(self.known)
        for hash, _, text in entries(self.store, Census()):
            found[hash] = json_format.loads(text)["totals"]["reward"]
        return found


@dataclass(slots=True)
class _Climb:
    """Rung after rung, as far as the budget goes."""

    suite: Suite
    halving: Halving
    store: Store
    results: _Results
    executor: Executor
    width: int
    until: float
    retry_failed: bool
    quiet: bool
    lines: list[dict[str, Any]] = field(default_factory=list)
    cpu_seconds: float = 0.0
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Every rung was played to its end."""
        return len(self.lines) == len(self.halving.rule.rungs) and not any(
            line["left"] for line in self.lines
        )

    @property
    def failed(self) -> int:
        """Trials that failed, now or earlier."""
        return sum(line["failed"] for line in self.lines)

    def run(self) -> None:
        """Play what is missing; stops after a rung that could not be completed."""
        for number in range(len(self.halving.rule.rungs)):
            asked = self.halving.asked(number, self.results.rewards())
            self._play(number, asked.specs)
            if self.interrupted or self.lines[-1]["left"]:
                return

    def _play(self, number: int, specs: tuple[TrialSpec, ...]) -> None:
        name = plan_name(self.suite.name, number, len(self.halving.rule.rungs))
        part = Suite(name, "", self.suite.text, specs)
        work = without_known(prepare(part, self.store, retry_failed=self.retry_failed), self.results.known)
        announce(work, name, self.store.directory)
        before = next((plan for plan in read_plans(self.store) if plan.suite == name), None)
        progress = start(part, self.store, work)
        write_plan(self.store, _joined(plan_of(name, self.suite.text, specs), before))
        if work.todo:
            self.interrupted = run_shown(
                work, self.store, self.executor, progress, Display(progress, self.width),
                quiet=self.quiet, until=self.until,
            )  # fmt: skip
        self.cpu_seconds += progress.cpu_seconds
        self.lines.append(
            {
                "rung": name,
                "total": work.total,
                "done": work.done + progress.done,
                "ran": progress.done,
                "failed": progress.failed + len(work.failed_before),
                "left": progress.left,
            }
        )


def _fitting(suite: Suite, only: Sequence[str]) -> Suite:
    """What is searched, and random arms beside it, which scores are measured by."""
    if not only:
        return suite
    fit = [spec for spec in suite.specs if any(fnmatchcase(spec.id, pattern) for pattern in only)]
    if not fit:
        raise InputError(f"no trial of {suite.name} fits {' '.join(only)}; ids look like {suite.specs[0].id}")
    chosen = {spec.id for spec in fit}
    searched = {(world_of(spec), spec.seed) for spec in fit}
    return replace(
        suite,
        specs=tuple(
            spec
            for spec in suite.specs
            if spec.id in chosen or (spec.name == BASELINE and (world_of(spec), spec.seed) in searched)
        ),
    )


def _rule(suite: Suite, eta: int | None, rungs: str | None) -> SearchRule:
    rule = suite.search if eta is None else replace(suite.search, eta=eta)
    rule = rule if rungs is None else replace(rule, rungs=parse_rungs(rungs))
    return check_rule(rule, len({spec.seed for spec in suite.specs}))


def _kinds(specs: Sequence[TrialSpec]) -> dict[str, str]:
    examples = {world_of(spec): spec for spec in specs}
    return {
        world: kind_of_problem(
            (spec.problem, spec.problem_parameters),
            seed=spec.seed if spec.problem_seed is None else spec.problem_seed,
        )
        for world, spec in examples.items()
    }


def _joined(plan: Plan, before: Plan | None) -> Plan:
    """What was asked for earlier of policies and problems that are not searched now stays asked for; so do random arms,
    which every search plays beside its own policies, each on as many seeds as its rule says."""
    if before is None:
        return plan
    now = {(trial.problem, trial.delay, trial.name) for trial in plan.trials}
    there = {trial.hash for trial in plan.trials}
    stays = tuple(
        t
        for t in before.trials
        if (t.problem, t.delay, t.name) not in now or (t.name == BASELINE and t.hash not in there)
    )
    return replace(plan, trials=(*stays, *plan.trials))


def _describe(halving: Halving, results: _Results, *, json: bool) -> None:
    rewards = results.rewards()
    lines: list[dict[str, Any]] = []
    for number, rung in enumerate(halving.rule.rungs):
        asked = halving.asked(number, rewards)
        todo = sum(spec.hash not in rewards for spec in asked.specs)
        share = rungs_text([rung]).partition(":")[0]
        lines.append(
            {"rung": number + 1, "share": share, "trials": len(asked.specs), "todo": todo}
            | {"waiting": list(asked.waiting)}
        )
    if json:
        print_json(lines)
        return
    for line in lines:
        waits = f"; {', '.join(line['waiting'])} when the rung before is played" if line["waiting"] else ""
        say(
            f"rung {line['rung']}, {line['share']} of the horizon: {line['trials']:,} trials, "
            f"{line['todo']:,} to do{waits}"
        )


def _tell(climb: _Climb, suite: str, *, json: bool) -> None:
    found = agreements(climb.halving.standings(climb.results.rewards()))
    if json:
        print_json(
            {"suite": suite, "out": str(climb.store.directory), "rule": rungs_text(climb.halving.rule.rungs)}
            | {"eta": climb.halving.rule.eta, "complete": climb.complete, "interrupted": climb.interrupted}
            | {"rungs": climb.lines, "cpu_hours": round(climb.cpu_seconds / 3600, 4)}
            | {"agreement": [_agreement_line(one) for one in found]}
        )
    else:
        _show_agreement(found)
        if climb.complete:
            say(f"next: tidepull select {climb.store.directory} --suite {suite}")
        elif not climb.interrupted:
            left = climb.lines[-1]["left"]
            say(f"the budget is used up: {left:,} trials of this rung are left; the same command continues")
    if climb.interrupted or climb.failed:
        raise typer.Exit(INTERRUPTED if climb.interrupted else 1)


def _agreement_line(one: Agreement) -> dict[str, Any]:
    return {
        "problem": one.problem,
        "policy": one.name,
        "rungs": [one.first + 1, one.second + 1],
        "settings": one.settings,
        "correlation": round(one.correlation, 4),
    }


def _show_agreement(found: Sequence[Agreement]) -> None:
    if found:
        print_table(
            "How short trials rank long ones (Spearman's correlation over settings that played both)",
            ["problem", "policy", "rungs", "settings", "correlation"],
            [
                [
                    a.problem,
                    a.name,
                    f"{a.first + 1} and {a.second + 1}",
                    str(a.settings),
                    f"{a.correlation:.2f}",
                ]
                for a in found
            ],
            right=(3, 4),
        )
