"""Rewards that are nothing like all others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidepull.experiments.loop import play
from tidepull.policies import build_policy
from tidepull.problems import shape_of
from tidepull.problems.arms import WildRewardsParameters, wild_rewards
from tidepull.random import Streams
from tidepull.tide import TideParameters
from tidepull.tide.models.covariates import RoundState
from tidepull.tide.outliers import OutlierFilter, bounds
from tidepull.tide.patterns import Patterns
from tidepull.types import Context, Event, FloatArray, ProblemShape

FEW = ("network", "seasons", "last event", "last success", "turns", "fourier")


def taught(rewards: list[float], share: float = 0.01) -> OutlierFilter:
    outliers = OutlierFilter(share, 2)
    for reward in rewards:
        outliers.accepts(0, reward)
    return outliers


def ordinary(count: int) -> list[float]:
    return [float(reward) for reward in np.random.default_rng(0).normal(1.0, 0.2, count)]


def test_absurd_reward_is_set_aside_when_all_others_were_alike() -> None:
    outliers = taught(ordinary(100))
    assert not outliers.accepts(0, 1e14)
    assert outliers.accepts(0, 1.1)
    assert not outliers.accepts(0, -1e14)
    assert outliers.n_rejected == 2


def test_second_reward_of_an_arm_beyond_the_bounds_is_taken_until_one_lies_within() -> None:
    outliers = taught(ordinary(600))
    assert [outliers.accepts(0, r) for r in (9.0, 9.1, 9.2, 1.0, 9.3)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert not outliers.accepts(1, 9.0)  # the other arm has not been seen there


def test_all_rewards_are_taken_when_nearly_all_are_equal() -> None:
    outliers = taught([0.0] * 300)
    assert outliers.accepts(0, 37.0)
    assert outliers.accepts(0, 1e14)


def test_all_rewards_are_taken_when_no_share_may_be_outliers_or_few_have_come() -> None:
    assert taught(ordinary(100), share=0.0).accepts(0, 1e14)
    assert taught(ordinary(14)).accepts(0, 1e14)


def test_bounds_ignore_the_farthest_reward_and_a_share_of_the_others() -> None:
    rewards = np.concatenate([np.linspace(-1.0, 1.0, 201), [50.0, 60.0, 70.0]])
    low, high = bounds(rewards, 0.01)  # 2 of 204 and the farthest
    assert (low, high) == pytest.approx((-3.0 + 0.015, 3.0 + 0.015), abs=0.1)


def test_new_rewards_are_within_bounds_when_a_tenth_of_recent_ones_were() -> None:
    outliers = taught(ordinary(1000))
    taken = [outliers.accepts(0, r) for _ in range(60) for r in (9.0, 1.0)]
    assert taken[:2] == [False, True]
    assert all(taken[60:])


@pytest.mark.parametrize("absurd_in", [5, 150])
def test_tide_loses_few_rounds_when_one_reward_is_absurd(absurd_in: int) -> None:
    def regret(world: WildRewardsParameters) -> float:
        problem = wild_rewards(world, Streams(4).child("problem"))
        policy = build_policy(("tide", {"without": FEW}), shape_of(problem), seed=4)
        return float(play(problem, policy, 300).regret[-1])

    usual = regret(WildRewardsParameters(share=0.0, n_arms=4))
    absurd = regret(WildRewardsParameters(share=0.0, n_arms=4, absurd_in=absurd_in))
    assert absurd < usual + 15


def test_tide_continues_bit_by_bit_when_restored_with_outliers() -> None:
    parameters = TideParameters(without=FEW)
    shape = ProblemShape(3, 2, 0)
    rng = np.random.default_rng(5)
    policy = Patterns(parameters, shape, Streams(1))

    def turn(tide: Patterns, context: Context, reward: float) -> int:
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
    twin = Patterns(parameters, shape, Streams(2))
    twin.restore(policy.snapshot())
    for i in range(40, 60):
        assert turn(policy, contexts[i], float(rewards[i])) == turn(
            twin, contexts[i], float(rewards[i])
        )


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


def confirmed(rewards: list[float], window: int = 1024) -> OutlierFilter:
    outliers = OutlierFilter(0.01, 2, confirm_by_value=True, window=window)
    for reward in rewards:
        outliers.accepts(0, reward)
    return outliers


def test_more_outliers_than_their_share_are_set_aside_when_chance_may_have_brought_them() -> None:
    """Eight of 568 are more than one in a hundred."""
    rewards = ordinary(560)
    for i in range(8):
        rewards.insert(70 * (i + 1), 20.0 * 1.5**i)
    by_share, by_chance = taught(rewards), confirmed(rewards)
    assert by_share.accepts(0, -9.0)
    assert not by_chance.accepts(0, -9.0)
    assert by_chance.n_rejected == 9
    low, high = bounds(
        np.array(rewards), 0.01, 3.0, 2.0
    )  # 5.68 + 2 sqrt(5.68) = 10.4 of them, and the farthest
    inner = np.sort(np.abs(np.array(rewards) - np.median(rewards)))[568 - 2 - 10]
    assert (low, high) == pytest.approx(
        (np.median(rewards) - 3 * inner, np.median(rewards) + 3 * inner)
    )


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        (9.0, 9.4, True),
        (9.0, 10.5, True),
        (9.0, 13.0, False),
        (9.0, -9.0, False),
        (-8.0, -8.5, True),
    ],
)
def test_second_outlier_is_taken_when_it_is_like_the_first(
    first: float, second: float, taken: bool
) -> None:
    """However much later and of whichever arm: a success is rare while nobody knows how to have
    one."""
    outliers = confirmed(ordinary(600))
    assert not outliers.accepts(0, first)
    assert all(outliers.accepts(0, reward) for reward in ordinary(50))
    assert outliers.accepts(1, second) is taken
    assert outliers.n_rejected == 2 - taken


def test_usual_rewards_are_taken_when_all_others_are_still_nearer() -> None:
    near = [0.1 * (r - 1) for r in ordinary(100)]
    for usual, taken in ((0.0, False), (2.0, True)):
        outliers = OutlierFilter(0.01, 1, confirm_by_value=True, min_bound=usual)
        assert all(outliers.accepts(0, reward) for reward in near)
        assert outliers.accepts(0, 1.9) is taken
        assert not outliers.accepts(0, -2.1)


def test_rewards_are_varied_when_half_of_them_are_not_one_number() -> None:
    assert confirmed(ordinary(40)).varied
    assert not confirmed(ordinary(15)).varied  # no bounds yet
    assert not confirmed([0.0] * 90 + ordinary(10) * 2).varied
    assert not confirmed([0.0] * 60).varied
    assert not taught(ordinary(40)).varied


def test_confirming_bounds_continue_from_a_snapshot() -> None:
    first, second = confirmed(ordinary(200), window=64), confirmed([], window=64)
    second.restore(first.snapshot())
    assert [w.accepts(1, 9.0) for w in (first, second)] == [False, False]  # there was none before
    second = confirmed([], window=64)
    second.restore(first.snapshot())
    assert second.varied
    assert [w.accepts(0, 9.2) for w in (first, second)] == [True, True]


def flipping(seed: int, share: float, outlier_share: float = 0.01) -> tuple[float, int]:
    world = WildRewardsParameters(n_arms=4, half_period=10, share=share)
    problem = wild_rewards(world, Streams(seed).child("problem"))
    policy = build_policy(
        ("tide", {"outlier_share": outlier_share, "without": ["network"]}),
        shape_of(problem),
        seed=seed,
    )
    trial = play(problem, policy, 600)
    return float(trial.regret[-1]), int(trial.diagnostics["set_aside"])


def test_heavy_tails_cost_a_few_rounds_when_a_season_leads() -> None:
    """A reward that is like others, and nothing like those of its arm and phase."""
    usual, heavy = ([flipping(seed, share) for seed in (1, 2, 3)] for share in (0.0, 0.02))
    learnt = [flipping(seed, 0.02, outlier_share=0.0) for seed in (1, 2, 3)]
    assert sum(aside for _, aside in usual) == sum(aside for _, aside in learnt) == 0
    assert sum(aside for _, aside in heavy) > 12
    cost, without = (sum(regret for regret, _ in one) for one in (heavy, learnt))
    at_best = sum(regret for regret, _ in usual)
    assert cost - at_best < 0.4 * (without - at_best)


def learnt(rewards: list[float], odd: float) -> int:
    """How many are set aside of rewards of one arm and, of the other, two that are alike and
    odd."""
    tide = Patterns(TideParameters(without=FEW), ProblemShape(2), Streams(2))
    for t, reward in enumerate(rewards):
        tide.choose(Context())
        tide.learn(Event(Context(), t % 2, reward + t % 2, decided=t))
        while tide.upkeep():
            pass
    for t in (len(rewards), len(rewards) + 1):
        tide.choose(Context())
        tide.learn(Event(Context(), 1, odd, decided=t))
        while tide.upkeep():
            pass
    return int(tide.diagnostics()["set_aside"])


def test_reward_that_is_usual_for_another_arm_is_set_aside_once_and_then_learnt() -> None:
    noise = [0.02 * r for r in ordinary(200)]
    assert learnt(noise, 0.02) == 1
    assert learnt(noise, 1.02) == 0


def test_every_reward_is_learnt_when_most_are_one_number() -> None:
    assert learnt([0.0, -1.0] * 100, 5.0) == 0


@pytest.mark.parametrize(
    ("shape", "confirm_by_value"),
    [(ProblemShape(3), True), (ProblemShape(3, 2), False), (ProblemShape(3, 0, 2), False)],
)
def test_rewards_are_judged_by_what_was_expected_where_there_is_no_context(
    shape: ProblemShape, confirm_by_value: bool
) -> None:
    tide = Patterns(TideParameters(), shape, Streams(0))
    assert tide._outliers._confirm_by_value is confirm_by_value
    assert bool(tide._residual_outliers.share) is confirm_by_value
    assert ("residual_outliers" in tide.snapshot()) is confirm_by_value


def test_first_rewards_of_an_arm_are_learnt_however_far_from_those_of_others() -> None:
    """Nothing is known of it, so anything may be expected."""
    rng = np.random.default_rng(3)
    tide = Patterns(TideParameters(without=FEW), ProblemShape(3), Streams(2))
    for t in range(202):
        tide.choose(Context())
        arm = 2 if t >= 200 else t % 2
        tide.learn(Event(Context(), arm, float(rng.normal((0.0, 1.0, 1.8)[arm], 0.02)), decided=t))
        while tide.upkeep():
            pass
    assert tide.diagnostics()["set_aside"] == 0


def test_what_was_expected_is_remembered_when_restored() -> None:
    tides = [Patterns(TideParameters(without=FEW), ProblemShape(2), Streams(2)) for _ in range(2)]
    for t, noise in enumerate(ordinary(120)):
        tides[0].choose(Context())
        tides[0].learn(Event(Context(), t % 2, 0.02 * noise + t % 2, decided=t))
        while tides[0].upkeep():
            pass
    tides[1].restore(tides[0].snapshot())
    for tide in tides:
        assert math.isfinite(tide._residual_outliers.low)
        tide.choose(Context())
        tide.learn(Event(Context(), 1, 0.02, decided=120))
        assert tide.diagnostics()["set_aside"] == 1


def test_who_leads_is_told_of_last_rewards_in_its_own_units(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tide = Patterns(TideParameters(without=("network",)), ProblemShape(2), Streams(2))
    outlook, asked = tide._bank.predict, []

    def noted(m: int, moment: RoundState, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        asked.append(moment.covariates)
        return outlook(m, moment, X)

    monkeypatch.setattr(tide._bank, "predict", noted)
    for t, noise in enumerate(ordinary(120)):
        tide.choose(Context())
        wanted = tide._standard(tide._pending._rounds[t].state).covariates
        units, count = tide._scale.units, len(asked)
        tide.learn(Event(Context(), t % 2, 100 + 0.02 * noise + t % 2, decided=t))
        if len(asked) > count:
            assert units.centre > 50
            np.testing.assert_array_equal(asked[-1], wanted)
        while tide.upkeep():
            pass
    assert len(asked) > 40


def nearly_right(rounds: int = 600) -> Patterns:
    """Two arms, of which the sign of the observation says which one pays 1; from round 2 on that
    one is played."""
    tide = Patterns(TideParameters(without=("network",)), ProblemShape(2, 3), Streams(1))
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


def mistaken(tide: Patterns, reward: float, t: int = 600) -> int:
    """How many rewards are set aside after one for the wrong arm."""
    context = Context(observation=np.array([3.0, 0.0, 0.0]))
    tide.choose(context)
    before = tide.diagnostics()["set_aside"]
    tide.learn(Event(context, 0, reward, t))
    return int(tide.diagnostics()["set_aside"] - before)


def test_mistake_of_who_is_nearly_always_right_is_learnt_when_something_is_observed() -> None:
    assert mistaken(nearly_right(), 0.0) == 0


def test_absurd_reward_is_set_aside_when_something_is_observed() -> None:
    assert mistaken(nearly_right(400), -1e14, 400) == 1


@pytest.mark.parametrize(
    ("threshold", "reward", "taken"), [(3, 0.6, False), (30, 0.6, True), (30, -2.1, False)]
)
def test_reward_is_taken_when_it_lies_less_than_as_many_times_as_far_out(
    threshold: float, reward: float, taken: bool
) -> None:
    outliers = OutlierFilter(0.01, 2, threshold=threshold)
    for usual in [1.0, 0.9, 1.1, 1.0] * 20:
        outliers.accepts(0, usual)
    assert outliers.accepts(0, reward) is taken


def test_absurd_reward_is_set_aside_unless_no_share_may_be_outliers() -> None:
    for outlier_share, aside in ((0.01, 1), (0.0, 0)):
        policy = Patterns(TideParameters(outlier_share=outlier_share), ProblemShape(2), Streams(0))
        for t in range(64):
            policy.learn(Event(Context(), t % 2, 1e14 if t == 40 else t % 2 + 0.1 * (t % 5), t))
        assert policy.diagnostics()["set_aside"] == aside
