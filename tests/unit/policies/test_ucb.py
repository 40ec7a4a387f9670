"""Indices against a direct pass over the history, at every round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tidepull import state as snapshots
from tidepull.errors import SnapshotError
from tidepull.policies import build_policy
from tidepull.policies.arms import Ucb
from tidepull.policies.guard import Guarded
from tidepull.types import Context, Event, FloatArray, ProblemShape

N_ARMS = 5
SHAPE = ProblemShape(n_arms=N_ARMS)
History = list[tuple[int, float]]


def make(id: str, **parameters: Any) -> Guarded:
    policy = build_policy((id, parameters), SHAPE, seed=1)
    assert isinstance(policy.inner, Ucb)
    return policy


def direct(history: History, weights: list[float], factor: float, xi: float) -> FloatArray:
    """The formula, term by term: mean_i + factor sqrt(xi log n / N_i)."""
    n = sum(weights)
    indices = []
    for arm in range(N_ARMS):
        count = sum(w for w, (a, _) in zip(weights, history, strict=True) if a == arm)
        total = sum(w * r for w, (a, r) in zip(weights, history, strict=True) if a == arm)
        indices.append(
            math.inf if count == 0 else total / count + factor * math.sqrt(xi * math.log(n) / count)
        )
    return np.array(indices)


def rounds(policy: Guarded, n: int, seed: int = 0) -> History:
    """Own choices mixed with arms that somebody else chose."""
    rng = np.random.default_rng(seed)
    history: History = []
    for t in range(n):
        arm = policy.choose(Context()) if t % 3 else int(rng.integers(N_ARMS))
        history.append((arm, float(rng.normal())))
        policy.learn(Event(Context(), *history[-1]))
    return history


def replayed(policy: Guarded, history: History) -> list[FloatArray]:
    seen = []
    for arm, reward in history:
        policy.learn(Event(Context(), arm, reward))
        seen.append(policy.indices())
    return seen


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.999])
def test_d_ucb_index_equals_a_direct_pass_over_history_at_every_round(discount: float) -> None:
    history = rounds(make("d-ucb", discount=discount, xi=0.7, reward_range=1.5), 120)
    policy = make("d-ucb", discount=discount, xi=0.7, reward_range=1.5)
    for t, indices in enumerate(replayed(policy, history), start=1):
        weights = [discount ** (t - s) for s in range(1, t + 1)]
        np.testing.assert_allclose(indices, direct(history[:t], weights, 2 * 1.5, 0.7), rtol=1e-10)


@pytest.mark.parametrize("window", [1, 4, 30])
def test_sw_ucb_index_equals_a_direct_pass_over_the_window_at_every_round(window: int) -> None:
    history = rounds(make("sw-ucb", window=window, xi=0.7, reward_range=1.5), 120)
    policy = make("sw-ucb", window=window, xi=0.7, reward_range=1.5)
    for t, indices in enumerate(replayed(policy, history), start=1):
        last = history[max(0, t - window) : t]
        assert len(last) == min(t, window)
        np.testing.assert_allclose(
            indices, direct(last, [1.0] * len(last), 1.5, 0.7), rtol=1e-10, atol=1e-12
        )


def test_ucb_index_is_ucb1() -> None:
    history = rounds(make("ucb"), 100)
    for t, indices in enumerate(replayed(make("ucb"), history), start=1):
        counts = np.array([sum(a == arm for a, _ in history[:t]) for arm in range(N_ARMS)])
        if counts.all():
            means = [np.mean([r for a, r in history[:t] if a == arm]) for arm in range(N_ARMS)]
            np.testing.assert_allclose(indices, means + np.sqrt(2 * np.log(t) / counts), rtol=1e-12)


def test_discount_of_one_equals_no_discount() -> None:
    assert rounds(make("d-ucb", discount=1.0), 200) == rounds(make("ucb"), 200)


def test_window_longer_than_the_horizon_equals_no_window() -> None:
    # SW-UCB's width is B where UCB1's is 2 B, hence twice the range.
    assert rounds(make("sw-ucb", window=10**9, reward_range=2.0), 200) == rounds(make("ucb"), 200)


def test_windowed_sums_stay_exact_over_many_rounds() -> None:
    policy = make("sw-ucb", window=7)
    rng = np.random.default_rng(2)
    history = [
        (int(rng.integers(N_ARMS)), float(rng.normal() * 10.0 ** rng.integers(8)))
        for _ in range(20_000)
    ]
    for arm, reward in history:
        policy.learn(Event(Context(), arm, reward))
    np.testing.assert_allclose(
        policy.indices(), direct(history[-7:], [1.0] * 7, 1.0, 0.5), rtol=1e-6
    )


def test_arm_that_was_never_played_comes_first() -> None:
    policy = make("ucb")
    for arm in (0, 1, 2, 4):
        policy.learn(Event(Context(), arm, 100.0))
    assert policy.choose(Context()) == 3


def test_arm_that_left_the_window_is_pulled() -> None:
    policy = make("sw-ucb", window=4)
    for arm in (3, 0, 1, 2, 4):
        policy.learn(Event(Context(), arm, 1.0))
    assert policy.choose(Context()) == 3


def test_unavailable_arm_is_forgotten_without_harm() -> None:
    policy = make("d-ucb", discount=0.5)
    policy.learn(Event(Context(), 0, 1.0))
    for _ in range(3000):  # the weight of arm 0 underflows to zero
        policy.learn(Event(Context(), 1, 1.0))
    assert np.isposinf(policy.indices()[[0, 2, 3, 4]]).all()


@pytest.mark.parametrize(("id", "other"), [("d-ucb", "sw-ucb"), ("sw-ucb", "ucb")])
def test_restore_refuses_a_snapshot_of_another_policy_or_shape(id: str, other: str) -> None:
    policy = make(id)
    with pytest.raises(SnapshotError, match=f"the policy '{other}', this policy has '{id}'"):
        policy.restore(make(other).snapshot())
    smaller = build_policy(id, ProblemShape(n_arms=2), seed=0)
    with pytest.raises(SnapshotError, match="taken with n_arms = 2, this policy has 5"):
        policy.restore(smaller.snapshot())


@pytest.mark.parametrize("id", ["ucb", "d-ucb", "sw-ucb"])
def test_restored_policy_has_the_same_indices_to_the_last_bit(id: str) -> None:
    first, second = make(id), make(id)
    rounds(first, 150)
    second.restore(snapshots.load(snapshots.dump(first.snapshot())))
    assert rounds(first, 150, seed=5) == rounds(second, 150, seed=5)
    assert first.indices().tobytes() == second.indices().tobytes()
