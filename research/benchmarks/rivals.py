"""One training epoch of the same network in torch and in JAX, written as their users would.

Both start from the weights of our network, so that their first loss proves that the work is the
same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tidepull.encoders.recurrent import RecurrentNetwork
from tidepull.types import FloatArray

L2, RATE = 0.001, 0.01


def torch_epoch(
    network: RecurrentNetwork, inputs: FloatArray, rewards: FloatArray
) -> Callable[[], float]:
    """Linear, `nn.LSTM`, Linear + tanh, Linear; fused Adam, the penalty as its weight decay."""
    import torch

    torch.set_num_threads(1)
    (first, hidden, third), w = network.units, network.weights

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(inputs.shape[1], first)
            self.lstm = torch.nn.LSTM(first, hidden)
            self.third = torch.nn.Linear(hidden, third)
            self.output = torch.nn.Linear(third, 1, bias=False)

        def forward(self, x: Any) -> Any:
            h, _ = self.lstm(self.first(x))
            return self.output(torch.tanh(self.third(h)))[:, 0]

    def reordered(gates: FloatArray) -> FloatArray:
        i, f, o, a = np.split(gates, 4, axis=-1)
        return np.concatenate([i, f, a, o], axis=-1)

    forget = np.repeat(np.array([0, 1, 0, 0], np.float32), hidden)
    model = Model()
    start = {
        "first.weight": w["first"].T,
        "first.bias": w["first_bias"],
        "lstm.weight_ih_l0": reordered(w["gates"]).T,
        "lstm.weight_hh_l0": reordered(w["recurrent"]).T,
        "lstm.bias_ih_l0": reordered(w["gates_bias"]) + forget,
        "lstm.bias_hh_l0": 0 * forget,
        "third.weight": w["third"].T,
        "third.bias": w["third_bias"],
        "output.weight": w["output"][None],
    }
    model.load_state_dict({k: torch.from_numpy(np.array(v, np.float32)) for k, v in start.items()})
    named = list(model.named_parameters())
    groups = [
        {"params": [p for name, p in named if "bias" not in name], "weight_decay": L2},
        {"params": [p for name, p in named if "bias" in name]},
    ]
    adam = torch.optim.Adam(groups, lr=RATE, fused=True)
    x, y = torch.from_numpy(inputs), torch.from_numpy(rewards)

    def epoch() -> float:
        adam.zero_grad()
        loss = torch.mean((model(x) - y) ** 2)
        loss.backward()
        adam.step()
        return float(loss.detach())

    return epoch


def jax_epoch(
    network: RecurrentNetwork, inputs: FloatArray, rewards: FloatArray, unroll: int
) -> Callable[[], float]:
    """A compiled step: products with the inputs outside `lax.scan`, the recurrence inside, optax's
    Adam."""
    import jax
    import jax.numpy as jnp
    import optax

    hidden = network.units[1]
    x, y = jnp.asarray(inputs), jnp.asarray(rewards)

    def loss_of(p: dict[str, Any]) -> Any:
        before = (x @ p["first"] + p["first_bias"]) @ p["gates"] + p["gates_bias"]

        def step(carry: tuple[Any, Any], gates: Any) -> tuple[tuple[Any, Any], Any]:
            h, c = carry
            i, f, o, a = jnp.split(gates + h @ p["recurrent"], 4)
            c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(a)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros(hidden)
        _, h = jax.lax.scan(step, (zero, zero), before, unroll=unroll)
        features = jnp.tanh(h @ p["third"] + p["third_bias"])
        penalty = sum(jnp.sum(value**2) for name, value in p.items() if not name.endswith("_bias"))
        error = jnp.mean((features @ p["output"] - y) ** 2)
        return error + 0.5 * L2 * penalty, error

    adam = optax.adam(RATE)

    def update(p: Any, state: Any) -> tuple[Any, Any, Any]:
        (_, error), gradient = jax.value_and_grad(loss_of, has_aux=True)(p)
        changes, state = adam.update(gradient, state)
        return optax.apply_updates(p, changes), state, error

    compiled = jax.jit(update, donate_argnums=(0, 1))
    p = {name: jnp.array(network.weights[name]) for name in network.weights.names()}
    now = [p, adam.init(p)]

    def epoch() -> float:
        now[0], now[1], error = compiled(now[0], now[1])
        return float(error)

    return epoch
