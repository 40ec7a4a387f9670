"""`Stateful` saves what it is told to, shares nothing, and refuses in one sentence what does not
fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.errors import SnapshotError
from tidepull.state import Stateful, difference, dump, load


class Part(Stateful):
    state = ("sums", "latest")

    def __init__(self, n: int) -> None:
        self.sums = np.zeros(n, np.float32)
        self._latest = -1


class Whole(Stateful):
    kind = "whole"
    state = ("part", "parts", "counts", "rate", "due", "loss", "generator")

    def __init__(self, n: int = 2) -> None:
        self.part, self._parts = Part(n), [Part(n), Part(n)]
        self._counts = {"trainings": 0}
        self._rate, self._due = 0.5, False
        self._loss: float | None = None
        self._rng = np.random.default_rng(0)


def used() -> Whole:
    whole = Whole()
    whole.part.sums += 1.5
    whole._parts[1]._latest = 7
    whole._counts["trainings"] = 3
    whole._rate, whole._due, whole._loss = 0.25, True, 0.125
    whole._rng.random(5)
    return whole


def test_snapshot_comes_back_whole_from_bytes() -> None:
    one, two = used(), Whole()
    two.restore(load(dump(one.snapshot())))
    assert difference(one.snapshot(), two.snapshot()) is None
    assert two.part.sums.dtype == np.float32
    assert one._rng.random() == two._rng.random()


def test_snapshot_shares_nothing_with_the_object() -> None:
    one, two = used(), Whole()
    snapshot = one.snapshot()
    two.restore(snapshot)
    before = dump(snapshot)
    for whole in (one, two):
        whole.part.sums += 1
        whole._counts["trainings"] += 1
        whole._rng.random()
    assert dump(snapshot) == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "half"}, "of kind 'half', not 'whole'"),
        ({"parts": []}, "has 0 parts, expected 2"),
        ({"parts": None}, "has no parts, expected 2"),
        ({"due": 1}, "'due' must be a bool, got 1"),
        ({"rate": "fast"}, "'rate' must be a float, got 'fast'"),
        ({"generator": {}}, "generator state cannot be restored"),
        (
            {"part": {"sums": np.zeros(3), "latest": 0}},
            r"'sums' has the shape \(3,\), expected \(2,\)",
        ),
        (
            {"part": {"sums": np.zeros(2), "latest": -2}},
            "'latest' must be a whole number of at least -1",
        ),
        ({"part": {"latest": 0}}, "has no 'sums'"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(SnapshotError, match=says):
        Whole().restore(used().snapshot() | change)


def test_plain_parts_stay_when_one_is_refused() -> None:
    part = Part(2)
    with pytest.raises(SnapshotError):
        part.restore({"sums": np.ones(2), "latest": "late"})
    assert part.sums.tolist() == [0.0, 0.0]
