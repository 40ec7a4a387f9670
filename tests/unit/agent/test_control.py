"""Chances between their bounds, and draws that follow from salt and number alone."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.property.quick import QUICK
from tidepull.agent.control import bound_chances, draw_arm, unit

UNITS = st.floats(0, 1)


@QUICK
@given(st.integers(1, 6), st.data())
def test_bounded_chances_add_up_and_keep_every_bound_that_can_be_kept(
    n: int, data: st.DataObject
) -> None:
    def numbers() -> np.ndarray:
        return np.array(data.draw(st.lists(UNITS, min_size=n, max_size=n)))

    available = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assume(available.any())
    shares = numbers() * available
    assume(shares.sum() > 1e-6)
    shares /= shares.sum()
    least, most = numbers() / n, 1 - numbers() / n
    least = np.minimum(least, most)
    chances = bound_chances(shares, available, data.draw(UNITS), least, most)
    assert abs(chances.sum() - 1) < 1e-9
    assert not chances[~available].any()
    if least[available].sum() <= 1 <= most[available].sum():
        assert (chances >= least * available - 1e-9).all()
        assert (chances <= most + 1e-9).all()


def test_bounds_that_do_not_bind_change_nothing() -> None:
    shares = np.array([0.5, 0.3, 0.2, 0.0])
    available = np.array([True, True, True, False])
    chances = bound_chances(shares, available, 0.0, np.full(4, 0.1), np.full(4, 0.9))
    assert np.allclose(chances, shares, atol=1e-9)


def test_floor_is_spread_over_available_arms_only() -> None:
    chances = bound_chances(
        np.array([1.0, 0, 0]), np.array([True, False, True]), 0.2, np.zeros(3), np.ones(3)
    )
    assert chances.tolist() == [0.9, 0.0, 0.1]


def test_units_are_even_and_differ_by_salt_and_number() -> None:
    units = np.array([unit(b"salt", "arm", n) for n in range(4000)])
    assert abs(units.mean() - 0.5) < 0.02
    assert np.histogram(units, 10, (0, 1))[0].min() > 320
    assert unit(b"other", "arm", 0) != unit(b"salt", "arm", 0) != unit(b"salt", "group", 0)


def test_arms_are_drawn_as_often_as_their_chances_say() -> None:
    chances = np.array([0.0, 0.25, 0.75, 0.0])
    arms = np.bincount(
        [draw_arm(chances, u) for u in np.linspace(0, 1, 1000, endpoint=False)], minlength=4
    )
    assert arms.tolist() == [0, 250, 750, 0]
    assert draw_arm(np.array([0.3, 0.3, 0.0]), 0.999) == 1
