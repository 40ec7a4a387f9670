"""What random arms lose: from trials where there are any, else by the problem's own formula."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.reporting.making import make_study
from tidepull.problems import build_problem
from tidepull.reporting.frames import random_regret


def test_regret_of_random_is_the_mean_of_its_trials() -> None:
    study = make_study("flipping-gaussian", {"ucb": [1.0, 2.0], "random": [10.0, 20.0, 60.0]})
    assert random_regret(study) == pytest.approx(30.0)


@pytest.mark.parametrize("horizon", [7, 4096])
def test_regret_of_random_is_the_problems_formula_for_the_whole_horizon(horizon: int) -> None:
    study = make_study("sinusoidal-bernoulli", {"ucb": [1.0, 2.0]}, horizon=horizon)
    problem = build_problem("sinusoidal-bernoulli", seed=0)
    assert random_regret(study) == pytest.approx(problem.random_regret(horizon))  # type: ignore[attr-defined]


def test_regret_of_random_is_that_of_the_first_trials_world_and_parameters() -> None:
    """Worlds of another seed, or with other parameters, give another number."""
    study = make_study("stationary-vector", {"lin-ucb": [1.0, 2.0]}, horizon=50)
    first = replace(study.groups[0].rows[0], problem_seed=17, seed=3)
    group = replace(study.groups[0], rows=(first, *study.groups[0].rows[1:]))
    study = replace(study, groups=(group,), parameters={"dim": 5})
    worlds = {
        (seed, dim): build_problem(("stationary-vector", {"dim": dim}), seed=seed).random_regret(50)  # type: ignore[attr-defined]
        for seed in (17, 3, 0, 1)
        for dim in (5, 8)
    }
    assert len(set(worlds.values())) == len(worlds)
    assert random_regret(study) == pytest.approx(worlds[17, 5])


def test_regret_of_random_is_unknown_where_the_problem_is_not_at_hand() -> None:
    assert random_regret(make_study("no-such-world", {"ucb": [1.0]})) is None


def test_regret_of_random_is_unknown_where_there_is_no_formula(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidepull.reporting.frames.build_problem", lambda *_, **__: object())
    assert random_regret(make_study("flipping-gaussian", {"ucb": [1.0]})) is None
