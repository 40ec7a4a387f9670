"""What `tide` finds out, how it says so, and that units of reward do not matter to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.experiments.loop import play
from tidepull.policies import build_policy
from tidepull.problems.arms import DriftingArms
from tidepull.problems.drift import Constant, Drift, Flip
from tidepull.problems.random_drifts import Tabulated
from tidepull.problems.rewards import BernoulliReward, GaussianReward
from tidepull.random import Streams
from tidepull.tide.context import ContextMap
from tidepull.tide.explain import WeightHistory
from tidepull.tide.scale import RewardScale, Seen, two_means_threshold
from tidepull.types import Context, Event, ProblemShape


def tide(n_arms: int, seed: int = 0, **parameters: object) -> Any:
    return build_policy(("tide", parameters), ProblemShape(n_arms), seed=seed)


def learn(policy: Any, arm: int, reward: float) -> None:
    """An event that nobody chose, and all the work that it brings."""
    policy.learn(Event(Context(), arm, reward))
    while policy.upkeep():
        pass


def world(drift: Drift, noise_std: float | None, seed: int = 0) -> DriftingArms:
    noise = Streams(seed).generator("noise")
    return DriftingArms(
        drift, BernoulliReward(noise) if noise_std is None else GaussianReward(noise_std, noise)
    )


def swinging(period: float, n_arms: int) -> Tabulated:
    t = np.arange(3000)[:, None] / period + np.arange(n_arms) / n_arms
    return Tabulated(0.5 + 0.5 * np.sin(2 * np.pi * t))


@pytest.mark.parametrize("period", [23.7, 61.3])
def test_tide_finds_a_real_period_to_within_one_per_cent(period: float) -> None:
    policy = tide(4)
    play(world(swinging(period, 4), None), policy, 1000)
    leading = policy.explain().beliefs[0]
    assert leading.family == "fourier"
    assert leading.weight > 0.5
    found = float(leading.words.split("every ")[1].split(" ")[0])
    assert found == pytest.approx(period, rel=0.01)


def test_tide_explains_two_phases_in_words() -> None:
    policy = tide(4)
    first = np.array([0.1, 0.4, 0.6, 0.9])
    trial = play(world(Flip(first, 1 - first, 10), 0.1), policy, 600)
    explanation = policy.explain()
    assert str(explanation.beliefs[0]).startswith("repeats every 20.0 rounds, in two phases: ")
    assert explanation.beliefs[0].weight > 0.9
    assert trial.diagnostics["explanation"] == "repeats every 20.0 rounds, in two phases"
    assert explanation.weights.shape == (len(explanation.rounds), len(explanation.families))
    np.testing.assert_allclose(explanation.weights.sum(axis=1), 1.0)
    assert trial.regret[-1] - trial.regret[300] < 3


def test_tide_believes_that_nothing_changes_when_nothing_does() -> None:
    policy = tide(4)
    play(world(Constant(np.array([0.2, 0.4, 0.6, 0.8])), None), policy, 800)
    assert policy.explain().beliefs[0].words == "nothing changes"
    assert policy.explain().beliefs[0].weight > 0.7


@pytest.mark.parametrize(("factor", "shift", "births"), [(4.0, 0.0, True), (0.5, 8.0, False)])
def test_tide_plays_the_same_arms_when_rewards_come_in_other_units(
    factor: float, shift: float, births: bool
) -> None:
    """A power of two is exact; a shift rounds, and a search may then break ties in another way."""
    table = np.random.default_rng(0).normal(size=(300, 3))
    runs = []
    for scale, offset in ((1.0, 0.0), (factor, shift)):
        policy = tide(3, without=["network"], births=births)  # single precision magnifies rounding
        arms = []
        for row in table:
            arms.append(policy.choose(Context()))
            learn(policy, arms[-1], scale * float(row[arms[-1]]) + offset)
        runs.append(arms)
    assert runs[0] == runs[1]


def test_tide_goes_on_when_binary_rewards_turn_out_to_be_real() -> None:
    policy = tide(2)
    for t in range(40):
        learn(policy, t % 2, float(t % 2))
    learn(policy, 0, 0.25)
    for t in range(40):
        learn(policy, t % 2, 0.3 + 0.5 * (t % 2))
    plays = [policy.choose(Context()) for _ in range(50)]
    assert np.mean(plays) > 0.8


def test_tide_never_plays_an_arm_that_comes_back_worse_than_it_knew() -> None:
    policy = tide(3)
    everything = Context()
    without_best = Context(available=np.array([True, True, False]))
    rewards = np.array([0.1, 0.5, 0.9])
    rng = np.random.default_rng(0)
    for t in range(200):
        context = without_best if 80 <= t < 160 else everything
        arm = policy.choose(context)
        policy.learn(Event(context, arm, float(rewards[arm] + 0.1 * rng.normal())))
        while policy.upkeep():
            pass
    assert [policy.choose(everything) for _ in range(20)].count(2) >= 18


def test_tide_memory_does_not_grow() -> None:
    policy = tide(2, window=64)
    sizes = []
    rng = np.random.default_rng(0)
    for t in range(600):
        learn(policy, t % 2, float(rng.normal()))
        if t >= 100 and t % 5 == 0:
            sizes.append(_bytes(policy.snapshot()))
    assert max(sizes[50:]) <= max(sizes[:50])


@pytest.mark.parametrize("rewarded", [True, False])
def test_tide_memory_does_not_grow_when_rewards_come_late_or_never(rewarded: bool) -> None:
    policy = tide(2, window=64)
    rng = np.random.default_rng(0)
    sizes = []
    for t in range(0, 700, 7):
        arms = [policy.choose(Context()) for _ in range(7)]
        for i, arm in enumerate(arms if rewarded or t < 70 else []):
            policy.learn(Event(Context(), arm, float(rng.normal()), t + i))
        while policy.upkeep():
            pass
        sizes.append(
            len(policy.snapshot()["state"]["patterns"]["network"]["encoder"]["history"]["rewards"])
        )
    assert max(sizes) <= 64 + 7


def test_families_can_be_left_out_by_name() -> None:
    policy = tide(2, without=["fourier", "square", "seasons"])
    assert not {"fourier", "square", "seasons"} & set(policy.explain().families)
    with pytest.raises(ParameterError, match="no family 'tides'"):
        tide(2, without=["tides"])


def test_scale_weighs_arms_alike_however_often_they_were_played() -> None:
    scale = RewardScale(2)
    rewards = [0.0, 2.0] + [10.0, 12.0] * 50
    for i, reward in enumerate(rewards):
        scale.add(0 if i < 2 else 1, reward)
    units = scale.fitted(
        Seen(np.array(rewards), np.zeros(len(rewards), np.int64), np.ones((len(rewards), 1)))
    )
    assert units.centre == pytest.approx(6.0)
    assert units.spread == pytest.approx(np.sqrt(25 + 1))
    assert not units.binary


def test_threshold_lies_between_two_clusters() -> None:
    rng = np.random.default_rng(0)
    rewards = np.concatenate([rng.normal(0, 0.05, 900), rng.normal(1, 0.05, 20)])
    assert two_means_threshold(rewards) == pytest.approx(0.5, abs=0.05)


def test_context_map_keeps_what_matters_of_long_observations() -> None:
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(400, 5))
    seen = hidden @ rng.normal(size=(5, 200)) + 0.01 * rng.normal(size=(400, 200))
    contexts = ContextMap(ProblemShape(3, observation_dim=200))
    z = contexts.fitted(seen)(seen)
    assert z.shape == (400, 33)
    assert np.mean(np.sum(z[:, 1:] ** 2, axis=1)) == pytest.approx(1.0)
    fitted = z @ np.linalg.lstsq(z, hidden, rcond=None)[0]
    assert np.mean((fitted - hidden) ** 2) < 1e-3


def test_weight_history_is_thinned_and_spans_all_rounds() -> None:
    history = WeightHistory(1, capacity=16)
    for t in range(1, 1001):
        if history.due(t):
            history.record(t, np.array([float(t)]))
    rounds, rows = history.table()
    assert len(rounds) <= 16
    assert rounds[-1] > 900
    np.testing.assert_array_equal(rows[:, 0], rounds)
    assert len(set(np.diff(rounds))) == 1


def _bytes(value: object) -> int:
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    return sum(map(_bytes, value.values())) if isinstance(value, dict) else 0


def test_newborns_do_not_crowd_out_the_truth() -> None:
    """Many searches through noise must not add up to a belief in seasons."""
    policy = tide(2, seed=3)
    play(world(Constant(np.array([0.4, 0.5])), None, seed=3), policy, 1200)
    groups = dict(zip(policy.explain().families, policy.family_weights(), strict=True))
    assert groups["fourier"] + groups["square"] + groups["seasons"] < 0.3
