"""The native library, driven by hand on the very world that a trial has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidepull.problems import build_problem
from tidepull.random import Streams
from tidepull.registry import Named
from tidepull.types import Context


def direct(
    problem: Named,
    horizon: int,
    *,
    seed: int,
    choose: Callable[[Context], int],
    learn: Callable[[Context, int, float], Any],
) -> list[int]:
    """The arms that are played in so many rounds."""
    world = build_problem(problem, seed=seed)
    arms = []
    for _ in range(horizon):
        context = world.context()
        arm = choose(context)
        learn(context, arm, world.step(arm))
        arms.append(int(arm))
    return arms


def stream(seed: int) -> Streams:
    """The streams of the policy in a trial of that seed."""
    return Streams(seed).child("policy")


def library_seed(seed: int) -> int:
    """The seed that an external policy gives its library in a trial of that seed."""
    return int(stream(seed).generator("guest").integers(2**31))
