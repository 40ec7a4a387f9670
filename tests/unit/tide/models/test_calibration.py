"""Predictions put right, beside the same in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.calibration import BINS, KEPT, recalibrate
from tidepull.tide.models.covariates import empty_state
from tidepull.tide.models.family import Layout
from tidepull.tide.models.linear import stationary
from tidepull.tide.models.noise import NoisePrior


class Plain:
    """One hypothesis's bins, from the list of all errors that fell into each."""

    def __init__(self, memory: float) -> None:
        self.memory, self.odds = memory, 0.0
        self.errors: dict[int, list[float]] = {j: [] for j in range(BINS)}

    def score(
        self, mean: float, leverage: float, y: float, plain: float, noise: float, binary: bool
    ) -> float:
        errors = self.errors[min(max(math.floor((mean + 2) / 0.4), 0), BINS - 1)]
        ages = self.memory ** np.arange(len(errors))[::-1]
        n, s, q = ages.sum(), float(ages @ errors), float(ages @ np.square(errors))
        if binary:
            p = min(max((1 + mean) / 2, 0.02), 0.98)
            chance = (2 * p + s) / (2 + n)
            told = math.log(chance if y > 0 else 1 - chance)
            errors.append(1.0 if y > 0 else 0.0)
        else:
            a, root = 1 + n / 2, math.sqrt(1 + leverage)
            b = noise + 0.5 * (q - s**2 / (n + 1))
            scale = math.sqrt(b / a * (1 + 1 / (n + 1)))
            told = float(stats.t.logpdf((y - mean) / root, 2 * a, s / (n + 1), scale)) - math.log(
                root
            )
            errors.append((y - mean) / root)
        weight = 1 / (1 + math.exp(-self.odds))
        self.odds = float(np.clip(self.odds + told - plain, -5, 5))
        return math.log((1 - weight) * math.exp(plain) + weight * math.exp(told))


@pytest.mark.parametrize("binary", [False, True])
def test_prediction_put_right_is_that_of_all_errors_in_its_bin(binary: bool) -> None:
    rng, plain = np.random.default_rng(1), Plain(0.98)
    bins, odds = np.zeros((BINS, KEPT)), np.zeros(1)
    for _ in range(300):
        mean, leverage = float(rng.normal(scale=1.5)), float(rng.exponential())
        y = float(rng.choice([-1.0, 1.0])) if binary else mean + 0.5 + float(rng.normal())
        own, noise = float(rng.normal(-1.0, 0.3)), float(rng.uniform(0.1, 1.0))
        expected = plain.score(mean, leverage, y, own, noise, binary)
        assert recalibrate(
            bins, odds, mean, leverage, y, own, noise, binary, 0.98
        ) == pytest.approx(expected)


def test_prediction_put_right_gains_where_a_rule_says_less_than_it_means() -> None:
    """It says 0.7 and 1 comes, with noise of a tenth: a mean error of three standard deviations."""
    rng, bins, odds = np.random.default_rng(2), np.zeros((BINS, KEPT)), np.zeros(1)
    gained = 0.0
    for _ in range(100):
        y = 1 + 0.1 * float(rng.normal())
        own = float(stats.t.logpdf(y - 0.7, 50, 0, 0.3))
        gained += recalibrate(bins, odds, 0.7, 0.0, y, own, 0.09, False, 0.995) - own
    assert gained > 80


def test_prediction_put_right_costs_little_where_the_model_is_right() -> None:
    rng, bins, odds = np.random.default_rng(3), np.zeros((BINS, KEPT)), np.zeros(1)
    lost = 0.0
    for _ in range(2000):
        mean = float(rng.normal())
        y = mean + float(rng.normal())
        own = float(stats.norm.logpdf(y - mean))
        lost += own - recalibrate(bins, odds, mean, 0.0, y, own, 1.0, False, 0.995)
    assert lost < 20


def test_bank_puts_predictions_right_and_begins_anew_when_reset() -> None:
    layout, hypothesis = Layout(2, 2, False), stationary(contextual=True)
    banks = [
        ModelBank(layout, [[hypothesis]], NoisePrior(), calibrated=calibrated)
        for calibrated in (False, True)
    ]
    rng, totals = np.random.default_rng(4), np.zeros(2)
    for bank in banks:
        bank.assign(0, hypothesis)
    for t in range(400):
        z = float(rng.normal())
        y = math.copysign(1.0, z) + 0.1 * float(rng.normal())  # a step, which no line describes
        for i, bank in enumerate(banks):
            totals[i] += float(bank.observe(empty_state(t, 2), 0, np.array([1.0, z]), y, False)[0])
    assert totals[1] > totals[0] + 20
    np.testing.assert_array_equal(banks[0].arrays.mat, banks[1].arrays.mat)
    saved = banks[1].snapshot()
    assert saved["bins"].any()
    assert "bins" not in banks[0].snapshot()
    banks[1].reset(0)
    assert not banks[1].arrays.bins.any()
    banks[1].restore(saved)
    np.testing.assert_array_equal(banks[1].arrays.bins, saved["bins"])
