"""Rewards that come late, in another order, or never: every policy goes on, and repeats itself to
the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.property.conformance.playing import IDS, contexts, every_policy, every_shape, make
from tidepull import state as snapshots
from tidepull.experiments.delay import Delay, late_by
from tidepull.experiments.loop import Trial, play
from tidepull.policies.baselines import steady
from tidepull.policies.guard import Guarded
from tidepull.random import Streams
from tidepull.types import Context, Event, FloatArray, ProblemShape, Structure

ROUNDS = 90
DELAYS: dict[str, Delay] = {
    "7 late": 7,
    "geometric, some lost": "geometric:6:0.2",
    "in reverse": lambda t: 9 - t % 10,
}
every_delay = pytest.mark.parametrize("delay", DELAYS.values(), ids=DELAYS.keys())


class Coins:
    """Arms that pay 0 or 1, with contexts that mean nothing."""

    def __init__(self, shape: ProblemShape) -> None:
        self.n_arms = shape.n_arms
        self._contexts = contexts(shape, ROUNDS)
        self._rng = np.random.default_rng(4)
        self._t = 0

    def context(self) -> Context:
        return self._contexts[self._t]

    def means(self) -> FloatArray:
        return np.linspace(0.2, 0.8, self.n_arms)

    def structure(self) -> Structure:
        return steady(self.context(), self.n_arms)

    def step(self, arm: int) -> float:
        self._t += 1
        return float((self._rng.random(self.n_arms) < self.means())[arm])


class Moved:
    """A policy that moves to another machine in mid-trial: saved as bytes, built anew, restored."""

    def __init__(self, policy: Guarded, anew: Callable[[], Guarded], at: int) -> None:
        self.policy = policy
        self._anew, self._at = anew, at

    @property
    def rounds(self) -> int:
        return self.policy.rounds

    def choose(self, context: Context) -> int:
        if self.policy.rounds == self._at:
            saved = snapshots.dump(self.policy.snapshot())
            self.policy = self._anew()
            self.policy.restore(snapshots.load(saved))
        return self.policy.choose(context)

    def learn(self, event: Event) -> None:
        self.policy.learn(event)

    def upkeep(self) -> bool:
        return self.policy.upkeep()


def trial(policy: Guarded | Moved, shape: ProblemShape, delay: Delay) -> Trial:
    return play(Coins(shape), policy, ROUNDS, late=late_by(delay, Streams(3)))


@every_policy
@every_shape
@every_delay
def test_policy_repeats_itself_when_rewards_come_late(
    id: str, shape: ProblemShape, delay: Delay
) -> None:
    first, again = make(id, shape, seed=2), make(id, shape, seed=2)
    assert trial(first, shape, delay).arms.tolist() == trial(again, shape, delay).arms.tolist()
    assert first.rounds == ROUNDS
    assert snapshots.dump(first.snapshot()) == snapshots.dump(again.snapshot())


@pytest.mark.parametrize(
    "id", [id for id in IDS if id != "oracle"]
)  # the loop would have to tell it the truth
@every_shape
@every_delay
def test_policy_moved_while_rewards_are_on_the_way_goes_on_to_the_last_bit(
    id: str, shape: ProblemShape, delay: Delay
) -> None:
    stayed = make(id, shape, seed=2)
    moved = Moved(make(id, shape, seed=2), lambda: make(id, shape, seed=5), at=40)
    assert trial(moved, shape, delay).arms.tolist() == trial(stayed, shape, delay).arms.tolist()
    assert moved.policy.rounds == ROUNDS
    assert snapshots.dump(moved.policy.snapshot()) == snapshots.dump(stayed.snapshot())


@every_policy
@every_shape
def test_policy_learns_an_event_older_than_its_trail(
    id: str, shape: ProblemShape, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidepull.policies.checks.TRAIL", 16)
    policy = make(id, shape)
    world = Coins(shape)
    event = Event(world.context(), 0, 1.0, decided=0)
    play(world, policy, 60, late=lambda t: None if t == 0 else 0)
    policy.learn(event)
    assert policy.rounds == 60
