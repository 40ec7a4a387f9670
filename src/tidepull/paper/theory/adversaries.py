"""Adversaries: who chooses the true contexts of a round, knowing all that has happened so far and w itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from tidepull.paper.theory.bound import Floats
from tidepull.paper.theory.noise import unit

AdversaryName: TypeAlias = Literal["random", "least-explored", "hidden-best"]
ADVERSARIES: tuple[AdversaryName, ...] = get_args(AdversaryName)

_TILT = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What an adversary sees before round `t`, for many seeds (first axis) at once.

    `precision` is B_t (seeds x d x d), `w` the parameter (seeds x d), `normals` fresh standard normal numbers
    (seeds x K x d), `epsilon` the error that the agent's contexts will carry.
    """

    t: int
    precision: Floats
    w: Floats
    normals: Floats
    epsilon: float


Adversary: TypeAlias = Callable[[View], Floats]
"""From a view to true contexts in the unit ball (seeds x K x d)."""


def random_contexts(view: View) -> Floats:
    """Uniform on the unit sphere, whatever happened before."""
    return unit(view.normals)


def least_explored(view: View) -> Floats:
    """Around plus and minus the direction the agent knows least: B_t's eigenvector of the smallest eigenvalue."""
    direction = np.linalg.eigh(view.precision)[1][..., 0]
    signs = np.where(np.arange(view.normals.shape[-2]) % 2 == 0, 1.0, -1.0)
    return unit(signs[:, None] * direction[..., None, :] + _TILT * unit(view.normals))


def hidden_best(view: View) -> Floats:
    """All arms within epsilon of each other, so that the best lies in the error ball of every other.

    The best arm (another each round) is shifted by epsilon / 2 along w from a common random centre, the others
    by as much against it: the gap is epsilon ||w||, and no observed context can tell which is which for sure.
    """
    seeds, n_arms, _ = view.normals.shape
    half = min(view.epsilon, 2.0) / 2.0
    centre = (1.0 - half) * unit(view.normals[:, 0, :])
    side = np.where(np.arange(n_arms) == view.t % n_arms, 1.0, -1.0)
    return np.asarray(
        centre[:, None, :]
        + half * side[:, None] * np.broadcast_to(unit(view.w), (seeds, view.w.shape[-1]))[:, None, :]
    )


_BY_NAME: dict[AdversaryName, Adversary] = {
    "random": random_contexts,
    "least-explored": least_explored,
    "hidden-best": hidden_best,
}


def adversary(name: AdversaryName) -> Adversary:
    """The adversary of that name."""
    return _BY_NAME[name]
