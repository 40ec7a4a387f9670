"""Loss, gradients and training of the feedforward network against JAX in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.encoders import oracle
from tidepull.encoders.feedforward import FeedforwardNetwork, FeedforwardSettings
from tidepull.types import FloatArray

L2 = 0.001


def make(
    n_inputs: int, units: tuple[int, int, int], sinusoids: int, dtype: Any, n: int = 90
) -> tuple[FeedforwardNetwork, FloatArray, FloatArray]:
    """A network with biases that are not zero, and a history."""
    rng = np.random.default_rng(3)
    settings = FeedforwardSettings(
        units=units, learning_rate=0.01, l2=L2, init="scaled", order=1, sinusoids=sinusoids
    )
    network = FeedforwardNetwork(n_inputs, settings, rng, dtype)
    weights = network.weights
    weights.flat[weights.n_penalised :] = 0.3 * rng.standard_normal(
        weights.flat.size - weights.n_penalised
    )
    inputs = np.ones((n, n_inputs + sinusoids + 1), dtype)
    inputs[:, :n_inputs] = rng.standard_normal((n, n_inputs))
    return network, inputs, rng.standard_normal(n).astype(dtype)


def jax_loss(
    inputs: FloatArray, rewards: FloatArray, n_inputs: int, first: int = 0
) -> Callable[[oracle.Tree], Any]:
    def whole(p: oracle.Tree) -> Any:
        features = oracle.feedforward_features(p, inputs[:, :n_inputs].astype(np.float64), first)
        return oracle.loss(p, features, rewards.astype(np.float64), L2)

    return whole


@pytest.mark.parametrize(
    ("n_inputs", "units", "sinusoids"),
    [
        pytest.param(17, (32, 32, 32), 1, id="narrow"),
        pytest.param(5, (7, 13, 6), 4, id="odd-sizes"),
        pytest.param(600, (8, 16, 16), 2, id="wide"),
        pytest.param(17, (16, 16, 16), 0, id="no-sinusoids"),
    ],
)
def test_gradients_equal_automatic_differentiation(
    n_inputs: int, units: tuple[int, int, int], sinusoids: int
) -> None:
    single, inputs, rewards = make(n_inputs, units, sinusoids, np.float32)
    double, _, _ = make(n_inputs, units, sinusoids, np.float64)
    oracle.assert_same_gradient(
        single, double, inputs, rewards, jax_loss(inputs, rewards, n_inputs)
    )


def test_gradients_are_exact_late_in_a_long_trial() -> None:
    single, inputs, rewards = make(9, (16, 16, 16), 4, np.float32, n=4096)
    double, _, _ = make(9, (16, 16, 16), 4, np.float64, n=4096)
    oracle.assert_same_gradient(single, double, inputs, rewards, jax_loss(inputs, rewards, 9))


def test_gradients_are_exact_where_the_first_rounds_are_forgotten() -> None:
    single, inputs, rewards = make(9, (16, 16, 16), 4, np.float32)
    double, _, _ = make(9, (16, 16, 16), 4, np.float64)
    loss = jax_loss(inputs, rewards, 9, first=3000)
    oracle.assert_same_gradient(single, double, inputs, rewards, loss, first=3000)


def test_fifty_epochs_stay_close_to_jax_and_optax() -> None:
    network, inputs, rewards = make(17, (32, 32, 32), 2, np.float32)
    oracle.assert_same_training(network, inputs, rewards, jax_loss(inputs, rewards, 17), 0.01, 50)
