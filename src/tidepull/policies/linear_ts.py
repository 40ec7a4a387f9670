"""Linear Thompson sampling (Agrawal and Goyal, 2013).

Draw w ~ N(V^-1 b, v^2 V^-1) and play the arm of the largest x'w, where V = lambda I + sum x x', b = sum r x
and v = exploration x noise_std. That is the posterior for noise v and prior N(0, (v^2 / lambda) I). Another prior
N(w_0, V_0) may be given: `exploration` then widens its draws as it widens those of the posterior, and moves no mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.parameters import Parameters, parameter
from tidepull.policies.choice import best_arm, best_shares
from tidepull.policies.linear_inputs import LinearInputs
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.posteriors.linear_models import restore_all
from tidepull.posteriors.prior import scaled
from tidepull.protocols import Pick
from tidepull.random import Streams
from tidepull.state import check_kind, generator_state, read, restore_generator
from tidepull.types import Context, Event, ProblemShape, Snapshot


@dataclass(frozen=True, kw_only=True)
class LinearThompsonParameters(Parameters):
    """Parameters of `lin-ts`."""

    regularisation: float = parameter(0.1, "lambda of the ridge regression", gt=0)
    noise_std: float = parameter(0.05, "sigma, standard deviation of the rewards' noise", gt=0)
    exploration: float = parameter(1.0, "factor on the spread of the draws; v = exploration x sigma", gt=0)
    prior_mean: tuple[float, ...] | None = parameter(
        None, "w_0, prior mean of the weights (left out: 0)", added=True
    )
    prior_covariance: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = parameter(
        None,
        "V_0, variances or covariance matrix of the weights (left out: (sigma^2 / lambda) I)",
        added=True,
    )


class LinearThompson:
    """Posterior sampling with one linear model shared by all arms, or one for each."""

    def __init__(self, parameters: LinearThompsonParameters, shape: ProblemShape, streams: Streams) -> None:
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
        """Shares by so many draws; models that are each asked for one number draw that number alone."""
        rows = self._inputs.rows(context)
        if self._inputs.shared:
            scores = np.array([rows @ self._models[0].sample(self._rng) for _ in range(draws)])
        else:
            told = [model.predict(rows) for model in self._models]
            means, variances = (np.concatenate(parts) for parts in zip(*told, strict=True))
            noise = self._rng.standard_normal((draws, len(means)))
            scores = means + np.sqrt(variances) * noise
        return pick(best_shares(scores, context.available))

    def learn(self, event: Event) -> None:
        """Teach the arm's model."""
        model, x = self._inputs.chosen(event.context, event.arm)
        self._models[model].update(x, event.reward)

    def snapshot(self) -> Snapshot:
        """The models and the generator's position."""
        return {
            "kind": "lin-ts",
            "models": [model.snapshot() for model in self._models],
            "generator": generator_state(self._rng),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        check_kind(snapshot, "lin-ts")
        restore_all(self._models, read(snapshot, "models"))
        restore_generator(self._rng, read(snapshot, "generator"))
