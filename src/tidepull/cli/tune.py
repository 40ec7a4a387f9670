"""`tidepull tune PROBLEM POLICY`: search its settings, then hold the best against the default on
fresh seeds."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from typer import Argument, Exit, Option

from tidepull._internal.files import write_whole
from tidepull.cli import options
from tidepull.cli.console import INTERRUPTED, print_json, print_table, say
from tidepull.cli.trials import ProgressDisplay, check_address, executor_for, ready, shown
from tidepull.errors import ParameterError, TidepullError
from tidepull.experiments.delay import AT_ONCE, delay_slug, delay_text, delay_words
from tidepull.experiments.grid import seeds_text
from tidepull.experiments.rows import compact
from tidepull.experiments.runner import prepare, start, sweep
from tidepull.experiments.spec import TrialSpec, load_modules
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite, suite_text
from tidepull.experiments.tune import (
    Evaluation,
    Outcome,
    SearchTask,
    Space,
    declared_space,
    ranges_from_text,
    require_optuna,
    search,
)
from tidepull.policies import policies
from tidepull.problems import problems
from tidepull.protocols import Executor
from tidepull.reporting.stats import summarise
from tidepull.reporting.tables import duration, number

_SEARCH_SHARE = 0.8
"""Of the budget; the rest is for the report on fresh seeds."""


def tune(
    problem: str = Argument(help="Id of a problem."),
    policy: str = Argument(help="Id of a policy."),
    budget: str = Option("30m", help="Time for search and report: 90s, 30m, 2h."),
    horizon: int = Option(
        None, min=1, help="Rounds of a full trial. Default: the problem's usual length."
    ),
    suite: str = Option(
        None, help="Suite whose grid declares the ranges. Default: the paper's grids."
    ),
    delay: str = options.DELAY,
    range_: list[str] = Option(
        [], "--range", metavar="NAME=LOW,HIGH", help="Range of a parameter; may be repeated."
    ),
    search_seeds: str = Option("2000-2002", help=f"Seeds of the search: {options.SEEDS}"),
    report_seeds: str = Option("0-9", help="Seeds of the report, which the search does not use."),
    seed: int = Option(0, min=0, help="Seed of the search itself."),
    module: list[str] = Option(
        [], help="Module or .py file that registers policies; may be repeated."
    ),
    out: Path = Option(None, help="Store to write to. Default: out/tune-PROBLEM-POLICY."),
    workers: options.Workers = None,
    on: options.On = "local",
    address: options.Address = None,
    json: bool = options.JSON,
) -> None:
    """Search a policy's settings with Optuna; interrupt at any time, the same command continues."""
    check_address(on, address)
    modules = tuple(str(Path(name).resolve()) if name.endswith(".py") else name for name in module)
    load_modules(modules)
    policies.entry(policy)
    judging = options.seeds_of(search_seeds, "--search-seeds")
    reporting = options.seeds_of(report_seeds, "--report-seeds")
    if shared := set(judging) & set(reporting):
        raise ParameterError(
            f"--report-seeds: the search judges on {seeds_text(shared)}; report on other seeds"
        )
    declared = Space(ranges_from_text(range_)) if range_ else declared_space(policy, problem, suite)
    space = SearchTask(
        problem=problem,
        policy=policy,
        ranges=declared.ranges,
        fixed=declared.fixed,
        horizon=horizon or problems.entry(problem).horizon,
        delay=delay_text(delay),
        seeds=judging,
        seed=seed,
        modules=modules,
    )
    seconds = options.parse_budget(budget)
    require_optuna()
    ready(space.specs(space.fixed, space.horizon))
    place = "-".join(part for part in ("tune", problem, policy, delay_slug(space.delay)) if part)
    store = Store.create(out or Path("out") / place)
    try:
        with executor_for(on, workers, address, modules) as (executor, width):
            runs = _Runs(store, executor, width, quiet=json)
            limit = _SEARCH_SHARE * seconds * width
            shown_best = partial(_show_best, limit=limit)
            outcome = search(space, runs.search, seconds=limit, on_bracket=shown_best)
            if outcome.best is None:
                raise TidepullError(
                    f"every setting failed; tracebacks are in {store.directory / 'failed'}"
                )
            rewards = runs.report(space, outcome.best, reporting)
    except KeyboardInterrupt:
        say("stopped; the same command continues")
        raise Exit(INTERRUPTED) from None
    compact(store)
    path = store.directory / "tuned.toml"
    write_whole(path, _suite(space, outcome.best, reporting).encode())
    _show(space, outcome, rewards, path, json=json)


class _Runs:
    """Trials of the search and of the report, run once and remembered by the store."""

    def __init__(self, store: Store, executor: Executor, width: int, *, quiet: bool) -> None:
        self._store, self._executor, self._width, self._quiet = store, executor, width, quiet
        self._asked: dict[str, dict[str, TrialSpec]] = {"tune-search": {}, "tune-report": {}}

    def search(self, specs: Sequence[TrialSpec]) -> Mapping[str, tuple[float, float]]:
        return self._run("tune-search", specs)

    def report(
        self, space: SearchTask, best: Evaluation, seeds: Sequence[int]
    ) -> dict[str, list[float]]:
        """Rewards of the tuned and of the default setting on the report seeds."""
        specs = [
            replace(spec, name=f"{space.policy}-{which}", setting="")
            for which, parameters in (("tuned", best.parameters), ("default", {}))
            for spec in replace(space, seeds=tuple(seeds)).specs(parameters, space.horizon)
        ]
        known = self._run("tune-report", specs)
        lost = [spec.id for spec in specs if spec.hash not in known]
        if lost:
            raise TidepullError(
                f"{lost[0]} failed; its traceback is in {self._store.directory / 'failed'}"
            )
        half = len(specs) // 2
        rewards = [known[spec.hash][0] for spec in specs]
        return {"tuned": rewards[:half], "default": rewards[half:]}

    def _run(self, name: str, specs: Sequence[TrialSpec]) -> dict[str, tuple[float, float]]:
        asked = self._asked[name]
        asked.update({f"{spec.id} {spec.hash}": spec for spec in specs})
        suite = Suite(name, "", "", tuple(asked.values()))
        work = prepare(suite, self._store)
        progress = start(suite, self._store, work)
        display = ProgressDisplay(progress, self._width)
        with redirect_stdout(sys.stderr), shown(display, quiet=self._quiet):
            for _ in sweep(work, self._store, self._executor, progress):
                display.tick()
        failed = {record["hash"] for record in self._store.failures()}
        hashes = (spec.hash for spec in specs if spec.hash not in failed)
        manifests = {hash: self._store.manifest(hash) for hash in hashes}
        return {hash: (m["totals"]["reward"], m["seconds"]) for hash, m in manifests.items()}


def _show_best(outcome: Outcome, limit: float) -> None:
    best = outcome.best
    if best is not None:
        what = f"best so far {best.reward:.4f} reward per round over {best.horizon:,} rounds"
        spent = f"{duration(outcome.seconds)} of {duration(limit)} of trials"
        say(f"{outcome.settings:,} settings tried, {spent}, {what}")


def _suite(space: SearchTask, best: Evaluation, seeds: Sequence[int]) -> str:
    late = space.delay if space.delay != AT_ONCE else None
    tuned = {"name": f"{space.policy}-tuned", "id": space.policy, "parameters": best.parameters}
    return suite_text(
        f"tuned-{space.problem}-{space.policy}",
        f"{space.policy} as tuned for {space.problem} on seeds {seeds_text(space.seeds)}, beside "
        "its default.",
        seeds=seeds,
        problems=[{"id": space.problem, "horizon": space.horizon, "delay": late}],
        policies=[tuned, {"name": f"{space.policy}-default", "id": space.policy}],
        modules=space.modules,
    )


def _show(
    space: SearchTask, outcome: Outcome, rewards: dict[str, list[float]], path: Path, *, json: bool
) -> None:
    best = outcome.best
    assert best is not None
    gain = summarise(np.array(rewards["tuned"]) - np.array(rewards["default"]))
    if json:
        tried = {"parameters": best.parameters, "settings": outcome.settings, **rewards}
        search = {"rounds_judged": best.horizon, "search_seconds": outcome.seconds}
        print_json({**tried, **search, "failed": outcome.failed, "suite": path})
        return
    sums = {name: summarise(np.array(values)) for name, values in rewards.items()}
    rows = [[name, number(s.mean).text, number(s.std).text] for name, s in sums.items()]
    late = f", {delay_words(space.delay)}" if space.delay != AT_ONCE else ""
    title = f"{space.policy} on {space.problem}{late}, unseen seeds"
    print_table(title, ["setting", "mean reward", "std"], rows, right=(1, 2))
    low, high = gain.mean - gain.half_width, gain.mean + gain.half_width
    sure = " (a single seed)"
    if gain.trials > 1:
        sure = f" (95% interval {low:+.1f} to {high:+.1f}, same seeds)"
    say(f"tuned minus default: {gain.mean:+.1f}{sure}")
    say(", ".join(f"{name} = {value}" for name, value in best.parameters.items()))
    if best.horizon < space.horizon:
        say(
            f"[yellow]chosen on {best.horizon:,} of {space.horizon:,} rounds[/]: the budget ended "
            "before any setting had played them all; a larger one goes on from here"
        )
    if outcome.failed:
        say(f"[yellow]{outcome.failed} settings failed[/]")
    say(f"next: tidepull sweep {path}")
