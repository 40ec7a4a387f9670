"""Tidy rows: one for each trial and name, with its totals; all that selection and analysis start from."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidepull.errors import WrongStoreError
from tidepull.experiments.delay import AT_ONCE, delay_slug
from tidepull.experiments.store.index import Census, entries
from tidepull.experiments.store.plan import Plan, Planned, read_plans
from tidepull.experiments.store.store import Store
from tidepull.experiments.suites.rungs import searched_suite
from tidepull.experiments.suites.spec import canonical

_SHOWN = (
    "problem", "problem_parameters", "policy", "policy_parameters", "horizon", "seed", "problem_seed", "delay",
)  # fmt: skip
"""What of a spec a row shows in fields of its own."""


@dataclass(frozen=True, slots=True)
class Row:
    """One trial under one name. `remark` is the problem's own ("synthetic Criteo"); totals are exact.

    `delay` is how late rewards came ("0", "8", "geometric:20:0.05").
    `code` is what else the result hangs on: your own modules, data files, and tidepull's versions of results.
    """

    suite: str
    hash: str
    problem: str
    name: str
    setting: str
    problem_id: str
    problem_parameters: Mapping[str, Any]
    policy: str
    policy_parameters: Mapping[str, Any]
    horizon: int
    seed: int
    problem_seed: int
    reward: float
    regret: float
    optimal: float
    seconds: float
    cpu_seconds: float
    machine: str
    remark: str
    diagnostics: Mapping[str, Any]
    versions: Mapping[str, str]
    code: str = ""
    delay: str = AT_ONCE

    @property
    def played(self) -> str:
        """The problem's name, with the delay where there is one; no other world of the suite has it."""
        return "-".join(part for part in (self.problem, delay_slug(self.delay)) if part)


@dataclass(frozen=True, slots=True)
class Rows:
    """What a store holds of its suites: rows, ids asked for but not there, damaged ids with their faults.

    `lost` are id and hash of all that is missing, damaged or failed.
    """

    rows: tuple[Row, ...]
    missing: tuple[str, ...]
    damaged: Mapping[str, str]
    failed: Mapping[str, str]
    lost: tuple[tuple[str, str], ...] = ()


def load_rows(store: Store, suite: str | None = None) -> Rows:
    """Rows of one suite, or of all; trials that no suite of the store asks for come under the suite ''."""
    plans = every = read_plans(store)
    if suite is not None:
        plans = [plan for plan in every if plan.suite == suite]
        if not plans:
            known = ", ".join(plan.suite for plan in every) or "none"
            raise WrongStoreError(f"the store {store.directory} has no suite '{suite}'; it has: {known}")
    census = Census()
    found = {hash: json.loads(text) for hash, _, text in entries(store, census)}
    errors = {record["hash"]: str(record["error"]).strip().splitlines()[-1] for record in store.failures()}
    asked = [(plan, trial) for plan in plans for trial in asked_trials(plan, every, found)]
    rows = [_row(plan.suite, trial, found[trial.hash]) for plan, trial in asked if trial.hash in found]
    if suite is None:
        rows.extend(_unplanned(found, plans))
    lost = [trial for _, trial in asked if trial.hash not in found]
    return Rows(
        rows=tuple(rows),
        missing=tuple(t.id for t in lost if t.hash not in census.damaged and t.hash not in errors),
        damaged={trial.id: census.damaged[trial.hash] for trial in lost if trial.hash in census.damaged},
        failed={trial.id: errors[trial.hash] for trial in lost if trial.hash in errors},
        lost=tuple((trial.id, trial.hash) for trial in lost),
    )


def asked_trials(plan: Plan, every: Sequence[Plan], found: Container[str]) -> list[Planned]:
    """A plan's trials. Of a grid that was searched by halving and not played in full, they are the rungs' alone: what
    is not there was left out by design."""
    rungs = {
        (trial.problem, trial.delay, trial.name)
        for other in every
        if other.suite != plan.suite and searched_suite(other.suite) == plan.suite
        for trial in other.trials
    }
    lacking = {(t.problem, t.delay, t.name) for t in plan.trials if t.hash not in found}
    return [t for t in plan.trials if (t.problem, t.delay, t.name) not in rungs & lacking]


def _unplanned(found: Mapping[str, Any], plans: list[Plan]) -> Iterator[Row]:
    planned = {trial.hash for plan in plans for trial in plan.trials}
    for hash, manifest in found.items():
        if hash not in planned:
            names = manifest["labels"]
            spec = manifest["spec"]
            delay = spec.get("delay", AT_ONCE)
            yield _row(
                "",
                Planned(hash, names["problem"], names["name"], names["setting"], spec["seed"], delay),
                manifest,
            )


def _row(suite: str, trial: Planned, manifest: Mapping[str, Any]) -> Row:
    spec, totals = manifest["spec"], manifest["totals"]
    return Row(
        suite=suite,
        hash=trial.hash,
        problem=trial.problem,
        name=trial.name,
        setting=trial.setting,
        problem_id=spec["problem"],
        problem_parameters=spec["problem_parameters"],
        policy=spec["policy"],
        policy_parameters=spec["policy_parameters"],
        horizon=spec["horizon"],
        seed=spec["seed"],
        problem_seed=spec["problem_seed"],
        reward=totals["reward"],
        regret=totals["regret"],
        optimal=totals["optimal"],
        seconds=round(
            manifest["seconds"], 3
        ),  # as an archive keeps them, so that tables of both are the same
        cpu_seconds=round(manifest["cpu_seconds"], 3),
        machine=manifest["machine"],
        remark=manifest["label"],
        diagnostics=manifest["diagnostics"],
        versions=manifest["versions"],
        code=canonical({key: value for key, value in spec.items() if key not in _SHOWN}),
        delay=spec.get("delay", AT_ONCE),
    )
