"""A hypothesis on trial: weighed against all others together, heard only while its own decisions
earn as much."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidepull.policies import build_policy
from tidepull.random import Streams
from tidepull.tide import TideParameters
from tidepull.tide.gated import GATED, MIXTURE, GatedModel
from tidepull.tide.jobs import finish
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Filter, Layout
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.patterns import Patterns
from tidepull.types import Context, Event, FloatArray, ProblemShape

SHAPE = ProblemShape(3, observation_dim=2)


def regimes() -> Filter:
    maker = FAMILIES["regimes"].gated
    assert maker is not None
    (made,) = maker(Layout(3, 3, False), NoisePrior(), 1)
    return made


def trial(prior: float = 0.01) -> GatedModel:
    return GatedModel(regimes(), prior, 1e-5)


def tide(seed: int = 0) -> Patterns:
    return Patterns(TideParameters(), SHAPE, Streams(seed))


def test_weight_follows_bayes_rule_with_a_little_given_back() -> None:
    one, expected, rng = trial(0.2), 0.2, np.random.default_rng(0)
    for count in range(50):
        mine, others = rng.normal(size=2)
        one.weigh(mine, others, count)
        v = (
            expected
            * math.exp(mine)
            / (expected * math.exp(mine) + (1 - expected) * math.exp(others))
        )
        expected = (1 - 1e-5) * v + 1e-5 * 0.2
        assert one.weight == pytest.approx(expected)


def test_weight_comes_back_after_a_long_defeat() -> None:
    one = trial()
    for _ in range(500):
        one.weigh(-5.0, 0.0, 10)
    for _ in range(10):
        one.weigh(0.0, -5.0, 10)
    assert one.weight > 0.99


def test_reward_that_it_cannot_explain_changes_no_weight() -> None:
    one = trial()
    before = one.weight
    one.weigh(math.nan, -1.0, 5)
    assert one.weight == before


def decided(one: GatedModel, mine: float, others: float, rounds: int = 400) -> float:
    """The share of rounds that it decides once both have earned so much on average."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        one.weigh(1.0, 0.0, 1)
    for t in range(rounds):
        who = GATED if one.decides(rng) else MIXTURE
        one.decided(t, who)
        one.learn(
            t,
            t % 3,
            np.ones(3),
            float(rng.normal((others, mine)[who], 0.5)),
            False,
            others=-50.0,
            count=1,
        )
    assert one.weight > 0.99
    return sum(one.decides(rng) for _ in range(rounds)) / rounds


def test_hypothesis_that_predicts_well_and_earns_little_is_hardly_heard() -> None:
    one = trial()
    assert decided(one, mine=0.0, others=1.0) < 0.1
    assert one.share < 0.1


def test_hypothesis_that_predicts_well_and_earns_more_decides() -> None:
    one = trial()
    assert decided(one, mine=1.0, others=0.0) > 0.9
    assert one.share > 0.9


def test_share_is_how_often_it_decides() -> None:
    one, rng = trial(0.4), np.random.default_rng(1)
    for t in range(30):
        one.decided(t, t % 2)
        one._earnings.add(t, float(rng.normal(0.1 * (t % 2), 1.0)))
    found = np.mean([one.decides(rng) for _ in range(20_000)])
    assert one.share == pytest.approx(float(found), abs=0.015)
    assert one.share == pytest.approx(
        np.mean([one.votes(40, rng) for _ in range(500)]) / 40, abs=0.015
    )


def test_regimes_are_on_trial_with_observations_alone() -> None:
    assert tide().families[-1] == "regimes"
    plain = Patterns(TideParameters(), ProblemShape(3), Streams(0))
    assert plain._gated is None
    assert "regimes" in plain.families


def _first(shares: FloatArray) -> int:
    return int(np.argmax(shares))


RULE = np.cumsum(np.random.default_rng(11).random(2000) < 1 / 60) % 2
"""Two rules that take turns, each for 60 rounds on average."""


def play(
    policy: Patterns, first: int, stop: int, *, shares: bool = False
) -> tuple[list[int], float]:
    """The arms, and how often they were right; contexts and noise follow from the round."""
    arms, right = [], 0
    for t in range(first, stop):
        rng = np.random.default_rng([7, t])
        context = Context(observation=rng.normal(size=2))
        assert context.observation is not None
        label = int(context.observation[0] > 0) ^ int(RULE[t])
        arm = policy.choose_by(context, 16, _first) if shares else policy.choose(context)
        policy.learn(
            Event(context, arm, float(arm == label) + 0.1 * float(rng.normal()), decided=t)
        )
        while policy.upkeep():
            pass
        arms.append(arm)
        right += arm == label
    return arms, right / (stop - first)


@pytest.mark.parametrize("shares", [False, True])
def test_tide_on_trial_goes_on_the_same_after_a_snapshot(shares: bool) -> None:
    policy = tide()
    play(policy, 0, 300, shares=shares)
    other = tide(seed=5)
    other.restore(policy.snapshot())
    assert play(policy, 300, 360, shares=shares) == play(other, 300, 360, shares=shares)
    np.testing.assert_array_equal(policy.family_weights(), other.family_weights())


def test_hypothesis_on_trial_lives_again_when_contexts_are_mapped_anew() -> None:
    """After 64 rewards a new map has just taken over: what it knows is what a newcomer would learn
    from the window."""
    policy = tide()
    play(policy, 0, 64)
    assert policy._gated is not None
    known, newcomer = policy._gated.filter, policy._gated.filter.reset_copy(None)
    finish(newcomer.replay(policy._recent.window(policy._scale.units), policy._scale.units.binary))
    for name in ("n", "s", "vec", "weight"):
        np.testing.assert_allclose(known.snapshot()[name], newcomer.snapshot()[name], atol=1e-12)


@pytest.mark.parametrize("who", [MIXTURE, GATED])
def test_reward_is_credited_to_who_decided_by_shares(
    who: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tide()
    assert policy._gated is not None
    monkeypatch.setattr(GatedModel, "votes", lambda _, count, __: count * who)
    play(policy, 0, 40, shares=True)
    count = policy._gated._earnings._count
    assert count[who] > 35
    assert count[1 - who] == 0


def test_rules_that_take_turns_are_found_and_said() -> None:
    policy = tide()
    play(policy, 0, 800)
    _, right = play(policy, 800, 1100)
    told = policy.explain()
    assert told.families[-1] == "regimes"
    assert policy.family_weights().sum() == pytest.approx(1.0)
    assert policy.family_weights()[-1] > 0.5
    assert told.beliefs[0].words == "regimes return, the context decides"
    assert right > 0.85


def test_registered_tide_takes_late_rewards() -> None:
    policy = build_policy("tide", SHAPE, seed=0)
    waiting: list[Event] = []
    for t in range(200):
        context = Context(observation=np.random.default_rng([9, t]).normal(size=2))
        waiting.append(Event(context, policy.choose(context), float(t % 2), decided=t))
        if len(waiting) > 7:
            policy.learn(waiting.pop(0 if t % 3 else 4))
    assert policy.snapshot()
