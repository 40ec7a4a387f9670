"""Choosing hyperparameters as in the paper: the best setting of each problem, one default for all
of them.

With m the mean cumulative reward over the search's trials, a policy's best setting on a problem has
the highest m. Its default has the highest normalised score

    (m - m_random) / (m_best - m_random)

averaged over the problems, separately for those without and with contexts. Settings are compared on
common seeds only: a trial that is missing for one setting counts for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tidepull.errors import InputError, ParameterError, WrongStoreError
from tidepull.experiments.archive import is_archive, read_archive
from tidepull.experiments.delay import AT_ONCE
from tidepull.experiments.grid import is_last_rung, searched_suite, seeds_text
from tidepull.experiments.rows import Row, Rows, load_rows, read_plans
from tidepull.experiments.spec import canonical
from tidepull.experiments.store import Store
from tidepull.experiments.suite import suite_text
from tidepull.policies import policies
from tidepull.problems import build_problem, problems, shape_of
from tidepull.registry import Named, Registry

BASELINE = "random"

Means: TypeAlias = dict[str, float]
"""From a setting's text to its mean cumulative reward."""


@dataclass(frozen=True, slots=True)
class Best:
    """The setting with the highest mean cumulative reward on one problem."""

    problem: str
    name: str
    setting: str
    parameters: Mapping[str, Any]
    policy: str
    reward: float
    seeds: tuple[int, ...]
    settings: int


@dataclass(frozen=True, slots=True)
class Default:
    """The setting with the highest mean normalised score over the problems of one kind.

    `scores` are its own on each problem; `ranking` are the mean scores of all settings, highest
    first.
    """

    kind: str
    name: str
    setting: str
    parameters: Mapping[str, Any]
    policy: str
    score: float
    scores: Mapping[str, float]
    ranking: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen; `skipped` says of which problem and policy nothing could be, and why."""

    best: tuple[Best, ...]
    default: tuple[Default, ...]
    skipped: tuple[str, ...]


def select(
    rows: Iterable[Row], kinds: Mapping[str, str], unfinished: Sequence[tuple[str, str]] = ()
) -> Selection:
    """Choose from the rows of a search; `kinds` maps each problem to contextual or non-contextual.

    A policy has no default while its search is `unfinished` on a problem of the kind.
    """
    rewards = _Rewards(rows)
    best: list[Best] = []
    scores: dict[tuple[str, str], dict[str, Means]] = {}
    skipped: list[str] = []
    for problem, name in rewards.searched():
        means, seeds = rewards.means(problem, name)
        if not seeds:
            skipped.append(f"{name} on {problem}: no seed on which every setting has a trial")
            continue
        setting = max(means, key=lambda text: means[text])
        row = rewards.example(problem, name, setting)
        chosen = setting, row.policy_parameters, row.policy
        best.append(Best(problem, name, *chosen, means[setting], seeds, len(means)))
        baseline = rewards.baseline(problem, seeds)
        if means[setting] <= baseline:
            skipped.append(
                f"{name} on {problem}: no setting beats {BASELINE}, so it has no normalised score"
            )
            continue
        span = means[setting] - baseline
        by_setting = {text: (mean - baseline) / span for text, mean in means.items()}
        scores.setdefault((name, kinds[problem]), {})[problem] = by_setting
    defaults = []
    for (name, kind), by_problem in scores.items():
        waiting = [p for p, policy in unfinished if policy == name and kinds.get(p, kind) == kind]
        if waiting:
            skipped.append(f"default of {name}: its search is not finished on {', '.join(waiting)}")
        elif default := _default(rewards, name, kind, by_problem):
            defaults.append(default)
        else:
            skipped.append(
                f"default of {name}: no setting was played on all of {', '.join(by_problem)}"
            )
    return Selection(tuple(best), tuple(defaults), tuple(skipped))


def kinds_of(rows: Iterable[Row]) -> dict[str, str]:
    """Contextual or non-contextual, for each problem."""
    examples = {row.played: row for row in rows}
    return {
        problem: kind_of_problem((row.problem_id, row.problem_parameters), seed=row.problem_seed)
        for problem, row in examples.items()
    }


def kind_of_problem(problem: Named, *, seed: int) -> str:
    """`contextual` or `non-contextual`."""
    shape = shape_of(build_problem(problem, seed=seed))
    return "contextual" if shape.observation_dim or shape.arm_dim else "non-contextual"


def _default(
    rewards: _Rewards, name: str, kind: str, scores: Mapping[str, Means]
) -> Default | None:
    """The setting with the highest score averaged over the problems; none when no setting is on all
    of them."""
    first, *others = scores.values()
    common = [text for text in first if all(text in other for other in others)]
    if not common:
        return None
    mean = {
        text: float(np.mean([by_setting[text] for by_setting in scores.values()]))
        for text in common
    }
    ranking = dict(sorted(mean.items(), key=lambda item: -item[1]))
    setting = next(iter(ranking))
    row = rewards.example(next(iter(scores)), name, setting)
    by_problem = {problem: by_setting[setting] for problem, by_setting in scores.items()}
    chosen = setting, row.policy_parameters, row.policy
    return Default(kind, name, *chosen, ranking[setting], by_problem, ranking)


class _Rewards:
    """Rewards by problem, name, setting and seed."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[tuple[str, str], dict[str, dict[int, Row]]] = {}
        for row in rows:
            settings = self._rows.setdefault(_pair(row), {})
            settings.setdefault(row.setting, {})[row.seed] = row

    def searched(self) -> list[tuple[str, str]]:
        """Problem and policy wherever there is a choice."""
        return [key for key, settings in self._rows.items() if len(settings) > 1]

    def example(self, problem: str, name: str, setting: str) -> Row:
        return next(iter(self._rows[problem, name][setting].values()))

    def means(self, problem: str, name: str) -> tuple[Means, tuple[int, ...]]:
        """Mean reward of every setting over the seeds that all of them have."""
        settings = self._rows[problem, name]
        seeds = sorted(set.intersection(*(set(trials) for trials in settings.values())))
        if not seeds:
            return {}, ()
        means = {
            text: float(np.mean([trials[s].reward for s in seeds]))
            for text, trials in settings.items()
        }
        return means, tuple(seeds)

    def baseline(self, problem: str, seeds: Sequence[int]) -> float:
        trials = self._rows.get((problem, BASELINE), {}).get("", {})
        missing = [seed for seed in seeds if seed not in trials]
        if missing:
            raise WrongStoreError(
                f"the normalised score needs '{BASELINE}' on {problem} with seed {missing[0]}; "
                "add it to the suite and sweep again"
            )
        return float(np.mean([trials[seed].reward for seed in seeds]))


@dataclass(frozen=True, slots=True)
class SearchTrials:
    """Plans by name with the user's modules that they need, and how to read their rows."""

    where: Path
    plans: Mapping[str, tuple[str, ...]]
    read: Callable[[str], Rows]

    def suite_name(self, wanted: str | None) -> str:
        """The suite that is meant: the one that is there, or the one that is named."""
        if not self.plans:
            raise WrongStoreError(
                f"the store {self.where} holds no suite yet; `tidepull sweep` runs one there"
            )
        suites = list(dict.fromkeys(searched_suite(plan) for plan in self.plans))
        if wanted is None and len(suites) != 1:
            raise InputError(f"say which suite searched: --suite with one of {', '.join(suites)}")
        name = wanted or suites[0]
        if name not in (*suites, *self.plans):
            raise WrongStoreError(
                f"the store {self.where} has no suite '{name}'; it has: {', '.join(self.plans)}"
            )
        return name

    def rows(self, suite: str) -> Rows:
        """Trials to choose from: those of grids that were played in full, and last rungs of
        searches by halving.

        Short trials are never among them.
        """
        whole = self.read(suite) if suite in self.plans else None
        last = self._last_rung(suite)
        if last is None:
            if whole is None:
                raise WrongStoreError(
                    f"the search of {suite} has not reached its last rung (it has "
                    f"{', '.join(self._rungs(suite))}); `tidepull search {suite}` goes on"
                )
            return whole
        halved = self.read(last)
        if whole is None:
            return halved
        in_full = {_pair(row) for row in whole.rows}
        return Rows(
            rows=(*whole.rows, *(row for row in halved.rows if _pair(row) not in in_full)),
            missing=(*whole.missing, *halved.missing),
            damaged={**halved.damaged, **whole.damaged},
            failed={**halved.failed, **whole.failed},
        )

    def settings(self, suite: str) -> dict[tuple[str, str], int]:
        """How many settings halving began with, by problem and policy."""
        first = next(iter(self._rungs(suite)), None)
        settings: dict[tuple[str, str], set[str]] = {}
        for row in self.read(first).rows if first else ():
            settings.setdefault(_pair(row), set()).add(row.setting)
        return {pair: len(texts) for pair, texts in settings.items()}

    def unfinished(self, suite: str) -> list[tuple[str, str]]:
        """Problems and policies whose search by halving has begun and has not reached its last
        rung."""
        last = self._last_rung(suite)
        if last is None:
            return []
        arrived = {_pair(row) for row in (*self.read(last).rows, *self.rows(suite).rows)}
        return [pair for pair in self.settings(suite) if pair not in arrived]

    def modules(self, suite: str) -> tuple[str, ...]:
        """The user's own modules that the trials need."""
        plans = [suite] if suite in self.plans else self._rungs(suite)
        return self.plans[plans[0]]

    def _rungs(self, suite: str) -> list[str]:
        return sorted(p for p in self.plans if p != suite and searched_suite(p) == suite)

    def _last_rung(self, suite: str) -> str | None:
        return next((plan for plan in self._rungs(suite) if is_last_rung(plan)), None)


def open_search(directory: Path) -> SearchTrials:
    """A store, or a folder of CSV that `tidepull store archive` wrote."""
    if is_archive(directory):
        archive = read_archive(directory)
        return SearchTrials(directory, dict.fromkeys(archive.rows, ()), archive.loaded)
    store = Store.open(directory)
    plans = {plan.suite: plan.modules for plan in read_plans(store)}
    return SearchTrials(directory, plans, lambda suite: load_rows(store, suite))


def _pair(row: Row) -> tuple[str, str]:
    return row.played, row.name


def selected_suite(
    name: str,
    selection: Selection,
    rows: tuple[Row, ...],
    seeds: tuple[int, ...],
    horizon: int | None,
    modules: tuple[str, ...],
    searched: Mapping[tuple[str, str], int],
) -> str:
    """Write the suite that reports the chosen settings; `searched` counts the settings that halving
    began with."""
    worlds = [
        {
            "id": row.problem_id,
            "name": problem if problem != row.problem_id else None,
            "delay": row.delay if row.delay != AT_ONCE else None,
            "horizon": horizon or problems.entry(row.problem_id).horizon,
            "parameters": _unusual(problems, row.problem_id, row.problem_parameters),
        }
        for problem, row in {row.played: row for row in rows}.items()
    ]
    learners: list[dict[str, Any]] = []
    if any(row.name == BASELINE for row in rows):
        learners.append({"name": BASELINE})
    rounds = {row.played: row.horizon for row in rows}
    for best in selection.best:
        chosen = _best_of(best, rounds[best.problem], searched)
        learners.append(_policy(f"{best.name}-best", best, [best.problem], chosen))
    for default in selection.default:
        chosen = _default_of(default)
        learners.append(_policy(f"{default.name}-default", default, list(default.scores), chosen))
    return suite_text(
        f"{name}-selected",
        f"The settings that {name} selected, on seeds that it never saw.",
        seeds=seeds,
        problems=worlds,
        policies=learners,
        modules=modules,
        problem_seed=_fixed_world(rows),
    )


def _chosen(choice: Best | Default) -> dict[str, Any]:
    """What the grid varies, in its order, then what is not as usual."""
    varied = [part.partition("=")[0] for part in choice.setting.split(",")]
    others = _unusual(policies, choice.policy, choice.parameters)
    return {name: choice.parameters[name] for name in varied} | {
        name: value for name, value in others.items() if name not in varied
    }


def _unusual(registry: Registry[Any], id: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that are not at their default, which archives name too."""
    try:
        usual = registry.entry(id).parse({}).to_mapping()
    except ParameterError:  # some must be given
        usual = {}
    return {
        name: value
        for name, value in parameters.items()
        if name not in usual or canonical(usual[name]) != canonical(value)
    }


def _fixed_world(rows: tuple[Row, ...]) -> int | None:
    """The `problem_seed` of the search, if it had one: its worlds are then the report's too."""
    return next((row.problem_seed for row in rows if row.problem_seed != row.seed), None)


def _policy(name: str, one: Best | Default, on: list[str], chosen: str) -> dict[str, Any]:
    setting = {"id": one.policy, "problems": on, "parameters": _chosen(one)}
    return {"name": name, **setting, "chosen": chosen}


def _best_of(best: Best, rounds: int, searched: Mapping[tuple[str, str], int]) -> str:
    """How a best setting was chosen, for the suite that reports it; `searched` are the settings
    that halving had."""
    grid = searched.get((best.problem, best.name), best.settings)
    left = f" that successive halving left of {grid}" if grid > best.settings else ""
    trials = f"{len(best.seeds)} trials of each (seeds {seeds_text(best.seeds)}"
    if len(best.seeds) == 1:
        trials = f"one trial of each (seed {best.seeds[0]}"
    return f"highest mean reward of {best.settings} settings{left}, {trials}, {rounds:,} rounds)"


def _default_of(default: Default) -> str:
    return f"highest mean score of {len(default.ranking)} settings over {', '.join(default.scores)}"
