"""mabwiser's UCB1, Thompson sampling, LinUCB and LinTS.

mabwiser predicts only after it was fitted, and its UCB1 expects 0 of an arm that was in no training
data. So the first rounds play each arm once, in an order that is drawn; from then on it predicts
before every round and is fitted with every reward. The linear ones see the observation (a constant
1 where there is none); vectors of arms reach none of them.

Strong, Kleynhans and Kadıoğlu (2021), "MABWiser: parallelizable contextual multi-armed bandits".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tidepull._internal.extras import Package
from tidepull.errors import ProblemError
from tidepull.integrations.external import (
    ContextualParameters,
    add_external,
    open_arms,
    own_values,
    require_binary,
    seed_for,
)
from tidepull.parameters import Parameters, parameter
from tidepull.random import Streams
from tidepull.types import Context, Event, FloatArray, ProblemShape

PACKAGE = Package("mabwiser", "integrations")


@dataclass(frozen=True, kw_only=True)
class MabwiserParameters(Parameters):
    """What all of mabwiser's policies have: the name of its `LearningPolicy`."""

    kind: ClassVar[str]
    linear: ClassVar[bool] = False

    @property
    def binary(self) -> bool:
        """Whether rewards must be 0 or 1."""
        return False

    def make(self, policies: Any) -> Any:
        """The learning policy, out of mabwiser's `LearningPolicy`."""
        return getattr(policies, self.kind)(**own_values(self))


@dataclass(frozen=True, kw_only=True)
class MabwiserUcbParameters(MabwiserParameters):
    """Parameters of `mabwiser-ucb1`."""

    kind: ClassVar[str] = "UCB1"
    alpha: float = parameter(1.0, "exploration", ge=0)


@dataclass(frozen=True, kw_only=True)
class MabwiserThompsonParameters(MabwiserParameters):
    """Parameters of `mabwiser-thompson`."""

    threshold: float | None = parameter(
        None, "rewards above it are successes; none: rewards are 0 and 1"
    )

    @property
    def binary(self) -> bool:
        """Whether rewards must be 0 or 1: without a threshold."""
        return self.threshold is None

    def make(self, policies: Any) -> Any:
        """Thompson sampling."""
        bar = self.threshold
        return policies.ThompsonSampling(None if bar is None else lambda _, reward: reward > bar)


@dataclass(frozen=True, kw_only=True)
class MabwiserLinUcbParameters(MabwiserParameters, ContextualParameters):
    """Parameters of `mabwiser-linucb`."""

    kind: ClassVar[str] = "LinUCB"
    linear: ClassVar[bool] = True
    alpha: float = parameter(1.0, "exploration", gt=0)
    l2_lambda: float = parameter(1.0, "strength of the ridge", gt=0)
    scale: bool = parameter(False, "standardise features for each arm")


@dataclass(frozen=True, kw_only=True)
class MabwiserLinTsParameters(MabwiserLinUcbParameters):
    """Parameters of `mabwiser-lints`."""

    kind: ClassVar[str] = "LinTS"


class Mabwiser:
    """One `MAB`; arms are whole numbers."""

    def __init__(
        self, id: str, values: MabwiserParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        if values.linear and shape.arm_dim:
            raise ProblemError(
                f"{id} sees one vector that all arms share, and this problem shows one for each "
                "arm; use a vw- policy"
            )
        self._id = id
        self._linear = values.linear
        self._binary = values.binary
        self._mab = MAB(
            list(range(shape.n_arms)), values.make(LearningPolicy), seed=seed_for(streams)
        )
        self._rng = streams.generator("first")
        self._first = self._rng.permutation(shape.n_arms).tolist()
        self._fitted = False

    def choose(self, context: Context) -> tuple[int, None]:
        """An arm that was never played; else mabwiser's; else, while it was never fitted, any."""
        arms = open_arms(context, len(self._mab.arms)).tolist()
        for arm in self._first:
            if arm in arms:
                self._first.remove(arm)
                return arm, None
        if not self._fitted:
            return int(self._rng.choice(arms)), None
        if context.available is None:
            return int(self._mab.predict(self._rows(context))), None
        expected = self._mab.predict_expectations(self._rows(context))
        return max(arms, key=lambda arm: expected[arm]), None

    def learn(self, event: Event, memo: None) -> None:
        """Fit one row."""
        if self._binary:
            require_binary(self._id, event.reward, "set threshold, and more is a success")
        self._mab.partial_fit([event.arm], [event.reward], self._rows(event.context))
        self._fitted = True

    def _rows(self, context: Context) -> FloatArray | None:
        if not self._linear:
            return None
        return np.ones((1, 1)) if context.observation is None else context.observation[None]


for _id, _description, _parameters in (
    ("ucb1", "UCB1", MabwiserUcbParameters),
    ("thompson", "Thompson sampling", MabwiserThompsonParameters),
    ("linucb", "LinUCB, a model for each arm", MabwiserLinUcbParameters),
    ("lints", "linear Thompson sampling, a model for each arm", MabwiserLinTsParameters),
):
    add_external(PACKAGE, f"mabwiser-{_id}", f"mabwiser: {_description}", _parameters, Mabwiser)
