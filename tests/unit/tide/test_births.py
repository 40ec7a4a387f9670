"""A candidate weighs what Bayes' rule would have given it, had it been there since the window
began."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidepull.tide.jobs import finish
from tidepull.tide.mixture import Mixture
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import all_covariates, empty_state
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Candidate, Layout, growing
from tidepull.tide.models.linear import fourier, square
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.spec import Spec
from tidepull.tide.scale import Units
from tidepull.tide.search import Slots, StructureSearch
from tidepull.tide.window import RecentRounds
from tidepull.types import FloatArray

UNITS = Units(0.0, 1.0, 0.0, False)
LAYOUT = Layout(2, 1, False)


class World:
    """Sines of 10 and 30 rounds, and whatever a test wants to be born."""

    def __init__(self, swing: FloatArray, spare: int = 24) -> None:
        made = growing(LAYOUT, False, [fourier(10.0), fourier(30.0)], [fourier(3.0)])
        self.pools = [replace(pool, spare=spare) for pool in made]
        rooms = [list(p.room) for p in self.pools for _ in range(len(p.initial) + p.spare)]
        self.bank = ModelBank(LAYOUT, rooms, NoisePrior())
        self.slots = Slots(self.bank, self.pools, [])
        self.mixture = Mixture(
            self.slots.initial_prior(), self.slots.family_of, self.slots.families, 1e-12
        )
        self.recent = RecentRounds(256, 256, 1, 0)
        self.births = StructureSearch(self.bank, self.slots, self.mixture, self.recent)
        self.rng = np.random.default_rng(0)
        for y in swing:
            self.come(float(y))

    def come(self, y: float) -> None:
        t, arm = self.recent.count, self.recent.count % 2
        before = self.mixture.evidence
        y = y * (1 - 2 * arm) + 0.3 * float(self.rng.normal())
        self.mixture.reweigh(self.bank.observe(empty_state(t, 2), arm, np.ones(1), y, binary=False))
        self.recent.append(
            t=t, covariates=np.zeros(len(all_covariates())), n_rewards_seen=t, arm=arm, raw=np.empty(0), x=np.ones(1),
            reward=y, evidence=before, network=0.0,
        )  # fmt: skip

    def search(self, monkeypatch: pytest.MonkeyPatch, *candidates: Candidate) -> Any:
        def born(_: Any) -> Iterator[Candidate | int]:
            for candidate in candidates:
                yield 7
                yield candidate

        monkeypatch.setitem(FAMILIES, "fourier", replace(FAMILIES["fourier"], candidates=born))
        return self.births.search(UNITS)

    def likelihood(self, period: float, noise: float) -> float:
        """Of everything that came, for one that had always been there."""
        spec = fourier(period)
        bank = ModelBank(LAYOUT, [[spec]], NoisePrior())
        bank.assign(0, spec, noise)
        return float(finish(bank.replay(0, self.recent.window(UNITS), False)).sum())

    def found(self) -> dict[float, tuple[float, float]]:
        """Weight and prior by period."""
        weights = np.exp(self.mixture.log_weights)
        return {
            float(self.bank.spec(m).periods[0]): (float(weights[m]), float(self.mixture.prior[m]))
            for m in range(self.bank.size)
            if self.bank.arrays.active[m]
        }


def sine(period: float, n: int) -> FloatArray:
    return np.asarray(np.sin(2 * np.pi * np.arange(n) / period))


def exact(world: World, candidates: dict[float, float], noise: float) -> dict[float, float]:
    """Posterior weights by Bayes' rule, priors pi given."""
    logs = {
        10.0: math.log(0.5) + world.likelihood(10.0, 0.1),
        30.0: math.log(0.5) + world.likelihood(30.0, 0.1),
    }
    logs |= {
        period: math.log(pi) + world.likelihood(period, noise) for period, pi in candidates.items()
    }
    top = max(logs.values())
    total = sum(math.exp(value - top) for value in logs.values())
    return {period: math.exp(value - top) / total for period, value in logs.items()}


def test_newborn_weighs_what_bayes_rule_says(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(0.4 * sine(12.0, 40))
    noise = world.bank.assumed_noise(0)
    finish(
        world.search(monkeypatch, Candidate(fourier(12.0), 20.0), Candidate(fourier(18.0), 40.0))
    )
    expected = exact(world, {12.0: 1 / 20, 18.0: 1 / 40}, noise)
    found = world.found()
    assert {period: weight for period, (weight, _) in found.items()} == pytest.approx(
        expected, rel=1e-6
    )
    total = 1 + 1 / 20
    assert found[12.0][1] == pytest.approx(1 / 20 / total / (1 + 1 / 40), rel=1e-9)
    assert found[18.0][1] == pytest.approx(1 / 40 / (1 + 1 / 40), rel=1e-9)
    assert sum(prior for _, prior in found.values()) == pytest.approx(1.0)
    assert world.births.count == 2
    logs = [math.log(0.5) + world.likelihood(p, 0.1) for p in (10.0, 30.0)]
    logs += [
        math.log(pi) + world.likelihood(p, noise) for p, pi in ((12.0, 1 / 20), (18.0, 1 / 40))
    ]
    assert world.mixture.evidence == pytest.approx(float(np.logaddexp.reduce(logs)), rel=1e-9)


def test_newborn_lives_through_what_came_while_it_was_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(0.4 * sine(12.0, 40))
    noise = world.bank.assumed_noise(0)
    work = world.search(monkeypatch, Candidate(fourier(12.0), 20.0))
    assert next(work) == 7
    for y in 0.4 * sine(12.0, 50)[40:]:
        world.come(float(y))
    finish(work)
    expected = exact(world, {12.0: 1 / 20}, noise)
    assert {p: weight for p, (weight, _) in world.found().items()} == pytest.approx(
        expected, rel=1e-6
    )


def test_newborn_on_a_peak_takes_the_place_of_its_elder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty rounds cannot tell 10 from 10.2: the better one inherits the place and, where larger,
    the prior."""
    world = World(sine(10.4, 40))
    finish(world.search(monkeypatch, Candidate(fourier(10.4), 20.0)))
    found = world.found()
    assert set(found) == {10.4, 30.0}
    assert found[10.4][1] == pytest.approx(0.5)
    worse = World(sine(10.0, 40))
    finish(worse.search(monkeypatch, Candidate(fourier(10.6), 20.0)))
    assert set(worse.found()) == {10.0, 30.0}
    assert worse.births.count == 0


def test_lightest_makes_room_when_all_places_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(sine(12.0, 60), spare=1)
    finish(world.search(monkeypatch, Candidate(fourier(12.0), 5.0)))
    assert set(world.found()) in ({10.0, 12.0}, {12.0, 30.0})
    light = World(sine(10.0, 60), spare=1)
    before = light.found()
    finish(light.search(monkeypatch, Candidate(fourier(45.0), 1e30)))
    assert set(light.found()) == set(before)


def test_nothing_is_born_of_too_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(sine(12.0, 23))
    finish(world.search(monkeypatch, Candidate(fourier(12.0), 5.0)))
    assert set(world.found()) == {10.0, 30.0}
    world.come(1.0)
    finish(world.search(monkeypatch, Candidate(fourier(12.0), 5.0)))
    assert 12.0 in world.found()


def test_waves_are_kin_when_period_and_phase_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    made = growing(LAYOUT, False, [square(10.0, 2.0)], [square(3.0)])
    rooms = [list(p.room) for p in made for _ in range(len(p.initial) + p.spare)]
    bank = ModelBank(LAYOUT, rooms, NoisePrior())
    slots = Slots(bank, made, [])
    mixture = Mixture(slots.initial_prior(), slots.family_of, slots.families, 1e-9)
    recent = RecentRounds(256, 256, 1, 0)
    births = StructureSearch(bank, slots, mixture, recent)
    for t in range(60):
        recent.append(
            t=t, covariates=np.zeros(len(all_covariates())), n_rewards_seen=t, arm=0, raw=np.empty(0), x=np.ones(1),
            reward=1.0 if (t + 3) // 10 % 2 else -1.0, evidence=0.0, network=0.0,
        )  # fmt: skip
    for other, alike in (
        (square(10.0, 3.0), True),
        (square(10.0, 7.0), False),
        (square(18.0, 2.0), False),
    ):
        before = int(bank.arrays.active.sum())

        def born(_: Any, other: Spec = other) -> Iterator[Candidate | int]:
            yield Candidate(other, 1e-9)

        monkeypatch.setitem(FAMILIES, "square", replace(FAMILIES["square"], candidates=born))
        finish(births.search(UNITS))
        assert int(bank.arrays.active.sum()) == before + (not alike), other
