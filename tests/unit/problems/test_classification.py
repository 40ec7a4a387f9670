from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.problems import datasets
from tidepull.problems.classification import (
    ClassificationProblem,
    FlippingDigitsParameters,
    WallFollowingParameters,
    flipping_digits,
    wall_following,
)
from tidepull.random import Streams
from tidepull.types import FloatArray

STREAMS = Streams(2)
DATA = os.environ.get("TIDEPULL_DATA")
needs_robot = pytest.mark.skipif(
    not (DATA and (Path(DATA) / datasets.WALL_FOLLOWING.name).is_file()),
    reason=f"needs {datasets.WALL_FOLLOWING.name} in TIDEPULL_DATA",
)


def rounds(problem: ClassificationProblem, horizon: int) -> tuple[FloatArray, FloatArray]:
    observations, means = [], []
    for _ in range(horizon):
        observation = problem.context().observation
        assert observation is not None
        observations.append(observation)
        means.append(problem.means())
        problem.step(0)
    return np.array(observations), np.array(means)


def labels_of(observations: FloatArray) -> list[int]:
    """The labels of images, looked up in the data set by their pixels."""
    data = datasets.digits()
    by_pixels = {
        row.tobytes(): int(label) for row, label in zip(data.observations, data.labels, strict=True)
    }
    return [by_pixels[(row * 255).round().astype(np.uint8).tobytes()] for row in observations]


def test_digits_pay_the_arm_of_the_label_and_its_mirror_in_flipped_phases() -> None:
    observations, means = rounds(flipping_digits(FlippingDigitsParameters(), STREAMS), 300)
    for t, label in enumerate(labels_of(observations)):
        arm = label if t // 64 in (0, 2, 4) else 9 - label
        expected = np.zeros(10)
        expected[arm] = 1.0
        np.testing.assert_array_equal(means[t], expected, err_msg=f"round {t}")


def test_digits_of_the_published_code_pay_arm_one_or_nobody_in_flipped_phases() -> None:
    parameters = FlippingDigitsParameters(variant="published-code")
    observations, means = rounds(flipping_digits(parameters, STREAMS), 300)
    for t, label in enumerate(labels_of(observations)):
        flipped = t // 64 in (1, 3)
        paying = np.flatnonzero(means[t]).tolist()
        if not flipped:
            assert paying == [label]
        elif label % 2 == 0:
            assert paying == [1]
        else:
            assert paying == []


def test_digits_are_scaled_images_in_an_order_of_the_seed() -> None:
    first, _ = rounds(flipping_digits(FlippingDigitsParameters(), STREAMS), 5000)
    other, _ = rounds(flipping_digits(FlippingDigitsParameters(), Streams(3)), 5000)
    assert first.shape == (5000, 784)
    assert first.min() == 0.0
    assert first.max() == 1.0
    assert not np.array_equal(first[:100], other[:100])
    stored = datasets.digits().observations / 255
    np.testing.assert_array_equal(np.sort(first.sum(axis=1)), np.sort(stored.sum(axis=1)))


def test_digits_start_again_after_the_last_image() -> None:
    problem = flipping_digits(FlippingDigitsParameters(), STREAMS)
    observations, _ = rounds(problem, 5001)
    np.testing.assert_array_equal(observations[5000], observations[0])


def test_digits_rewards_scatter_around_the_means() -> None:
    problem = flipping_digits(FlippingDigitsParameters(), STREAMS)
    errors = np.empty(10_000)
    for t in range(len(errors)):
        expected = problem.means()[t % 10]
        errors[t] = problem.step(t % 10) - expected
    assert abs(errors.mean()) < 4 * 0.05 / 100
    assert errors.std() == pytest.approx(0.05, rel=0.03)


def test_worlds_are_equal_whatever_is_played() -> None:
    first, second = (flipping_digits(FlippingDigitsParameters(), STREAMS) for _ in range(2))
    for t in range(100):
        a, b = first.context().observation, second.context().observation
        assert a is not None
        assert b is not None
        np.testing.assert_array_equal(a, b)
        first.step(t % 10)
        second.step(9)
    assert first.step(4) == second.step(4)


def test_random_regret_of_digits_counts_one_in_rounds_in_which_no_arm_pays() -> None:
    assert flipping_digits(FlippingDigitsParameters(), STREAMS).random_regret(
        4095
    ) == pytest.approx(3685.5)
    published = flipping_digits(FlippingDigitsParameters(variant="published-code"), STREAMS)
    _, means = rounds(
        flipping_digits(FlippingDigitsParameters(variant="published-code"), STREAMS), 4095
    )
    paying = means.max(axis=1).sum()
    assert published.random_regret(4095) == pytest.approx(0.9 * paying + 4095 - paying)


def test_unknown_variant_is_refused() -> None:
    with pytest.raises(ParameterError, match="variant"):
        FlippingDigitsParameters.from_mapping({"variant": "mine"})


@needs_robot
def test_robot_shows_raw_rows_in_order_and_pays_the_movement_of_the_same_row() -> None:
    lines = (Path(str(DATA)) / datasets.WALL_FOLLOWING.name).read_text().split()
    names = ["Move-Forward", "Slight-Right-Turn", "Sharp-Right-Turn", "Slight-Left-Turn"]
    observations, means = rounds(wall_following(WallFollowingParameters(), STREAMS), 5457)
    for t in (0, 1, 2, 1000, 5455, 5456):
        *readings, movement = lines[t % 5456].split(",")
        assert observations[t].tolist() == [float(reading) for reading in readings]
        assert int(np.argmax(means[t])) == names.index(movement)
        assert means[t].sum() == 1.0


@needs_robot
def test_random_regret_of_the_robot_is_three_quarters_of_the_horizon() -> None:
    assert wall_following(WallFollowingParameters(), STREAMS).random_regret(5455) == 4091.25
