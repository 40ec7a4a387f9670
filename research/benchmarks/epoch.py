"""One full training epoch (forward, backward, Adam): ours beside torch's LSTM and a JAX scan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from research.benchmarks import rivals
from research.benchmarks.machine import blas_gflops
from research.benchmarks.timing import best_of
from tidepull.encoders.feedforward import FeedforwardNetwork, FeedforwardSettings
from tidepull.encoders.recurrent import RecurrentNetwork, RecurrentSettings
from tidepull.encoders.training import Adam
from tidepull.types import FloatArray

ROUNDS, INPUTS = 2048, 9
UNROLLS = (1, 4)


@dataclass(frozen=True)
class EpochRow:
    """Microseconds a round, and what that means in operations."""

    units: int
    ours: float
    torch: float
    jax: float
    operations: int
    blas: float

    @property
    def gflops(self) -> float:
        return self.operations / self.ours / 1e3


def measure(units: int, turns: int) -> EpochRow:
    """All three in turns, in this process."""
    network, inputs, rewards = problem(units)
    epochs: dict[str, Callable[[], float]] = {
        "torch": rivals.torch_epoch(network, inputs, rewards),
        **{
            f"jax {unroll}": rivals.jax_epoch(network, inputs, rewards, unroll)
            for unroll in UNROLLS
        },
    }
    error = mean_squared_error(network, inputs, rewards)
    for name, epoch in epochs.items():
        if not np.isclose(first := epoch(), error, rtol=1e-3):
            raise RuntimeError(
                f"{name} does other work than ours: its first loss is {first}, ours {error}"
            )
    seconds = best_of({"ours": our_epoch(network, inputs, rewards), **epochs}, turns)
    per_round = {name: 1e6 * value / ROUNDS for name, value in seconds.items()}
    return EpochRow(
        units=units,
        ours=per_round["ours"],
        torch=per_round["torch"],
        jax=min(per_round[f"jax {unroll}"] for unroll in UNROLLS),
        operations=operations(units),
        blas=blas_gflops(units, ROUNDS),
    )


def measure_feedforward(units: int, turns: int) -> float:
    """Microseconds a round of the feedforward network: 8 arms, order 1, one sinusoid."""
    rng = np.random.default_rng(0)
    settings = FeedforwardSettings(units=(units,) * 3, learning_rate=0.01, order=1, sinusoids=1)
    network = FeedforwardNetwork(17, settings, rng, np.float32)
    rows = np.ones((ROUNDS, 19), np.float32)
    rows[:, :17] = rng.standard_normal((ROUNDS, 17))
    adam, rewards = Adam(network.weights.flat, 0.01), rng.standard_normal(ROUNDS).astype(np.float32)

    def epoch() -> None:
        network.loss(rows, rewards)
        adam.step(network.gradient.flat)

    return 1e6 * best_of({"nlps": epoch}, turns)["nlps"] / ROUNDS


def problem(units: int, rounds: int = ROUNDS) -> tuple[RecurrentNetwork, FloatArray, FloatArray]:
    """A network and a sequence like those of eight arms: previous reward, one-hot arm."""
    rng = np.random.default_rng(0)
    settings = RecurrentSettings(units=(units,) * 3, learning_rate=rivals.RATE, l2=rivals.L2)
    network = RecurrentNetwork(INPUTS, settings, rng, np.float32)
    rewards = rng.standard_normal(rounds).astype(np.float32)
    inputs = np.zeros((rounds, INPUTS), np.float32)
    inputs[1:, 0] = rewards[:-1]
    inputs[np.arange(rounds), 1 + rng.integers(INPUTS - 1, size=rounds)] = 1.0
    return network, inputs, rewards


def with_ones(inputs: FloatArray) -> FloatArray:
    return np.concatenate([inputs, np.ones((len(inputs), 1), np.float32)], axis=1)


def mean_squared_error(network: RecurrentNetwork, inputs: FloatArray, rewards: FloatArray) -> float:
    error = network.encode(with_ones(inputs)) @ network.weights["output"] - rewards
    return float(error @ error / len(error))


def our_epoch(
    network: RecurrentNetwork, inputs: FloatArray, rewards: FloatArray
) -> Callable[[], float]:
    rows, adam = with_ones(inputs), Adam(network.weights.flat, rivals.RATE)

    def epoch() -> float:
        loss = network.loss(rows, rewards)
        adam.step(network.gradient.flat)
        return loss

    return epoch


def operations(units: int) -> int:
    """Multiplications and additions in the products of one round of one epoch, as we compute
    them."""
    first, recurrent, third = (INPUTS + 1) * 4 * units, units * 4 * units, units * units
    forward = first + recurrent + third
    backward = first + 2 * recurrent + 2 * third
    return 2 * (forward + backward)
