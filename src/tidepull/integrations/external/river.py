"""river's bandits: Thompson sampling, UCB, Bayes-UCB, Exp3, epsilon-greedy, and LinUCB with a model
for each arm.

Only `river-linucb-disjoint` looks at the observation (a constant 1 where there is none); vectors of
arms reach none of them. Exp3 divides a reward by the chances of its latest pull; it is given those
of the reward's own round instead. river's `burn_in` is left alone: for LinUCB and Bayes-UCB it
lands in another argument and makes them fail.

Montiel et al. (2021), "River: machine learning for streaming data in Python".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tidepull._internal.extras import Package
from tidepull.errors import NumericalError, ProblemError, RewardError
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
from tidepull.types import Context, Event, ProblemShape

PACKAGE = Package("river", "integrations")


@dataclass(frozen=True, kw_only=True)
class RiverParameters(Parameters):
    """What all of river's policies have: the name of river's class."""

    kind: ClassVar[str]

    @property
    def binary(self) -> bool:
        """Whether rewards must be 0 or 1."""
        return False

    def make(self, bandit: Any, seed: int) -> Any:
        """The policy, out of river's module `bandit`."""
        return getattr(bandit, self.kind)(**own_values(self), seed=seed)


@dataclass(frozen=True, kw_only=True)
class RiverUcbParameters(RiverParameters):
    """Parameters of `river-ucb`."""

    delta: float = parameter(1.0, "confidence; 1 is UCB1", ge=0)
    scale: bool = parameter(True, "standardise rewards as they come, as river recommends")

    def make(self, bandit: Any, seed: int) -> Any:
        """UCB."""
        from river import preprocessing

        scaler = preprocessing.TargetStandardScaler(None) if self.scale else None
        return bandit.UCB(delta=self.delta, reward_scaler=scaler, seed=seed)


@dataclass(frozen=True, kw_only=True)
class RiverThompsonParameters(RiverParameters):
    """Parameters of `river-thompson`."""

    rewards: Literal["beta", "gaussian"] = parameter(
        "beta", "beliefs: for rewards of 0 and 1, or for any"
    )

    @property
    def binary(self) -> bool:
        """Whether rewards must be 0 or 1: with Beta beliefs."""
        return self.rewards == "beta"

    def make(self, bandit: Any, seed: int) -> Any:
        """Thompson sampling."""
        from river import proba

        belief = proba.Beta() if self.binary else proba.Gaussian()
        return bandit.ThompsonSampling(reward_obj=belief, seed=seed)


@dataclass(frozen=True, kw_only=True)
class RiverBayesUcbParameters(RiverParameters):
    """`river-bayes-ucb` has no parameters."""

    kind: ClassVar[str] = "BayesUCB"

    @property
    def binary(self) -> bool:
        """Whether rewards must be 0 or 1: always."""
        return True


@dataclass(frozen=True, kw_only=True)
class RiverExp3Parameters(RiverParameters):
    """Parameters of `river-exp3`."""

    kind: ClassVar[str] = "Exp3"
    gamma: float = parameter(
        0.5, "share of rounds that explore evenly, and pace of learning", gt=0, le=1
    )


@dataclass(frozen=True, kw_only=True)
class RiverEpsilonParameters(RiverParameters):
    """Parameters of `river-epsilon`."""

    kind: ClassVar[str] = "EpsilonGreedy"
    epsilon: float = parameter(0.1, "share of rounds that explore evenly", ge=0, le=1)
    decay: float = parameter(0.0, "rate at which it decays", ge=0)


@dataclass(frozen=True, kw_only=True)
class RiverLinUcbParameters(RiverParameters, ContextualParameters):
    """Parameters of `river-linucb-disjoint`."""

    kind: ClassVar[str] = "LinUCBDisjoint"
    alpha: float = parameter(1.0, "precision of the prior", gt=0)
    beta: float = parameter(1.0, "precision of the noise", gt=0)
    smoothing: float | None = parameter(
        None, "weight of the past at each step; none: nothing is forgotten", gt=0, lt=1
    )


class River:
    """One of river's policies; arms are its arm ids."""

    def __init__(
        self, id: str, values: RiverParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        from river import bandit

        self._id = id
        self._binary = values.binary
        self._policy = values.make(bandit, seed_for(streams))
        self._n_arms = shape.n_arms

    def choose(self, context: Context) -> tuple[int, Any]:
        """An arm that is available."""
        return int(self._policy.pull(open_arms(context, self._n_arms).tolist())), None

    def learn(self, event: Event, memo: Any) -> None:
        """Its reward."""
        if self._binary:
            require_binary(
                self._id, event.reward, "use river-ucb, or river-thompson with rewards=gaussian"
            )
        self._policy.update(event.arm, event.reward)


class RiverExp3(River):
    """Exp3, which needs the chances of the reward's round again."""

    def choose(self, context: Context) -> tuple[int, dict[int, float]]:
        """An arm that is available, and the chances of all."""
        try:
            arm, _ = super().choose(context)
        except ValueError:
            raise NumericalError(
                "river-exp3 has outgrown all floats: river never rescales its weights; play fewer "
                "rounds or set a smaller gamma"
            ) from None
        return arm, self._policy._probabilities

    def learn(self, event: Event, memo: dict[int, float] | None) -> None:
        """Its reward, with the chances of its own round."""
        if not 0.0 <= event.reward <= 1.0:
            raise RewardError(
                f"reward must be from 0 to 1 for river-exp3, got {event.reward:g}; scale rewards, "
                "or use river-ucb"
            )
        if memo is None:
            _, memo = self.choose(event.context)
        self._policy._probabilities = memo
        super().learn(event, memo)


class RiverLinUcb(River):
    """LinUCB with a model for each arm; the observation is a dictionary of features."""

    def __init__(
        self, id: str, values: RiverParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        if shape.arm_dim:
            raise ProblemError(
                "river-linucb-disjoint sees one vector that all arms share, and this problem shows "
                "one for each arm; use a vw- policy"
            )
        super().__init__(id, values, shape, streams)

    def choose(self, context: Context) -> tuple[int, Any]:
        """An arm that is available."""
        arms = open_arms(context, self._n_arms).tolist()
        return int(self._policy.pull(arms, context=features(context))), None

    def learn(self, event: Event, memo: Any) -> None:
        """Its reward, in its context."""
        self._policy.update(event.arm, features(event.context), event.reward)


def features(context: Context) -> dict[str, float]:
    """The observation as river has it; a constant where there is none."""
    if context.observation is None:
        return {"one": 1.0}
    return {f"x{i}": float(value) for i, value in enumerate(context.observation)}


for _id, _description, _parameters, _adapter in (
    ("ucb", "UCB", RiverUcbParameters, River),
    ("thompson", "Thompson sampling", RiverThompsonParameters, River),
    ("bayes-ucb", "Bayes-UCB for rewards of 0 and 1", RiverBayesUcbParameters, River),
    ("exp3", "Exp3, made for adversaries, for rewards from 0 to 1", RiverExp3Parameters, RiverExp3),
    ("epsilon", "greedy, but for a share of rounds", RiverEpsilonParameters, River),
    ("linucb-disjoint", "LinUCB, a model for each arm", RiverLinUcbParameters, RiverLinUcb),
):
    add_external(PACKAGE, f"river-{_id}", f"river: {_description}", _parameters, _adapter)
