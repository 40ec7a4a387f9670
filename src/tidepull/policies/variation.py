"""How fast to forget when the variation budget B = sum_t ||w_{t+1} - w_t|| of a linear problem is known.

Both values minimise the regret bounds of their papers (Russac et al., 2019; Cheung et al., 2019) over T
rounds in dimension d. They are heuristics: a faster or slower pace often does better in practice.
"""

from __future__ import annotations

import math

from tidepull.errors import ParameterError
from tidepull.protocols import HasVariationBudget


def optimal_discount(*, budget: float, horizon: int, dim: int) -> float:
    """gamma* = 1 - (B / (d T))^(2/3); 1 (nothing is forgotten) when nothing varies.

    >>> round(optimal_discount(budget=128, horizon=4096, dim=50), 5)
    0.99269
    """
    return 1.0 - math.pow(_pace(budget, horizon, dim), 2 / 3)


def optimal_window(*, budget: float, horizon: int, dim: int) -> int:
    """tau* = (d T / B)^(2/3), to the nearest whole number, at most the horizon.

    >>> optimal_window(budget=128, horizon=4096, dim=50)
    137
    """
    pace = _pace(budget, horizon, dim)
    return horizon if pace == 0 else min(horizon, max(1, round(math.pow(pace, -2 / 3))))


def budget_of(problem: object, horizon: int, name: str) -> float:
    """The variation budget that the problem states; `name` is the parameter that was to be set from it."""
    if not isinstance(problem, HasVariationBudget):
        raise ParameterError(
            f"{name} = 'variation-budget' needs a problem that states its variation budget; give a number"
        )
    return problem.variation_budget(horizon)


def _pace(budget: float, horizon: int, dim: int) -> float:
    if horizon < 1 or dim < 1:
        raise ParameterError(f"horizon and dim must be at least 1, got {horizon} and {dim}")
    if not (math.isfinite(budget) and 0 <= budget < dim * horizon):
        raise ParameterError(f"budget must be from 0 to dim x horizon = {dim * horizon}, got {budget}")
    return budget / (dim * horizon)
