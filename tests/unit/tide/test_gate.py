"""Which group of models decides: by the value of its choices, where both differ."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from tidepull.tide.gate import ValueGate


def play(gate: ValueGate, first: float, second: float, rounds: int, seed: int = 0) -> float:
    """The share after rounds in which the groups disagree and their choices pay so much more than
    expected."""
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        decides = rng.random() < gate.share
        chances = (1.0, 0.0) if decides else (0.0, 1.0)
        gate.decided(t, *chances, 0.5)
        gate.learn(t, 0.5 + (first if decides else second) + 0.3 * rng.standard_normal())
    return gate.share


def test_what_is_declared_decides_before_anything_is_known() -> None:
    assert ValueGate().share == pytest.approx(NormalDist().cdf(1.4))


@pytest.mark.parametrize("seed", range(5))
def test_the_group_whose_choices_pay_more_decides(seed: int) -> None:
    assert play(ValueGate(), 0.0, 0.3, 1500, seed) < 0.05
    assert play(ValueGate(), 0.3, 0.0, 300, seed) > 0.95


def test_rounds_in_which_both_agree_say_nothing() -> None:
    gate = ValueGate()
    before = gate.share
    for t in range(100):
        gate.decided(t, 0.7, 0.7, 0.0)
        gate.learn(t, 100.0)
    assert gate.share == before


def test_one_lucky_choice_does_not_turn_it_around() -> None:
    gate = ValueGate()
    for t in range(100):
        gate.decided(t, 1.0, 0.0, 0.2)
        gate.learn(t, float(t % 5 == 0))
    gate.decided(100, 0.0, 1.0, 0.2)
    gate.learn(100, 1.0)
    assert gate.share > 0.8


def test_share_is_the_chance_that_the_first_mean_is_larger() -> None:
    gate = ValueGate()
    first, second = np.array([0.4, -0.1, 0.3]), np.array([0.9, 0.2])
    for t, advantage in enumerate([*first, *second]):
        gate.decided(t, float(t < 3), float(t >= 3), 1.0)
        gate.learn(t, 1.0 + float(advantage))
    n, m = np.zeros(2), np.zeros(2)
    squares = rounds = 0.0
    for t, advantage in enumerate([*first, *second]):
        own = np.array([t < 3, t >= 3], float)
        n, m = 0.9995 * n + own, 0.9995 * m + own * advantage
        squares, rounds = 0.9995 * squares + advantage**2, 0.9995 * rounds + 1
    std = math.sqrt(squares / rounds)
    mean, spread = m / (n + 30), std / np.sqrt(n + 30)
    gap = mean[0] - mean[1] + 1.4 * std * math.sqrt(2 / 30)
    assert gate.share == pytest.approx(NormalDist().cdf(gap / math.hypot(*spread)))


def test_shares_count_for_the_group_that_prefers_the_arm() -> None:
    gate = ValueGate()
    share = gate.share
    gate.decided(0, 0.75, 0.25, 0.0)
    gate.learn(0, 1.0)
    snapshot = gate.snapshot()
    assert snapshot["counts"] == pytest.approx(
        [share * 0.5 / (share * 0.75 + (1 - share) * 0.25), 0.0]
    )


def test_decisions_whose_reward_never_comes_are_forgotten() -> None:
    gate = ValueGate()
    for t in range(10_000):
        gate.decided(t, 1.0, 0.0, 0.0)
    assert len(gate.snapshot()["waiting"]) <= 8192


def test_restored_gate_goes_on_as_before() -> None:
    gate, other = ValueGate(), ValueGate()
    play(gate, 0.1, 0.3, 200)
    gate.decided(900, 0.0, 1.0, 0.3)
    other.restore(gate.snapshot())
    for one in (gate, other):
        one.learn(900, 5.0)
    assert other.snapshot() == gate.snapshot()
