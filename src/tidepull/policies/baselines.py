"""Baselines: a random arm, one fixed arm, the oracle, and the structure oracle (`specialist`).

The structure oracle knows which rounds share a reward distribution and learns only the values: its
regret bounds what a policy that must find the structure can achieve.

The expected reward of arm k is w_g . x with g = groups[k], x = vectors[k] (`types.Structure`). Each
w_g is drawn from its posterior once in a round, and the arm with the largest w_g . x is played
(Thompson sampling):

    rewards of 0 and 1, a number for each group     w_g ~ Beta(1 + successes, 1 + failures)
    else                                            w_g ~ N(m, P), a Kalman filter with the known noise s^2 and step q:
                                                    P <- P + q^2 I in every round; K = P x / (x . P
                                                    x + s^2), m <- m + K (r - x . m), P <- P - K (P
                                                    x)'

where rewards of 0 and 1 on vectors are given s^2 = p (1 - p) at the predicted p, at least 0.05. A
reward that lies eight standard deviations off is not learnt from.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Literal, Self

import numpy as np

from tidepull.errors import ArmError, InputError, NumericalError, ParameterError
from tidepull.parameters import NoParameters, Parameters, parameter
from tidepull.policies.exploration import any_arm, best_arm, equal_shares
from tidepull.protocols import HasTotals, Pick
from tidepull.random import Streams
from tidepull.state import Stateful, read
from tidepull.types import Context, Event, FloatArray, ProblemShape, Snapshot, Structure


class RandomPolicy(Stateful):
    """Every available arm is equally likely."""

    kind = "random"
    state = ("generator",)

    def __init__(self, parameters: NoParameters, shape: ProblemShape, streams: Streams) -> None:
        self._n_arms = shape.n_arms
        self._rng = streams.generator("arms")

    def choose(self, context: Context) -> int:
        """An arm drawn uniformly."""
        return any_arm(self._n_arms, context.available, self._rng)

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Every available arm has the same share."""
        return pick(equal_shares(self._n_arms, context.available))

    def learn(self, event: Event) -> None:
        """Nothing."""


@dataclass(frozen=True, kw_only=True)
class FixedParameters(Parameters):
    """Parameters of `fixed`."""

    arm: int | Literal["best"] = parameter(
        0,
        "the arm to play in every round, or the best one in hindsight (told by the problem)",
        ge=0,
    )

    @property
    def asks(self) -> tuple[str, ...]:
        """The arm, where it is left to the problem."""
        return ("arm",) if self.arm == "best" else ()

    def settled(self, problem: object, *, horizon: int, dim: int) -> Self:
        """The same with the arm that pays most over the horizon."""
        if not self.asks:
            return self
        if not isinstance(problem, HasTotals):
            raise ParameterError(
                "arm = 'best' needs a problem that tells its totals (totals()); give a number"
            )
        return replace(self, arm=int(np.argmax(problem.totals(horizon))))


class FixedPolicy(Stateful):
    """One arm for ever; an error in a round in which it is not available."""

    kind = "fixed"

    def __init__(self, parameters: FixedParameters, shape: ProblemShape, streams: Streams) -> None:
        if parameters.arm == "best":
            raise ParameterError(
                "fixed: arm = 'best' is filled in where the problem is known (run, run_trial, "
                "suites); give a number here"
            )
        if parameters.arm >= shape.n_arms:
            raise ParameterError(
                f"fixed: arm must be less than the {shape.n_arms} arms, got {parameters.arm}"
            )
        self._arm = parameters.arm

    def choose(self, context: Context) -> int:
        """The fixed arm."""
        if context.available is not None and not context.available[self._arm]:
            raise ArmError(f"fixed: arm {self._arm} is not available in this round")
        return self._arm

    def learn(self, event: Event) -> None:
        """Nothing."""


class OraclePolicy(Stateful):
    """The arm of the highest true mean; only the loop, which knows the means, can run it."""

    kind = "oracle"
    state = ("generator",)

    def __init__(self, parameters: NoParameters, shape: ProblemShape, streams: Streams) -> None:
        self._rng = streams.generator("ties")

    def choose_knowing(self, context: Context, means: FloatArray) -> int:
        """The best available arm."""
        return best_arm(means, context.available, self._rng)

    def choose(self, context: Context) -> int:
        """Always an error: a context does not tell the truth."""
        raise InputError("the oracle needs the true means, so only run_trial can run it")

    def learn(self, event: Event) -> None:
        """Nothing."""


_ABSURD = 8.0
_PATIENCE = 10_000
"""Rounds for which a reward is waited for."""


@dataclass(slots=True)
class _Value:
    """What is believed of one w: its mean and covariance, when that was, and how many successes and
    failures."""

    mean: FloatArray
    spread: FloatArray
    round: int
    wins: float = 0.0
    losses: float = 0.0


class Specialist(Stateful):
    """Thompson sampling on a structure that it is told before every choice; told nothing, it thinks
    all is steady."""

    kind = "specialist"
    state = ("round", "generator")

    def __init__(self, parameters: NoParameters, shape: ProblemShape, streams: Streams) -> None:
        self._n_arms = shape.n_arms
        self._rng = streams.generator("posterior")
        self._round = 0
        self._values: dict[int, _Value] = {}
        self._open: dict[int, Structure] = {}

    def choose(self, context: Context) -> int:
        """As if nothing changed but for what is seen."""
        return self.choose_told(context, steady(context, self._n_arms))

    def choose_told(self, context: Context, structure: Structure) -> int:
        """The best arm under one draw of every value that holds now."""
        groups = structure.groups.tolist()
        drawn = {group: self._draw(group, structure) for group in sorted(set(groups))}
        scores = [drawn[g] @ x for g, x in zip(groups, structure.vectors, strict=True)]
        self._open[self._round] = structure
        self._open.pop(self._round - _PATIENCE, None)
        self._round += 1
        return best_arm(np.array(scores), context.available, self._rng)

    def learn(self, event: Event) -> None:
        """The value that held in that round learns the reward."""
        number = self._round - 1 if event.decided is None else event.decided
        structure = self._open.pop(number, None) or steady(event.context, self._n_arms)
        value, x = (
            self._at(int(structure.groups[event.arm]), structure),
            structure.vectors[event.arm],
        )
        if structure.noise is None:
            value.wins, value.losses = value.wins + event.reward, value.losses + 1 - event.reward
        prediction = float(x @ value.mean)
        noise = (
            max(0.05, prediction * (1 - prediction))
            if structure.noise is None
            else structure.noise**2
        )
        seen = value.spread @ x
        if (event.reward - prediction) ** 2 > _ABSURD**2 * (float(x @ seen) + noise):
            return
        gain = seen / (x @ seen + noise + 1e-12)
        value.mean = value.mean + gain * (event.reward - prediction)
        value.spread = value.spread - np.outer(gain, seen)

    def _draw(self, group: int, structure: Structure) -> FloatArray:
        value = self._at(group, structure)
        if structure.noise is None and structure.step == 0 and len(value.mean) == 1:
            return self._rng.beta(1 + value.wins, 1 + value.losses, size=1)
        size = len(value.mean)
        if size == 1:
            return np.asarray(value.mean + np.sqrt(value.spread[0]) * self._rng.standard_normal())
        try:
            lower = np.linalg.cholesky(value.spread + 1e-12 * np.eye(size))
        except np.linalg.LinAlgError:
            raise NumericalError(
                "features are too large, or differ too much in size, for exact linear algebra: "
                "scale them"
            ) from None
        return np.asarray(value.mean + lower @ self._rng.standard_normal(size))

    def _at(self, group: int, structure: Structure) -> _Value:
        """What is believed now; a value that walks is less well known with every round."""
        value = self._values.get(group)
        if value is None:
            value = _Value(np.array(structure.mean), np.diag(np.square(structure.std)), self._round)
            self._values[group] = value
        if structure.step:
            value.spread = value.spread + (self._round - value.round) * structure.step**2 * np.eye(
                len(value.mean)
            )
        value.round = self._round
        return value

    def snapshot(self) -> Snapshot:
        """Every value, what was told of open rounds, and the generator's position."""
        values = {
            str(group): {"mean": v.mean, "spread": v.spread, "round": v.round}
            | {"counts": [v.wins, v.losses]}
            for group, v in self._values.items()
        }
        pending = {str(number): asdict(structure) for number, structure in self._open.items()}
        return super().snapshot() | {"values": values, "open": pending}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        super().restore(snapshot)
        self._values = {
            int(group): _Value(np.array(v["mean"]), np.array(v["spread"]), v["round"], *v["counts"])
            for group, v in read(snapshot, "values").items()
        }
        self._open = {
            int(number): Structure(**structure)
            for number, structure in read(snapshot, "open").items()
        }


def steady(context: Context, n_arms: int) -> Structure:
    """A world in which nothing changes: weights of arms' vectors, or every arm's own on what is
    seen."""
    if context.arm_features is not None:
        size = context.arm_features.shape[1]
        return Structure(
            np.zeros(n_arms, np.int64), context.arm_features, 0.1, np.zeros(size), np.ones(size)
        )
    seen = np.ones(1) if context.observation is None else np.append(1.0, context.observation)
    vectors = np.tile(seen, (n_arms, 1))
    return Structure(np.arange(n_arms), vectors, 0.5, np.zeros(len(seen)), np.ones(len(seen)))
