"""Which round an event finishes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.errors import EventError, SnapshotError
from tidepull.policies.checks import TRAIL, RoundCounter


def begun(n: int) -> RoundCounter:
    rounds = RoundCounter()
    for _ in range(n):
        rounds.begin()
    return rounds


def test_event_without_a_round_finishes_the_latest_or_one_of_its_own() -> None:
    rounds = begun(0)
    assert rounds.decided(None) == 0
    rounds.finish(0)
    assert (rounds.begun, rounds.unfinished.tolist()) == (1, [])
    assert rounds.decided(None) == 1
    rounds.begin()
    assert rounds.decided(None) == 1
    rounds.finish(1)
    assert rounds.decided(None) == 2


def test_rounds_finish_once_and_in_any_order() -> None:
    rounds = begun(3)
    assert [rounds.decided(named) for named in (2, 0, 1)] == [2, 0, 1]
    rounds.finish(1)
    assert rounds.unfinished.tolist() == [0, 2]
    with pytest.raises(EventError, match="round 1 has been learnt already"):
        rounds.decided(1)
    for named, known in ((3, "rounds 0 to 2 have begun"), (-1, "rounds 0 to 2 have begun")):
        with pytest.raises(EventError, match=known):
            rounds.decided(named)
    with pytest.raises(EventError, match="no round has begun"):
        begun(0).decided(0)


def test_rounds_older_than_the_trail_are_taken_on_trust() -> None:
    rounds = begun(TRAIL)
    assert len(rounds.unfinished) == TRAIL
    rounds.begin()
    assert rounds.unfinished[0] == 1
    assert len(rounds.unfinished) == TRAIL
    assert rounds.decided(0) == 0, "nobody knows whether it is finished"
    rounds.finish(0)
    rounds.finish(1)
    with pytest.raises(EventError, match="already"):
        rounds.decided(1)


@pytest.mark.parametrize(
    ("n", "unfinished"),
    [
        (-1, []),
        (1.0, []),
        (True, []),
        (2, [0, 0]),
        (2, [1, 0]),
        (2, [2]),
        (2, [-1]),
        (TRAIL + 2, [1]),
    ],
)
def test_rounds_of_a_damaged_snapshot_are_refused(n: Any, unfinished: list[int]) -> None:
    with pytest.raises(SnapshotError):
        RoundCounter.restored(n, np.array(unfinished, np.int64))


@pytest.mark.parametrize("unfinished", [[0], np.array([0.0]), np.array([[0]]), None])
def test_unfinished_rounds_of_a_snapshot_are_whole_numbers(unfinished: Any) -> None:
    with pytest.raises(SnapshotError, match="must be a list of rounds"):
        RoundCounter.restored(2, unfinished)


def test_rounds_go_on_from_a_snapshot() -> None:
    made = RoundCounter.restored(TRAIL + 2, np.array([2, 9, TRAIL + 1]))
    assert made.begun == TRAIL + 2
    assert made.unfinished.tolist() == [2, 9, TRAIL + 1]
    assert RoundCounter.restored(0, np.array([], np.int64)).begun == 0
