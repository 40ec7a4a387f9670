"""Choosing hyperparameters as in the paper: the best setting of each problem, one default for all of them.

With m the mean cumulative reward over the search's trials, a policy's best setting on a problem has the
highest m. Its default has the highest normalised score

    (m - m_random) / (m_best - m_random)

averaged over the problems, separately for those without and with contexts. Settings are compared on common
seeds only: a trial that is missing for one setting counts for none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tidepull.errors import WrongStoreError
from tidepull.experiments.rows import Row
from tidepull.problems import build_problem, shape_of
from tidepull.registry import Named

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

    `scores` are its own on each problem; `ranking` are the mean scores of all settings, highest first.
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


def select(rows: Iterable[Row], kinds: Mapping[str, str]) -> Selection:
    """Choose from the rows of a search; `kinds` maps each problem to contextual or non-contextual."""
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
        parameters, policy = row.policy_parameters, row.policy
        best.append(Best(problem, name, setting, parameters, policy, means[setting], seeds, len(means)))
        baseline = rewards.baseline(problem, seeds)
        if means[setting] <= baseline:
            skipped.append(f"{name} on {problem}: no setting beats {BASELINE}, so it has no normalised score")
            continue
        span = means[setting] - baseline
        by_setting = {text: (mean - baseline) / span for text, mean in means.items()}
        scores.setdefault((name, kinds[problem]), {})[problem] = by_setting
    defaults = []
    for (name, kind), by_problem in scores.items():
        if default := _default(rewards, name, kind, by_problem):
            defaults.append(default)
        else:
            skipped.append(f"default of {name}: no setting was played on all of {', '.join(by_problem)}")
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


def _default(rewards: _Rewards, name: str, kind: str, scores: Mapping[str, Means]) -> Default | None:
    """The setting with the highest score averaged over the problems; none when no setting is on all of them."""
    first, *others = scores.values()
    common = [text for text in first if all(text in other for other in others)]
    if not common:
        return None
    mean = {text: float(np.mean([by_setting[text] for by_setting in scores.values()])) for text in common}
    ranking = dict(sorted(mean.items(), key=lambda item: -item[1]))
    setting = next(iter(ranking))
    row = rewards.example(next(iter(scores)), name, setting)
    by_problem = {problem: by_setting[setting] for problem, by_setting in scores.items()}
    return Default(
        kind, name, setting, row.policy_parameters, row.policy, ranking[setting], by_problem, ranking
    )


class _Rewards:
    """Rewards by problem, name, setting and seed."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[tuple[str, str], dict[str, dict[int, Row]]] = {}
        for row in rows:
            self._rows.setdefault((row.played, row.name), {}).setdefault(row.setting, {})[row.seed] = row

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
        means = {text: float(np.mean([trials[s].reward for s in seeds])) for text, trials in settings.items()}
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
