"""A season whose phase has run away gets a twin that keeps better time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tidepull.policies import build_policy
from tidepull.tide.models import phase
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import all_covariates, empty_state
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.linear import fourier
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.spec import Spec
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape

PERIOD, ARMS = 37.3, 3


def means(t: IntArray | int) -> FloatArray:
    """Every arm's expected reward, a row a round."""
    shifts = np.arange(ARMS) / ARMS
    return np.asarray(0.2 + 0.5 * np.sin(2 * np.pi * (np.atleast_1d(t)[:, None] / PERIOD + shifts)))


def lived(period: float, rounds: int, noise: float = 0.3) -> tuple[ModelBank, Window]:
    """A bank whose slot 0 has learnt so many rounds with that period, and the last 1,000 of
    them."""
    specs = [fourier(period), fourier(period)]
    bank = ModelBank(Layout(ARMS, 1, False), [[spec] for spec in specs], NoisePrior())
    bank.assign(0, specs[0])
    rng = np.random.default_rng(0)
    t, arm = np.arange(rounds), rng.integers(ARMS, size=rounds)
    y = means(t)[t, arm] + noise * rng.standard_normal(rounds)
    window = Window(t, np.zeros((rounds, len(all_covariates()))), arm, np.ones((rounds, 1)), y)
    for _ in bank.replay(0, window, False):
        pass
    return bank, Window._make(part[-1000:] for part in window)


def predict(bank: ModelBank, m: int, t: int) -> FloatArray:
    return bank.predict(m, empty_state(t, ARMS), np.ones((ARMS, 1)))[0]


def test_twin_has_nearly_the_true_period_when_the_elder_ran_away() -> None:
    wrong = 37.29
    bank, window = lived(wrong, 20_000)
    found = phase.corrected(bank, 0, window)
    assert found is not None
    assert abs(found.spec.periods[0] - PERIOD) < 0.2 * abs(wrong - PERIOD)


@pytest.mark.parametrize(("period", "rounds"), [(PERIOD, 20_000), (37.297, 3_900)])
def test_nobody_is_born_when_the_phase_is_right_or_life_was_short(
    period: float, rounds: int
) -> None:
    bank, window = lived(period, rounds)
    assert phase.corrected(bank, 0, window) is None


def test_twin_agrees_with_the_elder_at_the_centre_of_its_life_and_leads_it_later() -> None:
    bank, window = lived(37.297, 20_000)
    found = phase.corrected(bank, 0, window)
    assert found is not None
    phase.copy_turned(bank, 0, 1, found)
    centre = round(found.centre)
    np.testing.assert_allclose(predict(bank, 1, centre), predict(bank, 0, centre), atol=1e-3)
    later = np.arange(19_000, 20_000)
    errors = [
        np.mean([(predict(bank, m, int(t)) - means(int(t))[0]) ** 2 for t in later[::50]])
        for m in (0, 1)
    ]
    assert errors[1] < 0.2 * errors[0]


def test_twin_has_learnt_as_much_as_the_elder_in_turned_coordinates() -> None:
    bank, window = lived(37.297, 20_000)
    found = phase.corrected(bank, 0, window)
    assert found is not None
    phase.copy_turned(bank, 0, 1, found)
    for arm in range(ARMS):
        A, B = (phase._moments(bank, m)[0][arm] for m in (0, 1))
        np.testing.assert_allclose(np.linalg.eigvalsh(A), np.linalg.eigvalsh(B), rtol=1e-9)
    assert (bank.noise(1), bank.arrays.ridge[1]) == (bank.noise(0), bank.arrays.ridge[0])


@pytest.mark.parametrize("p", [-0.1, 0.0, 0.1])
def test_runaway_is_the_shift_by_which_a_sine_is_behind(p: float) -> None:
    t = np.arange(1000)
    arm = np.zeros(1000, np.int64)
    angle = 2 * np.pi * t / PERIOD
    y = 0.3 + 0.5 * np.cos(angle + p) - 0.2 * np.sin(angle + p)
    window = Window(t, np.zeros((1000, len(all_covariates()))), arm, np.ones((1000, 1)), y)
    found, error = phase.phase_drift(np.array([[0.3, 0.5, -0.2]]), PERIOD, window, 0.04)
    assert found == pytest.approx(p, abs=2e-3)
    assert error == pytest.approx(0.2 / math.sqrt(1000 * (0.25 + 0.04) / 2), rel=0.05)


@pytest.mark.parametrize(
    "hypothesis",
    [fourier(30.0, discount=0.99), fourier(30.0, contextual=True)],
    ids=["forgets", "sees"],
)
def test_only_plain_seasons_keep_time(hypothesis: Spec) -> None:
    assert phase.is_plain_sine(fourier(30.0))
    assert not phase.is_plain_sine(hypothesis)


def test_weights_still_add_up_when_a_twin_is_born(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phase, "_SURE", 0.0)
    policy: Any = build_policy(
        ("tide", {"window": 256, "without": ["seasons"]}), ProblemShape(ARMS), seed=1
    )
    rng, context = np.random.default_rng(1), Context()
    _, inner = policy.inner._groups(context)
    born, keep = [], inner._search._keep_time

    def noted(window: Window) -> None:
        before, weights = inner._search.count, np.exp(inner._mixture.log_weights)
        for (
            slots
        ) in inner._search.slots.of:  # leave one empty place in every pool: somebody must go
            empty = [m for m in slots if not inner._bank.arrays.active[m]]
            for m in empty[1:]:
                inner._bank.assign(m, inner._bank.spec(slots[0]))
                inner._mixture.log_weights[m], inner._mixture.prior[m] = -60.0, 1e-9
        inner._mixture.prior /= inner._mixture.prior.sum()
        keep(window)
        born.append(inner._search.count > before)
        if born[-1]:
            incumbent = int(np.argmax(weights))
            after = np.exp(inner._mixture.log_weights)
            assert after[incumbent] == pytest.approx(weights[incumbent] / 2, rel=1e-6)
            assert np.sort(after)[-2] == pytest.approx(weights[incumbent] / 2, rel=1e-6)
            assert inner._mixture.prior.sum() == pytest.approx(1.0, abs=1e-12)

    inner._search._keep_time = noted
    for t in range(1600):
        arm = policy.choose(context)
        policy.learn(Event(context, arm, float(means(t)[0, arm] + 0.3 * rng.standard_normal())))
        while policy.upkeep():
            pass
    assert any(born)
    assert np.exp(inner._mixture.log_weights).sum() == pytest.approx(1.0)
    assert inner._mixture.prior.sum() == pytest.approx(1.0)
