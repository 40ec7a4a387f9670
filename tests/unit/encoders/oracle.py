"""The two networks written once more in JAX, as plainly as possible, to check gradients against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tidepull.encoders.layers import FlatWeights
from tidepull.encoders.training import Adam, Network
from tidepull.types import FloatArray

Tree = dict[str, Any]


def tree_of(weights: FlatWeights) -> dict[str, FloatArray]:
    """Every named array in float64."""
    return {name: weights[name].astype(np.float64) for name in weights.names()}


def recurrent_features(p: Tree, inputs: Any, window: int | None) -> Any:
    """Features of every row of inputs (without the column of ones), one step after another."""

    def step(carry: tuple[Any, Any], row: tuple[Any, Any]) -> tuple[tuple[Any, Any], Any]:
        x, t = row
        h, c = carry
        if window is not None:
            cut = t % window == 0
            h = jnp.where(cut, jax.lax.stop_gradient(h), h)
            c = jnp.where(cut, jax.lax.stop_gradient(c), c)
        first = x @ p["first"] + p["first_bias"]
        gates = first @ p["gates"] + h @ p["recurrent"] + p["gates_bias"]
        i, f, o, a = jnp.split(gates, 4)
        c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(a)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), jnp.tanh(h @ p["third"] + p["third_bias"])

    zero = jnp.zeros(p["recurrent"].shape[0])
    _, features = jax.lax.scan(step, (zero, zero), (inputs, jnp.arange(len(inputs))))
    return features


def feedforward_features(p: Tree, inputs: Any, first: int = 0) -> Any:
    """Features of every row of inputs (without sinusoids and the column of ones), from round
    `first` on."""
    t = first + jnp.arange(len(inputs), dtype=inputs.dtype)[:, None]
    x = jnp.concatenate([inputs, jnp.sin(t * p["frequency"] + p["phase_bias"])], axis=1)
    first = x @ p["first"] + p["first_bias"]
    second = jnp.tanh(first @ p["second"] + p["second_bias"])
    return jnp.tanh(second @ p["third"] + p["third_bias"])


def loss(p: Tree, features: Any, rewards: Any, l2: float) -> Any:
    """Mean squared error + l2 / 2 * sum of squared weights; biases are free."""
    penalty = sum(jnp.sum(value**2) for name, value in p.items() if not name.endswith("_bias"))
    return jnp.mean((features @ p["output"] - rewards) ** 2) + 0.5 * l2 * penalty


def assert_same_gradient(
    single: Network,
    double: Network,
    inputs: FloatArray,
    rewards: FloatArray,
    jax_loss: Callable[[Tree], Any],
    first: int = 0,
) -> None:
    """Loss and every gradient equal automatic differentiation in float64, in both builds of the
    kernels."""
    double.weights.flat[:] = single.weights.flat
    with jax.enable_x64(True):
        value, gradient = jax.jit(jax.value_and_grad(jax_loss))(tree_of(single.weights))
        exact = {name: np.asarray(array) for name, array in gradient.items()}
    for network, tolerance in ((single, 1e-4), (double, 1e-9)):
        dtype = network.weights.flat.dtype
        loss = network.loss(inputs.astype(dtype), rewards.astype(dtype), first)
        assert abs(loss - float(value)) < tolerance * float(value)
        for name, array in exact.items():
            error = np.linalg.norm(network.gradient[name] - array)
            assert error <= tolerance * np.linalg.norm(array), f"{name}, {dtype}: {error:.1e}"


def assert_same_training(
    network: Network,
    inputs: FloatArray,
    rewards: FloatArray,
    jax_loss: Callable[[Tree], Any],
    learning_rate: float,
    epochs: int,
) -> None:
    """After some epochs every weight lies within 1e-3 of JAX in float64 with optax's Adam."""
    start = tree_of(network.weights)
    adam = Adam(network.weights.flat, learning_rate)
    for _ in range(epochs):
        network.loss(inputs, rewards)
        adam.step(network.gradient.flat)
    with jax.enable_x64(True):
        optimiser, gradient_of, p = optax.adam(learning_rate), jax.jit(jax.grad(jax_loss)), start
        state = optimiser.init(p)
        update = jax.jit(optimiser.update)
        for _ in range(epochs):
            changes, state = update(gradient_of(p), state)
            p = optax.apply_updates(p, changes)
        end = {name: np.asarray(array) for name, array in p.items()}
    for name, array in end.items():
        assert np.abs(network.weights[name] - array).max() < 1e-3, name
        assert np.abs(array - start[name]).max() > 1e-2, f"{name} did not move"
