"""What every registered policy owes its users."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from tests.property.conformance.playing import (
    SHAPES,
    choose,
    contexts,
    every_policy,
    every_shape,
    learn,
    make,
    play,
)
from tidepull import state as snapshots
from tidepull.errors import ParameterError
from tidepull.parameters import describe
from tidepull.policies import build_policy, policies
from tidepull.types import Context, Event, ProblemShape


@every_policy
@every_shape
def test_policy_repeats_itself_when_the_seed_is_equal(id: str, shape: ProblemShape) -> None:
    given = contexts(shape, 60)
    assert play(make(id, shape, 3), given, shape.n_arms) == play(
        make(id, shape, 3), given, shape.n_arms
    )


@every_policy
@every_shape
def test_policy_chooses_an_arm_in_range_before_any_learning(id: str, shape: ProblemShape) -> None:
    arm = choose(make(id, shape), contexts(shape, 1)[0], shape.n_arms)
    assert isinstance(arm, int)
    assert 0 <= arm < shape.n_arms


@every_policy
@every_shape
def test_policy_plays_only_available_arms_when_some_are_not(id: str, shape: ProblemShape) -> None:
    if id == "fixed":
        pytest.skip("a fixed arm that is not available is an error, tested beside the policy")
    given = contexts(shape, 80, masked=True)
    for arm, context in zip(play(make(id, shape), given, shape.n_arms), given, strict=True):
        assert context.available is not None
        assert context.available[arm]


@every_policy
@every_shape
def test_policy_continues_bit_for_bit_when_restored_from_bytes(
    id: str, shape: ProblemShape
) -> None:
    given = contexts(shape, 120)
    original = make(id, shape)
    play(original, given[:70], shape.n_arms)
    saved = snapshots.dump(original.snapshot())
    expected = play(original, given[70:], shape.n_arms, seed=2)
    resumed = make(id, shape, seed=77)
    resumed.restore(snapshots.load(saved))
    assert play(resumed, given[70:], shape.n_arms, seed=2) == expected
    assert snapshots.dump(resumed.snapshot()) == snapshots.dump(original.snapshot())


@every_policy
@every_shape
def test_policy_snapshot_shares_nothing_with_the_living_policy(
    id: str, shape: ProblemShape
) -> None:
    given = contexts(shape, 60)
    policy = make(id, shape)
    play(policy, given[:30], shape.n_arms)
    taken = policy.snapshot()
    before = snapshots.dump(copy.deepcopy(taken))
    play(policy, given[30:], shape.n_arms)
    assert snapshots.dump(taken) == before


@every_policy
@every_shape
def test_policy_neither_changes_nor_keeps_its_inputs(id: str, shape: ProblemShape) -> None:
    given = contexts(shape, 60)
    first, second = make(id, shape), make(id, shape)
    expected = play(first, given, shape.n_arms)
    rng = np.random.default_rng(9)
    arms = []
    for context in given:
        buffers = [
            None if a is None else a.copy() for a in (context.observation, context.arm_features)
        ]
        lent = Context(observation=buffers[0], arm_features=buffers[1])
        arm = choose(second, lent, shape.n_arms)
        learn(second, Event(lent, arm, float(rng.integers(2))))
        for buffer, original in zip(
            buffers, (context.observation, context.arm_features), strict=True
        ):
            if buffer is not None and original is not None:
                assert np.array_equal(buffer, original)
                buffer[:] = 1e6  # a policy that kept a reference would now go astray
        arms.append(arm)
    assert arms == expected


@every_policy
def test_policy_parameters_are_refused_by_name_when_unknown_or_of_the_wrong_kind(id: str) -> None:
    with pytest.raises(ParameterError, match="no parameter 'nonsense'"):
        build_policy((id, {"nonsense": 1}), SHAPES["plain"], seed=0)
    for doc in describe(policies.entry(id).parameters):
        with pytest.raises(ParameterError, match=doc.name):
            build_policy((id, {doc.name: {"not": "a value"}}), SHAPES["plain"], seed=0)
