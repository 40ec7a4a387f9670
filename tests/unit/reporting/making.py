"""Studies made of given numbers, for tests that need no trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tidepull.experiments.rows import Row
from tidepull.experiments.store import Store
from tidepull.reporting.frames import Group, Study

NOWHERE = Store(Path("nowhere"))


def make_row(problem: str, name: str, seed: int, regret: float, horizon: int, suite: str) -> Row:
    return Row(
        suite=suite,
        hash=f"{suite}/{problem}/{name}/{seed}/{regret}",
        problem=problem,
        name=name,
        setting="",
        problem_id=problem,
        problem_parameters={},
        policy=name,
        policy_parameters={},
        horizon=horizon,
        seed=seed,
        problem_seed=seed,
        reward=-regret,
        regret=regret,
        optimal=0.0,
        seconds=0.1,
        cpu_seconds=0.1,
        machine="here",
        remark="",
        diagnostics={},
        versions={},
    )


def make_study(
    problem: str,
    regrets: Mapping[str, Sequence[float]],
    *,
    horizon: int = 4096,
    suite: str = "paper-table",
) -> Study:
    """A study of these final regrets, on seeds 0, 1, 2, ..."""
    groups = tuple(
        Group(
            name,
            "",
            tuple(
                make_row(problem, name, seed, regret, horizon, suite)
                for seed, regret in enumerate(values)
            ),
            (NOWHERE,) * len(values),
        )
        for name, values in regrets.items()
    )
    return Study(suite, problem, problem, {}, horizon, "", groups, {})


def around(mean: float, spread: float = 10.0, trials: int = 10) -> list[float]:
    """Numbers with that mean, evenly spread."""
    return [mean + spread * (2 * i / (trials - 1) - 1) for i in range(trials)]
