"""Rewards that are nothing like all others."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.bench.trial import play
from tidepull.building import build_policy, shape_of
from tidepull.policies.tide import Tide, TideParameters
from tidepull.policies.tide.wild import WildRewards, bounds
from tidepull.problems.wild_rewards import WildRewards as World
from tidepull.problems.wild_rewards import WildRewardsParameters
from tidepull.seeds import Streams
from tidepull.types import Context, Event, ProblemShape

FEW = ("network", "seasons", "last event", "last success", "turns", "fourier")


def taught(rewards: list[float], share: float = 0.01) -> WildRewards:
    wild = WildRewards(share, 2)
    for reward in rewards:
        wild.takes(0, reward)
    return wild


def ordinary(count: int) -> list[float]:
    return [float(reward) for reward in np.random.default_rng(0).normal(1.0, 0.2, count)]


def test_absurd_reward_is_set_aside_when_all_others_were_alike() -> None:
    wild = taught(ordinary(100))
    assert not wild.takes(0, 1e14)
    assert wild.takes(0, 1.1)
    assert not wild.takes(0, -1e14)
    assert wild.aside == 2


def test_second_reward_of_an_arm_beyond_the_bounds_is_taken_until_one_lies_within() -> None:
    wild = taught(ordinary(600))
    assert [wild.takes(0, r) for r in (9.0, 9.1, 9.2, 1.0, 9.3)] == [False, True, True, True, False]
    assert not wild.takes(1, 9.0)  # the other arm has not been seen there


def test_all_rewards_are_taken_when_nearly_all_are_equal() -> None:
    wild = taught([0.0] * 300)
    assert wild.takes(0, 37.0)
    assert wild.takes(0, 1e14)


def test_all_rewards_are_taken_when_no_share_may_be_wild_or_few_have_come() -> None:
    assert taught(ordinary(100), share=0.0).takes(0, 1e14)
    assert taught(ordinary(14)).takes(0, 1e14)


def test_bounds_ignore_the_farthest_reward_and_a_share_of_the_others() -> None:
    rewards = np.concatenate([np.linspace(-1.0, 1.0, 201), [50.0, 60.0, 70.0]])
    low, high = bounds(rewards, 0.01)  # 2 of 204 and the farthest
    assert (low, high) == pytest.approx((-3.0 + 0.015, 3.0 + 0.015), abs=0.1)


def test_new_rewards_are_within_bounds_when_a_tenth_of_recent_ones_were() -> None:
    wild = taught(ordinary(1000))
    taken = [wild.takes(0, r) for _ in range(60) for r in (9.0, 1.0)]
    assert taken[:2] == [False, True]
    assert all(taken[60:])


@pytest.mark.parametrize("absurd_in", [5, 150])
def test_tide_loses_few_rounds_when_one_reward_is_absurd(absurd_in: int) -> None:
    def regret(world: WildRewardsParameters) -> float:
        problem = World(world, Streams(4).child("problem"))
        policy = build_policy(("tide", {"wild": 0.01, "without": FEW}), shape_of(problem), seed=4)
        return float(play(problem, policy, 300).regret[-1])

    usual = regret(WildRewardsParameters(share=0.0, n_arms=4))
    absurd = regret(WildRewardsParameters(share=0.0, n_arms=4, absurd_in=absurd_in))
    assert absurd < usual + 15


def test_tide_continues_bit_by_bit_when_restored_with_wild_rewards_and_earnings() -> None:
    parameters = TideParameters(wild=0.01, earnings=True, boldest=2.0, without=FEW)
    shape = ProblemShape(3, 2, 0)
    rng = np.random.default_rng(5)
    policy = Tide(parameters, shape, Streams(1))

    def turn(tide: Tide, context: Context, reward: float) -> int:
        arm = tide.choose(context)
        tide.learn(Event(context, arm, reward, decided=tide.snapshot()["t"] - 1))
        while tide.upkeep():
            pass
        return arm

    contexts = [Context(observation=rng.standard_normal(2)) for _ in range(60)]
    rewards = rng.normal(0.0, 1.0, 60)
    rewards[30] = 1e12
    for i in range(40):
        turn(policy, contexts[i], float(rewards[i]))
    assert policy.diagnostics()["set_aside"] == 1
    twin = Tide(parameters, shape, Streams(2))
    twin.restore(policy.snapshot())
    for i in range(40, 60):
        assert turn(policy, contexts[i], float(rewards[i])) == turn(twin, contexts[i], float(rewards[i]))


@pytest.mark.parametrize("kind", ["many alike", "normal", "heavy tails"])
def test_bounds_are_those_of_the_median_and_of_the_place_that_numpy_finds(kind: str) -> None:
    rng = np.random.default_rng(3)
    for n in (16, 17, 100, 1023, 1024):
        drawn = {"many alike": rng.integers(0, 3, n), "normal": rng.normal(size=n)}
        rewards = np.asarray(drawn.get(kind, 1e9 * rng.standard_t(1, n)), float)
        middle = float(np.median(rewards))
        place = n - 2 - int(0.01 * n)
        farthest = 3 * float(np.partition(np.abs(rewards - middle), place)[place])
        assert bounds(rewards, 0.01) == (middle - farthest, middle + farthest)
