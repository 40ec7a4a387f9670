"""Bring your own network: any `torch.nn.Module` as an encoder (extra `torch`), on CPU or GPU.

The module maps input sequences (batch x rounds x inputs) to features (batch x rounds x dim). The input of a
round is `[previous reward, observation, arm]`, the arm as its own features where the problem has them, else
one-hot; `input_width(shape)` tells its length. One of two contracts, told apart by what the module returns:

* recurrent: `module(x, state=None) -> (features, state)`, a state being a tensor or a tuple of tensors with the
  batch on axis 1: `torch.nn.LSTM` and `torch.nn.GRU` with `batch_first=True` fit as they
  are. The arms are evaluated in one batched step from the stored state.
* stateless: `module(x) -> features`, where the features of a round depend on that round and earlier ones only
  (a causal convolution, a masked transformer, a perceptron). The arms are evaluated as a batch of sequences
  that differ in their last round; `receptive_field`, the rounds that one output looks at, keeps them short.

A linear head without bias is added. Training is Adam on the mean squared error plus `l2` times half the sum of
squared weights (every parameter with two or more axes, and the head), on the whole history.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tidepull.encoders.history import History
from tidepull.encoders.inputs import ContextReader
from tidepull.errors import MissingExtraError, ParameterError, TrainingError
from tidepull.snapshots import generator_state, restore_generator
from tidepull.types import Context, Event, FloatArray, ProblemShape, Snapshot

if TYPE_CHECKING:
    import torch


def input_width(shape: ProblemShape) -> int:
    """How many numbers the module reads in each round."""
    return 1 + ContextReader(shape, np.float32).width


class TorchEncoder:
    """An `Encoder` around a torch module, which belongs to it from now on."""

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        shape: ProblemShape,
        learning_rate: float,
        rng: np.random.Generator,
        l2: float = 0.001,
        receptive_field: int | None = None,
        device: str = "cpu",
    ) -> None:
        self._torch = _import_torch()
        self._module, self._device = module.to(device), device
        self._reader = ContextReader(shape, np.float32)
        self._recurrent, self.dim = self._probe()
        self._tail = None if receptive_field is None else receptive_field - 1
        self._l2 = l2
        self._rng = rng
        self._head = self._torch.nn.Parameter(self._tensor(rng.normal(scale=self.dim**-0.5, size=self.dim)))
        self._trained = [p for p in self._module.parameters() if p.requires_grad] + [self._head]
        self._adam = self._torch.optim.Adam(self._trained, lr=learning_rate)
        self._history = History(input_width(shape), self.dim, np.float32)
        self._state: Any = None
        self._version = 0

    @property
    def version(self) -> int:
        """How many times the network has been refitted."""
        return self._version

    def features(self, context: Context) -> FloatArray:
        """One row for each arm in the coming round (n_arms x dim); changes nothing."""
        features, _ = self._step(self._rows(context))
        return features

    def append(self, event: Event) -> FloatArray:
        """Take in a finished round; returns the chosen arm's features as they were."""
        self._reader.check(event)
        row = self._rows(event.context)[event.arm]
        features, self._state = self._step(row[None])
        chosen: FloatArray = features[0]
        self._history.append(row, event.reward, chosen)
        return chosen

    def refit(self, epochs: int) -> float:
        """Train on the whole history, then read it again; returns the loss of the trained network.

        When training diverges a `TrainingError` is raised and nothing has changed.
        """
        inputs, rewards = (
            self._tensor(self._history.inputs[:, :-1])[None],
            self._tensor(self._history.rewards),
        )
        before = self._network_snapshot()
        with self._own_randomness():
            self._module.train()
            for _ in range(epochs):
                self._adam.zero_grad()
                loss = self._loss(self._forward(inputs)[0][0], rewards)
                loss.backward()
                self._adam.step()
            self._module.eval()
        with self._torch.no_grad():
            features, state = self._forward(inputs)
            final = float(self._loss(features[0], rewards))
        if not math.isfinite(final):
            self._restore_network(before)
            raise TrainingError(f"training diverged: the loss became {final}; the last good network is kept")
        self._history.features[:], self._state = features[0].cpu().numpy(), state
        self._version += 1
        return final

    def encode_history(self) -> tuple[FloatArray, FloatArray]:
        """Features of every past event (t x dim) under the present network, and their rewards."""
        return self._history.features.copy(), self._history.rewards.copy()

    def snapshot(self) -> Snapshot:
        """Network, optimiser, history, state and generator."""
        return {
            "version": self._version,
            "network": self._network_snapshot(),
            "history": self._history.snapshot(),
            "state": _to_arrays(self._state),
            "generator": generator_state(self._rng),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of an encoder around a module of the same layout."""
        self._history.restore(snapshot["history"])
        self._restore_network(snapshot["network"])
        self._state = self._to_tensors(snapshot["state"])
        restore_generator(self._rng, snapshot["generator"])
        self._version = int(snapshot["version"])

    def _rows(self, context: Context) -> FloatArray:
        """Inputs of every arm in the coming round."""
        previous = self._history.rewards[-1] if len(self._history) else 0.0
        arms = self._reader.arms(context)
        shared = np.concatenate([[previous], self._reader.observation(context)]).astype(np.float32)
        return np.hstack([np.tile(shared, (len(arms), 1)), arms])

    def _step(self, rows: FloatArray) -> tuple[FloatArray, Any]:
        """Features of some rows, each as the round that would come next, and the states that follow."""
        x = self._tensor(rows)[:, None]
        with self._torch.no_grad():
            self._module.eval()
            if self._recurrent:
                features, state = self._forward(x, _repeated(self._state, len(rows)))
            else:
                start = 0 if self._tail is None else max(0, len(self._history) - self._tail)
                past = self._tensor(self._history.inputs[start:, :-1])
                x = self._torch.cat([past.expand(len(rows), -1, -1), x], dim=1)
                features, state = self._forward(x)
        return features[:, -1].cpu().numpy(), state

    def _forward(self, x: torch.Tensor, state: Any = None) -> tuple[torch.Tensor, Any]:
        return self._module(x, state) if self._recurrent else (self._module(x), None)

    def _loss(self, features: torch.Tensor, rewards: torch.Tensor) -> torch.Tensor:
        weights = [p for p in self._trained if p.dim() > 1] + [self._head]
        penalty = sum((w * w).sum() for w in weights) / 2
        return ((features @ self._head - rewards) ** 2).mean() + self._l2 * penalty

    def _probe(self) -> tuple[bool, int]:
        """Whether the module is recurrent, and the length of its features, from one call on zeros."""
        x = self._torch.zeros(1, 1, 1 + self._reader.width, device=self._device)
        self._module.eval()
        with self._torch.no_grad():
            out = self._module(x)
        recurrent = isinstance(out, tuple)
        features = out[0] if recurrent else out
        if features.dim() != 3 or features.shape[:2] != (1, 1):
            raise ParameterError(
                f"the module must map inputs of shape (1, 1, {x.shape[2]}) to features of shape (1, 1, dim), "
                f"got {tuple(features.shape)} (torch's own LSTM and GRU need batch_first=True)"
            )
        return recurrent, int(features.shape[2])

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """Dropout and the like draw from this encoder's stream; torch's global generator is left alone."""
        with self._torch.random.fork_rng():
            self._torch.manual_seed(int(self._rng.integers(2**63)))
            yield

    def _network_snapshot(self) -> Snapshot:
        moments = self._adam.state_dict()["state"]
        return {
            "module": {name: _to_arrays(value) for name, value in self._module.state_dict().items()},
            "head": _to_arrays(self._head),
            "adam": [{name: _to_arrays(v) for name, v in moments[i].items()} for i in sorted(moments)],
        }

    def _restore_network(self, snapshot: Snapshot) -> None:
        tensor = self._torch.tensor
        self._module.load_state_dict({name: tensor(value) for name, value in snapshot["module"].items()})
        with self._torch.no_grad():
            self._head.copy_(self._tensor(snapshot["head"]))
        moments = [{name: tensor(value) for name, value in moment.items()} for moment in snapshot["adam"]]
        groups = self._adam.state_dict()["param_groups"]
        self._adam.load_state_dict({"state": dict(enumerate(moments)), "param_groups": groups})

    def _tensor(self, array: FloatArray) -> torch.Tensor:
        return self._torch.tensor(np.asarray(array), dtype=self._torch.float32, device=self._device)

    def _to_tensors(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple(self._to_tensors(item) for item in value)
        return None if value is None else self._torch.tensor(value, device=self._device)


def _to_arrays(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_arrays(item) for item in value]
    return None if value is None else value.detach().cpu().numpy().copy()


def _repeated(state: Any, batch: int) -> Any:
    """The state once for each row of a batch, along axis 1."""
    if isinstance(state, tuple):
        return tuple(_repeated(item, batch) for item in state)
    return None if state is None else state.expand(-1, batch, *state.shape[2:]).contiguous()


def _import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("TorchEncoder", "torch") from None
    return torch
