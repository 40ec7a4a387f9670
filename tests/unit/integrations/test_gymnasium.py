from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.errors import ArmError, DataError, MissingExtraError, ParameterError, ProblemError
from tidepull.experiments.loop import run_trial
from tidepull.problems import build_problem, problems
from tidepull.types import Context, FloatArray

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from tidepull.integrations.gymnasium import BanditEnv, GymnasiumProblem, register


def make(id: str, **given: Any) -> Any:
    try:
        return gymnasium.make(f"tidepull/{id}-v0", **given)
    except (DataError, MissingExtraError) as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("id", problems.ids())
def test_every_problem_passes_gymnasiums_own_checker(id: str) -> None:
    env = make(id).unwrapped
    check_env(env, skip_render_check=True, skip_close_check=True)
    assert env.spec.id == f"tidepull/{id}-v0"
    assert env.horizon == problems.entry(id).horizon


def test_the_checker_also_makes_an_environment_again_from_its_spec() -> None:
    check_env(make("flipping-bernoulli", half_period=3).unwrapped)


def test_an_id_with_its_module_needs_no_import() -> None:
    env = gymnasium.make("tidepull.integrations.gymnasium:tidepull/sinusoidal-bernoulli-v0")
    assert env.action_space.n == 5


@pytest.mark.parametrize(
    "id", ["flipping-gaussian", "steady-contexts", "rotating-vector-32", "wall-clock-bernoulli"]
)
def test_an_episode_pays_and_regrets_as_a_trial_of_the_same_seed(id: str) -> None:
    env = make(id, horizon=40)
    trial = run_trial(id, "random", horizon=40, seed=6)
    world = build_problem(id, seed=6)
    observation, info = env.reset(seed=6)
    assert info == {}
    rewards, gaps, ends = [], [], []
    for arm in trial.arms:
        expected, shown = (
            world.context(),
            dict(observation) if isinstance(observation, dict) else observation,
        )
        if isinstance(shown, dict):
            assert np.array_equal(
                shown.get("arm_features", 0),
                0 if expected.arm_features is None else expected.arm_features,
            )
            assert shown.get("time", [None])[0] == expected.time
        elif expected.observation is not None:
            assert np.array_equal(shown, expected.observation)
        else:
            assert shown == 0
        world.step(int(arm))
        observation, reward, terminated, truncated, info = env.step(arm)
        rewards.append(reward)
        gaps.append(info["regret"])
        ends.append((terminated, truncated))
    assert rewards == trial.rewards.tolist()
    assert np.array_equal(np.cumsum(gaps), trial.regret)
    assert ends == [(False, False)] * 39 + [(False, True)]


def test_resets_without_a_seed_draw_new_worlds_that_follow_from_the_first() -> None:
    first, second = make("steady-contexts"), make("steady-contexts")
    means = []
    for env in (first, second):
        env.reset(seed=1)
        env.reset()
        means.append(env.unwrapped.means())
    assert np.array_equal(*means)
    assert not np.array_equal(means[0], build_problem("steady-contexts", seed=1).means())


def test_wrong_actions_and_parameters_are_one_sentence() -> None:
    env = BanditEnv("flipping-bernoulli")
    env.reset(seed=0)
    with pytest.raises(ArmError, match="one of 8 arms"):
        env.step(8)
    with pytest.raises(ParameterError, match="half_period must be ≥ 1"):
        BanditEnv("flipping-bernoulli", half_period=0)
    with pytest.raises(ParameterError, match="horizon must be a whole number"):
        BanditEnv("flipping-bernoulli", horizon=0)


@pytest.mark.parametrize(
    "id", ["flipping-gaussian", "steady-contexts", "rotating-vector-32", "wall-clock-bernoulli"]
)
def test_a_trial_on_our_environment_is_a_trial_on_the_problem(id: str) -> None:
    there = run_trial(GymnasiumProblem(make(id), seed=2), "lin-ts", horizon=50, seed=2)
    here = run_trial(id, "lin-ts", horizon=50, seed=2)
    assert there.arms.tolist() == here.arms.tolist()
    assert np.array_equal(there.regret, here.regret)
    assert there.remark == ""


class Lamp(gymnasium.Env[Any, Any]):
    """One step an episode, as many bandit environments have it; the lit one of actions 5, 6, 7
    pays."""

    action_space = spaces.Discrete(3, start=5)
    observation_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.lit = int(self.np_random.integers(3))
        return self.lit, {"action_mask": np.array([1, 1, self.lit == 2], np.int8)}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return self.lit, float(action - 5 == self.lit), True, False, {}


def lamp_means(env: Lamp) -> FloatArray:
    return np.array([float(k == env.lit) for k in range(3)])


def test_a_foreign_environment_is_played_as_by_hand() -> None:
    trial = run_trial(
        GymnasiumProblem(Lamp(), seed=4, means=lamp_means), "lin-ts", horizon=60, seed=0
    )
    env = Lamp()
    lit, _ = env.reset(seed=4)
    rewards = []
    for arm in trial.arms:
        assert arm < 2 or lit == 2
        rewards.append(env.step(5 + int(arm))[1])
        lit, _ = env.reset()
    assert trial.rewards.tolist() == rewards
    assert trial.regret[-1] == 60 - sum(rewards)
    assert sum(rewards[30:]) >= 27


def test_contexts_of_a_foreign_environment_are_one_vector_and_a_mask() -> None:
    problem = GymnasiumProblem(Lamp(), seed=4, means=lamp_means)
    context: Context = problem.context()
    lit = int(np.argmax(problem.means()))
    assert context.observation is not None
    assert context.observation.tolist() == np.eye(3)[lit].tolist()
    assert context.available is not None
    assert context.available.tolist() == [True, True, lit == 2]


def test_an_environment_whose_truth_nobody_knows_must_be_declared_so() -> None:
    with pytest.raises(ProblemError, match="means='unknown'"):
        GymnasiumProblem(Lamp())
    with pytest.raises(ProblemError, match="a function of the environment or 'unknown'"):
        GymnasiumProblem(Lamp(), means="none")
    trial = run_trial(GymnasiumProblem(Lamp(), seed=0, means="unknown"), "random", horizon=10)
    assert trial.regret.tolist() == [0.0] * 10
    assert "rewards count" in trial.remark


def test_only_discrete_actions_are_arms() -> None:
    env = Lamp()
    env.action_space = spaces.Box(0, 1)
    with pytest.raises(ProblemError, match="Discrete"):
        GymnasiumProblem(env, means="unknown")


def test_registering_again_adds_problems_of_ones_own_and_nothing_else() -> None:
    before = set(gymnasium.registry)
    register()
    assert set(gymnasium.registry) == before
