"""Successive halving over a suite's grids: all settings play short trials, the best of them longer
ones.

What a rung asks for is a function of the suite, the rule and the rewards of earlier rungs, so an
interrupted search continues by starting over: what was played is not played again. To the next rung
go, of each policy,

    on every problem   its best 1 / eta settings there (at least two), by mean cumulative reward,
    on all problems    its generalists: highest mean over the problems of one kind of the normalised score
                       (m - m_random) / (m_best - m_random) on this rung, among the settings that
                       all of them still have.

Settings are compared within one rung only: on equal rounds and seeds. `agreements` says how well
short trials rank long ones: Spearman's correlation between two rungs, over the settings that played
both.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidepull.errors import InputError, SuiteError
from tidepull.experiments import grid
from tidepull.experiments.delay import delay_slug
from tidepull.experiments.rows import Census, Plan, entries, plan_of, read_plans, write_plan
from tidepull.experiments.selection import BASELINE, Means, kind_of_problem
from tidepull.experiments.spec import TrialSpec
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite

if TYPE_CHECKING:
    from tidepull.experiments.runner import Progress, Work


LEAST = 2
"""Settings of a problem that reach the last rung at least, so that there is a choice at full
length."""

Rewards: TypeAlias = Mapping[str, float | None]
"""From a trial's hash to its cumulative reward; None for a trial that failed."""

_Entrants: TypeAlias = dict[str, tuple[str, ...]]
"""From a world to the settings that play there."""


@dataclass(frozen=True, slots=True)
class RungTrials:
    """What a rung asks for; `waiting` are policies whose earlier rungs have not all been played."""

    specs: tuple[TrialSpec, ...]
    waiting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RungMeans:
    """One policy on one problem after one rung: the mean reward of every setting that played it to
    the end."""

    problem: str
    name: str
    rung: int
    means: Means


@dataclass(frozen=True, slots=True)
class _Field:
    """A policy on the problems of one kind; what competes for one default."""

    name: str
    kind: str
    settings: _Entrants


class Halving:
    """A suite under a rule; `kinds` maps each of its worlds to contextual or non-contextual."""

    def __init__(self, suite: Suite, rule: grid.SearchRule, kinds: Mapping[str, str]) -> None:
        self.rule = rule
        self._specs: dict[tuple[str, str, str, int], TrialSpec] = {}
        self._short: dict[tuple[str, str, str, int, int], TrialSpec] = {}
        settings: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
        for spec in suite.specs:
            world, name = world_of(spec), spec.name or spec.policy
            self._specs[world, name, spec.setting, spec.seed] = spec
            settings.setdefault((name, kinds[world]), {}).setdefault(world, {})[spec.setting] = None
        self._seeds = tuple(dict.fromkeys(spec.seed for spec in suite.specs))
        self._fields = [
            _Field(name, kind, {world: tuple(texts) for world, texts in worlds.items()})
            for (name, kind), worlds in settings.items()
        ]
        if all(len(texts) == 1 for field in self._fields for texts in field.settings.values()):
            raise SuiteError(
                f"{suite.name} has no policy with several settings to search; give one a grid"
            )
        self._check_baseline(suite.name)

    def asked(self, number: int, rewards: Rewards) -> RungTrials:
        """The trials of a rung (from 0), seed by seed, of every policy that is as far as that."""
        waiting, entered = [], []
        for field in self._fields:
            entrants = self._entrants(field, number, rewards)
            if entrants is None:
                waiting.append(field.name)
            else:
                entered.append((field, entrants))
        specs = [
            self._spec(world, field.name, setting, seed, number)
            for seed in self._seeds_of(self.rule.rungs[number])
            for field, entrants in entered
            for world, texts in entrants.items()
            for setting in texts
        ]
        return RungTrials(tuple(specs), tuple(dict.fromkeys(waiting)))

    def standings(self, rewards: Rewards) -> list[RungMeans]:
        """Means of every rung that is complete, wherever there is a choice."""
        standings = []
        for number in range(len(self.rule.rungs)):
            for field in self._fields:
                entrants = self._entrants(field, number, rewards)
                means = None if entrants is None else self._means(field, number, entrants, rewards)
                for world, by_setting in (means or {}).items():
                    if len(field.settings[world]) > 1:
                        standings.append(RungMeans(world, field.name, number, by_setting))
        return standings

    def survivors(self, count: int, number: int) -> int:
        """How many of so many settings are let onto a rung for what they score on their problem."""
        return min(count, max(LEAST, math.ceil(count / float(self.rule.eta) ** number)))

    def _entrants(self, field: _Field, number: int, rewards: Rewards) -> _Entrants | None:
        """Who plays a rung; None while an earlier one is not complete."""
        entrants = field.settings
        for earlier in range(number):
            if all(len(texts) == 1 for texts in field.settings.values()):
                return entrants
            means = self._means(field, earlier, entrants, rewards)
            baseline = self._baseline(field, earlier, rewards)
            if means is None or baseline is None:
                return None
            entrants = self._promoted(field, earlier + 1, means, baseline)
        return entrants

    def _promoted(
        self, field: _Field, number: int, means: Mapping[str, Means], baseline: Means
    ) -> _Entrants:
        everywhere = self._generalists(number, means, baseline)
        promoted: _Entrants = {}
        for world, by_setting in means.items():
            count = self.survivors(len(field.settings[world]), number)
            chosen = {*_ranked(by_setting)[:count], *everywhere}
            promoted[world] = tuple(text for text in field.settings[world] if text in chosen)
        return promoted

    def _generalists(self, number: int, means: Mapping[str, Means], baseline: Means) -> list[str]:
        if len(means) < 2:
            return []
        first, *others = means.values()
        common = [text for text in first if all(text in other for other in others)]
        scores: dict[str, list[float]] = {text: [] for text in common}
        for world, by_setting in means.items():
            span = max(by_setting.values(), default=-math.inf) - baseline.get(world, 0.0)
            if span > 0:
                for text in common:
                    scores[text].append((by_setting[text] - baseline.get(world, 0.0)) / span)
        mean = {text: float(np.mean(values)) for text, values in scores.items() if values}
        steps_left = len(self.rule.rungs) - 1 - number
        return _ranked(mean)[: self.rule.generalists * self.rule.eta**steps_left]

    def _means(
        self, field: _Field, number: int, entrants: _Entrants, rewards: Rewards
    ) -> dict[str, Means] | None:
        """Means of a rung, without settings of which a trial failed; None while one has not been
        played."""
        means: dict[str, Means] = {}
        for world, texts in entrants.items():
            means[world] = {}
            for text in texts:
                hashes = self._hashes(world, field.name, text, number)
                if any(hash not in rewards for hash in hashes):
                    return None
                paid = [reward for hash in hashes if (reward := rewards[hash]) is not None]
                if len(paid) == len(hashes):
                    means[world][text] = float(np.mean(paid))
        return means

    def _baseline(self, field: _Field, number: int, rewards: Rewards) -> Means | None:
        """The reward of random arms on the field's worlds; None while it has not been played
        there."""
        means: Means = {}
        for world in field.settings:
            if (world, BASELINE, "", self._seeds[0]) in self._specs:
                hashes = self._hashes(world, BASELINE, "", number)
                paid = [reward for hash in hashes if (reward := rewards.get(hash)) is not None]
                if len(paid) < len(hashes):
                    return None
                means[world] = float(np.mean(paid))
        return means

    def _check_baseline(self, suite: str) -> None:
        """Normalised scores need random arms; a default needs normalised scores."""
        if not self.rule.generalists:
            return
        for field in self._fields:
            counts = [len(texts) for texts in field.settings.values()]
            for world in field.settings if len(counts) > 1 and max(counts) > 1 else ():
                if (world, BASELINE, "", self._seeds[0]) not in self._specs:
                    raise SuiteError(
                        f"{suite}: to search {field.name} on several problems, '{BASELINE}' must "
                        f"play {world} too; add it to the suite, or set generalists = 0"
                    )

    def _hashes(self, world: str, name: str, setting: str, number: int) -> list[str]:
        seeds = self._seeds_of(self.rule.rungs[number])
        return [self._spec(world, name, setting, seed, number).hash for seed in seeds]

    def _seeds_of(self, rung: grid.Rung) -> tuple[int, ...]:
        return self._seeds[: rung.seeds]

    def _spec(self, world: str, name: str, setting: str, seed: int, number: int) -> TrialSpec:
        key = (world, name, setting, seed, number)
        if key not in self._short:
            full = self._specs[world, name, setting, seed]
            rounds = max(1, round(full.horizon * self.rule.rungs[number].share))
            self._short[key] = full if rounds == full.horizon else replace(full, horizon=rounds)
        return self._short[key]


def world_of(spec: TrialSpec) -> str:
    """The problem's name with its delay, as `Row.played`."""
    parts = (spec.problem_name or spec.problem, delay_slug(spec.delay_text))
    return "-".join(part for part in parts if part)


def _ranked(scores: Mapping[str, float]) -> list[str]:
    """Highest first; of equals, the suite's first."""
    return sorted(scores, key=lambda text: -scores[text])


FEWEST = 3
"""Settings from which on a rank correlation is given."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Spearman's correlation of mean rewards on two rungs (from 0), over `settings` settings.

    Only the best of the earlier rung are among them, so it says less than the whole grid would.
    """

    problem: str
    name: str
    first: int
    second: int
    settings: int
    correlation: float


def agreements(standings: Sequence[RungMeans]) -> list[Agreement]:
    """Every rung with every later one, problem by problem and policy by policy."""
    tree: dict[tuple[str, str], dict[int, Mapping[str, float]]] = {}
    for one in standings:
        tree.setdefault((one.problem, one.name), {})[one.rung] = one.means
    pairs = []
    for (problem, name), rungs in tree.items():
        for first in sorted(rungs):
            for second in sorted(rung for rung in rungs if rung > first):
                count, correlation = rank_correlation(rungs[first], rungs[second])
                if correlation is not None:
                    pairs.append(Agreement(problem, name, first, second, count, correlation))
    return pairs


def rank_correlation(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[int, float | None]:
    """How many settings both have, and Spearman's correlation; None for fewer than three, or where
    all tie."""
    from scipy.stats import spearmanr

    common = [text for text in a if text in b]
    if len(common) < FEWEST:
        return len(common), None
    first, second = ([means[text] for text in common] for means in (a, b))
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return len(common), None
    return len(common), float(spearmanr(first, second).statistic)


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


def search_rule(suite: Suite, eta: int | None, rungs: str | None) -> grid.SearchRule:
    """Return the suite's rule with `eta` and `rungs` replaced where they are not None."""
    usual = suite.search
    rule = grid.SearchRule(
        usual.eta if eta is None else eta,
        usual.generalists,
        usual.rungs if rungs is None else grid.parse_rungs(rungs),
    )
    return grid.check_rule(rule, len({spec.seed for spec in suite.specs}))


def halving_of(suite: Suite, rule: grid.SearchRule) -> Halving:
    """Build the search over a suite, with the kind of each problem."""
    examples = {world_of(spec): spec for spec in suite.specs}
    kinds = {}
    for world, spec in examples.items():
        seed = spec.seed if spec.problem_seed is None else spec.problem_seed
        kinds[world] = kind_of_problem((spec.problem, spec.problem_parameters), seed=seed)
    return Halving(suite, rule, kinds)


@dataclass(slots=True)
class HalvingRun:
    """Plays rung after rung into a store; `known` are rewards of trials from elsewhere, by hash."""

    suite: Suite
    halving: Halving
    store: Store
    known: Mapping[str, float]
    lines: list[dict[str, Any]] = dataclasses.field(default_factory=list)
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
            share = grid.rungs_text([rung]).partition(":")[0]
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
        name = grid.plan_name(self.suite.name, number, len(self.halving.rule.rungs))
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
