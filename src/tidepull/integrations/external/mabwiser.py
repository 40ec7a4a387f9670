"""mabwiser's UCB1, Thompson sampling, LinUCB and LinTS.

mabwiser predicts only after it was fitted, and its UCB1 expects 0 of an arm that was in no training data. So the first
rounds play each arm once, in an order that is drawn; from then on it predicts before every round and is fitted with
every reward. The linear ones see the observation (a constant 1 where there is none); vectors of arms reach
none of them.

Strong, Kleynhans and Kadıoğlu (2021), "MABWiser: parallelizable contextual multi-armed bandits".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidepull._internal.extras import Package
from tidepull.errors import ProblemError, RewardError
from tidepull.integrations.external.guest import Guest, open_arms, seed_for
from tidepull.parameters import Parameters, parameter
from tidepull.random import Streams
from tidepull.registry import Entry, policies
from tidepull.types import Context, Event, FloatArray, ProblemShape

PACKAGE = Package("mabwiser", "mabwiser")


@dataclass(frozen=True, kw_only=True)
class MabwiserUcbParameters(Parameters):
    """Parameters of `mabwiser-ucb1`."""

    alpha: float = parameter(1.0, "exploration", ge=0)


@dataclass(frozen=True, kw_only=True)
class MabwiserThompsonParameters(Parameters):
    """Parameters of `mabwiser-thompson`."""

    threshold: float | None = parameter(None, "rewards above it are successes; none: rewards are 0 and 1")


@dataclass(frozen=True, kw_only=True)
class MabwiserLinearParameters(Parameters):
    """Parameters of `mabwiser-linucb` and `mabwiser-lints`."""

    alpha: float = parameter(1.0, "exploration", gt=0)
    l2_lambda: float = parameter(1.0, "strength of the ridge", gt=0)
    scale: bool = parameter(False, "standardise features for each arm")


class Mabwiser:
    """One `MAB`; arms are whole numbers."""

    def __init__(
        self, id: str, policy: Any, shape: ProblemShape, streams: Streams, *, linear: bool, binary: bool
    ) -> None:
        from mabwiser.mab import MAB

        if linear and shape.arm_dim:
            raise ProblemError(
                f"{id} sees one vector that all arms share, and this problem shows one for each arm; use a vw- guest"
            )
        self._id = id
        self._linear = linear
        self._binary = binary
        self._mab = MAB(list(range(shape.n_arms)), policy, seed=seed_for(streams))
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
        if self._binary and event.reward not in (0.0, 1.0):
            raise RewardError(
                f"reward must be 0 or 1 for {self._id}, got {event.reward:g}; set threshold, and more is a success"
            )
        self._mab.partial_fit([event.arm], [event.reward], self._rows(event.context))
        self._fitted = True

    def _rows(self, context: Context) -> FloatArray | None:
        if not self._linear:
            return None
        return np.ones((1, 1)) if context.observation is None else context.observation[None]


def ucb1(id: str, given: MabwiserUcbParameters, shape: ProblemShape, streams: Streams) -> Mabwiser:
    """`LearningPolicy.UCB1`."""
    from mabwiser.mab import LearningPolicy

    return Mabwiser(id, LearningPolicy.UCB1(given.alpha), shape, streams, linear=False, binary=False)


def thompson(id: str, given: MabwiserThompsonParameters, shape: ProblemShape, streams: Streams) -> Mabwiser:
    """`LearningPolicy.ThompsonSampling`."""
    from mabwiser.mab import LearningPolicy

    bar = given.threshold
    policy = LearningPolicy.ThompsonSampling(None if bar is None else lambda _, reward: reward > bar)
    return Mabwiser(id, policy, shape, streams, linear=False, binary=bar is None)


def linucb(id: str, given: MabwiserLinearParameters, shape: ProblemShape, streams: Streams) -> Mabwiser:
    """`LearningPolicy.LinUCB`."""
    from mabwiser.mab import LearningPolicy

    policy = LearningPolicy.LinUCB(given.alpha, given.l2_lambda, given.scale)
    return Mabwiser(id, policy, shape, streams, linear=True, binary=False)


def lints(id: str, given: MabwiserLinearParameters, shape: ProblemShape, streams: Streams) -> Mabwiser:
    """`LearningPolicy.LinTS`."""
    from mabwiser.mab import LearningPolicy

    policy = LearningPolicy.LinTS(given.alpha, given.l2_lambda, given.scale)
    return Mabwiser(id, policy, shape, streams, linear=True, binary=False)


def _guest(id: str, make: Callable[..., Mabwiser]) -> Callable[[Parameters, ProblemShape, Streams], Guest]:
    return lambda given, shape, streams: Guest(id, PACKAGE, make(id, given, shape, streams))


for _id, _says, _parameters, _make in (
    ("mabwiser-ucb1", "mabwiser: UCB1", MabwiserUcbParameters, ucb1),
    ("mabwiser-thompson", "mabwiser: Thompson sampling", MabwiserThompsonParameters, thompson),
    ("mabwiser-linucb", "mabwiser: LinUCB, a model for each arm", MabwiserLinearParameters, linucb),
    (
        "mabwiser-lints",
        "mabwiser: linear Thompson sampling, a model for each arm",
        MabwiserLinearParameters,
        lints,
    ),
):
    policies.add(Entry(_id, _says, _parameters, _guest(_id, _make), guest=PACKAGE))
