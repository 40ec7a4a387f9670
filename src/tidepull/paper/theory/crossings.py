"""From which horizon on: the linear term leads, the bound beats the trivial one, the proof's premise holds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tidepull.paper.theory.bound import Bools, Floats, Setting, regret_bound
from tidepull.paper.theory.bound import l as l_of
from tidepull.paper.theory.bound import nu as nu_of

LIMIT = 10**15
"""The longest horizon looked at; beyond it floats no longer tell one round from the next."""


def linear_from(setting: Setting) -> int | None:
    """The first T at which the part of the bound proportional to epsilon is at least the rest; None if never."""

    def leads(T: Floats) -> Bools:
        bound = regret_bound(T, setting)
        return np.asarray(bound.linear >= bound.base)

    return None if setting.epsilon == 0 else _first(leads)


def below_trivial_from(setting: Setting) -> int | None:
    """The first T at which the bound is below 2 T, which any policy meets; None if not before `LIMIT`."""
    return _first(lambda T: np.asarray(regret_bound(T, setting).total < 2.0 * T))


def premise_from(setting: Setting) -> int | None:
    """The first t with l_t <= nu_t, without which Lemma 2 (hence the theorem) is not proved; None if never.

    nu_t - l_t grows with t, so the premise holds from there on.
    """
    return _first(lambda t: np.asarray(l_of(t, setting) <= nu_of(t, setting)))


def premise_sigma(setting: Setting) -> float:
    """The smallest sigma that gives l_t <= nu_t in every round: 1 / (2 sqrt(d log(1 / delta))).

    Noise that is sigma-sub-Gaussian is so for any larger sigma: raising sigma to this value is always allowed.
    """
    return 1.0 / (2.0 * math.sqrt(-setting.d * math.log(setting.delta)))


def _first(holds: Callable[[Floats], Bools]) -> int | None:
    """The first whole number with the property: the first on a fine geometric grid, then bisection."""
    grid = np.unique(np.round(np.geomspace(1, LIMIT, 3001)))
    found = holds(grid)
    if not found.any():
        return None
    index = int(np.argmax(found))
    low, high = int(grid[max(index - 1, 0)]), int(grid[index])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(np.asarray(float(middle))) else (middle, high)
    return high
