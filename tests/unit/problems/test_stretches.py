"""Change points and returning regimes: when they change, and what is then drawn anew."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.problems import build_problem
from tidepull.problems.arms import DriftingArms
from tidepull.problems.change_points import Stretches, stays
from tidepull.problems.random_drifts import LONGEST, drifting_means, drifting_vectors
from tidepull.problems.random_worlds import DRAWN, KINDS
from tidepull.types import FloatArray


def table(id: str, seed: int = 0, rounds: int = 5000, **parameters: Any) -> FloatArray:
    problem = cast(DriftingArms, build_problem((id, parameters), seed=seed))
    return np.array([problem.drift(t) for t in range(rounds)])


def test_stretches_give_each_row_from_its_start_on_and_add_up_their_jumps() -> None:
    drift = Stretches(np.array([0, 3, 5]), np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    assert [float(drift(t)[1]) for t in range(7)] == [0.0, 0.0, 0.0, 4.0, 4.0, 0.0, 0.0]
    assert [drift.variation(h) for h in (2, 3, 5, 100)] == [0.0, 5.0, 9.0, 9.0]


@pytest.mark.parametrize("together", [False, True])
def test_change_points_move_one_arm_or_all_as_often_as_asked(together: bool) -> None:
    means = table("change-points-bernoulli", seed=3, changes=7, n_arms=5, together=together)
    moved = np.diff(means, axis=0) != 0
    rounds = np.flatnonzero(moved.any(axis=1))
    assert len(rounds) == 7
    assert (moved[rounds].sum(axis=1) == (5 if together else 1)).all()
    assert rounds.min() >= 99
    assert rounds.max() < 4900
    assert not np.array_equal(means, table("change-points-bernoulli", seed=4, changes=7, n_arms=5))


def test_published_levels_change_every_fifth_of_the_rounds() -> None:
    means = table("change-points-bernoulli", levels="published-local")
    assert np.flatnonzero(np.diff(means, axis=0).any(axis=1)).tolist() == [999, 1999, 2999, 3999]
    assert means[[0, 1500, 4999]].tolist() == [[0.3, 0.5, 0.9], [0.3, 0.2, 0.9], [0.7, 0.5, 0.1]]
    other = table("change-points-bernoulli", levels="published-global")
    assert (np.diff(other, axis=0)[[999, 1999, 2999, 3999]] != 0).all()


def test_regimes_return_and_stay_as_long_as_asked() -> None:
    means = table("returning-regimes", seed=1, rounds=60_000)
    assert len(np.unique(means, axis=0)) == 3
    assert means.min() >= 0.1
    assert means.max() <= 0.9
    switches = np.flatnonzero(np.diff(means, axis=0).any(axis=1))
    assert 60_000 / len(switches) == pytest.approx(300, rel=0.25)


def test_next_regime_is_any_other() -> None:
    starts, ruling = stays(4, 10.0, 50_000, np.random.default_rng(0))
    assert starts[0] == 0
    assert starts[-1] > 49_800
    steps = np.diff(ruling) % 4
    assert np.bincount(steps, minlength=4)[1:] / len(steps) == pytest.approx(
        np.full(3, 1 / 3), abs=0.03
    )
    assert (steps != 0).all()


def test_wrong_parameters_are_refused_with_a_sentence() -> None:
    with pytest.raises(ParameterError, match="changes is 200, but only 100 rounds"):
        build_problem(("change-points-bernoulli", {"changes": 200, "rounds": 300}), seed=0)
    with pytest.raises(ParameterError, match="low must not lie above high"):
        build_problem(("returning-regimes", {"low": 0.9, "high": 0.2}), seed=0)


def test_drawn_stretches_are_few_or_many_or_return() -> None:
    changes = {}
    for kind in ("few-changes", "many-changes"):
        means = [drifting_means(kind, 4, np.random.default_rng(seed)).rows for seed in range(12)]
        assert {m.shape for m in means} == {(LONGEST, 4)}
        changes[kind] = [np.diff(m, axis=0).any(axis=1).sum() * 5000 / LONGEST for m in means]
        at_once = {int((np.diff(m, axis=0) != 0).sum(axis=1).max()) for m in means}
        assert at_once == {1, 4}
    assert 3 < np.mean(changes["few-changes"]) < 9
    assert 20 < np.mean(changes["many-changes"]) < 60
    rows = drifting_means("returning", 4, np.random.default_rng(0)).rows
    assert 2 <= len(np.unique(rows, axis=0)) <= 5
    vectors = drifting_vectors("many-changes", 3, np.random.default_rng(0)).rows
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(LONGEST))


def test_kinds_that_came_later_do_not_renumber_the_worlds() -> None:
    assert len(DRAWN) == 19
    assert DRAWN[0] == "arms-stationary"
    assert DRAWN[-1] == "paths-irregular"
    assert len(KINDS) == 41
