"""What decisions of a hypothesis on trial earn, beside those of others."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.tide.gated import Earnings


def asked(earnings: Earnings, count: int = 400) -> float:
    """How often party 1 comes out best."""
    rng = np.random.default_rng(1)
    return sum(earnings.asks(1, rng) for _ in range(count)) / count


def test_parties_are_asked_alike_when_nothing_was_earned() -> None:
    assert asked(Earnings(2)) == pytest.approx(0.5, abs=0.1)
    assert Earnings(2).chance(1, 0) == 0.5


def test_party_that_earns_more_is_asked_in_most_rounds() -> None:
    earnings = Earnings(2)
    for t in range(60):
        earnings.decided(t, t % 2)
        earnings.add(t, 1.0 if t % 2 else -1.0)
    assert asked(earnings) > 0.95
    assert earnings.chance(1, 0) > 0.95


def test_late_reward_belongs_to_the_party_that_decided_its_round() -> None:
    earnings = Earnings(2)
    for t in range(40):
        earnings.decided(t, int(t < 20))
    for t in reversed(range(40)):
        earnings.add(t, 1.0 if t < 20 else -1.0)
    earnings.add(7, -3.0)  # came already
    assert asked(earnings) > 0.95


def test_earnings_fade_when_a_party_grows_better() -> None:
    earnings, t = Earnings(2), 0
    for party, y, count in ((0, 0.0, 3000), (1, -1.0, 50), (1, 1.0, 400)):
        for _ in range(count):
            earnings.decided(t, party)
            earnings.add(t, y)
            t += 1
    assert asked(earnings) > 0.9
