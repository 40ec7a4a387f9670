"""bayesianbandits: Thompson sampling and upper confidence bounds on Bayesian linear regressions of
unknown noise.

Each arm has a regression of its own on [1, observation], as in its first example
(`ContextualAgent`). Where each arm shows a vector, one regression on that vector is shared by all
(`LipschitzContextualAgent`). `decay_rate` below 1 forgets once a round, before the choice
(`decay`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidepull._internal.extras import Package
from tidepull.integrations.external import ContextualParameters, add_external, open_arms, seed_for
from tidepull.parameters import parameter
from tidepull.random import Streams
from tidepull.types import Context, Event, FloatArray, ProblemShape

PACKAGE = Package("bayesianbandits", "integrations")


@dataclass(frozen=True, kw_only=True)
class BayesianParameters(ContextualParameters):
    """Parameters of `bayesianbandits-ts`; the defaults are those of its regression."""

    lam: float = parameter(1.0, "prior precision of the weights", gt=0)
    a: float = parameter(0.1, "prior shape of the noise's variance", gt=0)
    b: float = parameter(0.1, "prior rate of the noise's variance", gt=0)
    decay_rate: float = parameter(
        1.0, "weight of a round for each round that it lies back", gt=0, le=1
    )

    def rule(self) -> Any:
        """How arms are chosen from beliefs."""
        from bayesianbandits import ThompsonSampling

        return ThompsonSampling()


@dataclass(frozen=True, kw_only=True)
class BayesianUcbParameters(BayesianParameters):
    """Parameters of `bayesianbandits-ucb`."""

    alpha: float = parameter(0.84, "quantile of the beliefs that counts", gt=0, lt=1)
    samples: int = parameter(1000, "draws that the quantile is taken from", ge=1, le=10**6)

    def rule(self) -> Any:
        """The arm of the highest quantile."""
        from bayesianbandits import UpperConfidenceBound

        return UpperConfidenceBound(alpha=self.alpha, samples=self.samples)


class Bayesian:
    """One agent of bayesianbandits; arms are its action tokens."""

    def __init__(
        self, _id: str, values: BayesianParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        self._n_arms = shape.n_arms
        self._decay_rate = values.decay_rate
        self._shared = shape.arm_dim > 0
        seed = seed_for(streams)
        self._agent = _shared(values, shape, seed) if self._shared else _apart(values, shape, seed)
        self._arms = list(self._agent.arms)

    def choose(self, context: Context) -> tuple[int, None]:
        """An arm that is available, after a tick of its clock."""
        if self._decay_rate < 1:
            self._agent.decay(decay_rate=self._decay_rate)
        X, offered = self._row(context), [self._arms[k] for k in open_arms(context, self._n_arms)]
        if not self._shared:
            return int(self._agent.policy(offered, X, self._agent.rng)[0].action_token), None
        self._agent.arms = offered
        try:
            return int(self._agent.pull(X)[0]), None
        finally:
            self._agent.arms = self._arms

    def learn(self, event: Event, memo: None) -> None:
        """Its reward."""
        learner = self._agent.select_for_update(event.arm)
        learner.update(self._row(event.context), np.array([event.reward]))

    def _row(self, context: Context) -> FloatArray:
        if context.arm_features is not None:
            return context.arm_features.reshape(1, -1)
        if context.observation is None:
            return np.ones((1, 1))
        return np.append(1.0, context.observation)[None]


def _apart(values: BayesianParameters, shape: ProblemShape, seed: int) -> Any:
    from bayesianbandits import Arm, ContextualAgent

    arms = [Arm(k, learner=_learner(values)) for k in range(shape.n_arms)]
    return ContextualAgent(arms, values.rule(), random_seed=seed)


def _shared(values: BayesianParameters, shape: ProblemShape, seed: int) -> Any:
    from bayesianbandits import Arm, LipschitzContextualAgent

    arms = [Arm(k) for k in range(shape.n_arms)]
    parts = {"policy": values.rule(), "arm_featurizer": OwnVectors(shape)}
    return LipschitzContextualAgent(arms=arms, **parts, learner=_learner(values), random_seed=seed)


def _learner(values: BayesianParameters) -> Any:
    from bayesianbandits import NormalInverseGammaRegressor

    return NormalInverseGammaRegressor(lam=values.lam, a=values.a, b=values.b)


class OwnVectors:
    """An `ArmFeaturizer`: a row has the vectors of all arms one after the other, and each arm sees
    its own."""

    def __init__(self, shape: ProblemShape) -> None:
        self._shape = (shape.n_arms, shape.arm_dim)

    def transform(self, X: FloatArray, *, action_tokens: Any) -> FloatArray:
        """The rows of the arms that are asked for."""
        vectors: FloatArray = X.reshape(len(X), *self._shape)[:, list(action_tokens)]
        return vectors.transpose(1, 0, 2).reshape(-1, self._shape[1])


for _id, _does, _parameters in (
    ("ts", "Thompson sampling on linear regressions", BayesianParameters),
    ("ucb", "upper quantiles of linear regressions", BayesianUcbParameters),
):
    _description = f"bayesianbandits: {_does}"
    add_external(PACKAGE, f"bayesianbandits-{_id}", _description, _parameters, Bayesian)
