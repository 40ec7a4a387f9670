from __future__ import annotations

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.problems.classification import ClassBlocks, ClassBlocksParameters
from tidepull.random import Streams


def labels(problem: ClassBlocks, rounds: int) -> list[int]:
    found = []
    for _ in range(rounds):
        found.append(int(np.argmax(problem.means())))
        problem.step(0)
    return found


def test_class_blocks_pay_the_arm_of_the_class_and_no_other() -> None:
    problem = ClassBlocks(ClassBlocksParameters(n_arms=6, together=3, sure=0.9), Streams(3))
    paid = []
    for t in range(400):
        right = int(np.argmax(problem.means()))
        assert sorted(problem.means()) == [0, 0, 0, 0, 0, 0.9]
        reward = problem.step(right if t % 2 else (right + 1) % 6)
        assert t % 2 or reward == 0
        paid += [reward] * (t % 2)
    assert set(paid) == {0.0, 1.0}
    assert np.mean(paid) == pytest.approx(0.9, abs=0.06)


def test_class_blocks_show_every_class_once_before_one_returns() -> None:
    parameters = ClassBlocksParameters(n_arms=6, together=2, block=50)
    found = np.array(labels(ClassBlocks(parameters, Streams(4)), 300)).reshape(6, 50)
    classes = [set(block.tolist()) for block in found]
    assert all(len(block) == 2 for block in classes)
    for first in (0, 3):
        assert set.union(*classes[first : first + 3]) == set(range(6))


def test_class_blocks_have_centres_as_far_apart_as_asked_on_average() -> None:
    problem = ClassBlocks(ClassBlocksParameters(apart=50.0, n_arms=30, together=30), Streams(5))
    points: dict[int, np.ndarray] = {}
    for _ in range(600):
        points[int(np.argmax(problem.means()))] = np.array(problem.context().observation)
        problem.step(0)
    rows = np.array(list(points.values()))
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)[np.triu_indices(len(rows), 1)]
    assert distances.mean() == pytest.approx(50.0, rel=0.1)


def test_class_blocks_refuse_more_classes_together_than_there_are() -> None:
    with pytest.raises(ParameterError, match="together must be at most n_arms"):
        ClassBlocksParameters(n_arms=3, together=4)
