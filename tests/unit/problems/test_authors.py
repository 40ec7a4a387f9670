"""The authors' worlds against a reconstruction that draws by hand, in the order that is on
record."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from pathlib import Path

import numpy as np
import pytest

import tidepull
from tidepull.errors import DataError, ParameterError
from tidepull.problems import build_problem, datasets
from tidepull.types import FloatArray

MEANS = np.array([0.1, 0.9, 0.8, 0.2, 0.3, 0.7, 0.6, 0.4])
ARMS = np.random.default_rng(5).integers(0, 4, 300).tolist()
LABELS = Path(os.environ.get("TIDEPULL_DATA", "none")) / "mnist" / "labels_first_4096.bin"
needs_labels = pytest.mark.skipif(not LABELS.is_file(), reason="needs MNIST's label order")


def played(row: str, arms: list[int], seed: int = 0) -> tuple[list[float], list[FloatArray]]:
    world = build_problem(("authors-world", {"row": row}), seed=seed)
    means, rewards = [], []
    for arm in arms:
        means.append(world.means())
        rewards.append(world.step(arm))
    return rewards, means


@pytest.mark.parametrize("seed", [0, 3])
def test_gaussian_row_draws_one_normal_number_a_pull(seed: int) -> None:
    state = np.random.RandomState(seed)
    signs = [(-1) ** (t // 10) for t in range(len(ARMS))]
    expected = [state.normal(s * MEANS[a], 0.1) for s, a in zip(signs, ARMS, strict=True)]
    assert played("flipping-gaussian", ARMS, seed)[0] == expected


def test_bernoulli_rows_draw_one_binomial_number_a_pull() -> None:
    state, position = np.random.RandomState(0), 0.0
    waves = []
    for arm in ARMS:
        p = (1 + np.sin(position + 2 * np.pi * np.arange(5) / 5)) / 2.0
        waves.append(float(state.binomial(1, p[arm])))
        position += 2 * np.pi / 32
    assert played("sinusoidal-bernoulli", ARMS)[0] == waves
    state, flips = np.random.RandomState(0), []
    for t, arm in enumerate(ARMS):
        p = MEANS if t // 10 % 2 == 0 else 1 - MEANS
        flips.append(float(state.binomial(1, p[arm])))
    assert played("flipping-bernoulli", ARMS)[0] == flips


def test_chain_draws_the_next_state_before_the_reward_of_a_hit() -> None:
    state = np.random.RandomState(0)
    best, expected, arms = state.choice(8), [], []
    for t in range(200):
        arm = best if t % 3 else 0
        arms.append(int(arm))
        mean = float(arm == best)
        if arm == best:
            best = state.choice(8, p=np.eye(8)[(best + 1) % 8])
        expected.append(state.normal(mean, 0.05))
    assert played("circular-markov-chain", arms)[0] == expected


@pytest.mark.parametrize("row", ["flipping-vector", "rotating-vector-32", "rotating-vector-2048"])
def test_linear_rows_draw_weights_pool_arms_and_then_noise_before_arms(row: str) -> None:
    state = np.random.RandomState(0)
    dim = 50 if row == "flipping-vector" else 2
    w = state.uniform(-1, 1, dim) if row == "flipping-vector" else np.zeros(2)
    pool = state.uniform(-1, 1, (2000, dim))
    pool /= np.linalg.norm(pool, axis=1, keepdims=True)
    offered, expected, best = pool[state.choice(2000, 25, replace=False)], [], []
    for t, arm in enumerate(ARMS):
        angle = 2 * np.pi * t / float(row.rpartition("-")[2]) if dim == 2 else 0.0
        now = (-1) ** (t // 64) * w / np.linalg.norm(w) if dim == 50 else None
        now = np.array([np.cos(angle), np.sin(angle)]) if now is None else now
        best.append((offered @ now).max())
        expected.append(offered[arm] @ now + state.normal(0, 0.05))
        offered = pool[state.choice(2000, 25, replace=False)]
    rewards, means = played(row, ARMS)
    np.testing.assert_allclose(rewards, expected, atol=1e-12)
    np.testing.assert_allclose([m.max() for m in means], best, atol=1e-12)


def test_luck_of_the_gaussian_row_is_the_same_whatever_is_played() -> None:
    for policy in ("random", ("sw-ucb", {"window": 25})):
        world = ("authors-world", {"row": "flipping-gaussian"})
        trial = tidepull.run_trial(world, policy, seed=7, problem_seed=0)
        luck = trial.realised_regret[-1] - trial.regret[-1]
        assert luck == pytest.approx(-0.1 * np.random.RandomState(0).normal(size=4096).sum())
        assert luck == pytest.approx(10.91, abs=0.005)


@needs_labels
def test_digits_are_the_images_of_the_authors_to_the_bit() -> None:
    file = io.BytesIO()
    np.save(file, datasets.training_digits().observations / 255.0)
    blob = b"blob %d\0" % len(file.getvalue()) + file.getvalue()
    assert hashlib.sha1(blob).hexdigest() == "6844469f3bb48288996dde582e6808de0f1669ce"


@needs_labels
def test_digits_count_a_regret_of_one_where_no_arm_pays() -> None:
    world = ("authors-world", {"row": "flipping-digits"})
    trial = tidepull.run_trial(world, ("fixed", {"arm": 1}), horizon=4095, problem_seed=0)
    labels = np.frombuffer(LABELS.read_bytes(), np.uint8)[:4095]
    flipped = np.arange(4095) // 64 % 2 == 1
    hits = np.where(flipped, labels % 2 == 0, labels == 1)
    assert trial.regret[-1] == 4095 - hits.sum() == 2838
    assert trial.realised_regret[-1] == pytest.approx(2843.58, abs=0.005)


@needs_labels
def test_label_order_is_read_from_the_file_of_mnist_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(b"\0" * 8 + LABELS.read_bytes() + b"\7" * 100)
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(packed)
    monkeypatch.setenv("TIDEPULL_DATA", str(tmp_path))
    datasets.training_digits.cache_clear()
    assert datasets.training_digits().labels[:5].tolist() == [5, 0, 4, 1, 9]
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(packed[:50])
    datasets.training_digits.cache_clear()
    with pytest.raises(DataError, match="does not hold the labels of MNIST"):
        datasets.training_digits()
    datasets.training_digits.cache_clear()


def test_seed_beyond_the_legacy_state_is_refused_in_a_sentence() -> None:
    with pytest.raises(ParameterError, match="at most 4294967295"):
        build_problem("authors-world", seed=2**32)
