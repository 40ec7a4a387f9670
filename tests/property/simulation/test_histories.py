"""Hundreds of short histories with faults: nothing lost, nothing doubled, the order kept, decisions
as ever."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.property.simulation.history import play
from tests.property.simulation.plan import FAULTS, LEDGERS, plan

HISTORIES, AT_ONCE = 312, 24
"""How many there are, and how many of them are one test."""

REPLAY = "python -m research.benchmarks.simulation --replay"


def violations(seed: int) -> list[str]:
    return play(seed).violations


def told(seed: int) -> tuple[Counter[str], list[str]]:
    lines: list[str] = []
    return play(seed, lines.append).counts, lines


@pytest.mark.parametrize("first", range(0, HISTORIES, AT_ONCE))
def test_callers_were_told_the_truth(alone: Callable[..., Any], first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        if plan(seed).policy != "tide":  # takes seconds; the benchmark has it
            found = alone(violations, seed)
            assert not found, f"{REPLAY} {seed}\n" + "\n".join(found)


def test_a_third_is_on_real_sqlite_and_every_fault_is_there() -> None:
    plans = [plan(seed) for seed in range(HISTORIES)]
    assert sum(one.ledger == "sqlite" for one in plans) * 3 >= HISTORIES
    assert {(one.ledger, one.fault) for one in plans} == {(a, b) for a in LEDGERS for b in FAULTS}


@pytest.mark.parametrize("seed", [22, 23, 45])
def test_a_seed_replays(alone: Callable[..., Any], seed: int) -> None:
    assert plan(seed).fault == "all"
    counts, lines = alone(told, seed)
    assert (counts, lines) == alone(told, seed)
    assert any(re.search("-> 200", line) for line in lines)
