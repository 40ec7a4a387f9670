"""The two networks written once more in JAX, as plainly as possible, to check gradients against."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tidepull.encoders.weights import Weights
from tidepull.types import FloatArray

Tree = dict[str, Any]


def tree_of(weights: Weights) -> dict[str, FloatArray]:
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
        gates = first @ p["input"] + h @ p["recurrent"] + p["gates_bias"]
        i, f, o, a = jnp.split(gates, 4)
        c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(a)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), jnp.tanh(h @ p["third"] + p["third_bias"])

    zero = jnp.zeros(p["recurrent"].shape[0])
    _, features = jax.lax.scan(step, (zero, zero), (inputs, jnp.arange(len(inputs))))
    return features


def loss(p: Tree, features: Any, rewards: Any, l2: float) -> Any:
    """Mean squared error + l2 / 2 * sum of squared weights; biases are free."""
    penalty = sum(jnp.sum(value**2) for name, value in p.items() if not name.endswith("_bias"))
    return jnp.mean((features @ p["output"] - rewards) ** 2) + 0.5 * l2 * penalty


def adam(p: Tree, gradient_of: Any, learning_rate: float, epochs: int) -> Tree:
    """The parameters after some epochs of optax's Adam."""
    optimiser = optax.adam(learning_rate)
    state = optimiser.init(p)
    for _ in range(epochs):
        updates, state = optimiser.update(gradient_of(p), state)
        p = optax.apply_updates(p, updates)
    return p
