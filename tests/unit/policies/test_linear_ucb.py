"""Linear indices against a direct pass over the history, at every round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tidepull import state as snapshots
from tidepull.policies import build_policy
from tidepull.policies.guard import Guarded
from tidepull.policies.linear import LinearUcb
from tidepull.types import Context, Event, FloatArray, ProblemShape

LAMBDA, DELTA, SIGMA, S, L = 0.3, 0.2, 0.4, 1.5, 2.0
COMMON = {
    "regularisation": LAMBDA,
    "delta": DELTA,
    "noise_std": SIGMA,
    "parameter_bound": S,
    "feature_bound": L,
    "exploration": 0.7,
}
VECTORS = ProblemShape(n_arms=6, arm_dim=3)
OBSERVED = ProblemShape(n_arms=3, observation_dim=2)
PLAIN = ProblemShape(n_arms=4)
every_shape = pytest.mark.parametrize(
    "shape", [VECTORS, OBSERVED, PLAIN], ids=["vectors", "observed", "plain"]
)
Row = tuple[int, FloatArray, float]


def make(id: str, shape: ProblemShape, **parameters: Any) -> Guarded:
    policy = build_policy((id, {**COMMON, **parameters}), shape, seed=1)
    assert isinstance(policy.inner, LinearUcb)
    return policy


def context(shape: ProblemShape, rng: np.random.Generator) -> Context:
    return Context(
        observation=rng.normal(size=shape.observation_dim) if shape.observation_dim else None,
        arm_features=rng.normal(size=(shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
    )


def row(given: Context, arm: int) -> tuple[int, FloatArray]:
    """Model and features of an arm, said once more and independently."""
    if given.arm_features is not None:
        return 0, given.arm_features[arm]
    return arm, np.array([1.0, *([] if given.observation is None else given.observation)])


def direct(
    history: list[Row],
    model: int,
    x: FloatArray,
    weights: list[float],
    beta: float,
    *,
    squares: list[float],
) -> float:
    """x'V^-1 b + beta sqrt(x'V^-1 V~ V^-1 x) with explicit sums and inverses."""
    V, V_tilde, b = LAMBDA * np.eye(len(x)), LAMBDA * np.eye(len(x)), np.zeros(len(x))
    for (owner, z, r), w, w2 in zip(history, weights, squares, strict=True):
        if owner == model:
            V, V_tilde, b = V + w * np.outer(z, z), V_tilde + w2 * np.outer(z, z), b + w * r * z
    inverse = np.linalg.inv(V)
    return float(x @ inverse @ b + 0.7 * beta * math.sqrt(x @ inverse @ V_tilde @ inverse @ x))


def linucb_beta(d: int, n: float) -> float:
    growth = d * math.log(1 + n * L**2 / (LAMBDA * d))
    return math.sqrt(LAMBDA) * S + SIGMA * math.sqrt(2 * math.log(1 / DELTA) + growth)


def check_every_round(policy: Guarded, shape: ProblemShape, expected: Any, n: int = 60) -> None:
    """Own choices mixed with arms that somebody else chose; `expected(history, model, x)` at each
    round."""
    rng = np.random.default_rng(0)
    history: list[Row] = []
    for t in range(n):
        given = context(shape, rng)
        wanted = [expected(history, *row(given, arm)) for arm in range(shape.n_arms)]
        np.testing.assert_allclose(policy.indices(given), wanted, rtol=1e-8, atol=1e-10)
        arm = policy.choose(given) if t % 3 else int(rng.integers(shape.n_arms))
        reward = float(rng.normal())
        policy.learn(Event(given, arm, reward))
        history.append((*row(given, arm), reward))


@every_shape
def test_lin_ucb_index_equals_a_direct_pass_over_history_at_every_round(
    shape: ProblemShape,
) -> None:
    def expected(history: list[Row], model: int, x: FloatArray) -> float:
        n = sum(owner == model for owner, _, _ in history)
        ones = [1.0] * len(history)
        return direct(history, model, x, ones, linucb_beta(len(x), n), squares=ones)

    check_every_round(make("lin-ucb", shape), shape, expected)


@every_shape
@pytest.mark.parametrize("discount", [0.6, 0.95])
def test_d_lin_ucb_index_equals_a_direct_pass_at_every_round(
    shape: ProblemShape, discount: float
) -> None:
    def expected(history: list[Row], model: int, x: FloatArray) -> float:
        weights = [discount**k for k in reversed(range(len(history)))]
        squares = [w**2 for w in weights]
        if shape is VECTORS:  # the closed form of the paper
            n = (1 - discount ** (2 * len(history))) / (1 - discount**2)
        else:
            n = sum(
                w2 for w2, (owner, _, _) in zip(squares, history, strict=True) if owner == model
            )
        return direct(history, model, x, weights, linucb_beta(len(x), n), squares=squares)

    check_every_round(make("d-lin-ucb", shape, discount=discount), shape, expected)


@every_shape
@pytest.mark.parametrize("window", [1, 5, 20])
def test_sw_lin_ucb_index_equals_a_direct_pass_at_every_round(
    shape: ProblemShape, window: int
) -> None:
    def expected(history: list[Row], model: int, x: FloatArray) -> float:
        last = history[-window:]
        beta = math.sqrt(LAMBDA) * S
        beta += SIGMA * math.sqrt(len(x) * math.log((1 + window * L**2 / LAMBDA) / DELTA))
        return direct(last, model, x, [1.0] * len(last), beta, squares=[1.0] * len(last))

    check_every_round(make("sw-lin-ucb", shape, window=window), shape, expected)


def test_reference_code_makes_v_tilde_from_the_new_v() -> None:
    discount = 0.8

    def expected(history: list[Row], _: int, x: FloatArray) -> float:
        identity = LAMBDA * np.eye(len(x))
        V, V_tilde, b = identity, identity, np.zeros(len(x))
        for _, z, r in history:  # the recursion of the published code, line by line
            V = discount * V + np.outer(z, z) + (1 - discount) * identity
            V_tilde = discount**2 * V + np.outer(z, z) + (1 - discount**2) * identity
            b = discount * b + r * z
        inverse = np.linalg.inv(V)
        n = (1 - discount ** (2 * len(history))) / (1 - discount**2)
        width = math.sqrt(x @ inverse @ V_tilde @ inverse @ x)
        return float(x @ inverse @ b + 0.7 * linucb_beta(len(x), n) * width)

    slipped = make("d-lin-ucb", VECTORS, discount=discount, variant="reference-code")
    check_every_round(slipped, VECTORS, expected)


def test_reference_code_and_paper_differ() -> None:
    rng = np.random.default_rng(0)
    both = [
        make("d-lin-ucb", VECTORS, discount=0.8, variant=v) for v in ("paper", "reference-code")
    ]
    for _ in range(5):
        given = context(VECTORS, rng)
        for policy in both:
            policy.learn(Event(given, 0, 1.0))
    given = context(VECTORS, rng)
    assert not np.allclose(both[0].indices(given), both[1].indices(given))


@every_shape
@pytest.mark.parametrize("id", ["lin-ucb", "d-lin-ucb"])
def test_untrained_bonus_is_the_prior_s(id: str, shape: ProblemShape) -> None:
    given = context(shape, np.random.default_rng(3))
    for arm, index in enumerate(make(id, shape).indices(given)):
        _, x = row(given, arm)
        assert index == pytest.approx(
            0.7 * linucb_beta(len(x), 0) * np.linalg.norm(x) / math.sqrt(LAMBDA)
        )


def test_untrained_arm_keeps_the_prior_s_bonus_while_others_learn() -> None:
    for id in ("lin-ucb", "d-lin-ucb", "sw-lin-ucb"):
        policy, fresh = make(id, OBSERVED), make(id, OBSERVED)
        rng = np.random.default_rng(4)
        for _ in range(30):
            policy.learn(Event(context(OBSERVED, rng), 0, 1.0))
        given = context(OBSERVED, rng)
        np.testing.assert_allclose(policy.indices(given)[1:], fresh.indices(given)[1:], rtol=1e-12)


def play(policy: Guarded, shape: ProblemShape, n: int = 150) -> list[int]:
    rng, arms = np.random.default_rng(7), []
    for _ in range(n):
        given = context(shape, rng)
        arms.append(policy.choose(given))
        policy.learn(Event(given, arms[-1], float(rng.normal())))
    return arms


@every_shape
def test_discount_of_one_equals_no_discount(shape: ProblemShape) -> None:
    assert play(make("d-lin-ucb", shape, discount=1.0), shape) == play(
        make("lin-ucb", shape), shape
    )


@every_shape
def test_window_longer_than_the_horizon_equals_no_window(shape: ProblemShape) -> None:
    # Without noise both betas are sqrt(lambda) S, so the indices themselves must agree.
    plain = make("lin-ucb", shape, noise_std=0.0)
    longer = make("sw-lin-ucb", shape, noise_std=0.0, window=10**9)
    assert play(longer, shape) == play(plain, shape)
    given = context(shape, np.random.default_rng(8))
    assert longer.indices(given).tobytes() == plain.indices(given).tobytes()


@pytest.mark.parametrize("id", ["lin-ucb", "d-lin-ucb", "sw-lin-ucb"])
def test_restored_policy_has_the_same_indices_to_the_last_bit(id: str) -> None:
    extra = {"window": 20} if id == "sw-lin-ucb" else {}
    first, second = make(id, VECTORS, **extra), make(id, VECTORS, **extra)
    play(first, VECTORS)
    second.restore(snapshots.load(snapshots.dump(first.snapshot())))
    assert play(first, VECTORS) == play(second, VECTORS)
    given = context(VECTORS, np.random.default_rng(8))
    assert first.indices(given).tobytes() == second.indices(given).tobytes()
