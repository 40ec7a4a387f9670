"""tidepull's policies behind mabwiser's interface: `fit`, `partial_fit`, `predict`,
`predict_expectations`.

    from tidepull.integrations.mabwiser import TidepullMAB

    mab = TidepullMAB(["red", "blue"], "tide", seed=1)
    mab.fit(decisions=["red", "blue", "red"], rewards=[1, 0, 1])
    arm = mab.predict()
    mab.partial_fit([arm], [1])

It needs no other package; tables of pandas are taken as well. A prediction begins a round, and the
fitted row that has its arm and context finishes it, up to 8,192 rounds later; rows without a
prediction are rounds of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from tidepull.errors import ArmError, ContextError, ParameterError
from tidepull.policies import build_policy, policies
from tidepull.policies.checks import LARGEST, TRAIL
from tidepull.policies.guard import Guarded
from tidepull.types import Context, Event, FloatArray, ProblemShape

__all__ = ["TidepullMAB"]

DRAWS = 100
"""Draws from which an arm's expectation follows, where the policy draws at all."""


class TidepullMAB:
    """A tidepull policy with mabwiser's methods.

    Expectations are the share of draws in which the policy would choose each arm, not rewards: the
    largest belongs to the arm to recommend. Equal seeds lead to the arms of `tidepull.run_trial`.

    Parameters
    ----------
    arms : sequence of hashable
        Names of the arms.
    learning_policy : str, default: "tide"
        The policy's id.
    parameters : mapping, optional
        The policy's parameters.
    seed : int, default: 123456
        The seed of the policy.

    Raises
    ------
    ParameterError
        If arms are not distinct, or the policy belongs to another library.

    Examples
    --------
    >>> mab = TidepullMAB(["red", "blue"], "ucb", seed=1)
    >>> mab.fit(decisions=["red", "blue", "red"], rewards=[1, 0, 1])
    >>> mab.predict() in ("red", "blue")
    True
    """

    def __init__(
        self,
        arms: Sequence[Any],
        learning_policy: str = "tide",
        parameters: Mapping[str, Any] | None = None,
        seed: int = 123456,
    ) -> None:
        if len(set(arms)) != len(arms) or not arms:
            raise ParameterError("arms must be a list of different names, at least one")
        entry, _ = policies.resolve((learning_policy, dict(parameters or {})))
        if entry.library is not None:
            raise ParameterError(
                f"learning_policy: {entry.id} is an external policy; use {entry.library.name} itself"
            )
        self.arms = list(arms)
        self.learning_policy = learning_policy
        self.parameters = dict(parameters or {})
        self.seed = seed
        self._learner: Guarded | None = None
        self._open: dict[int, tuple[int, bytes]] = {}

    def fit(self, decisions: Any, rewards: Any, contexts: Any = None) -> None:
        """Reset the policy, and learn rows in their order.

        Parameters
        ----------
        decisions : sequence
            The arm of each row.
        rewards : sequence of float
            The reward of each row.
        contexts : table of float, optional
            The context of each row.

        Raises
        ------
        ArmError
            If there is no such arm.
        ParameterError
            If the arguments differ in length, or a reward is not finite.
        """
        rows = self._rows(decisions, rewards, contexts)
        self._learner, self._open = None, {}
        self._learn(rows)

    def partial_fit(self, decisions: Any, rewards: Any, contexts: Any = None) -> None:
        """Learn rows in their order.

        Parameters
        ----------
        decisions : sequence
            The arm of each row.
        rewards : sequence of float
            The reward of each row.
        contexts : table of float, optional
            The context of each row.

        Raises
        ------
        ArmError
            If there is no such arm.
        ParameterError
            If the arguments differ in length, or a reward is not finite.
        """
        self._learn(self._rows(decisions, rewards, contexts))

    def predict(self, contexts: Any = None) -> Any:
        """Return the arm to play; each context begins a round.

        Parameters
        ----------
        contexts : table of float, optional
            One row for each round. By default there is one round without a context.

        Returns
        -------
        object or list of object
            The arm, or a list of arms for several contexts.
        """
        chosen = []
        for observation in _table(contexts):
            policy = self._policy(observation)
            arm = policy.choose(Context(observation))
            self._open[policy.rounds - 1] = (arm, _key(observation))
            self._open.pop(policy.rounds - 1 - TRAIL, None)
            chosen.append(self.arms[arm])
        return chosen if len(chosen) > 1 else chosen[0]

    def predict_expectations(self, contexts: Any = None) -> Any:
        """Return each arm's share of the choices, without beginning a round.

        Parameters
        ----------
        contexts : table of float, optional
            One row for each prediction. By default there is one without a context.

        Returns
        -------
        dict or list of dict
            Shares by arm, or a list of dictionaries for several contexts.
        """
        shares = [self._shares(observation) for observation in _table(contexts)]
        return shares if len(shares) > 1 else shares[0]

    def _shares(self, observation: FloatArray | None) -> dict[Any, float]:
        shown: list[FloatArray] = []

        def look(shares: FloatArray) -> int:
            shown.append(shares)
            return int(np.argmax(shares))

        deepcopy(self._policy(observation)).choose_by(Context(observation), DRAWS, look)
        return dict(zip(self.arms, shown[0].tolist(), strict=True))

    def _learn(self, rows: list[tuple[int, float, FloatArray | None]]) -> None:
        for arm, reward, observation in rows:
            policy, context = self._policy(observation), Context(observation)
            decided = self._round(arm, observation)
            if decided is None and self._open:
                policy.choose(context)
                decided = policy.rounds - 1
            policy.learn(Event(context, arm, reward, decided=decided))
            while policy.upkeep():
                pass

    def _round(self, arm: int, observation: FloatArray | None) -> int | None:
        """The oldest round that was predicted so and waits for its reward."""
        wanted = (arm, _key(observation))
        oldest = next(
            (number for number, predicted in self._open.items() if predicted == wanted), None
        )
        if oldest is not None:
            del self._open[oldest]
        return oldest

    def _policy(self, observation: FloatArray | None) -> Guarded:
        if self._learner is None:
            shape = ProblemShape(len(self.arms), 0 if observation is None else len(observation))
            named = (self.learning_policy, self.parameters)
            self._learner = build_policy(named, shape, seed=self.seed)
        return self._learner

    def _rows(
        self, decisions: Any, rewards: Any, contexts: Any
    ) -> list[tuple[int, float, FloatArray | None]]:
        names, values = list(decisions), np.asarray(rewards, dtype=float)
        table = _table(contexts) if contexts is not None else [None] * len(names)
        if not len(names) == len(values) == len(table):
            lengths = f"{len(names)}, {len(values)} and {len(table)}"
            raise ParameterError(
                f"decisions, rewards and contexts must be equally long, got {lengths}"
            )
        if unknown := [name for name in names if name not in self.arms]:
            raise ArmError(
                f"there is no arm {unknown[0]!r}; arms: {', '.join(map(str, self.arms))}"
            )
        if not (np.abs(values) <= LARGEST).all():
            raise ParameterError(f"rewards must be finite numbers of at most {LARGEST:g} in size")
        return [
            (self.arms.index(name), float(value), row)
            for name, value, row in zip(names, values, table, strict=True)
        ]


def _table(contexts: Any) -> list[FloatArray | None]:
    if contexts is None:
        return [None]
    try:
        table = np.asarray(contexts, dtype=float)
    except (TypeError, ValueError):
        raise ContextError("contexts must be a table of numbers") from None
    if table.ndim != 2 or not len(table):
        raise ContextError(
            f"contexts must be a table with a row for each decision, got the shape {table.shape}"
        )
    return [np.ascontiguousarray(row) for row in table]


def _key(observation: FloatArray | None) -> bytes:
    return b"" if observation is None else observation.tobytes()
