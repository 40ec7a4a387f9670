"""Bring your own network: any `torch.nn.Module` as an encoder (extra `torch`), on CPU or GPU.

The module maps input sequences (batch x rounds x inputs) to features (batch x rounds x dim). The
input of a round is `[previous reward, observation, arm]`, the arm as its own features where the
problem has them, else one-hot; `input_width(shape)` tells its length. The previous reward is the
latest that had arrived when the round was decided (0 before any); rounds whose reward is not known
have no part in the loss. One of two contracts, told apart by what the module returns:

* recurrent: `module(x, state=None) -> (features, state)`, a state being a tensor or a tuple of
  tensors with the batch on axis 1: `torch.nn.LSTM` and `torch.nn.GRU` with `batch_first=True` fit
  as they are. The arms are evaluated in one batched step from the stored state.
* stateless: `module(x) -> features`, where the features of a round depend on that round and earlier
  ones only (a causal convolution, a masked transformer, a perceptron). The arms are evaluated as a
  batch of sequences that differ in their last round; `receptive_field`, the rounds that one output
  looks at, keeps them short.

A linear head without bias is added. Training is Adam on the mean squared error plus `l2` times half
the sum of squared weights (every parameter with two or more axes, and the head), on all that is
remembered.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tidepull._internal.extras import needs
from tidepull.encoders.base import ContextReader, HistoryEncoder
from tidepull.encoders.training import History, Slices
from tidepull.errors import ParameterError, TrainingError
from tidepull.protocols import Accept
from tidepull.state import generator_state, restore_generator
from tidepull.types import Context, FloatArray, ProblemShape, Snapshot

if TYPE_CHECKING:
    import torch


def input_width(shape: ProblemShape) -> int:
    """Return how many numbers the module of a `TorchEncoder` reads in each round.

    Parameters
    ----------
    shape : ProblemShape
        The shape of the problem.

    Returns
    -------
    int
        The previous reward, the observation, and the arm's features or one-hot code.

    Examples
    --------
    >>> input_width(ProblemShape(n_arms=3, observation_dim=2))
    6
    """
    return 1 + ContextReader(shape, np.float32).width


class TorchEncoder(HistoryEncoder):
    """An `Encoder` around a torch module, which it trains.

    Parameters
    ----------
    module : torch.nn.Module
        The network: recurrent, `module(x, state=None) -> (features, state)`, or stateless,
        `module(x) -> features`.
    shape : ProblemShape
        The shape of the problem. The module reads `input_width(shape)` numbers.
    learning_rate : float
        The step size of Adam.
    rng : numpy.random.Generator
        The generator of the first weights of the head, and of a seed for each training.
    l2 : float, default: 0.001
        The weight of half the sum of squared weights in the loss.
    receptive_field : int, optional
        The number of rounds that one output of a stateless module depends on. None means all.
    memory : int, optional
        The number of rounds that are remembered for training. None means all.
    device : str, default: "cpu"
        Where torch computes.

    Raises
    ------
    MissingExtraError
        If torch is not installed.
    ParameterError
        If the module's output has another shape than (batch, rounds, features).

    Examples
    --------
    >>> import numpy as np
    >>> import tidepull
    >>> import torch
    >>> shape = tidepull.ProblemShape(n_arms=3)
    >>> module = torch.nn.GRU(tidepull.input_width(shape), 16, batch_first=True)
    >>> rng = np.random.default_rng(0)
    >>> encoder = tidepull.TorchEncoder(module, shape=shape, learning_rate=0.01, rng=rng)
    >>> encoder.features(tidepull.Context()).shape
    (3, 16)
    """

    _first_column = 1

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        shape: ProblemShape,
        learning_rate: float,
        rng: np.random.Generator,
        l2: float = 0.001,
        receptive_field: int | None = None,
        memory: int | None = None,
        device: str = "cpu",
    ) -> None:
        self._torch = _import_torch()
        self._module, self._device = module.to(device), device
        self._trainee = copy.deepcopy(self._module)  # equal to the module, except while training
        self._reader = ContextReader(shape, np.float32)
        self._recurrent, self.dim = self._probe()
        self._tail = None if receptive_field is None else receptive_field - 1
        self._l2 = l2
        self._rng = rng
        self._head = self._torch.nn.Parameter(
            self._tensor(rng.normal(scale=self.dim**-0.5, size=self.dim))
        )
        self._trained = [p for p in self._trainee.parameters() if p.requires_grad] + [self._head]
        self._adam = self._torch.optim.Adam(self._trained, lr=learning_rate)
        self._history = History(input_width(shape), self.dim, np.float32, memory=memory)
        self._latest = 0.0  # the latest reward that has arrived
        self._opened: float | None = None  # the same when the coming round was opened
        self._state: Any = None
        self.version = 0
        self._before: Snapshot | None = None  # the last good network, while training

    def features(self, context: Context) -> FloatArray:
        """Return the features of every arm in the coming round, and open the round.

        Parameters
        ----------
        context : Context
            The context of the round.

        Returns
        -------
        array of shape (n_arms, dim)
            One row for each arm.
        """
        rows = self._rows(context)
        self._opened = self._previous
        features, _ = self._step(rows)
        return features

    def decide(self, context: Context, arm: int) -> FloatArray:
        """Read the coming round with the arm chosen in it; its reward is pending.

        Parameters
        ----------
        context : Context
            The context of the round.
        arm : int
            The chosen arm, counted from 0.

        Returns
        -------
        array of shape (dim,)
            The features of the chosen arm.
        """
        self._reader.chosen(context, arm)
        row = self._rows(context)[arm]
        features, self._state = self._step(row[None])
        chosen: FloatArray = features[0]
        self._history.append(row, chosen)
        self._opened = None
        return chosen

    def refitting(self, epochs: int, accept: Accept | None = None) -> Slices:
        """Train in slices: one epoch in each, and reading the history again in the last.

        Parameters
        ----------
        epochs : int
            The number of epochs.
        accept : callable, optional
            Function that is called with features and rewards, as `encode_history` returns them,
            just before the new network is used. If it raises, the training is undone.

        Yields
        ------
        None
            After each slice. The generator returns the loss of the trained network.

        Raises
        ------
        TrainingError
            If there is no history, a training is under way, or training diverges.
        """
        self._check_idle("train")
        if not self._history.known.any():
            raise TrainingError("there is no history to train on yet")
        self._before = {**self._network_snapshot(), "generator": generator_state(self._rng)}
        try:
            yield from self._epochs(epochs)
            loss = self._adopt(accept)
        except BaseException:
            restore_generator(self._rng, self._before["generator"])
            self._restore_network(self._before)
            raise
        finally:
            self._before = None
        self.version += 1
        return loss

    def snapshot(self) -> Snapshot:
        """Return network, optimiser, history, state and generator.

        A training that is under way is not part of it.
        """
        network = self._before or {
            **self._network_snapshot(),
            "generator": generator_state(self._rng),
        }
        return {
            "version": self.version,
            "network": network,
            "history": self._history.snapshot(),
            "state": _to_arrays(self._state),
            "latest": self._latest,
            "opened": self._opened,
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of an encoder around a module of the same layout.

        Parameters
        ----------
        snapshot : Snapshot
            What `snapshot` returned.

        Raises
        ------
        TrainingError
            If a training is under way.
        """
        self._check_idle("restore a snapshot")
        self._history.restore(snapshot["history"])
        self._restore_network(snapshot["network"])
        self._state = self._to_tensors(snapshot["state"])
        self._latest, self._opened = snapshot["latest"], snapshot["opened"]
        restore_generator(self._rng, snapshot["network"]["generator"])
        self.version = int(snapshot["version"])

    def _reward_arrived(self, place: int, number: int) -> None:
        self._latest = float(self._history.rewards[place])

    def _read_again(self) -> None:
        with self._torch.no_grad():
            features, self._state = self._forward(self._module, self._sequence())
        self._history.features[:] = features[0].cpu().numpy()

    @property
    def _previous(self) -> float:
        """The reward that the coming round sees as the previous one."""
        return self._latest if self._opened is None else self._opened

    def _epochs(self, epochs: int) -> Iterator[None]:
        inputs, rewards = self._sequence(), self._tensor(self._history.rewards)
        seed = int(self._rng.integers(2**62))
        for epoch in range(epochs):
            with self._own_randomness(seed + epoch):
                self._trainee.train()
                self._adam.zero_grad()
                loss = self._loss(self._forward(self._trainee, inputs)[0][0], rewards)
                loss.backward()
                self._adam.step()
            yield

    def _adopt(self, accept: Accept | None) -> float:
        """Read all that is remembered with the trained network, and decide with it from now on."""
        history = self._history
        with self._torch.no_grad():
            tensors, state = self._forward(self._trainee.eval(), self._sequence())
            loss = float(self._loss(tensors[0], self._tensor(history.rewards)))
        if not math.isfinite(loss):
            raise TrainingError(
                f"training diverged: the loss became {loss}; the last good network is kept"
            )
        features, known = tensors[0].cpu().numpy(), history.known
        if accept is not None:
            accept(features[known], history.rewards[known])
        history.features[:], self._state = features, state
        self._module.load_state_dict(self._trainee.state_dict())
        return loss

    def _check_idle(self, what: str) -> None:
        if self._before is not None:
            raise TrainingError(f"a training is under way: finish or close it before you {what}")

    def _sequence(self) -> torch.Tensor:
        """All that is remembered, as one sequence."""
        return self._tensor(self._history.inputs[:, :-1])[None]

    def _rows(self, context: Context) -> FloatArray:
        """Inputs of every arm in the coming round."""
        arms = self._reader.arms(context)
        parts = [self._previous], self._reader.observation(context)
        shared = np.concatenate(parts).astype(np.float32)
        return np.hstack([np.tile(shared, (len(arms), 1)), arms])

    def _step(self, rows: FloatArray) -> tuple[FloatArray, Any]:
        """Features of some rows, each as the round that would come next, and the states that
        follow."""
        x = self._tensor(rows)[:, None]
        with self._torch.no_grad():
            self._module.eval()
            if self._recurrent:
                features, state = self._forward(self._module, x, _repeated(self._state, len(rows)))
            else:
                start = 0 if self._tail is None else max(0, len(self._history) - self._tail)
                past = self._tensor(self._history.inputs[start:, :-1])
                x = self._torch.cat([past.expand(len(rows), -1, -1), x], dim=1)
                features, state = self._forward(self._module, x)
        return features[:, -1].cpu().numpy(), state

    def _forward(self, module: Any, x: torch.Tensor, state: Any = None) -> tuple[torch.Tensor, Any]:
        return module(x, state) if self._recurrent else (module(x), None)

    def _loss(self, features: torch.Tensor, rewards: torch.Tensor) -> torch.Tensor:
        weights = [p for p in self._trained if p.dim() > 1] + [self._head]
        penalty = sum((w * w).sum() for w in weights) / 2
        known = ~self._torch.isnan(rewards)
        return ((features @ self._head - rewards)[known] ** 2).mean() + self._l2 * penalty

    def _probe(self) -> tuple[bool, int]:
        """Whether the module is recurrent, and the length of its features, from one call on
        zeros."""
        x = self._torch.zeros(1, 1, 1 + self._reader.width, device=self._device)
        self._module.eval()
        with self._torch.no_grad():
            out = self._module(x)
        recurrent = isinstance(out, tuple)
        features = out[0] if recurrent else out
        if features.dim() != 3 or features.shape[:2] != (1, 1):
            raise ParameterError(
                f"the module must map inputs of shape (1, 1, {x.shape[2]}) to features of shape "
                "(1, 1, dim), "
                f"got {tuple(features.shape)} (torch's own LSTM and GRU need batch_first=True)"
            )
        return recurrent, int(features.shape[2])

    @contextmanager
    def _own_randomness(self, seed: int) -> Iterator[None]:
        """Dropout and the like draw from a seed of this encoder's; torch's global generator is left
        alone."""
        with self._torch.random.fork_rng():
            self._torch.manual_seed(seed)
            yield

    def _network_snapshot(self) -> Snapshot:
        moments = self._adam.state_dict()["state"]
        module = {name: _to_arrays(value) for name, value in self._module.state_dict().items()}
        adam = [{name: _to_arrays(v) for name, v in moments[i].items()} for i in sorted(moments)]
        return {"module": module, "head": _to_arrays(self._head), "adam": adam}

    def _restore_network(self, snapshot: Snapshot) -> None:
        tensor = self._torch.tensor
        for module in (self._module, self._trainee):
            module.load_state_dict(
                {name: tensor(value) for name, value in snapshot["module"].items()}
            )
        with self._torch.no_grad():
            self._head.copy_(self._tensor(snapshot["head"]))
        moments = [
            {name: tensor(value) for name, value in moment.items()} for moment in snapshot["adam"]
        ]
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
    with needs("TorchEncoder", "torch"):
        import torch
    return torch
