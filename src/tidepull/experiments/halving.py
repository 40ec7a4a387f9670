"""Successive halving in a store: which trials each rung asks for, and what of them has been
played."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

from tidepull.errors import InputError
from tidepull.experiments.grid import SearchRule, check_rule, parse_rungs, plan_name, rungs_text
from tidepull.experiments.rows import Census, Plan, entries, plan_of, read_plans, write_plan
from tidepull.experiments.search import Halving, world_of
from tidepull.experiments.selection import BASELINE, kind_of_problem
from tidepull.experiments.spec import TrialSpec
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite

if TYPE_CHECKING:
    from tidepull.experiments.runner import Progress, Work

BeginRung: TypeAlias = "Callable[[Suite], tuple[Work, Progress]]"
"""Prepares the trials of a rung in the store."""
PlayRung: TypeAlias = "Callable[[Work, Progress], bool]"
"""Plays them; returns True when it was interrupted."""


def matching_suite(suite: Suite, only: Sequence[str]) -> Suite:
    """Keep trials whose ids match, and random arms beside them, which scores are measured by."""
    if not only:
        return suite
    fit = [spec for spec in suite.specs if any(fnmatchcase(spec.id, pattern) for pattern in only)]
    if not fit:
        raise InputError(
            f"no trial of {suite.name} fits {' '.join(only)}; ids look like {suite.specs[0].id}"
        )
    chosen = {spec.id for spec in fit}
    searched = {(world_of(spec), spec.seed) for spec in fit}

    def asked(spec: TrialSpec) -> bool:
        beside = spec.name == BASELINE and (world_of(spec), spec.seed) in searched
        return beside or spec.id in chosen

    return replace(suite, specs=tuple(filter(asked, suite.specs)))


def search_rule(suite: Suite, eta: int | None, rungs: str | None) -> SearchRule:
    """Return the suite's rule with `eta` and `rungs` replaced where they are not None."""
    rule = suite.search if eta is None else replace(suite.search, eta=eta)
    rule = rule if rungs is None else replace(rule, rungs=parse_rungs(rungs))
    return check_rule(rule, len({spec.seed for spec in suite.specs}))


def halving_of(suite: Suite, rule: SearchRule) -> Halving:
    """Build the search over a suite, with the kind of each problem."""
    examples = {world_of(spec): spec for spec in suite.specs}
    kinds = {
        world: kind_of_problem(
            (spec.problem, spec.problem_parameters),
            seed=spec.seed if spec.problem_seed is None else spec.problem_seed,
        )
        for world, spec in examples.items()
    }
    return Halving(suite, rule, kinds)


@dataclass(slots=True)
class HalvingRun:
    """Plays rung after rung into a store; `known` are rewards of trials from elsewhere, by hash."""

    suite: Suite
    halving: Halving
    store: Store
    known: Mapping[str, float]
    lines: list[dict[str, Any]] = field(default_factory=list)
    cpu_seconds: float = 0.0
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether every rung was played to its end."""
        every = len(self.lines) == len(self.halving.rule.rungs)
        return every and not any(line["left"] for line in self.lines)

    @property
    def failed(self) -> int:
        """Trials that failed, now or earlier."""
        return sum(line["failed"] for line in self.lines)

    def rewards(self) -> dict[str, float | None]:
        """Map every hash that has a result to its reward; None where the trial failed."""
        rewards: dict[str, float | None] = {
            record["hash"]: None for record in self.store.failures()
        }
        rewards.update(self.known)
        for hash, _, text in entries(self.store, Census()):
            rewards[hash] = json.loads(text)["totals"]["reward"]
        return rewards

    def describe(self) -> list[dict[str, Any]]:
        """Count the trials that each rung asks for, as far as results tell."""
        rewards = self.rewards()
        lines: list[dict[str, Any]] = []
        for number, rung in enumerate(self.halving.rule.rungs):
            asked = self.halving.asked(number, rewards)
            todo = sum(spec.hash not in rewards for spec in asked.specs)
            share = rungs_text([rung]).partition(":")[0]
            lines.append(
                {"rung": number + 1, "share": share, "trials": len(asked.specs), "todo": todo}
                | {"waiting": list(asked.waiting)}
            )
        return lines

    def run(self, begin: BeginRung, play: PlayRung) -> None:
        """Play what is missing; stop after a rung that could not be completed."""
        for number in range(len(self.halving.rule.rungs)):
            asked = self.halving.asked(number, self.rewards())
            self._run_rung(number, asked.specs, begin, play)
            if self.interrupted or self.lines[-1]["left"]:
                return

    def _run_rung(
        self, number: int, specs: tuple[TrialSpec, ...], begin: BeginRung, play: PlayRung
    ) -> None:
        name = plan_name(self.suite.name, number, len(self.halving.rule.rungs))
        before = next((plan for plan in read_plans(self.store) if plan.suite == name), None)
        work, progress = begin(Suite(name, "", self.suite.text, specs))
        write_plan(self.store, _joined_plan(plan_of(name, self.suite.text, specs), before))
        self.interrupted = play(work, progress)
        self.cpu_seconds += progress.cpu_seconds
        done, failed = work.done + progress.done, progress.failed + len(work.failed_before)
        counts = {"total": work.total, "done": done, "ran": progress.done, "failed": failed}
        self.lines.append({"rung": name, **counts, "left": progress.left})


def _joined_plan(plan: Plan, before: Plan | None) -> Plan:
    """Keep earlier trials of policies and problems that are not searched now, and earlier random
    arms.

    Every search plays random arms beside its own policies, each on as many seeds as its rule says.
    """
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
