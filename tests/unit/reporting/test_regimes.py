from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.reporting.making import make_study
from tidepull.experiments.store import Store
from tidepull.problems import build_problem
from tidepull.reporting.frames import Study, load_frame
from tidepull.reporting.traces import (
    MOST_POINTS,
    best_by_phase,
    read_trace,
    regimes_of,
    regret_per_regime,
    rounds_to_recover,
    thinned_rounds,
)


@pytest.mark.parametrize(
    ("problem", "parameters", "changes", "period"),
    [
        ("flipping-gaussian", {"half_period": 10}, [10, 20, 30], 20.0),
        ("flipping-bernoulli", {"half_period": 25}, [25], 50.0),
        ("flipping-vector", {"half_period": 50}, [], 100.0),
        ("flipping-digits", {"half_period": 10}, [10, 20, 30], 20.0),
        ("criteo-flipping", {"half_period": 10}, [10, 20, 30], 20.0),
        ("criteo-partial-flip", {"change_at": 25}, [25], None),
        ("criteo-partial-flip", {"change_at": 40}, [], None),
        ("sinusoidal-bernoulli", {"period": 32}, [], 32.0),
        ("rotating-vector-2048", {}, [], 2048.0),
    ],
)
def test_problems_say_when_they_change(
    problem: str, parameters: dict[str, float], changes: list[int], period: float | None
) -> None:
    known = regimes_of(study_of(problem, parameters))
    assert known is not None
    assert known.changes(40).tolist() == changes
    assert known.returns_after() == period


@pytest.mark.parametrize("problem", ["stationary-bernoulli", "wall-following", "somebody-elses"])
def test_nothing_is_guessed_of_a_problem_that_says_nothing(problem: str) -> None:
    assert regimes_of(study_of(problem, {})) is None


def test_changes_are_where_the_means_of_the_problem_change() -> None:
    problem = build_problem(("flipping-gaussian", {"half_period": 7}), seed=0)
    means = []
    for _ in range(30):
        means.append(problem.means().copy())
        problem.step(0)
    moved = [t for t in range(1, 30) if not np.array_equal(means[t], means[t - 1])]
    known = regimes_of(study_of("flipping-gaussian", {"half_period": 7}))
    assert known is not None
    assert known.changes(30).tolist() == moved


def study_of(problem: str, parameters: dict[str, float]) -> Study:
    return replace(make_study(problem, {"random": [1.0]}), parameters=parameters)


def test_regret_per_regime_averages_between_changes() -> None:
    gaps = np.array([1.0, 3.0, 0.0, 0.0, 6.0])
    assert regret_per_regime(gaps, np.array([2, 4])).tolist() == [2.0, 0.0, 6.0]


def test_recovery_is_the_start_of_three_good_rounds_or_unknown() -> None:
    bad, good = 1.0, 0.05
    gaps = np.array(
        [good] * 4 + [bad, good, good, bad, good, good, good, good] + [bad, good, good, bad]
    )
    found = rounds_to_recover(gaps, np.array([4, 12]), good_gap=0.1)
    assert found[0] == 4
    assert np.isnan(found[1])


@pytest.mark.parametrize("half_period", [1, 2, 3, 10, 64])
def test_recovery_equals_a_plain_search_regime_by_regime(half_period: int) -> None:
    gaps = np.random.default_rng(half_period).choice([0.0, 1.0], size=301, p=[0.6, 0.4])
    changes = np.arange(half_period, len(gaps), half_period)
    expected = []
    for start, end in zip(changes, [*changes[1:], len(gaps)], strict=True):
        hold = min(3, end - start)
        runs = [t for t in range(start, end - hold + 1) if not gaps[t : t + hold].any()]
        expected.append(runs[0] - start if runs else np.nan)
    assert np.array_equal(
        rounds_to_recover(gaps, changes, 0.1), np.array(expected, float), equal_nan=True
    )


def test_best_by_phase_is_one_where_the_best_arm_is_always_played() -> None:
    gaps = np.where(np.arange(40) % 20 < 10, 0.0, 0.3)
    assert best_by_phase(gaps, 20.0, bins=4).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_thinned_rounds_keep_both_ends_and_stay_within_the_limit() -> None:
    assert thinned_rounds(5).tolist() == [1, 2, 3, 4, 5]
    long = thinned_rounds(10_000)
    assert (len(long), long[0], long[-1]) == (MOST_POINTS, 1, 10_000)


def test_trace_ends_at_the_mean_of_the_stored_totals(store: Store) -> None:
    study = load_frame([store]).studies[0]
    for group in study.groups:
        trace = read_trace(study, group, random_regret=80.0)
        assert np.isclose(trace.regret.mean[-1], group.regrets.mean(), rtol=1e-4)
        assert trace.regret.low[-1] <= trace.regret.mean[-1] <= trace.regret.high[-1]


def test_end_of_a_trace_is_what_the_last_eighth_of_each_trial_adds(store: Store) -> None:
    study = load_frame([store]).studies[0]
    group = study.groups[-1]
    added = [trial.regret[-1] - trial.regret[-26] for trial in group.trials()]
    assert study.horizon == 200
    assert np.allclose(read_trace(study, group, None).late, added)
    assert len(set(added)) > 1


def test_oracle_recovers_at_once_and_always_plays_the_best_arm(store: Store) -> None:
    study = load_frame([store]).studies[0]
    oracle = study.group("oracle")
    assert oracle is not None
    trace = read_trace(study, oracle, random_regret=80.0)
    assert trace.best_share == 1.0
    assert trace.recovery is not None
    assert (trace.recovery.early, trace.recovery.late, trace.recovery.recovered) == (0.0, 0.0, 1.0)
    assert trace.phases is not None
    assert (trace.phases.mean == 1.0).all()
