"""river's bandits: Thompson sampling, UCB, Bayes-UCB, Exp3, epsilon-greedy, and LinUCB with a model for each arm.

Only `river-linucb-disjoint` looks at the observation (a constant 1 where there is none); vectors of arms reach none of
them. Exp3 divides a reward by the chances of its latest pull; it is given those of the reward's own round instead.
river's `burn_in` is left alone: for LinUCB and Bayes-UCB it lands in another argument and makes them fail.

Montiel et al. (2021), "River: machine learning for streaming data in Python".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tidepull._internal.extras import Package
from tidepull.errors import NumericalError, ProblemError, RewardError
from tidepull.integrations.external.guest import Guest, open_arms, require_unit, seed_for
from tidepull.parameters import NoParameters, Parameters, parameter
from tidepull.random import Streams
from tidepull.registry import Entry, policies
from tidepull.types import Context, Event, ProblemShape

PACKAGE = Package("river", "river")


@dataclass(frozen=True, kw_only=True)
class RiverUcbParameters(Parameters):
    """Parameters of `river-ucb`."""

    delta: float = parameter(1.0, "confidence; 1 is UCB1", ge=0)
    scale: bool = parameter(True, "standardise rewards as they come, as river recommends")


@dataclass(frozen=True, kw_only=True)
class RiverThompsonParameters(Parameters):
    """Parameters of `river-thompson`."""

    rewards: Literal["beta", "gaussian"] = parameter("beta", "beliefs: for rewards of 0 and 1, or for any")


@dataclass(frozen=True, kw_only=True)
class RiverExp3Parameters(Parameters):
    """Parameters of `river-exp3`."""

    gamma: float = parameter(0.5, "share of rounds that explore evenly, and pace of learning", gt=0, le=1)


@dataclass(frozen=True, kw_only=True)
class RiverEpsilonParameters(Parameters):
    """Parameters of `river-epsilon`."""

    epsilon: float = parameter(0.1, "share of rounds that explore evenly", ge=0, le=1)
    decay: float = parameter(0.0, "rate at which it decays", ge=0)


@dataclass(frozen=True, kw_only=True)
class RiverLinUcbParameters(Parameters):
    """Parameters of `river-linucb-disjoint`."""

    alpha: float = parameter(1.0, "precision of the prior", gt=0)
    beta: float = parameter(1.0, "precision of the noise", gt=0)
    smoothing: float | None = parameter(
        None, "weight of the past at each step; none: nothing is forgotten", gt=0, lt=1
    )


def ucb(given: RiverUcbParameters, seed: int) -> Any:
    """`river.bandit.UCB`."""
    from river import bandit, preprocessing

    scaler = preprocessing.TargetStandardScaler(None) if given.scale else None
    return bandit.UCB(delta=given.delta, reward_scaler=scaler, seed=seed)


def thompson(given: RiverThompsonParameters, seed: int) -> Any:
    """`river.bandit.ThompsonSampling`."""
    from river import bandit, proba

    belief = proba.Beta() if given.rewards == "beta" else proba.Gaussian()
    return bandit.ThompsonSampling(reward_obj=belief, seed=seed)


def bayes_ucb(_: NoParameters, seed: int) -> Any:
    """`river.bandit.BayesUCB`."""
    from river import bandit

    return bandit.BayesUCB(seed=seed)


def exp3(given: RiverExp3Parameters, seed: int) -> Any:
    """`river.bandit.Exp3`."""
    from river import bandit

    return bandit.Exp3(gamma=given.gamma, seed=seed)


def epsilon(given: RiverEpsilonParameters, seed: int) -> Any:
    """`river.bandit.EpsilonGreedy`."""
    from river import bandit

    return bandit.EpsilonGreedy(epsilon=given.epsilon, decay=given.decay, seed=seed)


def linucb(given: RiverLinUcbParameters, seed: int) -> Any:
    """`river.bandit.LinUCBDisjoint`."""
    from river import bandit

    return bandit.LinUCBDisjoint(alpha=given.alpha, beta=given.beta, smoothing=given.smoothing, seed=seed)


class River:
    """One of river's policies; arms are its arm ids."""

    def __init__(self, id: str, policy: Any, n_arms: int, *, binary: bool) -> None:
        self._id = id
        self._policy = policy
        self._n_arms = n_arms
        self._binary = binary

    def choose(self, context: Context) -> tuple[int, None]:
        """An arm that is available."""
        return int(self._policy.pull(open_arms(context, self._n_arms).tolist())), None

    def learn(self, event: Event, memo: None) -> None:
        """Its reward."""
        if self._binary and event.reward not in (0.0, 1.0):
            raise RewardError(
                f"reward must be 0 or 1 for {self._id}, got {event.reward:g}; use river-ucb, or river-thompson with "
                "rewards=gaussian"
            )
        self._policy.update(event.arm, event.reward)


class RiverExp3:
    """Exp3, which wants to know the chances of the reward's round again."""

    def __init__(self, policy: Any, n_arms: int) -> None:
        self._policy = policy
        self._n_arms = n_arms

    def choose(self, context: Context) -> tuple[int, dict[int, float]]:
        """An arm that is available, and the chances of all."""
        try:
            arm = int(self._policy.pull(open_arms(context, self._n_arms).tolist()))
        except ValueError:
            raise NumericalError(
                "river-exp3 has outgrown all floats: river never rescales its weights; play fewer rounds or set a "
                "smaller gamma"
            ) from None
        return arm, self._policy._probabilities

    def learn(self, event: Event, memo: dict[int, float] | None) -> None:
        """Its reward, with the chances of its own round."""
        require_unit("river-exp3", event.reward, "scale rewards, or use river-ucb")
        if memo is None:
            _, memo = self.choose(event.context)
        self._policy._probabilities = memo
        self._policy.update(event.arm, event.reward)


class RiverLinUcb:
    """LinUCB with a model for each arm; the observation is a dictionary of features."""

    def __init__(self, policy: Any, shape: ProblemShape) -> None:
        if shape.arm_dim:
            raise ProblemError(
                "river-linucb-disjoint sees one vector that all arms share, and this problem shows one for each arm; "
                "use a vw- guest"
            )
        self._policy = policy
        self._n_arms = shape.n_arms

    def choose(self, context: Context) -> tuple[int, None]:
        """An arm that is available."""
        return int(
            self._policy.pull(open_arms(context, self._n_arms).tolist(), context=features(context))
        ), None

    def learn(self, event: Event, memo: None) -> None:
        """Its reward, in its context."""
        self._policy.update(event.arm, features(event.context), event.reward)


def features(context: Context) -> dict[str, float]:
    """The observation as river has it; a constant where there is none."""
    if context.observation is None:
        return {"one": 1.0}
    return {f"x{i}": float(value) for i, value in enumerate(context.observation)}


def _guest(id: str, make: Callable[[Any, int], Any]) -> Callable[[Parameters, ProblemShape, Streams], Guest]:
    def build(given: Parameters, shape: ProblemShape, streams: Streams) -> Guest:
        policy = make(given, seed_for(streams))
        if make is exp3:
            return Guest(id, PACKAGE, RiverExp3(policy, shape.n_arms))
        if make is linucb:
            return Guest(id, PACKAGE, RiverLinUcb(policy, shape))
        binary = make is bayes_ucb or getattr(given, "rewards", "") == "beta"
        return Guest(id, PACKAGE, River(id, policy, shape.n_arms, binary=binary))

    return build


for _id, _says, _parameters, _make in (
    ("river-ucb", "river: UCB", RiverUcbParameters, ucb),
    ("river-thompson", "river: Thompson sampling", RiverThompsonParameters, thompson),
    ("river-bayes-ucb", "river: Bayes-UCB for rewards of 0 and 1", NoParameters, bayes_ucb),
    ("river-exp3", "river: Exp3, made for adversaries, for rewards from 0 to 1", RiverExp3Parameters, exp3),
    ("river-epsilon", "river: greedy, but for a share of rounds", RiverEpsilonParameters, epsilon),
    ("river-linucb-disjoint", "river: LinUCB, a model for each arm", RiverLinUcbParameters, linucb),
):
    policies.add(Entry(_id, _says, _parameters, _guest(_id, _make), guest=PACKAGE))
