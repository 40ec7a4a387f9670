"""Hundreds of short histories with faults: nothing lost, nothing doubled, the order kept, decisions as ever."""

from __future__ import annotations

import re

import pytest

from tests.simulation.history import play
from tests.simulation.plan import FAULTS, LEDGERS, plan

HISTORIES, AT_ONCE = 312, 24
"""How many there are, and how many of them are one test."""

REPLAY = "python -m benchmarks.simulation --replay"


@pytest.mark.parametrize("first", range(0, HISTORIES, AT_ONCE))
def test_callers_were_told_the_truth(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        if plan(seed).policy != "tide":  # takes seconds; the benchmark has it
            violations = play(seed).violations
            assert not violations, f"{REPLAY} {seed}\n" + "\n".join(violations)


def test_a_third_is_on_real_sqlite_and_every_fault_is_there() -> None:
    plans = [plan(seed) for seed in range(HISTORIES)]
    assert sum(one.ledger == "sqlite" for one in plans) * 3 >= HISTORIES
    assert {(one.ledger, one.fault) for one in plans} == {(a, b) for a in LEDGERS for b in FAULTS}


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_a_seed_replays(seed: int) -> None:
    assert plan(seed).fault == "all"
    lives: list[list[str]] = [[], []]
    counts = [play(seed, told.append).counts for told in lives]
    assert counts[0] == counts[1]
    assert lives[0] == lives[1]
    assert any(re.search("-> 200", line) for line in lives[0])
