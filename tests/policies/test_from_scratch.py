"""Stored states and rank-one updates against recomputing everything from the first round, at every round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tidepull.encoders import FeedforwardEncoder, RecurrentEncoder
from tidepull.encoders.raw_features import RawFeatures
from tidepull.policies.neural_linear import NeuralLinear
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.types import Context, Event, FloatArray, ProblemShape

NOISE_STD, PRIOR_STD = 0.3, 0.5
CASES = [
    pytest.param(ProblemShape(4), False, id="plain"),
    pytest.param(ProblemShape(4, observation_dim=3), False, id="observation"),
    pytest.param(ProblemShape(5, arm_dim=2), False, id="vectors"),
    pytest.param(ProblemShape(5, arm_dim=2), True, id="vectors-raw-features"),
]


def _sigmoid(x: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-x))


def _row(shape: ProblemShape, previous: float, context: Context, arm: int) -> FloatArray:
    observation = np.zeros(0) if context.observation is None else context.observation
    return np.concatenate([np.array([previous]), observation, _arm(shape, context, arm)])


def _arm(shape: ProblemShape, context: Context, arm: int) -> FloatArray:
    rows = np.eye(shape.n_arms) if context.arm_features is None else context.arm_features
    return np.array(rows[arm])


def recurrent_rerun(
    weights: Any, shape: ProblemShape, past: list[Event], context: Context
) -> tuple[FloatArray, FloatArray]:
    """The paper's recurrent network, read from the first round: features of the past, and of every arm now."""

    def cell(x: FloatArray, h: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        gates = (x @ weights["first"] + weights["first_bias"]) @ weights["gates"]
        i, f, o, a = np.split(gates + h @ weights["recurrent"] + weights["gates_bias"], 4)
        c = _sigmoid(f + 1) * c + _sigmoid(i) * np.tanh(a)
        h = _sigmoid(o) * np.tanh(c)
        return np.tanh(h @ weights["third"] + weights["third_bias"]), h, c

    h: FloatArray = np.zeros(len(weights["recurrent"]))
    c: FloatArray = np.zeros(len(weights["recurrent"]))
    previous, features = 0.0, []
    for event in past:
        phi, h, c = cell(_row(shape, previous, event.context, event.arm), h, c)
        features.append(phi)
        previous = event.reward
    arms = [cell(_row(shape, previous, context, arm), h, c)[0] for arm in range(shape.n_arms)]
    return np.array(features), np.array(arms)


def feedforward_rerun(order: int) -> Callable[..., tuple[FloatArray, FloatArray]]:
    """The paper's feedforward network on the last `order` triplets and the time."""

    def rerun(
        weights: Any, shape: ProblemShape, past: list[Event], context: Context
    ) -> tuple[FloatArray, FloatArray]:
        def phi(t: int, context: Context, arm: int) -> FloatArray:
            psi = [_row(shape, 0.0, context, arm)[1:]]
            for event in reversed(past[max(0, t - order) : t]):
                psi += [_row(shape, 0.0, event.context, event.arm)[1:], np.array([event.reward])]
            x = np.concatenate(psi)
            missing = len(weights["first"]) - len(weights["frequency"]) - len(x)
            waves = np.sin(weights["frequency"] * t + weights["phase_bias"])
            x = np.concatenate([x, np.zeros(missing), waves])
            first = x @ weights["first"] + weights["first_bias"]
            second = np.tanh(first @ weights["second"] + weights["second_bias"])
            return np.array(np.tanh(second @ weights["third"] + weights["third_bias"]))

        features = [phi(t, event.context, event.arm) for t, event in enumerate(past)]
        arms = [phi(len(past), context, arm) for arm in range(shape.n_arms)]
        return np.array(features), np.array(arms)

    return rerun


def _relative(actual: FloatArray, expected: FloatArray) -> float:
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))


def _play_and_compare(
    shape: ProblemShape,
    network: Any,
    policy: NeuralLinear,
    rerun: Callable[..., tuple[FloatArray, FloatArray]],
    *,
    raw: bool = False,
    rounds: int = 300,
) -> float:
    """Largest relative difference, over all rounds, of features, precision and mean."""
    rng = np.random.default_rng(8)
    past: list[Event] = []
    worst = 0.0
    for t in range(rounds):
        context = Context(
            observation=rng.normal(size=shape.observation_dim) if shape.observation_dim else None,
            arm_features=rng.normal(size=(shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
        )
        arm = policy.choose(context)
        if past:
            phi, now = rerun(network.weights, shape, past, context)
            if raw:
                phi = np.hstack([phi, [_arm(shape, event.context, event.arm) for event in past]])
                now = np.hstack([now, [_arm(shape, context, k) for k in range(shape.n_arms)]])
            precision = np.eye(phi.shape[1]) / PRIOR_STD**2 + phi.T @ phi / NOISE_STD**2
            mean = np.linalg.solve(precision, phi.T @ [event.reward for event in past]) / NOISE_STD**2
            posterior: Any = policy._posterior
            worst = max(
                worst,
                _relative(policy._encoder.features(context), now),
                _relative(posterior.precision, precision),
                _relative(posterior.mean, mean),
            )
        reward = float(np.sin(0.3 * t + arm) + 0.1 * rng.normal())
        past.append(Event(context, arm, reward))
        policy.learn(past[-1])
    return worst


@pytest.mark.parametrize(("shape", "raw"), CASES)
def test_recurrent_policy_equals_recomputing_everything_in_every_round(
    shape: ProblemShape, raw: bool
) -> None:
    encoder = RecurrentEncoder(
        shape, units=(8, 8, 8), learning_rate=0.01, rng=np.random.default_rng(1), dtype=np.float64
    )
    policy = _policy(RawFeatures(encoder, shape) if raw else encoder, shape)
    assert _play_and_compare(shape, encoder._network, policy, recurrent_rerun, raw=raw) < 1e-6
    assert policy.diagnostics()["trainings"] == 9


@pytest.mark.parametrize(
    ("shape", "order", "raw"),
    [
        pytest.param(ProblemShape(4), 0, False, id="plain-order-0"),
        pytest.param(ProblemShape(4), 3, False, id="plain-order-3"),
        pytest.param(ProblemShape(4, observation_dim=3), 1, False, id="observation-order-1"),
        pytest.param(ProblemShape(5, arm_dim=2), 1, True, id="vectors-order-1-raw-features"),
    ],
)
def test_feedforward_policy_equals_recomputing_everything_in_every_round(
    shape: ProblemShape, order: int, raw: bool
) -> None:
    encoder = FeedforwardEncoder(
        shape,
        units=(8, 8, 8),
        order=order,
        sinusoids=2,
        learning_rate=0.01,
        rng=np.random.default_rng(1),
        dtype=np.float64,
    )
    policy = _policy(RawFeatures(encoder, shape) if raw else encoder, shape)
    rerun = feedforward_rerun(order)
    assert _play_and_compare(shape, encoder._network, policy, rerun, raw=raw) < 1e-6
    assert policy.diagnostics()["trainings"] == 9


def _policy(encoder: Any, shape: ProblemShape) -> NeuralLinear:
    return NeuralLinear(
        encoder,
        LinearGaussian(encoder.dim, prior_std=PRIOR_STD, noise_std=NOISE_STD),
        n_arms=shape.n_arms,
        epochs=8,
        train_every=32,
        forced_rounds=4,
        rng=np.random.default_rng(2),
    )
