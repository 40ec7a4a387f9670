"""Loss, gradients and training of the recurrent network against JAX in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.encoders import oracle
from tidepull.encoders.recurrent import RecurrentNetwork, RecurrentSettings
from tidepull.types import FloatArray

L2 = 0.001


def make(
    n_inputs: int, units: tuple[int, int, int], dtype: Any, window: int | None = None
) -> tuple[RecurrentNetwork, FloatArray, FloatArray]:
    """A network with biases that are not zero, and a sequence."""
    rng = np.random.default_rng(3)
    settings = RecurrentSettings(
        units=units, learning_rate=0.01, l2=L2, init="scaled", bptt_window=window
    )
    network = RecurrentNetwork(n_inputs, settings, rng, dtype)
    weights = network.weights
    weights.flat[weights.n_penalised :] = 0.3 * rng.standard_normal(
        weights.flat.size - weights.n_penalised
    )
    n = 90
    inputs = np.ones((n, n_inputs + 1), dtype)
    inputs[:, :-1] = rng.standard_normal((n, n_inputs))
    return network, inputs, rng.standard_normal(n).astype(dtype)


def jax_loss(
    inputs: FloatArray, rewards: FloatArray, window: int | None
) -> Callable[[oracle.Tree], Any]:
    def whole(p: oracle.Tree) -> Any:
        features = oracle.recurrent_features(p, inputs[:, :-1].astype(np.float64), window)
        return oracle.loss(p, features, rewards.astype(np.float64), L2)

    return whole


CASES = [
    pytest.param(9, (16, 16, 16), None, id="narrow"),
    pytest.param(795, (16, 16, 16), None, id="wide"),
    pytest.param(5, (7, 13, 6), None, id="odd-sizes"),
    pytest.param(9, (16, 16, 16), 20, id="window"),
    pytest.param(9, (16, 16, 16), 1, id="window-of-one"),
]


@pytest.mark.parametrize(("n_inputs", "units", "window"), CASES)
def test_gradients_equal_automatic_differentiation(
    n_inputs: int, units: tuple[int, int, int], window: int | None
) -> None:
    single, inputs, rewards = make(n_inputs, units, np.float32, window)
    double, _, _ = make(n_inputs, units, np.float64, window)
    oracle.assert_same_gradient(single, double, inputs, rewards, jax_loss(inputs, rewards, window))


def test_window_changes_the_gradient_of_a_long_history() -> None:
    full, inputs, rewards = make(9, (16, 16, 16), np.float64)
    cut, _, _ = make(9, (16, 16, 16), np.float64, window=5)
    assert full.loss(inputs, rewards) == cut.loss(inputs, rewards)
    assert not np.allclose(full.gradient["recurrent"], cut.gradient["recurrent"], rtol=1e-3)


def test_window_longer_than_the_history_changes_nothing() -> None:
    full, inputs, rewards = make(9, (16, 16, 16), np.float32)
    wide, _, _ = make(9, (16, 16, 16), np.float32, window=len(rewards) + 1)
    full.loss(inputs, rewards)
    wide.loss(inputs, rewards)
    np.testing.assert_array_equal(full.gradient.flat, wide.gradient.flat)


def test_fifty_epochs_stay_close_to_jax_and_optax() -> None:
    network, inputs, rewards = make(9, (32, 32, 32), np.float32)
    oracle.assert_same_training(network, inputs, rewards, jax_loss(inputs, rewards, None), 0.01, 50)
