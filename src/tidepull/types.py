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
"""State of a policy as nested dictionaries of JSON values and numpy arrays; never pickled
objects."""

Diagnostics: TypeAlias = Mapping[str, Any]
"""What a policy tells about itself after a trial: JSON values only. `beliefs` (see `tide`) is shown
in reports."""


@dataclass(frozen=True, slots=True)
class ProblemShape:
    """All that a policy may know of a problem in advance.

    Parameters
    ----------
    n_arms : int
        The number of arms, at least 1.
    observation_dim : int, default: 0
        The length of the vector shared by all arms; 0 where there is none.
    arm_dim : int, default: 0
        The length of each arm's own vector; 0 where there is none.

    Raises
    ------
    ProblemError
        If a value is not a whole number, or too small.

    Examples
    --------
    >>> ProblemShape(n_arms=3, observation_dim=2)
    ProblemShape(n_arms=3, observation_dim=2, arm_dim=0)
    """

    n_arms: int
    observation_dim: int = 0
    arm_dim: int = 0

    def __post_init__(self) -> None:
        for name, least in (("n_arms", 1), ("observation_dim", 0), ("arm_dim", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ProblemError(
                    f"{name} must be a whole number of at least {least}, got {value!r}"
                )
            object.__setattr__(self, name, int(value))


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What is seen before choosing in one round; all parts are optional.

    Parameters
    ----------
    observation : array of shape (observation_dim,), optional
        One vector shared by all arms.
    arm_features : array of shape (n_arms, arm_dim), optional
        One row for each arm.
    available : array of bool of shape (n_arms,), optional
        Which arms may be chosen now. None means all of them.
    time : float, optional
        The user's clock, in any unit (seconds in an agent). None if there are only rounds.

    Examples
    --------
    >>> Context(observation=np.array([0.5, 1.0]), time=3600.0).time
    3600.0
    """

    observation: FloatArray | None = None
    arm_features: FloatArray | None = None
    available: BoolArray | None = None
    time: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One finished round: the context, the chosen arm and its reward.

    Parameters
    ----------
    context : Context
        The context in which the arm was chosen.
    arm : int
        The arm, counted from 0.
    reward : float
        The reward of the arm.
    decided : int, optional
        The round of the `choose` that the event finishes, counted from 0. Rewards may come late,
        in any order, or never. None means the latest round; if that one is finished already, as
        when a log is read, the event is a round of its own.

    Examples
    --------
    >>> Event(Context(), arm=1, reward=0.5).decided is None
    True
    """

    context: Context
    arm: int
    reward: float
    decided: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Which rounds share a reward distribution with the coming one, without its values.

    The expected reward of arm k is w . vectors[k], where w is the weight vector of groups[k].
    Rounds with the same group pay alike, whatever lies between them.

    Parameters
    ----------
    groups : array of int of shape (n_arms,)
        The number of the weight vector that holds for each arm.
    vectors : array of shape (n_arms, d)
        The vectors that the weights are multiplied by.
    noise : float or None
        The standard deviation of rewards. None if they are 0 or 1.
    mean, std : array of shape (d,)
        The prior mean and standard deviation of a weight vector.
    step : float, default: 0.0
        The standard deviation of the change of each weight in one round.

    Examples
    --------
    >>> Structure(np.arange(2), np.ones((2, 1)), None, np.array([0.5]), np.array([0.3])).step
    0.0
    """

    groups: IntArray
    vectors: FloatArray
    noise: float | None
    mean: FloatArray
    std: FloatArray
    step: float = 0.0
