"""gittins, "an opinionated contextual bandit engine": one linear model on hashed features that
forgets, and epsilon.

The observation is its context, an arm its candidate, with the arm's vector as features. Its clock
is the round, and a decision may wait 8,192 rounds for its reward; what never comes counts as 0
then, as gittins has it. Its choices follow from a salt, which comes from the policy's stream. An
event that was not decided here becomes a decision for its arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidepull._internal.extras import Package
from tidepull.integrations.external import (
    ContextualParameters,
    add_external,
    open_arms,
    own_values,
    seed_for,
)
from tidepull.parameters import parameter
from tidepull.policies.checks import TRAIL
from tidepull.random import Streams
from tidepull.types import Context, Event, FloatArray, ProblemShape

PACKAGE = Package("gittins", "integrations")


@dataclass(frozen=True, kw_only=True)
class GittinsParameters(ContextualParameters):
    """Parameters of `gittins`."""

    bits: int = parameter(8, "the model has 2 to this power weights", ge=1, le=24)
    epsilon: float | None = parameter(
        None, "share of rounds that explore evenly; none: its own", ge=0, le=1
    )
    forgetfulness: float | None = parameter(
        None, "weight of the past at each step, 1: nothing is forgotten; none: its own", gt=0, le=1
    )


class Gittins:
    """One state of gittins."""

    def __init__(
        self, _id: str, values: GittinsParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        import gittins

        chosen = {name: value for name, value in own_values(values).items() if value is not None}
        self._gittins: Any = gittins
        self._state = gittins.create(horizon=float(TRAIL), **chosen)
        self._salt = str(seed_for(streams))
        self._n_arms = shape.n_arms
        self._now = 0.0

    def choose(self, context: Context) -> tuple[int, str]:
        """A candidate among the arms that are available, and the id of its decision."""
        self._now += 1.0
        self._gittins.expire(self._state, self._now)
        record = self._decide(context)
        return int(open_arms(context, self._n_arms)[record.chosen]), record.decision_id

    def learn(self, event: Event, memo: str | None) -> None:
        """The reward of a decision."""
        if memo is None:
            arms = open_arms(event.context, self._n_arms)
            memo = self._decide(
                event.context, explore=lambda *_: (arms == event.arm).astype(float).tolist()
            ).decision_id
        self._gittins.learn(self._state, memo, event.reward, self._now)

    def _decide(self, context: Context, **others: Any) -> Any:
        vectors = context.arm_features
        candidates = [
            (f"arm{arm}", {} if vectors is None else named("v", vectors[arm]))
            for arm in open_arms(context, self._n_arms)
        ]
        seen = {} if context.observation is None else named("x", context.observation)
        return self._gittins.decide(self._state, seen, candidates, self._now, self._salt, **others)


def named(name: str, values: FloatArray) -> dict[str, float]:
    """A vector as gittins has it."""
    return {f"{name}{i}": value for i, value in enumerate(np.asarray(values).tolist())}


_DESCRIPTION = "gittins: a linear model on hashed features that forgets"
add_external(PACKAGE, "gittins", _DESCRIPTION, GittinsParameters, Gittins)
