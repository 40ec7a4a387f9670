"""The two problems on a small prepared file: pools, drift, budget, remark."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tidepull.errors import DataError, ParameterError
from tidepull.problems import build_problem, problems
from tidepull.problems.criteo.banners import Prepared, load, save
from tidepull.problems.criteo.prepare import feature_rows, prepare_blocks
from tidepull.problems.linear import LinearProblem

BOTH = pytest.mark.parametrize("id", ["criteo-partial-flip", "criteo-flipping"])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("criteo") / "criteo-10.npz"
    save(prepare_blocks(feature_rows(3000, seed=0), dim=10, sample=3000), path)
    return path


def make(id: str, path: Path, seed: int = 0, **parameters: float) -> LinearProblem:
    problem = build_problem((id, {"path": str(path), "dim": 10, **parameters}), seed=seed)
    assert isinstance(problem, LinearProblem)
    return problem


def rows_of(pool: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> set[bytes]:
    return {row.tobytes() for row in pool.astype(float)}


@BOTH
def test_defaults_are_those_of_the_paper(id: str) -> None:
    entry = problems.entry(id)
    defaults = entry.parse({}).to_mapping()
    assert entry.horizon == 10_000
    assert (defaults["n_arms"], defaults["dim"], defaults["path"]) == (10, 50, None)
    assert math.isclose(defaults["noise_std"] ** 2, 0.15)
    moving = {k: v for k, v in defaults.items() if k in ("change_at", "share", "half_period")}
    assert moving in ({"change_at": 4000, "share": 0.6}, {"half_period": 256})


@BOTH
def test_round_offers_as_many_clicked_as_not_clicked_banners(id: str, path: Path) -> None:
    prepared = load(path)
    clicked, others = rows_of(prepared.clicked), rows_of(prepared.not_clicked)
    only = clicked - others, others - clicked
    problem = make(id, path)
    places = np.zeros(10)
    for _ in range(300):
        features = problem.context().arm_features
        assert features is not None
        assert features.shape == (10, 10)
        rows = [row.tobytes() for row in np.asarray(features, float)]
        surely = [sum(row in pool for row in rows) for pool in only]
        assert max(surely) <= 5
        assert all(row in clicked | others for row in rows)
        places += [row in only[0] for row in rows]
        problem.step(0)
    share = places.sum() / 3000
    # the place of an arm says nothing of its pool
    assert np.abs(places / 300 - share).max() < 4.5 * math.sqrt(share * (1 - share) / 300)


def test_pool_rows_are_not_drawn_twice_in_a_round(tmp_path: Path, path: Path) -> None:
    prepared = load(path)
    few = replace(prepared, clicked=prepared.clicked[:5], not_clicked=prepared.not_clicked[:5])
    save(few, tmp_path / "few.npz")
    problem = make("criteo-flipping", tmp_path / "few.npz")
    everything = np.sort(np.concatenate([few.clicked, few.not_clicked]).astype(float), axis=0)
    for _ in range(20):
        features = problem.context().arm_features
        assert features is not None
        np.testing.assert_array_equal(np.sort(features, axis=0), everything)
        problem.step(0)


def test_partial_flip_switches_six_signs_in_ten_once(path: Path) -> None:
    theta = load(path).theta
    problem = make("criteo-partial-flip", path, change_at=7)
    before, after = problem.drift(6), problem.drift(7)
    np.testing.assert_array_equal(before, theta)
    assert int((before == -after).sum()) == 6
    assert int((before == after).sum()) == 4
    np.testing.assert_array_equal(problem.drift(100_000), after)
    assert problem.variation_budget(10_000) == pytest.approx(np.linalg.norm(after - before))


def test_partial_flip_chooses_the_components_by_the_seed(path: Path) -> None:
    flipped = {make("criteo-partial-flip", path, seed).drift(4000).tobytes() for seed in range(8)}
    assert len(flipped) > 4
    again = make("criteo-partial-flip", path, 3).drift(4000)
    np.testing.assert_array_equal(again, make("criteo-partial-flip", path, 3).drift(4000))


def test_flipping_negates_the_parameter_every_half_period(path: Path) -> None:
    theta = load(path).theta
    problem = make("criteo-flipping", path)
    for t, sign in ((0, 1), (255, 1), (256, -1), (511, -1), (512, 1)):
        np.testing.assert_array_equal(problem.drift(t), sign * theta)
    assert problem.variation_budget(10_000) == pytest.approx(39 * 2 * np.linalg.norm(theta))


@BOTH
def test_rewards_are_linear_with_the_papers_noise(id: str, path: Path) -> None:
    problem = make(id, path)
    theta, noise = load(path).theta, []
    for t in range(250):
        features = problem.context().arm_features
        assert features is not None
        means = problem.means()
        np.testing.assert_allclose(means, features @ theta, atol=1e-12)
        noise.append(problem.step(t % 10) - means[t % 10])
    # 250 draws: the variance's standard error is 0.15 * sqrt(2 / 250)
    assert np.var(noise) == pytest.approx(0.15, abs=4 * 0.15 * math.sqrt(2 / 250))


@BOTH
def test_label_says_synthetic_only_when_it_is(id: str, path: Path, tmp_path: Path) -> None:
    assert make(id, path).remark == "synthetic Criteo"
    prepared: Prepared = load(path)
    save(replace(prepared, about=prepared.about | {"synthetic": False}), tmp_path / "real.npz")
    assert make(id, tmp_path / "real.npz").remark == ""


def test_other_dimension_than_the_files_is_refused(path: Path) -> None:
    with pytest.raises(DataError, match="prepared with 10 dimensions, not 50; set dim=10"):
        build_problem(("criteo-flipping", {"path": str(path)}), seed=0)


def test_odd_number_of_arms_is_refused(path: Path) -> None:
    with pytest.raises(ParameterError, match="n_arms must be even, got 9"):
        make("criteo-flipping", path, n_arms=9)
    with pytest.raises(ParameterError, match="n_arms asks for"):
        make("criteo-flipping", path, n_arms=8000)


@BOTH
def test_lengths_of_w_and_of_vectors_are_those_of_the_file(id: str, path: Path) -> None:
    prepared = load(path)
    everything = np.concatenate([prepared.clicked, prepared.not_clicked]).astype(float)
    S, L = make(id, path).linear_bounds(5000)
    assert pytest.approx(float(np.sqrt((prepared.theta**2).sum())), rel=1e-12) == S
    assert pytest.approx(float(np.sqrt((everything**2).sum(axis=1)).max()), rel=1e-12) == L
    assert L > 1.0
