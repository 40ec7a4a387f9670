"""Stored states and rank-one updates against recomputing everything from the first round, at every
round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.unit.encoders.replay import (
    Decided,
    Paid,
    Story,
    feedforward_inputs,
    recurrent_inputs,
    rewards,
    vectors,
)
from tidepull.encoders import FeedforwardEncoder, RecurrentEncoder
from tidepull.encoders.wrappers import RawFeatures
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


def recurrent_features(weights: Any, inputs: FloatArray) -> FloatArray:
    """The paper's recurrent network on some sequences (sequences x rounds x inputs), one round
    after the other."""
    h, c = np.zeros((2, len(inputs), len(weights["recurrent"])))
    features = []
    for x in inputs.swapaxes(0, 1):
        gates = (x @ weights["first"] + weights["first_bias"]) @ weights["gates"]
        i, f, o, a = np.split(gates + h @ weights["recurrent"] + weights["gates_bias"], 4, axis=1)
        c = _sigmoid(f + 1) * c + _sigmoid(i) * np.tanh(a)
        h = _sigmoid(o) * np.tanh(c)
        features.append(np.tanh(h @ weights["third"] + weights["third_bias"]))
    return np.array(features).swapaxes(0, 1)


def feedforward_features(weights: Any, inputs: FloatArray) -> FloatArray:
    """The paper's feedforward network on some sequences; the time of a row is its number."""
    angles = weights["frequency"] * np.arange(inputs.shape[1])[:, None] + weights["phase_bias"]
    x = np.concatenate([inputs, np.tile(np.sin(angles), (len(inputs), 1, 1))], axis=2)
    first = x @ weights["first"] + weights["first_bias"]
    second = np.tanh(first @ weights["second"] + weights["second_bias"])
    return np.array(np.tanh(second @ weights["third"] + weights["third_bias"]))


@dataclass(frozen=True)
class Plain:
    """A network as plainly as possible: every round is read again from the first one on."""

    shape: ProblemShape
    order: int | None = None
    raw: bool = False

    def features(
        self, weights: Any, story: Story, context: Context
    ) -> tuple[FloatArray, FloatArray]:
        """Features of every round of a story, and of every arm in the coming one."""
        told = [*story, Decided(context, 0)]
        if self.order is None:
            inputs = recurrent_inputs(self.shape, told)
        else:
            inputs = feedforward_inputs(self.shape, told, self.order)
        arms = slice(
            start := self.shape.observation_dim + (self.order is None), start + self._arm_width
        )
        inputs = np.tile(inputs, (self.shape.n_arms, 1, 1))
        for arm in range(self.shape.n_arms):
            inputs[arm, -1, arms] = vectors(self.shape, Decided(context, arm))[-self._arm_width :]
        phi = (recurrent_features if self.order is None else feedforward_features)(weights, inputs)
        if self.raw:
            phi = np.concatenate([phi, inputs[:, :, arms]], axis=2)
        return phi[0, :-1], phi[:, -1]

    @property
    def _arm_width(self) -> int:
        return self.shape.arm_dim or self.shape.n_arms


def _relative(actual: FloatArray, expected: FloatArray) -> float:
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))


@dataclass(frozen=True)
class Lateness:
    """How rewards come: up to `delay` rounds late in any order, some never, some for another arm
    than proposed."""

    delay: int = 0
    lost: float = 0.0
    other_arm: float = 0.0
    rounds: int = 150
    slices: int | None = None
    """Slices of upkeep after each round; None: until nothing is pending."""


def _play_and_compare(plain: Plain, weights: Any, policy: NeuralLinear, late: Lateness) -> float:
    """Largest relative difference, over all rounds, of features, precision and mean."""
    rng, shape = np.random.default_rng(8), plain.shape
    story: Story = []
    places: list[int] = []
    on_the_way: list[tuple[int, Event]] = []
    worst = 0.0
    for t in range(late.rounds):
        context = Context(
            observation=rng.normal(size=shape.observation_dim) if shape.observation_dim else None,
            arm_features=rng.normal(size=(shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
        )
        arm = policy.choose(context)
        worst = max(worst, _difference(plain, weights, policy, story, context))
        places.append(len(story))
        story.append(Decided(context, arm))
        if rng.random() < late.other_arm:
            arm = int(rng.integers(shape.n_arms))
        reward = float(np.sin(0.3 * t + arm) + 0.1 * rng.normal())
        if rng.random() >= late.lost:
            on_the_way.append(
                (t + int(rng.integers(late.delay + 1)), Event(context, arm, reward, decided=t))
            )
        for item in [item for item in on_the_way if item[0] <= t]:
            on_the_way.remove(item)
            event = item[1]
            assert event.decided is not None
            story[places[event.decided]] = Decided(event.context, event.arm)
            story.append(Paid(event.decided, event.reward))
            policy.learn(event)
        _keep_up(policy, late.slices)
    return worst


def _difference(
    plain: Plain, weights: Any, policy: NeuralLinear, story: Story, context: Context
) -> float:
    """Features of every arm now, and the posterior, against computing them from the first round."""
    known = ~np.isnan(rewards(story))
    if not known.any():
        return 0.0
    past, now = plain.features(weights, story, context)
    phi, paid = past[known], rewards(story)[known]
    precision = np.eye(phi.shape[1]) / PRIOR_STD**2 + phi.T @ phi / NOISE_STD**2
    mean = np.linalg.solve(precision, phi.T @ paid) / NOISE_STD**2
    posterior: Any = policy.posterior
    return max(
        _relative(policy.encoder.features(context), now),
        _relative(posterior.precision, precision),
        _relative(posterior.mean, mean),
    )


def _keep_up(policy: NeuralLinear, slices: int | None) -> None:
    done = 0
    while done != slices and policy.upkeep():
        done += 1


LATE = [
    pytest.param(Lateness(), id="at-once"),
    pytest.param(Lateness(delay=9, lost=0.1), id="late"),
    pytest.param(
        Lateness(delay=9, lost=0.1, other_arm=0.1, slices=1), id="late-other-arms-in-slices"
    ),
]


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize(("shape", "raw"), CASES)
def test_recurrent_policy_equals_recomputing_everything_in_every_round(
    shape: ProblemShape, raw: bool, late: Lateness
) -> None:
    encoder = RecurrentEncoder(
        shape, units=(8, 8, 8), learning_rate=0.01, rng=np.random.default_rng(1), dtype=np.float64
    )
    policy = _policy(RawFeatures(encoder, shape) if raw else encoder, shape)
    weights = encoder._trainer.weights
    assert _play_and_compare(Plain(shape, raw=raw), weights, policy, late) < 1e-6
    assert policy.diagnostics()["trainings"] >= (4 if late == Lateness() else 3)


@pytest.mark.parametrize("late", LATE)
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
    shape: ProblemShape, order: int, raw: bool, late: Lateness
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
    weights = encoder._trainer.weights
    assert _play_and_compare(Plain(shape, order, raw), weights, policy, late) < 1e-6
    assert policy.diagnostics()["trainings"] >= (4 if late == Lateness() else 3)


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
