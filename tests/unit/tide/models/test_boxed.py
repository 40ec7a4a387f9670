"""Tuples of arrays that kernels find ready."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest

from tidepull._internal import compiler
from tidepull._internal.kernels import kernel
from tidepull.random import Streams
from tidepull.tide import TideParameters
from tidepull.tide.models.boxed import BoxCache
from tidepull.tide.patterns import Patterns
from tidepull.types import Context, Event, FloatArray, ProblemShape

Pair: TypeAlias = tuple[FloatArray, FloatArray]
"""A plain tuple: a type of this module would stay in the kernel's index on disk, which others could
not read then."""


@kernel(exact=False)
def difference(held: Any) -> float:
    return held.arrays[0][0] - held.arrays[1][0]  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def _compiles() -> Iterator[None]:
    """Arrays are held for compiled kernels, also where they are of new types."""
    with compiler.allowed():
        yield


def played(policy: Patterns, first: int, stop: int) -> list[int]:
    """The arms of some rounds."""
    arms = []
    for t in range(first, stop):
        arms.append(policy.choose(Context()))
        policy.learn(Event(Context(), arms[-1], float((arms[-1] + t) % 2), decided=t))
    return arms


def test_kernel_sees_what_is_written_into_arrays_that_are_held() -> None:
    ready = BoxCache()
    pair: Pair = (np.array([3.0]), np.array([1.0]))
    assert difference(ready(pair)) == 2.0
    pair[0][0] = 7.0
    assert difference(ready(pair)) == 6.0


def test_arrays_are_held_anew_when_the_tuple_is_another() -> None:
    ready = BoxCache()
    pair: Pair = (np.array([3.0]), np.array([1.0]))
    ready(pair)
    assert difference(ready((pair[0], np.array([0.5])))) == 2.5


def test_copy_of_a_policy_goes_its_own_way_when_arrays_are_held() -> None:
    policy = Patterns(TideParameters(without=("network",)), ProblemShape(3), Streams(0))
    played(policy, 0, 20)
    twin = copy.deepcopy(policy)
    assert played(twin, 20, 50) == played(policy, 20, 50)
    assert np.array_equal(twin.family_weights(), policy.family_weights())
