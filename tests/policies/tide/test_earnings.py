"""What the choices of a camp of hypotheses earn."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.hypotheses.families import FAMILIES
from tidepull.hypotheses.family import Layout
from tidepull.policies.tide import Tide, TideParameters
from tidepull.policies.tide.births import pools
from tidepull.policies.tide.earnings import Earnings, camps
from tidepull.random import Streams
from tidepull.types import Context, Event, FloatArray, ProblemShape

CAMP_OF = np.array([0, 0, 1, 2])
WEIGHTS = np.array([0.6, 0.3, 0.1, 0.0])


def chosen(earnings: Earnings, count: int = 400) -> FloatArray:
    """How often each slot has a chance."""
    rng = np.random.default_rng(1)
    return np.asarray(np.mean([earnings.chances(WEIGHTS, rng) > 0 for _ in range(count)], axis=0))


def test_camps_decide_alike_when_nothing_was_earned() -> None:
    found = chosen(Earnings(CAMP_OF))
    np.testing.assert_allclose(found, [0.5, 0.5, 0.5, 0.0], atol=0.1)


def test_camp_that_earns_more_decides_most_rounds_whatever_its_weight() -> None:
    earnings = Earnings(CAMP_OF)
    for t in range(60):
        earnings.decided(t, 2 if t % 2 else 0)
        earnings.add(t, 1.0 if t % 2 else -1.0)
    assert chosen(earnings)[2] > 0.95


def test_weights_within_the_camp_keep_their_proportions() -> None:
    found = Earnings(CAMP_OF).chances(np.array([0.6, 0.3, 0.0, 0.0]), np.random.default_rng(2))
    np.testing.assert_allclose(found, [2 / 3, 1 / 3, 0, 0])


def test_late_reward_belongs_to_the_camp_that_decided_its_round() -> None:
    earnings = Earnings(CAMP_OF)
    for t in range(40):
        earnings.decided(t, 2 if t < 20 else 0)
    for t in reversed(range(40)):
        earnings.add(t, 1.0 if t < 20 else -1.0)
    earnings.add(7, -3.0)  # came already
    assert chosen(earnings)[2] > 0.95


def test_earnings_fade_when_a_camp_grows_better() -> None:
    earnings = Earnings(CAMP_OF)
    t = 0
    for camp_slot, y, count in ((0, 0.0, 3000), (2, -1.0, 50), (2, 1.0, 400)):
        for _ in range(count):
            earnings.decided(t, camp_slot)
            earnings.add(t, y)
            t += 1
    assert chosen(earnings)[2] > 0.9


def test_camps_part_context_and_forgetting_from_the_rest() -> None:
    kept = pools(Layout(3, 4, False), ["stationary", "discounted"])
    sizes = [len(pool.initial) + pool.spare for pool in kept]
    found = camps(kept, sizes, 2, True)
    assert len(found) == sum(sizes) + 3
    free = sum(not pool.contextual for pool in kept)
    assert set(found[:free]) == {0}
    assert found[free] == 1  # nothing changes, the context decides
    assert set(found[free + 1 : sum(sizes)]) == {2}
    assert found[-3:].tolist() == [3, 3, 1]
    assert "discounted" in FAMILIES


def test_earnings_move_tide_when_rewards_are_0_and_1_and_leave_it_alone_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def arms(earnings: bool, binary: bool) -> list[int]:
        few = ("network", "seasons", "last event", "last success", "turns", "fourier", "square")
        tide = Tide(TideParameters(earnings=earnings, without=few), ProblemShape(3, 2, 0), Streams(1))
        rng, played = np.random.default_rng(3), []
        for t in range(60):
            context = Context(observation=rng.standard_normal(2))
            arm = tide.choose(context)
            reward = float(rng.random() < 0.3) if binary else float(rng.normal())
            tide.learn(Event(context, arm, reward, decided=t))
            while tide.upkeep():
                pass
            played.append(arm)
        return played[20:]

    assert arms(True, binary=True) != arms(False, binary=True)
    asked: list[bool] = []
    ask = Earnings.chances

    def counted(self: Earnings, weights: FloatArray, rng: np.random.Generator) -> FloatArray:
        asked.append(True)
        return ask(self, weights, rng)

    monkeypatch.setattr(Earnings, "chances", counted)
    arms(True, binary=False)
    assert len(asked) <= 16  # before the first reward
    arms(True, binary=True)
    assert len(asked) > 16 * 40
