"""The table of wrong values: what may be given in place of a context, an arm, a reward or a round,
and the error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tidepull.errors import ArmError, ContextError, EventError, RewardError, TidepullError
from tidepull.types import Context, Event, ProblemShape

Wrong = tuple[str, Any, type[TidepullError], str]
"""A name, the wrong value, the error it must raise, and the field which that error must name."""

NO_CONTEXTS: dict[str, Any] = {
    "None": None,
    "dict": {"observation": [1.0]},
    "text": "red",
    "number": 3,
    "array": np.ones(3),
}
NO_EVENTS: dict[str, Any] = {
    "None": None,
    "dict": {"arm": 0, "reward": 1.0},
    "text": "won",
    "tuple": (Context(), 0, 1.0),
}
ARMS: dict[str, Any] = {
    "negative": -1,
    "far": 99,
    "huge": 10**30,
    "fraction": 1.5,
    "float": 1.0,
    "NaN": math.nan,
    "text": "red",
    "digit": "1",
    "None": None,
    "boolean": True,
    "numpy boolean": np.True_,
    "list": [0],
    "array": np.array([0]),
    "dict": {},
}
REWARDS: dict[str, Any] = {
    "NaN": math.nan,
    "numpy NaN": np.float64("nan"),
    "infinite": math.inf,
    "minus infinite": -math.inf,
    "text": "red",
    "digit": "1",
    "None": None,
    "boolean": True,
    "numpy boolean": np.False_,
    "list": [1.0],
    "array": np.array([1.0]),
    "scalar array": np.array(1.0),
    "complex": 1 + 0j,
    "too large": 1.1e15,
    "much too large": 1e99,
    "too negative": -1e16,
    "huge whole": 10**400,
    "dict": {},
    "object": object(),
}
ROUNDS: dict[str, Any] = {
    "negative": -1,
    "huge": 10**30,
    "float": 1.0,
    "digit": "3",
    "boolean": True,
    "NaN": math.nan,
    "list": [2],
}
TIMES: dict[str, Any] = {
    "NaN": math.nan,
    "infinite": -math.inf,
    "too large": 1e21,
    "huge whole": 10**400,
    "text": "noon",
    "boolean": False,
    "list": [1.0],
    "scalar array": np.array(1.0),
}


def wrong_masks(n_arms: int) -> dict[str, Any]:
    good = [True] * n_arms
    return {
        "none available": np.zeros(n_arms, bool),
        "too short": np.array(good[1:]),
        "too long": np.array([*good, True]),
        "whole numbers": np.ones(n_arms, int),
        "fractions": [0.5] * n_arms,
        "text": ["yes"] * n_arms,
        "a None": [*good[1:], None],
        "one boolean": True,
        "matrix": np.ones((1, n_arms), bool),
        "ragged": [[True], [True, False]],
        "dict": {0: True},
    }


def wrong_features(shape: tuple[int, ...]) -> dict[str, Any]:
    def one(value: Any, dtype: Any = float) -> Any:
        array = np.ones(shape, dtype)
        array.flat[-1] = value
        return array

    good = np.ones(shape)
    return {
        "missing": None,
        "NaN": one(math.nan),
        "infinite": one(math.inf),
        "minus infinite": one(-math.inf),
        "too large": one(1.1e15),
        "much too large": one(1e200),
        "float32 infinite": one(math.inf, np.float32),
        "huge whole": one(10**400, object),
        "text": one("red", object),
        "digits": good.astype(str),
        "word": "red",
        "booleans": good.astype(bool),
        "one boolean in a list": [True, *good.tolist()[1:]]
        if len(shape) == 1
        else [[True] * shape[1], *good[1:]],
        "complex": good.astype(complex),
        "a None": one(None, object),
        "ragged": [[1.0, 2.0], [3.0]],
        "too short": good[..., :-1],
        "too long": np.concatenate([good, good], axis=-1),
        "one more dimension": good[None],
        "one less dimension": good[0],
        "number": 1.0,
        "dict": {"x": 1.0},
    }


def wrong_contexts(shape: ProblemShape, good: Context) -> Iterator[Wrong]:
    """Everything that `choose` must refuse."""
    for name, value in NO_CONTEXTS.items():
        yield f"context {name}", value, ContextError, "context"
    shapes = {
        "observation": (shape.observation_dim,),
        "arm_features": (shape.n_arms, shape.arm_dim),
    }
    for field, wanted in shapes.items():
        unexpected: dict[str, Any] = {"not expected": np.ones(2), "text": "red"}
        values = wrong_features(wanted) if wanted[-1] else unexpected
        for name, value in values.items():
            yield f"{field} {name}", replace(good, **{field: value}), ContextError, field
    for name, value in wrong_masks(shape.n_arms).items():
        yield f"available {name}", replace(good, available=value), ContextError, "available"
    for name, value in TIMES.items():
        yield f"time {name}", replace(good, time=value), ContextError, "time"


def wrong_events(shape: ProblemShape, good: Event, *, finished: int, begun: int) -> Iterator[Wrong]:
    """Everything that `learn` must refuse."""
    for name, value in NO_EVENTS.items():
        yield f"event {name}", value, EventError, "event"
    for name, context, error, field in wrong_contexts(shape, good.context):
        yield name, replace(good, context=context), error, field
    for name, value in {**ARMS, "one too far": shape.n_arms}.items():
        yield f"arm {name}", replace(good, arm=value), ArmError, "arm"
    for name, value in REWARDS.items():
        yield f"reward {name}", replace(good, reward=value), RewardError, "reward"
    for name, value in {**ROUNDS, "finished": finished, "not begun": begun}.items():
        yield f"decided {name}", replace(good, decided=value), EventError, "decided"
