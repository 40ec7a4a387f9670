"""A rebuild gives what everybody would have said and weighed from the first round on under the new
units."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tidepull.tide.context import ContextMap
from tidepull.tide.jobs import finish
from tidepull.tide.mixture import Mixture
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import CovariateTracker, all_covariates, standardised
from tidepull.tide.models.family import Layout
from tidepull.tide.models.lagged import LAST_SUCCESS, LastSuccessTracker, last_success
from tidepull.tide.models.linear import discounted
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.rebuild import Rebuilt, rebuilding
from tidepull.tide.scale import RewardScale, Units
from tidepull.tide.window import RecentRounds
from tidepull.types import FloatArray, ProblemShape

SPECS = [last_success(), discounted(0.9)]
PRIOR = np.array([0.5, 0.3, 0.2])
NOW = Units(0.0, 2.0, 0.0, False)


class World:
    """Two arms, two hypotheses and a network that said something of every reward."""

    def __init__(
        self, rewards: list[float], units: Units, capacity: int = 64, raw: int = 64
    ) -> None:
        self.bank = ModelBank(Layout(2, 1, False), [[spec] for spec in SPECS], NoisePrior())
        for m, spec in enumerate(SPECS):
            self.bank.assign(m, spec)
        self.mixture = Mixture(PRIOR.copy(), np.array([0, 1, 2]), ("a", "b", "c"), 1e-12)
        self.scale = RewardScale(2)
        self.scale.units = units
        self.recent = RecentRounds(capacity, raw, 1, 0)
        self.trackers: dict[str, CovariateTracker] = {"last success": LastSuccessTracker(2)}
        for reward in rewards:
            self.come(reward)

    def come(self, reward: float) -> None:
        i = self.recent.count
        self.scale.add(i % 2, reward)
        self.recent.append(
            t=i, covariates=np.zeros(len(all_covariates())), n_rewards_seen=i, arm=i % 2, raw=np.empty(0),
            x=np.ones(1), reward=reward, evidence=0.0, network=-0.1 * (i % 5),
        )  # fmt: skip

    def work(self) -> Any:
        return rebuilding(
            self.recent, self.scale, ContextMap(ProblemShape(2)), self.trackers, self.bank, self.mixture,
            latest=np.empty((1, 0)), network=True,
        )  # fmt: skip

    def expected(
        self, new: Rebuilt, ridge: FloatArray, decided_before: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Notes of successes, log weights, and the gain of every reward, from scratch; what was
        decided while the rebuild was under way keeps what was noted of it."""
        rewards, units = self.recent.rewards, new.units
        covariates, last = np.zeros((len(rewards), len(all_covariates()))), 0
        for i, reward in enumerate(rewards):
            covariates[i, LAST_SUCCESS.index] = last if i < decided_before else 0
            last = i % 2 + 1 if reward > units.threshold else last
        window = self.recent.window(units)._replace(
            covariates=standardised(covariates, units.centre, units.spread)
        )
        bank = ModelBank(Layout(2, 1, False), [[spec] for spec in SPECS], NoisePrior())
        scores = np.empty((len(rewards), 3))
        for m, spec in enumerate(SPECS):
            bank.assign(m, spec)
            bank.arrays.ridge[m] = ridge[m]
            scores[:, m] = finish(bank.replay(m, window, units.binary))
        told = self.recent.network()
        scores[:, 2] = told + (0.0 if units.binary else math.log(units.spread))
        mixture = Mixture(PRIOR.copy(), np.array([0, 1, 2]), ("a", "b", "c"), 1e-12)
        gains = [mixture.reweigh(row) for row in scores]
        return covariates, mixture.log_weights, np.array(gains)


def check(world: World, new: Rebuilt, ridge: FloatArray, decided_before: int = 1000) -> None:
    covariates, log_weights, gains = world.expected(new, ridge, decided_before)
    np.testing.assert_array_equal(
        new.covariates[:, LAST_SUCCESS.index], covariates[:, LAST_SUCCESS.index]
    )
    np.testing.assert_allclose(new.mixture.log_weights, log_weights)
    np.testing.assert_allclose(new.evidence, np.cumsum(gains) - gains, atol=1e-9)
    assert new.mixture.evidence == pytest.approx(gains.sum())
    np.testing.assert_array_equal(new.x, np.ones((len(world.recent), 1)))


@pytest.mark.parametrize("n", [16, 17, 40])
def test_everybody_lives_again_in_the_new_units(n: int) -> None:
    """With more than 16 rewards lam0 follows the noise, which is measured in the new units."""
    rng = np.random.default_rng(n)
    world = World(list(5 * rng.normal(size=n) + 3), NOW)
    world.bank.arrays.b[:] = 0.4
    old = world.bank.arrays.ridge.copy()
    new = finish(world.work())
    assert new is not None
    assert new.units.spread > 3
    noise = np.clip(
        (NOW.spread / new.units.spread) ** 2 * world.bank.arrays.b / world.bank.arrays.a, 0.003, 1.0
    )
    check(world, new, noise if n > 16 else old)
    assert not new.drop_network
    assert world.mixture.log_weights == pytest.approx(np.log(PRIOR)), (
        "the mixture decides as before meanwhile"
    )
    assert world.trackers["last success"].snapshot() == {"arm": -1}


def test_rewards_that_come_meanwhile_are_lived_through_too() -> None:
    rng = np.random.default_rng(5)
    world = World(list(rng.normal(size=20)), NOW)
    work, came = world.work(), 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            new = end.value
            break
        if came < 6:
            came += 1
            world.come(float(rng.normal()))
    assert len(world.recent) == 26
    assert new is not None
    noise = np.clip((NOW.spread / new.units.spread) ** 2 * 0.1, 0.003, 1.0) * np.ones(2)
    check(world, new, noise, decided_before=20)
    last = [i % 2 for i, reward in enumerate(world.recent.rewards) if reward > new.units.threshold][
        -1
    ]
    assert new.trackers["last success"].snapshot() == {"arm": last}


def test_network_is_silent_about_rewards_that_seemed_to_be_binary() -> None:
    world = World([0.0, 1.0, 1.0, 0.0, 0.5, 1.0], Units())
    new = finish(world.work())
    assert new is not None
    assert new.drop_network
    assert not new.units.binary
    assert math.exp(new.mixture.log_weights[2]) == pytest.approx(0.2), (
        "who says nothing keeps its weight"
    )
    again = World([0.0, 1.0, 1.0, 0.0], Units())
    kept = finish(again.work())
    assert kept is not None
    assert kept.units == Units()
    assert not kept.drop_network
    check(again, kept, again.bank.arrays.ridge)


@pytest.mark.parametrize("raw", [2, 8])
def test_rebuild_gives_up_when_more_comes_than_the_window_holds(raw: int) -> None:
    world = World([float(i % 3) for i in range(8)], NOW, capacity=8, raw=raw)
    work = world.work()
    next(work)
    for i in range(30):
        world.come(float(i))
    assert finish(work) is None


def test_new_map_is_made_of_all_that_was_seen() -> None:
    shape = ProblemShape(2, arm_dim=1)
    recent, scale = RecentRounds(64, 64, 2, 1), RewardScale(1)
    for i in range(4):
        recent.append(
            t=i, covariates=np.zeros(len(all_covariates())), n_rewards_seen=i, arm=0, raw=np.array([2.0]),
            x=np.array([1.0, 9.0]), reward=float(i), evidence=0.0, network=0.0,
        )  # fmt: skip
        scale.add(0, float(i))
    bank = ModelBank(Layout(2, 2, True), [[discounted(0.9, True)]], NoisePrior())
    bank.assign(0, discounted(0.9, True))
    mixture = Mixture(np.ones(1), np.array([0]), ("a",), 1e-9)
    latest = np.array([[2.0], [4.0]])
    new = finish(
        rebuilding(
            recent, scale, ContextMap(shape), {}, bank, mixture, latest=latest, network=False
        )
    )
    assert new is not None
    # Five times 2 and once 4: the mean square is 6, and z has mean square length 1.
    np.testing.assert_allclose(new.x, [[1.0, 2.0 / math.sqrt(6)]] * 4)
