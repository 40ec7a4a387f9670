"""Random damage to snapshots: only `SnapshotError` comes out, and the policy stays as it was.

The same damage runs over every policy and thousands of cases in
`research/benchmarks/snapshot_damage.py`.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from research.benchmarks.snapshot_damage import BYTES, IDS, cases, is_fault, outcome, played
from tidepull import state as snapshots
from tidepull.errors import SnapshotError
from tidepull.policies.guard import Guarded

KINDS = sorted(cases(b"x" * 100, b"y" * 100, random.Random(0)))
SEEDS = st.integers(0, 2**32 - 1)

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
numbers = arrays.arrays(
    dtype=arrays.boolean_dtypes()
    | arrays.integer_dtypes()
    | arrays.unsigned_integer_dtypes()
    | arrays.floating_dtypes(),
    shape=arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
names = st.text().filter(lambda name: name != "__array__")
states = st.dictionaries(
    names,
    st.recursive(
        plain | numbers,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=6,
    ),
)


@cache
def living(id: str) -> tuple[Guarded, bytes, bytes]:
    """A policy, its own snapshot, and that of another in its place."""
    policy = played(id)
    return policy, snapshots.dump(policy.snapshot()), snapshots.dump(played(id, 60, 1).snapshot())


@settings(max_examples=500, deadline=None, derandomize=True)
@given(id=st.sampled_from(IDS), kind=st.sampled_from(KINDS), seed=SEEDS)
def test_damaged_snapshot_is_refused_and_changes_nothing(id: str, kind: str, seed: int) -> None:
    policy, before, other = living(id)
    found = outcome(policy, before, cases(before, other, random.Random(seed))[kind])
    assert not is_fault(kind, found), found
    assert snapshots.dump(policy.snapshot()) == before


@settings(max_examples=200, deadline=None, derandomize=True)
@given(data=st.binary(max_size=300))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        snapshots.load(data)
    with pytest.raises(SnapshotError):
        snapshots.load(data[:1] + snapshots.dump({"x": data.hex()})[1:-1])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(content=st.binary(max_size=300))
def test_random_content_behind_a_checksum_that_fits_is_refused(content: bytes) -> None:
    with pytest.raises(SnapshotError, match="cannot be read"):
        snapshots.load(snapshots.wrap(content))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(state=states)
def test_snapshot_comes_back_from_bytes_as_it_was(state: dict[str, Any]) -> None:
    data = snapshots.dump(state)
    back = snapshots.load(data)
    assert snapshots.difference(state, back) is None
    assert snapshots.dump(back) == data


@settings(max_examples=300, deadline=None, derandomize=True)
@given(array=numbers, seed=SEEDS)
def test_difference_sees_every_altered_bit_of_an_array(
    array: np.ndarray[Any, Any], seed: int
) -> None:
    raw = bytearray(array.tobytes())
    if not raw:
        return
    rng = random.Random(seed)
    place = rng.randrange(len(raw))
    raw[place] ^= 1 << rng.randrange(8)
    other = np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)
    equal = np.array_equal(array, other, equal_nan=array.dtype.kind == "f")
    assert (snapshots.difference({"x": array}, {"x": other}) is None) == equal


def test_every_kind_of_damage_is_tried() -> None:
    assert len(BYTES) == 10
    assert len(KINDS) == 14
