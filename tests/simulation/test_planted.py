"""The simulator finds faults that are planted, and finds nothing in the same histories without them."""

from __future__ import annotations

import itertools

import pytest

from tests.simulation.history import play
from tests.simulation.plan import plan
from tests.simulation.planted import PLANTED

MOST = 150
"""Histories in which a planted fault must show."""


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_found(name: str) -> None:
    planted = PLANTED[name]
    fitting = (
        seed for seed in itertools.count() if planted.shows(plan(seed)) and plan(seed).policy != "tide"
    )
    for seed in itertools.islice(fitting, MOST):
        with planted.plant():
            found = play(seed).violations
        if found:
            assert not play(seed).violations
            return
    pytest.fail(f"{name}: not found in {MOST} histories")
