"""Linear Thompson sampling and linear upper confidence bounds, with discounted and sliding-window
forms.

Where each arm shows its own vector, one model is shared by all arms and x is that vector. Elsewhere
each arm has a model of its own, and all of them see x = [1, observation] (x = [1] when there is
none).

Linear Thompson sampling (Agrawal and Goyal, 2013): draw w ~ N(V^-1 b, v^2 V^-1) and play the arm of
the largest x'w, where V = lambda I + sum x x', b = sum r x and v = exploration x noise_std. That is
the posterior for noise v and prior N(0, (v^2 / lambda) I). Another prior N(w_0, V_0) may be given:
`exploration` then widens its draws as it widens those of the posterior, and moves no mean.

Linear upper confidence bounds:

    index_k = x_k'w + exploration beta ||x_k||,    w = V^-1 b

with the norm of V^-1 (D-LinUCB: of V^-1 V~ V^-1), lambda the regularisation, S and L the bounds on
the lengths of w and x, sigma the noise, n the number of rounds (D-LinUCB: the sum of their squared
weights):

    LinUCB      beta = sqrt(lambda) S + sigma sqrt(2 log(1/delta) + d log(1 + n L^2 / (lambda d)))
    D-LinUCB    the same with n = (1 - gamma^2t) / (1 - gamma^2)
    SW-LinUCB   beta = sqrt(lambda) S + sigma sqrt(d log((1 + window L^2 / lambda) / delta))

`parameter_bound` and `feature_bound` may be "problem", `discount` and `window` "variation-budget":
what the problem says of itself then takes their place, before the policy is built.

Abbasi-Yadkori, Pál and Szepesvári (2011); Russac, Vernade and Cappé (2019); Cheung, Simchi-Levi and
Zhu (2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.policies.exploration import ArmIndices, best_arm, best_shares, decided_round
from tidepull.posteriors import linear_models
from tidepull.posteriors.linear_gaussian import LinearGaussian, scaled
from tidepull.protocols import HasLinearBounds, HasVariationBudget, Pick
from tidepull.random import Streams
from tidepull.state import Stateful
from tidepull.types import Context, Event, FloatArray, ProblemShape


class LinearInputs:
    """Contexts as rows of features, and which of `n_models` models each arm belongs to."""

    def __init__(self, shape: ProblemShape) -> None:
        self.n_arms = shape.n_arms
        self.shared = shape.arm_dim > 0
        self.n_models = 1 if self.shared else shape.n_arms
        self.dim = shape.arm_dim if self.shared else 1 + shape.observation_dim

    def rows(self, context: Context) -> FloatArray:
        """The rows that every model must score: one for each arm when shared, else a single one."""
        if context.arm_features is not None:
            return context.arm_features
        row: FloatArray = np.ones((1, self.dim))
        if context.observation is not None:
            row[0, 1:] = context.observation
        return row

    def chosen(self, context: Context, arm: int) -> tuple[int, FloatArray]:
        """Model and row of an arm."""
        rows = self.rows(context)
        return (0, rows[arm]) if self.shared else (arm, rows[0])


def optimal_discount(*, budget: float, horizon: int, dim: int) -> float:
    """gamma* = 1 - (B / (d T))^(2/3); 1 (nothing is forgotten) when nothing varies.

    >>> round(optimal_discount(budget=128, horizon=4096, dim=50), 5)
    0.99269
    """
    return 1.0 - math.pow(_pace(budget, horizon, dim), 2 / 3)


def optimal_window(*, budget: float, horizon: int, dim: int) -> int:
    """tau* = (d T / B)^(2/3), to the nearest whole number, at most the horizon.

    >>> optimal_window(budget=128, horizon=4096, dim=50)
    137
    """
    pace = _pace(budget, horizon, dim)
    return horizon if pace == 0 else min(horizon, max(1, round(math.pow(pace, -2 / 3))))


def _pace(budget: float, horizon: int, dim: int) -> float:
    if horizon < 1 or dim < 1:
        raise ParameterError(f"horizon and dim must be at least 1, got {horizon} and {dim}")
    if not (math.isfinite(budget) and 0 <= budget < dim * horizon):
        raise ParameterError(
            f"budget must be from 0 to dim x horizon = {dim * horizon}, got {budget}"
        )
    return budget / (dim * horizon)


@dataclass(frozen=True, kw_only=True)
class LinearThompsonParameters(Parameters):
    """Parameters of `lin-ts`."""

    regularisation: float = parameter(0.1, "lambda of the ridge regression", gt=0)
    noise_std: float = parameter(0.05, "sigma, standard deviation of the rewards' noise", gt=0)
    exploration: float = parameter(
        1.0, "factor on the spread of the draws; v = exploration x sigma", gt=0
    )
    prior_mean: tuple[float, ...] | None = parameter(
        None, "w_0, prior mean of the weights (left out: 0)", added=True
    )
    prior_covariance: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = parameter(
        None,
        "V_0, variances or covariance matrix of the weights (left out: (sigma^2 / lambda) I)",
        added=True,
    )


class LinearThompson(Stateful):
    """Posterior sampling with one linear model shared by all arms, or one for each."""

    kind = "lin-ts"
    state = ("models", "generator")

    def __init__(
        self, parameters: LinearThompsonParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        self._inputs = LinearInputs(shape)
        v = parameters.exploration * parameters.noise_std
        covariance = parameters.prior_covariance
        self._models = [
            LinearGaussian(
                self._inputs.dim,
                prior_std=v * parameters.regularisation**-0.5,
                noise_std=v,
                prior_mean=parameters.prior_mean,
                prior_covariance=None
                if covariance is None
                else scaled(covariance, parameters.exploration**2),
            )
            for _ in range(self._inputs.n_models)
        ]
        self._rng = streams.generator("posterior")

    def choose(self, context: Context) -> int:
        """The available arm that is best under one draw."""
        rows = self._inputs.rows(context)
        scores = np.concatenate([rows @ model.sample(self._rng) for model in self._models])
        return best_arm(scores, context.available, self._rng)

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Shares by so many draws; models that are each asked for one number draw that number
        alone."""
        rows = self._inputs.rows(context)
        if self._inputs.shared:
            scores = np.array([rows @ self._models[0].sample(self._rng) for _ in range(draws)])
        else:
            predictions = [model.predict(rows) for model in self._models]
            means, variances = (np.concatenate(parts) for parts in zip(*predictions, strict=True))
            noise = self._rng.standard_normal((draws, len(means)))
            scores = means + np.sqrt(variances) * noise
        return pick(best_shares(scores, context.available))

    def learn(self, event: Event) -> None:
        """Teach the arm's model."""
        model, x = self._inputs.chosen(event.context, event.arm)
        self._models[model].update(x, event.reward)


FromProblem: TypeAlias = Literal["problem"]
FromBudget: TypeAlias = Literal["variation-budget"]

WIDE = 256
"""From so many numbers in a row on, D-LinUCB computes from its rounds while they are fewer."""


@dataclass(frozen=True, kw_only=True)
class LinearUcbParameters(Parameters):
    """Parameters of `lin-ucb`."""

    regularisation: float = parameter(0.1, "lambda of the ridge regression", gt=0)
    delta: float = parameter(0.1, "chance that the confidence bounds may fail", gt=0, lt=1)
    noise_std: float = parameter(0.05, "sigma, standard deviation of the rewards' noise", ge=0)
    parameter_bound: float | FromProblem = parameter(
        1.0, "S, bound on the length of the weight vector, or the one that the problem states", ge=0
    )
    feature_bound: float | FromProblem = parameter(
        1.0, "L, bound on the length of a feature vector, or the one that the problem states", gt=0
    )
    exploration: float = parameter(1.0, "factor on the width of the bounds", ge=0)

    budgeted: ClassVar[str] = ""
    """The parameter that a variation budget can set, by `optimum`."""

    @staticmethod
    def optimum(*, budget: float, horizon: int, dim: int) -> float:
        """The value of `budgeted` that minimises the regret bound."""
        raise NotImplementedError

    @classmethod
    def from_variation_budget(cls, *, budget: float, horizon: int, dim: int, **others: Any) -> Self:
        """Discount or window that minimises the regret bound, and other parameters."""
        return cls(**{cls.budgeted: cls.optimum(budget=budget, horizon=horizon, dim=dim)}, **others)

    @property
    def asks(self) -> tuple[str, ...]:
        """Names of the parameters that are left to the problem."""
        values = self.to_mapping()
        return tuple(name for name in values if values[name] in ("problem", "variation-budget"))

    def settled(self, problem: object, *, horizon: int, dim: int) -> Self:
        """The same with what the problem states, where that is left to it."""
        values: dict[str, float] = {}
        lengths = [name for name in self.asks if name != self.budgeted]
        if lengths:
            if not isinstance(problem, HasLinearBounds):
                raise ParameterError(
                    f"{lengths[0]} = 'problem' needs a problem that states how long its vectors "
                    "are; give a number"
                )
            S, L = problem.linear_bounds(horizon)
            stated = {"parameter_bound": S, "feature_bound": L}
            values = {name: stated[name] for name in lengths}
        if self.budgeted in self.asks:
            if not isinstance(problem, HasVariationBudget):
                raise ParameterError(
                    f"{self.budgeted} = 'variation-budget' needs a problem that states its "
                    "variation budget; give a number"
                )
            budget = problem.variation_budget(horizon)
            values[self.budgeted] = self.optimum(budget=budget, horizon=horizon, dim=dim)
        return replace(self, **values)

    def require_settled(self) -> None:
        """Refuse to build a policy whose values nobody has filled in."""
        for name in self.asks:
            raise ParameterError(
                f"{name} = '{getattr(self, name)}' is filled in where the problem is known (run, "
                "run_trial, suites); give a number here"
            )

    def width(self, dim: int, n: float) -> float:
        """beta of LinUCB and D-LinUCB, times `exploration`."""
        growth = dim * math.log1p(n * float(self.feature_bound) ** 2 / (self.regularisation * dim))
        noise = self.noise_std * math.sqrt(2 * math.log(1 / self.delta) + growth)
        return self.exploration * (
            math.sqrt(self.regularisation) * float(self.parameter_bound) + noise
        )


@dataclass(frozen=True, kw_only=True)
class DiscountedLinearUcbParameters(LinearUcbParameters):
    """Parameters of `d-lin-ucb`."""

    discount: float | FromBudget = parameter(
        0.99,
        "gamma, weight of a round for each round that it lies back, or from the problem's "
        "variation budget",
        gt=0,
        le=1,
    )
    variant: Literal["paper", "reference-code"] = parameter(
        "paper", "V~ as in the paper, or with the slip of published code"
    )

    budgeted = "discount"
    optimum = staticmethod(optimal_discount)


@dataclass(frozen=True, kw_only=True)
class SlidingLinearUcbParameters(LinearUcbParameters):
    """Parameters of `sw-lin-ucb`."""

    window: int | FromBudget = parameter(
        100, "tau, rounds remembered, or from the problem's variation budget", ge=1
    )

    budgeted = "window"
    optimum = staticmethod(optimal_window)

    def width(self, dim: int, n: float) -> float:
        """beta of SW-LinUCB, times `exploration`."""
        rounds, L = float(self.window), float(self.feature_bound)
        growth = dim * math.log((1 + rounds * L**2 / self.regularisation) / self.delta)
        return self.exploration * (
            math.sqrt(self.regularisation) * float(self.parameter_bound)
            + self.noise_std * math.sqrt(growth)
        )


class LinearUcb(ArmIndices):
    """Any linear models with the width beta(n) of the parameters."""

    state = ("latest", "models", "generator")

    def __init__(
        self,
        kind: str,
        models: linear_models.LinearModels,
        inputs: LinearInputs,
        parameters: LinearUcbParameters,
        streams: Streams,
    ) -> None:
        self.kind = kind
        self._models = models
        self._inputs = inputs
        self._width = partial(parameters.width, inputs.dim)
        self._rng = streams.generator("ties")

    def indices(self, context: Context) -> FloatArray:
        """The index of every arm in this context."""
        self._models.advance(self._latest)
        rows = self._inputs.rows(context)
        return np.concatenate([self._index(model, rows) for model in range(self._inputs.n_models)])

    def _index(self, model: int, rows: FloatArray) -> FloatArray:
        means, variances = self._models.predict(model, rows)
        width = self._width(float(self._models.weights[model]))
        return np.asarray(means + width * np.sqrt(variances))

    def learn(self, event: Event) -> None:
        """Teach the arm's model."""
        decided = decided_round(event)
        model, x = self._inputs.chosen(event.context, event.arm)
        self._models.update(model, x, event.reward, decided)
        self._latest = max(self._latest, decided)


def linear_ucb(parameters: LinearUcbParameters, shape: ProblemShape, streams: Streams) -> LinearUcb:
    """LinUCB: nothing is forgotten."""
    parameters.require_settled()
    inputs = LinearInputs(shape)
    models = linear_models.StationaryModels(inputs.n_models, inputs.dim, parameters.regularisation)
    return LinearUcb("lin-ucb", models, inputs, parameters, streams)


def discounted_linear_ucb(
    parameters: DiscountedLinearUcbParameters, shape: ProblemShape, streams: Streams
) -> LinearUcb:
    """D-LinUCB: old rounds weigh less."""
    parameters.require_settled()
    inputs = LinearInputs(shape)
    slip = parameters.variant == "reference-code"
    size = inputs.n_models, inputs.dim, parameters.regularisation, float(parameters.discount)
    models: linear_models.LinearModels = linear_models.WideDiscountedModels(*size)
    if slip or inputs.dim < WIDE:
        models = linear_models.DiscountedModels(*size, slip=slip)
    return LinearUcb("d-lin-ucb", models, inputs, parameters, streams)


def sliding_linear_ucb(
    parameters: SlidingLinearUcbParameters, shape: ProblemShape, streams: Streams
) -> LinearUcb:
    """SW-LinUCB: only the last `window` rounds count."""
    parameters.require_settled()
    inputs = LinearInputs(shape)
    size = inputs.n_models, inputs.dim, parameters.regularisation, int(parameters.window)
    return LinearUcb("sw-lin-ucb", linear_models.WindowedModels(*size), inputs, parameters, streams)
