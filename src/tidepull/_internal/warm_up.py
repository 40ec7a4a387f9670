"""Compile every kernel ahead of time: what is on disk then is found by every later process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidepull import encoders
from tidepull.policies import build_policy
from tidepull.registry import Named
from tidepull.types import Context, Event, ProblemShape

_ROUNDS = 40
"""Rounds of `tide` after which it has trained, searched and begun anew."""
_SHAPES = (ProblemShape(2), ProblemShape(2, observation_dim=2), ProblemShape(2, arm_dim=2))


def warm_up(announce: Callable[[], None] = lambda: None) -> bool:
    """Compile the kernels of every policy, or load them from disk.

    The compilation takes about a minute. Compiled kernels are kept in `TIDEPULL_CACHE` or
    `NUMBA_CACHE_DIR`, else beside the package, else in the user's cache directory, for all
    processes. Networks have kernels for each number of units; those of 32 units are compiled
    here.

    Parameters
    ----------
    announce : callable, optional
        Function that is called once, without arguments, before the first compilation.

    Returns
    -------
    bool
        Whether anything was compiled.

    Examples
    --------
    >>> import tidepull
    >>> tidepull.warm_up(lambda: print("compiling"))  # doctest: +SKIP
    compiling
    True
    """
    with encoders.compiling(announce) as listener:
        encoders.warm_up()
        for shape in _SHAPES:
            for binary in (True, False):
                _play("tide", shape, binary)
            if shape.arm_dim:
                _play("lin-ts", shape, False)
                _play("lin-ucb", shape, False)
    return listener.seen


def _play(policy: Named, shape: ProblemShape, binary: bool) -> None:
    learner, rng = build_policy(policy, shape, seed=0), np.random.default_rng(0)
    for t in range(_ROUNDS):
        observation = rng.normal(size=shape.observation_dim) if shape.observation_dim else None
        features = rng.normal(size=(shape.n_arms, shape.arm_dim)) if shape.arm_dim else None
        # Agents give a time and decide by shares; in trials both may be missing.
        time = 1.7e9 + 3000.0 * t if t // 2 % 2 else None
        context = Context(observation, features, time=time)
        arm = (
            learner.choose_by(context, 2, lambda shares: int(np.argmax(shares)))
            if t % 2
            else learner.choose(context)
        )
        swing = np.sin(t / 2 + arm) + 0.3 * rng.normal()
        learner.learn(Event(context, arm, float(swing > 0) if binary else float(swing)))
        while learner.upkeep():
            pass
