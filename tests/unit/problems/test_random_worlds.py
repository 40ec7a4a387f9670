"""Random worlds: what their number decides, and the rules of the outsiders."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.errors import ProblemError
from tidepull.experiments.loop import run_trial
from tidepull.problems import build_problem, shape_of
from tidepull.problems.arms import WallClockArms
from tidepull.problems.markov import ParityMachine, TwoStepChain
from tidepull.problems.random_drifts import LONGEST, Tabulated, drifting_means, phases_of
from tidepull.problems.random_worlds import KINDS, LabelledPath, random_landscape
from tidepull.problems.rewards import GaussianReward


def silent() -> GaussianReward:
    return GaussianReward(0.0, np.random.default_rng(0))


def test_every_seed_has_a_world_of_its_own_when_asked_to() -> None:
    named = ("random-world", {"kind": "arms-stationary", "by_seed": True})
    for seed in (3, 4):
        numbered = ("random-world", {"kind": "arms-stationary", "world": seed})
        assert np.array_equal(
            build_problem(named, seed=seed).means(), build_problem(numbered, seed=seed).means()
        )


@pytest.mark.parametrize("kind", KINDS)
def test_world_is_decided_by_its_number_and_noise_by_the_seed(kind: str) -> None:
    named = ("random-world", {"world": 3, "kind": kind})
    one, two = build_problem(named, seed=1), build_problem(named, seed=2)
    other = build_problem(("random-world", {"world": 4, "kind": kind}), seed=1)
    assert shape_of(one) == shape_of(two)
    if isinstance(one, WallClockArms) and isinstance(two, WallClockArms):
        assert np.array_equal(one.at(1e9), two.at(1e9))  # visitors come at times of their own
    elif kind.startswith("arms"):
        assert np.array_equal(one.means(), two.means())
    assert shape_of(one) != shape_of(other) or not np.array_equal(one.means(), other.means())
    trial = run_trial(named, "random", horizon=50, seed=1)
    assert np.isfinite(trial.rewards).all()
    assert trial.regret[-1] > 0


def test_kinds_take_turns_when_any_is_asked_for() -> None:
    shapes = {shape_of(build_problem(("random-world", {"world": w}), seed=0)) for w in range(17)}
    assert any(shape.arm_dim for shape in shapes)
    assert any(shape.observation_dim for shape in shapes)
    assert any(not shape.arm_dim and not shape.observation_dim for shape in shapes)


def test_means_stay_between_zero_and_one_and_seasons_repeat() -> None:
    for kind in ("stationary", "flip", "irregular", "sine", "seasons", "walk"):
        means = drifting_means(kind, 4, np.random.default_rng(1)).rows
        assert means.shape == (LONGEST, 4)
        assert means.min() >= 0
        assert means.max() <= 1
    phases = phases_of("flip", np.random.default_rng(2))
    lengths = np.diff(np.flatnonzero(np.diff(phases)))
    assert len(set(lengths)) == 1


def test_table_says_when_it_has_ended() -> None:
    with pytest.raises(ProblemError, match="ends after 3 rounds"):
        Tabulated(np.zeros((3, 2)))(3)


def test_parity_machine_switches_after_every_second_success() -> None:
    machine = ParityMachine(np.array([[1.0, 0.0], [0.0, 1.0]]), silent())
    best = []
    for arm in (0, 1, 0, 0, 1, 0, 1, 1):
        best.append(int(np.argmax(machine.means())))
        machine.step(arm)
    assert best == [0, 0, 0, 1, 1, 1, 1, 0]


def test_two_step_chain_moves_by_the_last_two_successes() -> None:
    successor = np.array([[1, 2, 0], [2, 0, 1], [0, 1, 2]])
    chain = TwoStepChain(successor, silent())
    visited = []
    for _ in range(6):
        now = int(np.argmax(chain.means()))
        visited.append(now)
        assert chain.step((now + 1) % 3) == 0.0
        assert chain.step(now) == 1.0
    before = [0, *visited[:-1]]
    assert visited[1:] == [int(successor[b, n]) for b, n in zip(before, visited[:-1], strict=False)]


def test_path_pays_the_arm_of_its_label_under_the_rule_of_the_phase() -> None:
    labels, phases = np.array([0, 1, 1]), np.array([0, 0, 1])
    path = LabelledPath(
        np.arange(6.0).reshape(3, 2), labels, np.array([[0, 1], [1, 0]]), phases, silent()
    )
    paid = []
    for reading in ([0, 1], [2, 3], [4, 5]):
        seen = path.context().observation
        assert seen is not None
        assert seen.tolist() == reading
        paid.append(path.step(0))
    assert paid == [1.0, 0.0, 1.0]
    with pytest.raises(ProblemError, match="ends after 3 rounds"):
        path.context()


def test_walk_through_a_landscape_moves_slowly_and_visits_every_label() -> None:
    readings, labels = random_landscape(4, np.random.default_rng(0)).walk(np.random.default_rng(1))
    assert readings.shape[0] == len(labels) == LONGEST
    assert set(labels) == {0, 1, 2, 3}
    by_chance = float(np.sum((np.bincount(labels) / LONGEST) ** 2))
    assert np.mean(labels[1:] == labels[:-1]) > 2 * by_chance
