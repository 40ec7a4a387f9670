from __future__ import annotations

import numpy as np
import pytest

from tidepull.paper.theory import bound as theory
from tidepull.paper.theory.bound import (
    LinearSetting,
    below_trivial_from,
    linear_from,
    premise_from,
    premise_sigma,
    regret_bound,
)

SETTINGS = [
    LinearSetting(d=d, k=k, epsilon=e)
    for d in (1, 2, 30)
    for k in (1, 25, 10**6)
    for e in (1e-5, 0.01, 1.0)
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_linear_term_leads_from_the_crossing_on_and_not_before(setting: LinearSetting) -> None:
    T = linear_from(setting)
    assert T is not None
    before = regret_bound(np.unique(np.geomspace(1, T, 400).astype(int))[:-1], setting)
    after = regret_bound(np.geomspace(T, 1e15, 400), setting)
    assert (before.linear < before.base).all()
    assert (after.linear[1:] >= after.base[1:]).all()
    at = regret_bound(T, setting)
    assert at.linear >= at.base


def test_linear_term_never_leads_without_error() -> None:
    assert linear_from(LinearSetting(d=3, k=4)) is None


def test_bound_without_error_beats_the_trivial_one_only_after_a_billion_rounds() -> None:
    setting = LinearSetting(d=2, k=25)
    T = below_trivial_from(setting)
    assert T is not None
    assert 1e8 < T < 1e10
    assert regret_bound(T, setting).total < 2 * T
    assert regret_bound(T - 1, setting).total >= 2 * (T - 1)


def test_bound_with_error_never_beats_the_trivial_one() -> None:
    assert below_trivial_from(LinearSetting(d=2, k=25, epsilon=0.01)) is None


def test_premise_of_lemma_2_holds_in_every_round_from_its_sigma_on() -> None:
    base = LinearSetting(d=10, k=20, epsilon=0.01)
    sigma = premise_sigma(base)
    enough = LinearSetting(d=10, k=20, epsilon=0.01, sigma=sigma * (1 + 1e-12))
    assert premise_from(enough) == 1
    t = np.geomspace(1, 1e15, 500)
    assert (theory.l(t, enough) <= theory.nu(t, enough)).all()
    short = LinearSetting(d=10, k=20, epsilon=0.01, sigma=sigma * 0.999)
    first = premise_from(short)
    assert first is not None
    assert first > 1
    assert theory.l(first - 1, short) > theory.nu(first - 1, short)


def test_premise_fails_for_small_noise() -> None:
    assert premise_from(LinearSetting(d=2, k=25, sigma=0.05)) is None
