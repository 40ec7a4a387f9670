"""Thompson sampling for arms that pay 0 or 1 (Thompson, 1933).

Draw p_i ~ Beta(a + successes_i, b + failures_i) for every arm i and play the arm of the largest
draw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.errors import RewardError
from tidepull.parameters import Parameters, parameter
from tidepull.policies.exploration import best_arm, best_shares
from tidepull.posteriors.beta import BetaBernoulli
from tidepull.protocols import Pick
from tidepull.random import Streams
from tidepull.state import Stateful
from tidepull.types import Context, Event, ProblemShape


@dataclass(frozen=True, kw_only=True)
class BernoulliThompsonParameters(Parameters):
    """Parameters of `bernoulli-ts`."""

    prior_successes: float = parameter(1.0, "a of the Beta(a, b) prior", gt=0)
    prior_failures: float = parameter(1.0, "b of the Beta(a, b) prior", gt=0)


class BernoulliThompson(Stateful):
    """Posterior sampling with Beta beliefs; rewards other than 0 and 1 are refused."""

    kind = "bernoulli-ts"
    state = ("beliefs", "generator")

    def __init__(
        self, parameters: BernoulliThompsonParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        self._beliefs = BetaBernoulli(shape.n_arms, **parameters.to_mapping())
        self._rng = streams.generator("posterior")

    def choose(self, context: Context) -> int:
        """The available arm of the largest draw."""
        return best_arm(self._beliefs.sample(self._rng), context.available, self._rng)

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Shares by so many draws of the chance of every arm that is available."""
        beliefs, available = self._beliefs, context.available
        if available is None:
            return pick(best_shares(beliefs.samples(self._rng, draws), None))
        arms = np.flatnonzero(available)
        shares = np.zeros(len(available))
        shares[arms] = best_shares(beliefs.samples(self._rng, draws, arms), None)
        return pick(shares)

    def learn(self, event: Event) -> None:
        """Count a success or a failure."""
        self.require_reward(event.reward)
        self._beliefs.update(event.arm, event.reward == 1.0)

    def require_reward(self, reward: float) -> None:
        """Only successes and failures can be counted."""
        if reward not in (0.0, 1.0):
            raise RewardError(
                f"reward must be 0 or 1 for bernoulli-ts, got {reward!r}; use ucb or lin-ts instead"
            )
