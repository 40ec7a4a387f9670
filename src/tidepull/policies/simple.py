"""Yardsticks that learn nothing: a random arm, one fixed arm, and the oracle."""

from __future__ import annotations

from dataclasses import dataclass

from tidepull.errors import ArmError, InputError, ParameterError
from tidepull.parameters import NoParameters, Parameters, parameter
from tidepull.policies.choice import any_arm, best_arm, equal_shares
from tidepull.protocols import Pick
from tidepull.random import Streams
from tidepull.state import check_kind, generator_state, read, restore_generator
from tidepull.types import Context, Event, FloatArray, ProblemShape, Snapshot


class RandomPolicy:
    """Every available arm is equally likely."""

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

    def snapshot(self) -> Snapshot:
        """The generator's position."""
        return {"kind": "random", "generator": generator_state(self._rng)}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        check_kind(snapshot, "random")
        restore_generator(self._rng, read(snapshot, "generator"))


@dataclass(frozen=True, kw_only=True)
class FixedParameters(Parameters):
    """Parameters of `fixed`."""

    arm: int = parameter(0, "the arm to play in every round", ge=0)


class FixedPolicy:
    """One arm for ever; an error in a round in which it is not available."""

    def __init__(self, parameters: FixedParameters, shape: ProblemShape, streams: Streams) -> None:
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

    def snapshot(self) -> Snapshot:
        """There is no state."""
        return {"kind": "fixed"}

    def restore(self, snapshot: Snapshot) -> None:
        """There is no state."""
        check_kind(snapshot, "fixed")


class OraclePolicy:
    """The arm of the highest true mean; only the loop, which knows the means, can run it."""

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

    def snapshot(self) -> Snapshot:
        """The generator's position."""
        return {"kind": "oracle", "generator": generator_state(self._rng)}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        check_kind(snapshot, "oracle")
        restore_generator(self._rng, read(snapshot, "generator"))
