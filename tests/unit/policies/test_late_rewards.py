"""Policies that forget, when rewards come late or never: indices against a direct pass over what
has come.

A round weighs by the time at which its arm was chosen, so at the choice of round t an event of
round s has the weight gamma^(t - 1 - s), or counts while s >= t - window, whenever it came.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tidepull.errors import EventError
from tidepull.policies import build_policy
from tidepull.policies.guard import Guarded
from tidepull.types import Context, Event, FloatArray, ProblemShape

Came = list[tuple[int, Context, int, float]]
"""What has come so far: round, context, arm, reward."""

PLAIN = ProblemShape(n_arms=4)
VECTORS = ProblemShape(n_arms=5, arm_dim=3)
OBSERVED = ProblemShape(n_arms=3, observation_dim=2)
LAMBDA, SIGMA, DELTA = 0.5, 0.3, 0.1


def late_rounds(
    policy: Guarded, shape: ProblemShape, n: int = 90
) -> Iterator[tuple[int, Context, Came]]:
    """First a log of ten rounds that nobody chose, then rounds whose rewards are up to 12 late, in
    any order; one in five never comes."""
    rng = np.random.default_rng(1)
    waiting: list[tuple[int, int, Context, int, float]] = []
    came: Came = []
    for t in range(n):
        context = Context(
            rng.normal(size=shape.observation_dim) if shape.observation_dim else None,
            rng.normal(size=(shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
        )
        yield t, context, came
        if t < 10:
            came.append((t, context, t % shape.n_arms, float(rng.normal())))
            policy.learn(Event(*came[-1][1:]))
            continue
        arm = policy.choose(context)
        if rng.random() < 0.8:
            waiting.append((t + int(rng.integers(13)), t, context, arm, float(rng.normal())))
        due = [item for item in waiting if item[0] <= t]
        waiting = [item for item in waiting if item[0] > t]
        for i in rng.permutation(len(due)):
            _, decided, then, chosen, reward = due[i]
            came.append((decided, then, chosen, reward))
            policy.learn(Event(then, chosen, reward, decided))
    assert len({decided for decided, *_ in came}) == len(came) > n / 2
    assert [decided for decided, *_ in came] != sorted(decided for decided, *_ in came)


def weights_of(id: str, setting: float, t: int, came: Came) -> list[float]:
    if id.startswith("d-"):
        return [setting ** (t - 1 - s) for s, *_ in came]
    return [float(s >= t - setting) for s, *_ in came]


@pytest.mark.parametrize(
    ("id", "name", "setting"),
    [
        ("d-ucb", "discount", 0.9),
        ("d-ucb", "discount", 0.5),
        ("sw-ucb", "window", 15),
        ("sw-ucb", "window", 3),
    ],
)
def test_ucb_index_weighs_late_rewards_by_their_round(id: str, name: str, setting: float) -> None:
    policy = build_policy((id, {name: setting, "xi": 0.7}), PLAIN, seed=0)
    factor = 2.0 if id == "d-ucb" else 1.0
    for t, _, came in late_rounds(policy, PLAIN):
        weights = weights_of(id, setting, t, came)
        n = max(sum(weights), 1.0)
        wanted = []
        for arm in range(4):
            mine = [
                (w, r) for w, (_, _, a, r) in zip(weights, came, strict=True) if a == arm and w > 0
            ]
            count = sum(w for w, _ in mine)
            mean = sum(w * r for w, r in mine) / count if mine else math.inf
            wanted.append(
                mean + factor * math.sqrt(0.7 * math.log(n) / count) if mine else math.inf
            )
        np.testing.assert_allclose(policy.indices(), wanted, rtol=1e-9, atol=1e-12)


def linear_index(
    came: Came, weights: list[float], squares: list[float], beta: float, context: Context, arm: int
) -> float:
    """x'V^-1 b + beta sqrt(x'V^-1 V~ V^-1 x) with explicit sums and inverses."""

    def row(seen: Context, of: int) -> FloatArray:
        if seen.arm_features is not None:
            return np.asarray(seen.arm_features[of])
        return np.array([1.0, *([] if seen.observation is None else seen.observation)])

    x = row(context, arm)
    V, V_tilde, b = LAMBDA * np.eye(len(x)), LAMBDA * np.eye(len(x)), np.zeros(len(x))
    for (_, seen, chosen, reward), w, w2 in zip(came, weights, squares, strict=True):
        if seen.arm_features is not None or chosen == arm:
            z = row(seen, chosen)
            V, V_tilde, b = (
                V + w * np.outer(z, z),
                V_tilde + w2 * np.outer(z, z),
                b + w * reward * z,
            )
    inverse = np.linalg.inv(V)
    return float(x @ inverse @ b + beta * math.sqrt(x @ inverse @ V_tilde @ inverse @ x))


def beta_of(id: str, setting: float, dim: int, n: float) -> float:
    if id == "sw-lin-ucb":
        return math.sqrt(LAMBDA) + SIGMA * math.sqrt(dim * math.log((1 + setting / LAMBDA) / DELTA))
    growth = dim * math.log(1 + n / (LAMBDA * dim))
    return math.sqrt(LAMBDA) + SIGMA * math.sqrt(2 * math.log(1 / DELTA) + growth)


def check_linear(
    id: str, setting: float, shape: ProblemShape, *, slip: bool = False, **own: Any
) -> None:
    common = {"regularisation": LAMBDA, "noise_std": SIGMA, "delta": DELTA}
    policy = build_policy((id, {**common, **own}), shape, seed=0)
    for t, context, came in late_rounds(policy, shape):
        weights = weights_of(id, setting, t, came)
        squares = [w**2 for w in weights]
        seen = squares
        if slip:  # V~ = gamma^2 V, plus the latest round once more
            seen = [setting**2 * w + (s == t - 1) for w, (s, *_) in zip(weights, came, strict=True)]
        wanted = []
        for arm in range(shape.n_arms):
            mine = [
                w2
                for w2, (_, _, a, _) in zip(squares, came, strict=True)
                if shape.arm_dim or a == arm
            ]
            dim = shape.arm_dim or 1 + shape.observation_dim
            beta = beta_of(id, setting, dim, sum(mine))
            wanted.append(linear_index(came, weights, seen, beta, context, arm))
        np.testing.assert_allclose(policy.indices(context), wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("shape", [PLAIN, OBSERVED, VECTORS], ids=["plain", "observed", "vectors"])
@pytest.mark.parametrize("discount", [0.95, 0.6])
def test_d_lin_ucb_index_weighs_late_rewards_by_their_round(
    shape: ProblemShape, discount: float
) -> None:
    check_linear("d-lin-ucb", discount, shape, discount=discount)


@pytest.mark.parametrize("shape", [PLAIN, OBSERVED, VECTORS], ids=["plain", "observed", "vectors"])
@pytest.mark.parametrize("window", [4, 25])
def test_sw_lin_ucb_index_counts_late_rewards_while_their_round_is_in_the_window(
    shape: ProblemShape, window: int
) -> None:
    check_linear("sw-lin-ucb", window, shape, window=window)


def test_reference_code_keeps_its_slip_when_rewards_come_late() -> None:
    check_linear("d-lin-ucb", 0.8, VECTORS, slip=True, discount=0.8, variant="reference-code")


@pytest.mark.parametrize("id", ["sw-ucb", "sw-lin-ucb"])
def test_reward_whose_round_has_left_the_window_leaves_no_trace(id: str) -> None:
    policy, other = (build_policy((id, {"window": 5}), PLAIN, seed=0) for _ in range(2))
    for player in (policy, other):
        for t in range(12):
            player.choose(Context())
            if t:
                player.learn(Event(Context(), t % 4, 0.1 * t))
    policy.learn(Event(Context(), 1, 1e15, decided=0))
    given = (Context(),) if id == "sw-lin-ucb" else ()
    assert policy.indices(*given).tobytes() == other.indices(*given).tobytes()


def test_event_without_its_round_is_refused_by_a_policy_without_its_guard() -> None:
    with pytest.raises(EventError, match="decided must say which round"):
        build_policy("d-ucb", PLAIN, seed=0).inner.learn(Event(Context(), 0, 1.0))
