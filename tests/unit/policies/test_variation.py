from __future__ import annotations

import math

import pytest

from tidepull.errors import ParameterError
from tidepull.policies import build_policy
from tidepull.policies.linear import (
    DiscountedLinearUcbParameters,
    SlidingLinearUcbParameters,
    optimal_discount,
    optimal_window,
)
from tidepull.types import ProblemShape

T = 4096
FLIPPING, SLOW, FAST = 2 * T / 64, 2 * math.pi * T / 2048, 2 * math.pi * T / 32


@pytest.mark.parametrize(
    ("budget", "dim", "discount", "window"),
    [(FLIPPING, 50, 0.99269, 137), (SLOW, 2, 0.986699, 75), (FAST, 2, 0.787186, 5)],
)
def test_settings_of_the_paper_follow_from_the_budgets(
    budget: float, dim: int, discount: float, window: int
) -> None:
    assert optimal_discount(budget=budget, horizon=T, dim=dim) == pytest.approx(
        discount, abs=5e-7 + 1e-5
    )
    assert optimal_window(budget=budget, horizon=T, dim=dim) == window


def test_parameters_take_the_optimal_pace_and_other_keywords() -> None:
    discounted = DiscountedLinearUcbParameters.from_variation_budget(
        budget=FLIPPING, horizon=T, dim=50, variant="reference-code", exploration=0.5
    )
    assert discounted.discount == optimal_discount(budget=FLIPPING, horizon=T, dim=50)
    assert (discounted.variant, discounted.exploration) == ("reference-code", 0.5)
    sliding = SlidingLinearUcbParameters.from_variation_budget(
        budget=SLOW, horizon=T, dim=2, delta=0.01
    )
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


class Stated:
    """A problem as far as it speaks of itself."""

    def variation_budget(self, horizon: int) -> float:
        return horizon / 32

    def linear_bounds(self, horizon: int) -> tuple[float, float]:
        return 1.7, 2.8


def test_settled_parameters_are_the_problem_s_where_they_were_left_to_it() -> None:
    discounted = DiscountedLinearUcbParameters(discount="variation-budget", feature_bound="problem")
    assert discounted.asks == ("feature_bound", "discount")
    made = discounted.settled(Stated(), horizon=T, dim=50)
    assert made.asks == ()
    assert made.discount == optimal_discount(budget=T / 32, horizon=T, dim=50)
    assert (made.parameter_bound, made.feature_bound) == (1.0, 2.8)
    sliding = SlidingLinearUcbParameters(window="variation-budget", parameter_bound="problem")
    made_too = sliding.settled(Stated(), horizon=T, dim=50)
    assert made_too.window == optimal_window(budget=T / 32, horizon=T, dim=50)
    assert (made_too.parameter_bound, made_too.feature_bound) == (1.7, 1.0)


def test_given_numbers_stay_when_the_problem_states_others() -> None:
    given = SlidingLinearUcbParameters(window=9, parameter_bound=3.0)
    assert given.settled(Stated(), horizon=T, dim=50) == given


@pytest.mark.parametrize(
    ("policy", "name", "value"),
    [
        ("lin-ucb", "parameter_bound", "problem"),
        ("d-lin-ucb", "discount", "variation-budget"),
        ("sw-lin-ucb", "window", "variation-budget"),
    ],
)
def test_policy_without_a_problem_asks_for_numbers(policy: str, name: str, value: str) -> None:
    with pytest.raises(
        ParameterError, match=f"{name} = '{value}' is filled in where the problem is known"
    ):
        build_policy((policy, {name: value}), ProblemShape(3, arm_dim=2), seed=0)


def test_problem_that_states_nothing_is_refused_by_the_parameter_s_name() -> None:
    with pytest.raises(
        ParameterError, match="window = 'variation-budget' needs a problem that states"
    ):
        SlidingLinearUcbParameters(window="variation-budget").settled(object(), horizon=T, dim=2)
    with pytest.raises(
        ParameterError, match="feature_bound = 'problem' needs a problem that states"
    ):
        SlidingLinearUcbParameters(feature_bound="problem").settled(object(), horizon=T, dim=2)
