"""A newborn weighs what Bayes' rule would have given it, had it been there since the window
began."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidepull.tide.births import Births, Slots
from tidepull.tide.mixture import Mixture
from tidepull.tide.models.bank import HypothesisBank
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Layout, Newborn, growing
from tidepull.tide.models.fourier import Fourier
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.notes import blank, columns
from tidepull.tide.models.slices import finished
from tidepull.tide.models.square import Square
from tidepull.tide.scale import Units
from tidepull.tide.window import RecentRounds
from tidepull.types import FloatArray

UNITS = Units(0.0, 1.0, 0.0, False)
LAYOUT = Layout(2, 1, False)


class World:
    """Sines of 10 and 30 rounds, and whatever a test wants to be born."""

    def __init__(self, swing: FloatArray, spare: int = 24) -> None:
        made = growing(False, [Fourier(10.0), Fourier(30.0)], [Fourier(3.0)])
        self.pools = [replace(pool, spare=spare) for pool in made]
        rooms = [list(p.room) for p in self.pools for _ in range(len(p.initial) + p.spare)]
        self.bank = HypothesisBank(LAYOUT, rooms, NoisePrior())
        self.slots = Slots(self.bank, self.pools, [])
        self.mixture = Mixture(
            self.slots.initial_prior(), self.slots.family_of, self.slots.families, 1e-12
        )
        self.recent = RecentRounds(256, 256, 1, 0)
        self.births = Births(self.bank, self.slots, self.mixture, self.recent)
        self.rng = np.random.default_rng(0)
        for y in swing:
            self.come(float(y))

    def come(self, y: float) -> None:
        t, arm = self.recent.count, self.recent.count % 2
        before = self.mixture.evidence
        y = y * (1 - 2 * arm) + 0.3 * float(self.rng.normal())
        self.mixture.reweigh(self.bank.observe(blank(t, 2), arm, np.ones(1), y, binary=False))
        self.recent.append(
            t=t, notes=np.zeros(len(columns())), came=t, arm=arm, raw=np.empty(0), x=np.ones(1), reward=y,
            evidence=before, network=0.0,
        )  # fmt: skip

    def search(self, monkeypatch: pytest.MonkeyPatch, *newborns: Newborn) -> Any:
        def born(_: Any) -> Iterator[Newborn | int]:
            for newborn in newborns:
                yield 7
                yield newborn

        monkeypatch.setitem(FAMILIES, "fourier", replace(FAMILIES["fourier"], newborns=born))
        return self.births.search(UNITS)

    def likelihood(self, period: float, noise: float) -> float:
        """Of everything that came, for one that had always been there."""
        spec = Fourier(period).spec()
        bank = HypothesisBank(LAYOUT, [[spec]], NoisePrior())
        bank.assign(0, spec, noise)
        return float(finished(bank.live(0, self.recent.window(UNITS), False)).sum())

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


def exact(world: World, newborns: dict[float, float], noise: float) -> dict[float, float]:
    """Posterior weights by Bayes' rule, priors pi given."""
    logs = {
        10.0: math.log(0.5) + world.likelihood(10.0, 0.1),
        30.0: math.log(0.5) + world.likelihood(30.0, 0.1),
    }
    logs |= {
        period: math.log(pi) + world.likelihood(period, noise) for period, pi in newborns.items()
    }
    top = max(logs.values())
    total = sum(math.exp(value - top) for value in logs.values())
    return {period: math.exp(value - top) / total for period, value in logs.items()}


def test_newborn_weighs_what_bayes_rule_says(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(0.4 * sine(12.0, 40))
    noise = world.bank.assumed_noise(0)
    finished(world.search(monkeypatch, Newborn(Fourier(12.0), 20.0), Newborn(Fourier(18.0), 40.0)))
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
    work = world.search(monkeypatch, Newborn(Fourier(12.0), 20.0))
    assert next(work) == 7
    for y in 0.4 * sine(12.0, 50)[40:]:
        world.come(float(y))
    finished(work)
    expected = exact(world, {12.0: 1 / 20}, noise)
    assert {p: weight for p, (weight, _) in world.found().items()} == pytest.approx(
        expected, rel=1e-6
    )


def test_newborn_on_a_peak_takes_the_place_of_its_elder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty rounds cannot tell 10 from 10.2: the better one inherits the place and, where larger,
    the prior."""
    world = World(sine(10.4, 40))
    finished(world.search(monkeypatch, Newborn(Fourier(10.4), 20.0)))
    found = world.found()
    assert set(found) == {10.4, 30.0}
    assert found[10.4][1] == pytest.approx(0.5)
    worse = World(sine(10.0, 40))
    finished(worse.search(monkeypatch, Newborn(Fourier(10.6), 20.0)))
    assert set(worse.found()) == {10.0, 30.0}
    assert worse.births.count == 0


def test_lightest_makes_room_when_all_places_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(sine(12.0, 60), spare=1)
    finished(world.search(monkeypatch, Newborn(Fourier(12.0), 5.0)))
    assert set(world.found()) in ({10.0, 12.0}, {12.0, 30.0})
    light = World(sine(10.0, 60), spare=1)
    before = light.found()
    finished(light.search(monkeypatch, Newborn(Fourier(45.0), 1e30)))
    assert set(light.found()) == set(before)


def test_nothing_is_born_of_too_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(sine(12.0, 23))
    finished(world.search(monkeypatch, Newborn(Fourier(12.0), 5.0)))
    assert set(world.found()) == {10.0, 30.0}
    world.come(1.0)
    finished(world.search(monkeypatch, Newborn(Fourier(12.0), 5.0)))
    assert 12.0 in world.found()


def test_waves_are_kin_when_period_and_phase_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    made = growing(False, [Square(10.0, 2.0)], [Square(3.0)])
    rooms = [list(p.room) for p in made for _ in range(len(p.initial) + p.spare)]
    bank = HypothesisBank(LAYOUT, rooms, NoisePrior())
    slots = Slots(bank, made, [])
    mixture = Mixture(slots.initial_prior(), slots.family_of, slots.families, 1e-9)
    recent = RecentRounds(256, 256, 1, 0)
    births = Births(bank, slots, mixture, recent)
    for t in range(60):
        recent.append(
            t=t, notes=np.zeros(len(columns())), came=t, arm=0, raw=np.empty(0), x=np.ones(1),
            reward=1.0 if (t + 3) // 10 % 2 else -1.0, evidence=0.0, network=0.0,
        )  # fmt: skip
    for other, alike in (
        (Square(10.0, 3.0), True),
        (Square(10.0, 7.0), False),
        (Square(18.0, 2.0), False),
    ):
        before = int(bank.arrays.active.sum())

        def born(_: Any, other: Square = other) -> Iterator[Newborn | int]:
            yield Newborn(other, 1e-9)

        monkeypatch.setitem(FAMILIES, "square", replace(FAMILIES["square"], newborns=born))
        finished(births.search(UNITS))
        assert int(bank.arrays.active.sum()) == before + (not alike), other
