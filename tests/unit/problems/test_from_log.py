"""The world of a fitted log: its means, its rounds, its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.problems.buildable import small_world
from tidepull.errors import DataError
from tidepull.experiments.loop import run_trial
from tidepull.problems import build_problem


def test_means_are_those_of_the_weights_and_the_best_guess_when_nothing_is_drawn() -> None:
    world = small_world()
    guess, drawn = world.problem(drawn=False), world.problem(seed=1)
    for row in range(5):
        assert guess.means() == pytest.approx(world.mean @ world.features[row])
        assert drawn.means() == pytest.approx(drawn.weights @ world.features[row])
        guess.step(0)
        drawn.step(0)
    assert not np.allclose(drawn.weights, world.mean)


def test_drawn_weights_have_the_posteriors_mean_and_covariance() -> None:
    world = small_world()
    root = np.array([[0.2, 0, 0], [0.1, 0.3, 0], [0.0, -0.2, 0.1]])
    world = replace(world, factor=np.tile(root, (3, 1, 1)))
    drawn = np.array([world.problem(seed=seed).weights[1] for seed in range(3000)])
    assert drawn.mean(axis=0) == pytest.approx(world.mean[1], abs=0.02)
    assert np.cov(drawn.T) == pytest.approx(root @ root.T, abs=0.01)


def test_rounds_are_the_logs_rows_and_begin_anew_whole_weeks_later() -> None:
    world = small_world()
    problem = world.problem()
    assert world.time is not None
    for t in range(85):
        context = problem.context()
        assert context.observation is not None
        assert context.observation[0] == world.observation[t % 40, 0]
        assert context.time == world.time[t % 40] + t // 40 * 604_800.0
        problem.step(t % 3)


def test_rewards_are_coins_where_the_logs_were_and_arms_on_offer_are_the_logs() -> None:
    offered = np.ones((40, 3), bool)
    offered[::2, 2] = False
    world = replace(small_world(), binary=True, available=offered)
    problem = world.problem()
    rewards = set()
    for t in range(40):
        context = problem.context()
        assert context.available is not None
        assert context.available.tolist() == offered[t].tolist()
        assert 0 <= problem.means().min() <= problem.means().max() <= 1
        rewards.add(problem.step(0))
    assert rewards == {0.0, 1.0}
    expected = 0.0
    for t in range(50):
        means = np.clip(problem.weights @ world.features[t % 40], 0, 1)[offered[t % 40]]
        expected += means.max() - means.mean()
    assert problem.random_regret(50) == pytest.approx(expected)


def test_a_world_is_the_same_from_its_file_and_carries_its_remark(tmp_path: Path) -> None:
    small_world().save(tmp_path / "w")
    named = ("from-log", {"path": str(tmp_path / "w")})
    first, again = build_problem(named, seed=3), small_world().problem(seed=3)
    assert first.means() == pytest.approx(again.means())
    assert run_trial(named, "ucb", horizon=60, seed=0).remark == "a model of a log"


def test_what_is_no_fitted_world_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="needs a fitted world: --set path=FILE"):
        build_problem("from-log", seed=0)
    with pytest.raises(DataError, match="there is no fitted world"):
        build_problem(("from-log", {"path": str(tmp_path / "none")}), seed=0)
    (tmp_path / "bad").write_bytes(b"time,arm,reward\n")
    with pytest.raises(DataError, match="is no fitted world"):
        build_problem(("from-log", {"path": str(tmp_path / "bad")}), seed=0)
    replace(small_world(), mean=np.zeros((2, 3))).save(tmp_path / "odd")
    with pytest.raises(DataError, match="do not fit together"):
        build_problem(("from-log", {"path": str(tmp_path / "odd")}), seed=0)
