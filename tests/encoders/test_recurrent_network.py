"""Loss, gradients and training of the recurrent network against JAX in float64."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.encoders import oracle
from tidepull.encoders.adam import Adam
from tidepull.encoders.recurrent_network import RecurrentNetwork
from tidepull.encoders.settings import RecurrentSettings
from tidepull.types import FloatArray

L2 = 0.001


def make(
    n_inputs: int, units: tuple[int, int, int], dtype: Any, window: int | None = None
) -> tuple[RecurrentNetwork, FloatArray, FloatArray]:
    """A network with biases that are not zero, and a sequence."""
    rng = np.random.default_rng(3)
    settings = RecurrentSettings(units=units, learning_rate=0.01, l2=L2, init="scaled", bptt_window=window)
    network = RecurrentNetwork(n_inputs, settings, rng, dtype)
    weights = network.weights
    weights.flat[weights.n_penalised :] = 0.3 * rng.standard_normal(weights.flat.size - weights.n_penalised)
    n = 90
    inputs = np.ones((n, n_inputs + 1), dtype)
    inputs[:, :-1] = rng.standard_normal((n, n_inputs))
    return network, inputs, rng.standard_normal(n).astype(dtype)


def expected(
    network: RecurrentNetwork, inputs: FloatArray, rewards: FloatArray, window: int | None
) -> tuple[float, dict[str, FloatArray]]:
    def whole(p: oracle.Tree) -> Any:
        features = oracle.recurrent_features(p, inputs[:, :-1].astype(np.float64), window)
        return oracle.loss(p, features, rewards.astype(np.float64), L2)

    with jax.enable_x64(True):
        value, gradient = jax.jit(jax.value_and_grad(whole))(oracle.tree_of(network.weights))
        return float(value), {name: np.asarray(array) for name, array in gradient.items()}


CASES = [
    pytest.param(9, (32, 32, 32), None, id="narrow"),
    pytest.param(795, (16, 16, 16), None, id="wide"),
    pytest.param(5, (7, 13, 6), None, id="odd-sizes"),
    pytest.param(4, (16, 64, 24), None, id="large-cell"),
    pytest.param(9, (16, 16, 16), 20, id="window"),
    pytest.param(9, (16, 16, 16), 1, id="window-of-one"),
    pytest.param(9, (16, 16, 16), 500, id="window-longer-than-history"),
]


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-9)])
@pytest.mark.parametrize(("n_inputs", "units", "window"), CASES)
def test_gradients_equal_automatic_differentiation(
    n_inputs: int, units: tuple[int, int, int], window: int | None, dtype: Any, tolerance: float
) -> None:
    network, inputs, rewards = make(n_inputs, units, dtype, window)
    value, gradient = expected(network, inputs, rewards, window)
    assert network.loss(inputs, rewards) == pytest.approx(value, rel=tolerance)
    for name, exact in gradient.items():
        error = np.linalg.norm(network.gradient[name] - exact) / np.linalg.norm(exact)
        assert error < tolerance, name


def test_window_changes_the_gradient_of_a_long_history() -> None:
    full, inputs, rewards = make(9, (16, 16, 16), np.float64)
    cut, _, _ = make(9, (16, 16, 16), np.float64, window=5)
    assert full.loss(inputs, rewards) == cut.loss(inputs, rewards)
    assert not np.allclose(full.gradient["recurrent"], cut.gradient["recurrent"], rtol=1e-3)


@pytest.mark.parametrize("n_inputs", [9, 300])
def test_collapsed_and_direct_first_layer_agree(n_inputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network, inputs, rewards = make(n_inputs, (16, 16, 16), np.float64)
    losses, gradients = [], []
    for collapses in (True, False):
        monkeypatch.setattr(network, "_collapses", lambda _, value=collapses: value)
        losses.append(network.loss(inputs, rewards))
        gradients.append(network.gradient.flat.copy())
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-9, atol=1e-13)


def test_first_layer_is_collapsed_only_when_that_is_cheaper() -> None:
    narrow, _, _ = make(9, (32, 32, 32), np.float32)
    wide, _, _ = make(795, (32, 32, 32), np.float32)
    assert narrow._collapses(2048)
    assert not wide._collapses(2048)


def test_fifty_epochs_stay_close_to_jax_and_optax() -> None:
    network, inputs, rewards = make(9, (32, 32, 32), np.float32)
    start = oracle.tree_of(network.weights)
    adam = Adam(network.weights.flat, 0.01)
    for _ in range(50):
        network.loss(inputs, rewards)
        adam.step(network.gradient.flat)

    def whole(p: oracle.Tree) -> Any:
        features = oracle.recurrent_features(p, inputs[:, :-1].astype(np.float64), None)
        return oracle.loss(p, features, rewards.astype(np.float64), L2)

    with jax.enable_x64(True):
        end = oracle.adam(start, jax.jit(jax.grad(whole)), 0.01, 50)
        for name, value in end.items():
            assert np.abs(network.weights[name] - np.asarray(value)).max() < 1e-3, name
            assert np.abs(np.asarray(value) - start[name]).max() > 1e-2, f"{name} did not move"
