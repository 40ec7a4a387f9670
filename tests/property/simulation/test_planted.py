"""The simulator finds faults that are planted, and finds nothing in the same histories without
them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.property.simulation.history import play
from tests.property.simulation.plan import plan
from tests.property.simulation.planted import PLANTED

MOST = 400
"""Histories in which a planted fault must show."""


def found_in(name: str) -> int | None:
    """The first seed whose history shows a planted fault, and is sound without it."""
    planted = PLANTED[name]
    fitting = (
        seed
        for seed in itertools.count()
        if planted.shows(plan(seed)) and plan(seed).policy != "tide"
    )
    for seed in itertools.islice(fitting, MOST):
        with planted.plant():
            found = play(seed).violations
        if found:
            return None if play(seed).violations else seed
    return None


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_found(alone: Callable[..., Any], name: str) -> None:
    assert alone(found_in, name) is not None, f"{name}: not found in {MOST} histories"
