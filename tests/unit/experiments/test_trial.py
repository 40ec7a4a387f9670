"""The loop: what it computes, and what it refuses."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidepull
from tidepull.errors import (
    ArmError,
    InputError,
    ParameterError,
    ProblemError,
    TidepullError,
    UnknownIdError,
)
from tidepull.types import Context, Event, FloatArray


class TwoArms:
    """Arm 1 pays 1, arm 0 pays nothing, without noise."""

    n_arms = 2

    def __init__(self, pay: float = 1.0, available: list[bool] | None = None) -> None:
        self.pay = pay
        self.available = None if available is None else np.array(available)

    def context(self) -> Context:
        return Context(available=self.available)

    def means(self) -> FloatArray:
        return np.array([0.0, 1.0])

    def step(self, arm: int) -> float:
        return self.pay * arm


class Always:
    def __init__(self, arm: Any) -> None:
        self.arm = arm
        self.learned: list[Event] = []

    def choose(self, context: Context) -> Any:
        return self.arm

    def learn(self, event: Event) -> None:
        self.learned.append(event)


def test_trial_counts_regret_from_the_means_and_reward_from_the_steps() -> None:
    bad, good = (
        tidepull.run_trial(TwoArms(), Always(0), horizon=5),
        tidepull.run_trial(TwoArms(2.0), Always(1), horizon=5),
    )
    assert bad.regret.tolist() == [1, 2, 3, 4, 5]
    assert good.regret.tolist() == [0, 0, 0, 0, 0]
    assert good.cumulative_reward.tolist() == [2, 4, 6, 8, 10]
    assert good.realised_regret.tolist() == [-1, -2, -3, -4, -5]


def test_trial_measures_regret_against_the_best_available_arm() -> None:
    trial = tidepull.run_trial(TwoArms(available=[True, False]), Always(0), horizon=3)
    assert trial.regret.tolist() == [0, 0, 0]


def test_trial_hands_every_event_to_the_policy_once_and_in_order() -> None:
    policy = Always(1)
    tidepull.run_trial(TwoArms(), policy, horizon=4)
    assert [(e.arm, e.reward) for e in policy.learned] == [(1, 1.0)] * 4


def test_trial_is_the_same_bytes_when_run_again() -> None:
    first, again = (
        tidepull.run_trial("flipping-gaussian", "sw-ucb", horizon=300, seed=8) for _ in range(2)
    )
    assert first.arms.tobytes() == again.arms.tobytes()
    assert first.rewards.tobytes() == again.rewards.tobytes()


def test_trial_keeps_the_world_when_only_the_problem_seed_is_fixed() -> None:
    trials = [
        tidepull.run_trial("flipping-vector", "random", horizon=40, seed=s, problem_seed=0)
        for s in (1, 2)
    ]
    assert np.array_equal(trials[0].optimal, trials[1].optimal)
    assert not np.array_equal(trials[0].arms, trials[1].arms)


@pytest.mark.parametrize(
    ("problem", "policy", "options", "error", "message"),
    [
        ("sinusoidal-bernouli", "ucb", {}, UnknownIdError, "did you mean 'sinusoidal-bernoulli'"),
        ("flipping-gaussian", "rnlp", {}, UnknownIdError, "no policy 'rnlp'"),
        (
            "flipping-gaussian",
            ("sw-ucb", {"windw": 3}),
            {},
            ParameterError,
            "did you mean 'window'",
        ),
        ("flipping-gaussian", "ucb", {"horizon": -1}, ParameterError, "horizon must be"),
        ("flipping-gaussian", "ucb", {"horizon": 2.5}, ParameterError, "horizon must be"),
        ("flipping-gaussian", "ucb", {"horizon": 5, "seed": -3}, ParameterError, "seed must be"),
        (TwoArms(float("nan")), Always(1), {"horizon": 5}, ProblemError, "returned nan in round 0"),
        (
            TwoArms(),
            Always(2),
            {"horizon": 5},
            ArmError,
            "chose 2 in round 0; arms are whole numbers from 0 to 1",
        ),
        (TwoArms(), Always(0.5), {"horizon": 5}, ArmError, "chose 0.5"),
        (TwoArms(available=[True, False]), Always(1), {"horizon": 5}, ArmError, "not available"),
        (object(), "ucb", {"horizon": 5}, ProblemError, "object has no n_arms"),
        (TwoArms(), object(), {"horizon": 5}, ProblemError, "object has no choose"),
    ],
)
def test_trial_refuses_bad_input_with_one_sentence(
    problem: Any, policy: Any, options: dict[str, Any], error: type[TidepullError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        tidepull.run_trial(problem, policy, **options)
    assert "\n" not in str(caught.value)


def test_trial_refuses_a_problem_whose_means_are_not_finite() -> None:
    class Broken(TwoArms):
        def means(self) -> FloatArray:
            return np.array([0.0, np.nan])

    with pytest.raises(ProblemError, match="means"):
        tidepull.run_trial(Broken(), Always(1), horizon=3)


@pytest.mark.parametrize("example", ["own_policy", "own_problem"])
def test_example_prints_its_regret_when_run(
    example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(
        str(Path(__file__).parents[3] / "examples" / f"{example}.py"), run_name="__main__"
    )
    assert "regret after 1,000 rounds" in capsys.readouterr().out


class Notes:
    """Plays arm 0 and writes down when which round was finished."""

    def __init__(self) -> None:
        self.chosen = 0
        self.heard: list[tuple[int, int | None]] = []

    def choose(self, context: Context) -> int:
        self.chosen += 1
        return 0

    def learn(self, event: Event) -> None:
        self.heard.append((self.chosen, event.decided))


def test_trial_delivers_a_reward_after_as_many_further_choices_as_it_is_late() -> None:
    notes = Notes()
    tidepull.run_trial(TwoArms(), notes, horizon=6, delay=2)
    assert notes.heard == [(3, 0), (4, 1), (5, 2), (6, 3)]


def test_trial_delivers_out_of_order_and_never_when_the_delay_says_so() -> None:
    notes = Notes()
    tidepull.run_trial(TwoArms(), notes, horizon=6, delay=lambda t: [3, 0, None, 1, 0, 0][t])
    assert notes.heard == [(2, 1), (4, 0), (5, 3), (5, 4), (6, 5)]


def test_trial_delays_rewards_alike_for_every_policy_under_one_seed() -> None:
    first, second = Notes(), Notes()
    for notes in (first, second):
        tidepull.run_trial(TwoArms(), notes, horizon=200, seed=4, delay="geometric:5:0.1")
    assert first.heard == second.heard
    late = [now - 1 - decided for now, decided in first.heard if decided is not None]
    assert 3.5 < np.mean(late) < 6.5
    assert 160 <= len(late) < 200


@pytest.mark.parametrize(
    "delay", [-1, 1.5, True, "geometric", "geometric:20:1", "soon", None, lambda _: -1]
)
def test_trial_refuses_a_delay_that_is_none(delay: Any) -> None:
    with pytest.raises(ParameterError, match="delay"):
        tidepull.run_trial(TwoArms(), Notes(), horizon=3, delay=delay)


class Odd(TwoArms):
    """A world of which one answer is wrong, from some round on."""

    def __init__(self, part: str, answer: Any, since: int = 0) -> None:
        super().__init__()
        self._part, self._answer, self._since, self._t = part, answer, since, 0

    def _or_odd(self, part: str, answer: Any) -> Any:
        return self._answer if part == self._part and self._t >= self._since else answer

    def context(self) -> Any:
        return self._or_odd("context", super().context())

    def means(self) -> Any:
        return self._or_odd("means", super().means())

    def step(self, arm: int) -> Any:
        answer = self._or_odd("step", super().step(arm))
        self._t += 1
        return answer


@pytest.mark.parametrize("policy", ["ucb", "tide", Always(1)], ids=["ucb", "tide", "own"])
@pytest.mark.parametrize("since", [0, 2])
@pytest.mark.parametrize(
    ("part", "answer", "sentence"),
    [
        ("context", None, r"context\(\) must return a tidepull.Context, got"),
        ("context", {"observation": [1]}, r"context\(\) must return a tidepull.Context"),
        ("context", Context(available=[1, 0]), "available must be 2 booleans"),  # type: ignore[arg-type]
        ("context", Context(available=[[True], [True, False]]), "available must be"),  # type: ignore[arg-type]
        ("means", None, r"means\(\) must be 2 finite numbers"),
        ("means", "red", r"means\(\) must be 2 finite numbers"),
        ("means", [[0.0], [1.0, 2.0]], r"means\(\) must be 2 finite numbers"),
        ("step", None, r"step\(\d\) returned None in round"),
        ("step", "1", r"step\(\d\) returned '1' in round"),
        ("step", [1.0, 2.0], r"step\(\d\) returned"),
        ("step", float("inf"), r"step\(\d\) returned inf in round"),
        ("step", 10**400, r"step\(\d\) returned"),
    ],
)
def test_trial_says_what_is_wrong_with_a_problem_object(
    part: str, answer: Any, sentence: str, since: int, policy: Any
) -> None:
    with pytest.raises(InputError, match=sentence):
        tidepull.run_trial(Odd(part, answer, since), policy, horizon=5)


@pytest.mark.parametrize(
    ("context", "sentence"),
    [
        (
            Context(arm_features=np.ones(2)),
            "arm_features must be a matrix with a row for each of 2 arms",
        ),
        (
            Context(arm_features=np.ones((3, 2))),
            "arm_features must be a matrix with a row for each of 2 arms",
        ),
        (Context(observation=np.ones((2, 2))), "observation must be one vector"),
        (Context(observation=[[1.0], [1.0, 2.0]]), "equally long"),  # type: ignore[arg-type]
    ],
)
def test_trial_refuses_contexts_that_have_no_shape(context: Context, sentence: str) -> None:
    with pytest.raises(ProblemError, match=sentence):
        tidepull.run_trial(Odd("context", context), "ucb", horizon=5)


@pytest.mark.parametrize("n_arms", [0, -1, 2.0, True, None, "2"])
def test_trial_refuses_a_problem_whose_number_of_arms_is_none(n_arms: Any) -> None:
    world = TwoArms()
    world.n_arms = n_arms
    with pytest.raises(
        ProblemError, match="the problem's n_arms must be a whole number of at least 1"
    ):
        tidepull.run_trial(world, "ucb", horizon=5)


@pytest.mark.parametrize("values", [None, [], 3, "discount", {1: 2}])
def test_parameters_that_are_no_dictionary_of_names_are_refused(values: Any) -> None:
    with pytest.raises(
        ParameterError, match="ucb: parameters must be a dictionary of names and values"
    ):
        tidepull.run_trial("flipping-gaussian", ("ucb", values), horizon=5)


def test_trial_settles_what_a_policy_leaves_to_the_problem() -> None:
    left = {"discount": "variation-budget", "parameter_bound": "problem"}
    trials = [
        tidepull.run_trial("flipping-vector", ("d-lin-ucb", parameters), horizon=200, seed=3)
        for parameters in (left, {"discount": 1 - (6 / (50 * 200)) ** (2 / 3)}, {})
    ]
    np.testing.assert_array_equal(trials[0].arms, trials[1].arms)
    assert not np.array_equal(trials[0].arms, trials[2].arms)
