"""The recurrent network of the paper, its encoder, and the state it has reached.

    inputs  ->  linear L1  ->  LSTM L2  ->  tanh L3 (the features)

One linear output without bias follows. Gradients are exact, over the whole history. The recurrence
runs in kernels (`simd.py`); everything else is a product over the whole sequence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tidepull.encoders import kernels, layers
from tidepull.encoders.base import ContextReader, NetworkEncoder
from tidepull.encoders.layers import FlatWeights, Init, NetworkSettings, aligned_zeros, pack
from tidepull.encoders.training import NO_ROUND, History, Network, Slices, Trainer
from tidepull.errors import ParameterError
from tidepull.parameters import parameter
from tidepull.protocols import Accept
from tidepull.types import Context, FloatArray, ProblemShape, Snapshot


@dataclass(frozen=True, kw_only=True)
class RecurrentSettings(NetworkSettings):
    """The recurrent network."""

    bptt_window: int | None = parameter(
        None, "rounds through which gradients flow back (None: all)", ge=1
    )


class RecurrentNetwork(Network):
    """Weights, loss and gradients. Inputs are rows whose last column is 1 (see `History`)."""

    def __init__(
        self, n_inputs: int, settings: RecurrentSettings, rng: np.random.Generator, dtype: Any
    ) -> None:
        units = settings.units
        weights = _recurrent_weights(n_inputs, units, settings.init, rng, dtype)
        super().__init__(settings, weights, "gates", _forget_offset(units[1], settings.init))
        self.n_inputs = n_inputs
        self._window = settings.bptt_window or np.iinfo(np.int64).max
        self._lanes = kernels.lanes_of(units[1])
        self._recurrent = aligned_zeros((units[1], 4 * units[1]), dtype)
        self._transposed = aligned_zeros((4 * units[1], units[1]), dtype)

    def loss(self, inputs: FloatArray, rewards: FloatArray, first: int = 0) -> float:
        """Mean squared error over the known rewards (those that are not NaN) + l2 / 2 * sum of
        squared weights, and the gradient into `gradient`. The sequence starts from the zero state;
        its number does not matter.
        """
        n = len(rewards)
        features = self.encode(inputs)
        w, grad, space = self.weights, self.gradient, self._workspace
        DZ, DH, G, H = space.DZ[:n], space.DH[:n], space.G[:n], space.H
        error = kernels.head(features, w["output"], rewards, DZ, grad["output"], grad["third_bias"])
        np.matmul(H[1 : n + 1].T, DZ, out=grad["third"])
        np.matmul(DZ, w["third"].T, out=DH)
        pack(w["recurrent"].T, self._lanes, self._transposed)
        self._recurrence[1](G, self._transposed, space.C[:n], space.TC[:n], DH, self._window)
        np.matmul(H[:n].T, G, out=grad["recurrent"])
        self._pair.backward(inputs, G)
        return float(error + kernels.add_penalty(grad.flat, w.flat, self.l2, w.n_penalised))

    def encode(self, inputs: FloatArray, first: int = 0) -> FloatArray:
        """Features of every row; a view that the next call overwrites."""
        n = len(inputs)
        w, space = self.weights, self._reserve(n)
        G = space.G[:n]
        features: FloatArray = space.U[:n]
        self._pair.forward(inputs, G)
        pack(w["recurrent"], self._lanes, self._recurrent)
        self._recurrence[0](G, self._recurrent, space.H, space.C, space.TC)
        np.matmul(space.H[1 : n + 1], w["third"], out=features)
        kernels.tanh_rows(features, w["third_bias"])
        return features

    def state(self, n: int) -> tuple[FloatArray, FloatArray]:
        """The LSTM's output and cell after n rounds of the sequence that was last encoded."""
        return self._workspace.H[n].copy(), self._workspace.C[n].copy()

    @cached_property
    def _recurrence(self) -> tuple[kernels.Kernel, kernels.Kernel]:
        """Forward and backward."""
        from tidepull.encoders.simd import recurrence  # needs the compiler

        return recurrence(self.units[1])

    def _buffers(self, capacity: int) -> dict[str, FloatArray]:
        _, hidden, third = self.units
        shapes = {"G": (capacity, 4 * hidden), "TC": (capacity, hidden), "DH": (capacity, hidden)}
        shapes |= dict.fromkeys(("H", "C"), (capacity + 1, hidden))
        shapes |= dict.fromkeys(("U", "DZ"), (capacity, third))
        dtype = self.weights.flat.dtype
        return {name: aligned_zeros(shape, dtype) for name, shape in shapes.items()}


def _forget_offset(hidden: int, init: Init) -> FloatArray:
    """The constant 1 inside the forget gate, which lets a fresh cell remember; the paper's text has
    none."""
    offset = np.zeros(4 * hidden)
    if init != "paper-text":
        offset[hidden : 2 * hidden] = 1.0
    return offset


def _recurrent_weights(
    n_inputs: int, units: tuple[int, int, int], init: Init, rng: np.random.Generator, dtype: Any
) -> FlatWeights:
    first, hidden, third = units
    scaled = init == "scaled"
    draw_lstm = layers.truncated_normal if init == "paper-text" else layers.glorot_uniform
    dense_first = layers.dense(rng, (n_inputs, first), scaled=scaled)
    lstm = draw_lstm(rng, (first + hidden, 4 * hidden))
    weights = {
        "first": dense_first,
        "gates": lstm[:first],
        "recurrent": lstm[first:],
        "third": layers.dense(rng, (hidden, third), scaled=scaled),
        "output": layers.dense(rng, (third,), scaled=scaled),
    }
    sizes = {"first": first, "gates": 4 * hidden, "third": third}
    biases = {f"{name}_bias": np.zeros(size) for name, size in sizes.items()}
    return FlatWeights(weights, biases, dtype)


class RecurrentEncoder(NetworkEncoder):
    """Features from an LSTM that has read `[previous reward, observation, arm]` of every past
    round.

    A round is a decision. Its previous reward is the latest that had arrived when it was decided (0
    before any), and the state moves on with every decision, whether its reward is known or not. The
    state after the last round is kept, so the arms of the coming round cost one batched step; the
    sequence is only run again when training has changed the network. With `memory`, training and
    `encode_history` know the last so many rounds, and training reads them from the zero state.
    Other arguments are those of `RecurrentSettings`.
    """

    _first_column = 1

    def __init__(
        self,
        shape: ProblemShape,
        *,
        rng: np.random.Generator,
        dtype: Any = np.float32,
        **network: Any,
    ) -> None:
        settings = RecurrentSettings.from_mapping(network)
        self._reader = ContextReader(shape, dtype)
        n_inputs = 1 + self._reader.width
        self._network = RecurrentNetwork(n_inputs, settings, rng, dtype)
        self._history = History(n_inputs, settings.units[2], dtype, memory=settings.memory)
        self._trainer = Trainer(self._network, self._history, settings.learning_rate)
        self._weights = self._trainer.weights
        self._h = np.zeros(settings.units[1], dtype)
        self._c = np.zeros(settings.units[1], dtype)
        # The latest reward that has arrived, and whose it is.
        self._latest, self._heard = 0.0, NO_ROUND
        self._opened: tuple[float, int] | None = None  # the same when the coming round was opened
        self._shared = np.empty(4 * settings.units[1], dtype)
        self._shared_for: float | None = None
        self._row = np.empty(n_inputs, dtype)
        self._unread = np.zeros(settings.units[2], dtype)
        self._adopt_network()

    def open(self) -> None:
        """Begin the coming round now: what arrives from now on is not part of its input."""
        self._opened = self._latest, self._heard

    def features(self, context: Context) -> FloatArray:
        """One row for each arm in the coming round (n_arms x dim), which is opened if it was not
        yet."""
        observation = self._reader.observation(context)
        gates = self._arm_rows(context, self._arm_gates)
        if self._opened is None:
            self.open()
        features, _, _ = self._step(self._previous[0], observation, gates)
        return features

    def decide(self, context: Context, arm: int) -> FloatArray:
        """Read the coming round (opened now, if it was not yet) with the arm chosen in it; its
        reward is pending.

        Returns the arm's features; the round's number is `rounds` before the call.
        """
        observation, described = self._reader.chosen(context, arm)
        previous, heard = self._previous
        row = self._input(previous, observation, described)
        gates = self._chosen_row(arm, described, self._arm_gates)
        rows, h, c = self._step(previous, observation, gates)
        features: FloatArray = rows[0]
        self._h[:], self._c[:] = h[0], c[0]
        self._history.append(row, features, heard)
        self._opened = self._shared_for = None
        return features

    def note(self, context: Context, arm: int) -> None:
        """`decide` without reading: the round is part of the history, its features and the state
        are not known until the next training."""
        previous, heard = self._previous
        self._history.append(
            self._input(previous, *self._reader.chosen(context, arm)), self._unread, heard
        )
        self._opened = self._shared_for = None

    def _input(self, previous: float, observation: FloatArray, described: FloatArray) -> FloatArray:
        row, split = self._row, 1 + len(observation)
        row[0], row[1:split], row[split:] = previous, observation, described
        return row

    def rewrite(
        self, rewards: FloatArray, contexts: FloatArray | None = None, *, read: bool = True
    ) -> None:
        """Put the remembered rounds into new units, and read them again (unless `read` is False:
        then the state stays until the next training).

        `rewards` has a number for each remembered round (`oldest` to `rounds` - 1); those of rounds
        whose reward has not come are not looked at, and NaN takes a reward back. `contexts` has a
        row for each: its observation, then the chosen arm's own features, where the shape has such.
        Previous rewards follow, as far as their rounds have one.
        """
        self._trainer.check_idle("rewrite the history")
        history, n = self._history, len(self._history)
        width = self._reader.shape.observation_dim + self._reader.shape.arm_dim
        wrong = np.shape(rewards) != (n,) or (
            contexts is not None and np.shape(contexts) != (n, width)
        )
        if wrong:
            raise ParameterError(
                f"rewards and contexts must have {n} rows, contexts {width} columns"
            )
        history.rewards[:] = np.where(history.known, rewards, np.nan)
        if contexts is not None:
            history.inputs[:, 1 : 1 + width] = contexts
        heard = history.heard - history.oldest
        follows = heard >= 0
        follows[follows] = history.known[heard[follows]]
        history.inputs[follows, 0] = history.rewards[heard[follows]]
        self._latest = self._rewritten(self._latest, self._heard)
        if self._opened is not None:
            self._opened = self._rewritten(*self._opened), self._opened[1]
        self._shared_for = None
        if read:
            self._read_again()

    def forget(self, keep: int) -> None:
        """Drop all but the last `keep` rounds; the state stays until the next training."""
        self._history.forget(keep)

    def refitting(self, epochs: int, accept: Accept | None = None) -> Slices:
        """`refit` in slices: an epoch each time, and reading again in the last."""
        loss = yield from self._trainer.refitting(epochs, accept)
        self._adopt_state()
        self._adopt_network()
        return loss

    def snapshot(self) -> Snapshot:
        """Network, optimiser, history and state."""
        return {
            **self._trainer.snapshot(),
            "h": self._h.copy(),
            "c": self._c.copy(),
            "latest": [self._latest, self._heard],
            "opened": None if self._opened is None else list(self._opened),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._trainer.restore(snapshot)
        self._h[:], self._c[:] = snapshot["h"], snapshot["c"]
        self._latest, self._heard = float(snapshot["latest"][0]), int(snapshot["latest"][1])
        opened = snapshot["opened"]
        self._opened = None if opened is None else (float(opened[0]), int(opened[1]))
        self._adopt_network()

    def _reward_arrived(self, place: int, number: int) -> None:
        self._latest, self._heard = float(self._history.rewards[place]), number

    @property
    def _previous(self) -> tuple[float, int]:
        """The reward that the coming round sees as the previous one, and the round that it belongs
        to."""
        return (self._latest, self._heard) if self._opened is None else self._opened

    def _rewritten(self, reward: float, number: int) -> float:
        """The reward of a round as the history has it now; as it was where the history has none."""
        place = number - self.oldest
        new = float(self._history.rewards[place]) if place >= 0 else math.nan
        return float(reward) if math.isnan(new) else new

    def _read_again(self) -> None:
        self._trainer.read_again()
        self._adopt_state()

    def _adopt_state(self) -> None:
        """The state after the sequence that the network has just read."""
        self._h[:], self._c[:] = self._network.state(len(self._history))
        self._shared_for = None

    def _adopt_network(self) -> None:
        """Work out what stays the same until the next training."""
        split = 1 + self._reader.shape.observation_dim
        combined = self._network.combined_input_weights()
        self._reward_gates, self._bias = combined[0].copy(), combined[-1].copy()
        self._arm_gates = combined[split:-1].copy()
        self._observation_weights = self._weights["first"][1:split]
        self._shared_for = None

    def _step(
        self, previous: float, observation: FloatArray, gates: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Features of some arms from the stored state, and the states (h, c) that would follow."""
        weights, dtype = self._weights, gates.dtype
        if self._shared_for != previous:
            state = self._shared, self._h, weights["recurrent"], self._bias
            kernels.gates_of_state(*state, previous, self._reward_gates)
            self._shared_for = previous
        features = np.empty((len(gates), self.dim), dtype)
        h, c = np.empty((2, len(gates), len(self._c)), dtype)
        seen = self._shared, observation, self._observation_weights, weights["gates"], gates
        third = weights["third"], weights["third_bias"]
        kernels.cell_step(*seen, self._c, *third, features, h, c)
        return features, h, c
