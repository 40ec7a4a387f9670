from __future__ import annotations

import math

import pytest

from tidepull.errors import ParameterError
from tidepull.policies.linear_ucb import DiscountedLinearUcbParameters, SlidingLinearUcbParameters
from tidepull.policies.variation import optimal_discount, optimal_window

T = 4096
FLIPPING, SLOW, FAST = 2 * T / 64, 2 * math.pi * T / 2048, 2 * math.pi * T / 32


@pytest.mark.parametrize(
    ("budget", "dim", "discount", "window"),
    [(FLIPPING, 50, 0.99269, 137), (SLOW, 2, 0.986699, 75), (FAST, 2, 0.787186, 5)],
)
def test_settings_of_the_paper_follow_from_the_budgets(
    budget: float, dim: int, discount: float, window: int
) -> None:
    assert optimal_discount(budget=budget, horizon=T, dim=dim) == pytest.approx(discount, abs=5e-7 + 1e-5)
    assert optimal_window(budget=budget, horizon=T, dim=dim) == window


def test_parameters_take_the_optimal_pace_and_other_keywords() -> None:
    discounted = DiscountedLinearUcbParameters.from_variation_budget(
        budget=FLIPPING, horizon=T, dim=50, variant="reference-code", exploration=0.5
    )
    assert discounted.discount == optimal_discount(budget=FLIPPING, horizon=T, dim=50)
    assert (discounted.variant, discounted.exploration) == ("reference-code", 0.5)
    sliding = SlidingLinearUcbParameters.from_variation_budget(budget=SLOW, horizon=T, dim=2, delta=0.01)
    assert (sliding.window, sliding.delta) == (75, 0.01)


def test_nothing_is_forgotten_when_nothing_varies() -> None:
    assert optimal_discount(budget=0.0, horizon=T, dim=2) == 1.0
    assert optimal_window(budget=0.0, horizon=T, dim=2) == T
    assert optimal_window(budget=1e-9, horizon=T, dim=2) == T


@pytest.mark.parametrize("budget", [-1.0, math.nan, math.inf, 2.0 * T])
def test_budget_outside_its_range_is_refused(budget: float) -> None:
    with pytest.raises(ParameterError, match="budget must be from 0"):
        optimal_discount(budget=budget, horizon=T, dim=2)
    with pytest.raises(ParameterError, match="at least 1"):
        optimal_window(budget=1.0, horizon=0, dim=2)
