"""The nouns of tidepull: frozen dataclasses without logic, but for a shape that must make sense.

A bandit problem is played in rounds. In each round a policy sees a `Context`, chooses an arm,
and learns from the `Event` that follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidepull.errors import ProblemError

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
BoolArray: TypeAlias = NDArray[np.bool_]

Snapshot: TypeAlias = dict[str, Any]
"""State of a policy as nested dictionaries of JSON values and numpy arrays; never pickled objects."""

Diagnostics: TypeAlias = Mapping[str, Any]
"""What a policy tells about itself after a trial: JSON values only. `beliefs` (see `tide`) is shown in reports."""


@dataclass(frozen=True, slots=True)
class ProblemShape:
    """All that a policy may know of a problem in advance.

    `observation_dim` is the length of the vector shared by all arms, `arm_dim` the length of each
    arm's own vector; 0 where the problem has none.
    """

    n_arms: int
    observation_dim: int = 0
    arm_dim: int = 0

    def __post_init__(self) -> None:
        for name, least in (("n_arms", 1), ("observation_dim", 0), ("arm_dim", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ProblemError(f"{name} must be a whole number of at least {least}, got {value!r}")
            object.__setattr__(self, name, int(value))


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What is seen before choosing in one round; all parts are optional.

    `observation` is one vector shared by all arms, `arm_features` a matrix with a row for each arm,
    `available` a mask of the arms that may be chosen now (None: all of them), `time` the user's clock, a
    number in any unit (seconds online; None where there is only the round).
    """

    observation: FloatArray | None = None
    arm_features: FloatArray | None = None
    available: BoolArray | None = None
    time: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One finished round: what was seen, what was chosen, what it paid.

    `decided` is the round of the `choose` that it finishes, counted from 0; rewards may come late, in any order,
    or never. None means the latest round; where that one is finished already (as when a log is read), the
    event is a round of its own.
    """

    context: Context
    arm: int
    reward: float
    decided: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """What somebody who knows how a world changes, but none of its values, knows of the coming round.

    The expected reward of arm k is w . vectors[k], with the w of groups[k]: rounds in which the same group holds pay
    alike, whatever lies between them. `noise` is the standard deviation of rewards (None: they are 0 or 1), `mean` and
    `std` what to expect of a w at first, number by number, `step` how far each number walks in a round.
    """

    groups: IntArray
    vectors: FloatArray
    noise: float | None
    mean: FloatArray
    std: FloatArray
    step: float = 0.0
