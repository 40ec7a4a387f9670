"""What version 11 does otherwise than version 10, where arms have weights of their own on an observation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.policies.tide.continuing import arms_after_restoring
from tidepull.experiments.loop import run_trial
from tidepull.policies.tide import Tide, TideParameters
from tidepull.policies.tide.wild import WildRewards
from tidepull.random import Streams
from tidepull.types import Context, Event, ProblemShape


def taught(version: int, rounds: int = 600) -> Tide:
    """Two arms, of which the sign of the observation says which one pays 1; from round 2 on that one is played."""
    tide = Tide(TideParameters(version=version, without=("network",)), ProblemShape(2, 3), Streams(1))
    rng = np.random.default_rng(2)
    for t in range(rounds):
        x = rng.normal(size=3)
        x[0] += 3.0 * rng.choice([-1, 1])
        context = Context(observation=x)
        tide.choose(context)
        arm = int(x[0] > 0) if t >= 2 else t
        tide.learn(Event(context, arm, float(arm == (x[0] > 0)) + 0.1 * rng.normal(), t))
        while tide.upkeep():
            pass
    return tide


def mistaken(tide: Tide, reward: float, t: int = 600) -> int:
    """How many rewards are set aside after one for the wrong arm."""
    context = Context(observation=np.array([3.0, 0.0, 0.0]))
    tide.choose(context)
    before = tide.diagnostics()["set_aside"]
    tide.learn(Event(context, 0, reward, t))
    return int(tide.diagnostics()["set_aside"] - before)


@pytest.mark.parametrize("problem", ["flipping-bernoulli", "flipping-gaussian", "flipping-vector"])
def test_version_11_plays_as_version_10_where_nothing_is_observed(problem: str) -> None:
    ten, eleven = (
        run_trial(problem, ("tide", {"version": version}), horizon=200, seed=3).arms for version in (10, 11)
    )
    np.testing.assert_array_equal(ten, eleven)


def test_mistake_of_who_is_nearly_always_right_is_learnt_in_version_11_alone() -> None:
    assert mistaken(taught(10), 0.0) == 1
    assert mistaken(taught(11), 0.0) == 0


def test_absurd_reward_is_set_aside_when_something_is_observed() -> None:
    assert mistaken(taught(11, 400), -1e14, 400) == 1


@pytest.mark.parametrize(("beyond", "reward", "taken"), [(3, 0.6, False), (30, 0.6, True), (30, -2.1, False)])
def test_reward_is_taken_when_it_lies_less_than_as_many_times_as_far_out(
    beyond: float, reward: float, taken: bool
) -> None:
    wild = WildRewards(0.01, 2, beyond=beyond)
    for usual in [1.0, 0.9, 1.1, 1.0] * 20:
        wild.takes(0, usual)
    assert wild.takes(0, reward) is taken


def test_arms_count_as_known_later_where_each_has_weights_of_its_own() -> None:
    assert [TideParameters(version=11).plays(observed=seen) for seen in (True, False)] == [1.0, 0.5]
    assert TideParameters(version=10).plays(observed=True) == 0.5


def test_version_11_tries_other_arms_than_version_10_where_no_reward_is_set_aside() -> None:
    ten, eleven = (
        run_trial("steady-contexts", ("tide", {"version": version}), horizon=120, seed=3)
        for version in (10, 11)
    )
    assert ten.diagnostics["set_aside"] == eleven.diagnostics["set_aside"] == 0
    assert list(ten.arms) != list(eleven.arms)


@pytest.mark.parametrize(("version", "due"), [(10, True), (11, False)])
def test_newborns_are_looked_for_after_4352_rewards_up_to_version_10_alone(version: int, due: bool) -> None:
    few = (
        "network",
        "changes",
        "regimes",
        "seasons",
        "turns",
        "last event",
        "last success",
        "discounted",
        "fourier",
    )
    tide = Tide(TideParameters(version=version, without=few), ProblemShape(2), Streams(1))
    rng = np.random.default_rng(4)
    for t in range(4352):
        while tide.upkeep():
            pass
        tide.learn(Event(Context(), tide.choose(Context()), float(rng.random() < 0.5), t))
    assert tide.pending is due


def test_version_11_continues_bit_by_bit_when_restored() -> None:
    def see(rng: np.random.Generator) -> tuple[Context, Callable[[int], float]]:
        return Context(observation=rng.normal(size=4)), list(map(float, rng.normal(size=3))).__getitem__

    went_on, restored = arms_after_restoring(11, ProblemShape(3, 4), see, 150, 90)
    assert went_on == restored
