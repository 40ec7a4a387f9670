"""What every registered policy owes its users."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

from tidepull import snapshots
from tidepull.building import build_policy
from tidepull.errors import ArmError, ContextError, ParameterError, RewardError, TidepullError
from tidepull.parameters import describe
from tidepull.policies import policies
from tidepull.protocols import Policy, Privileged
from tidepull.types import Context, Event, FloatArray, ProblemShape

QUICK: dict[str, dict[str, Any]] = {
    # Small networks and few epochs: conformance is about contracts, not about learning.
    "rnlps": {"units": [8, 8, 8], "epochs": 2, "train_every": 16},
    "nlps": {"units": [8, 8, 8], "epochs": 2, "train_every": 16},
}
SHAPES = {
    "plain": ProblemShape(n_arms=4),
    "observation": ProblemShape(n_arms=3, observation_dim=5),
    "vectors": ProblemShape(n_arms=6, arm_dim=3),
}
IDS = policies.ids()


def make(id: str, shape: ProblemShape, seed: int = 0) -> Policy:
    policy = build_policy((id, QUICK.get(id, {})), shape, seed=seed)
    assert isinstance(policy, Policy)
    return policy


def contexts(shape: ProblemShape, n: int, *, masked: bool = False) -> list[Context]:
    rng = np.random.default_rng(5)
    made = []
    for _ in range(n):
        available = None
        if masked:
            available = rng.random(shape.n_arms) < 0.5
            available[rng.integers(shape.n_arms)] = True
        made.append(
            Context(
                observation=rng.normal(size=shape.observation_dim) if shape.observation_dim else None,
                arm_features=rng.normal(size=(shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
                available=available,
            )
        )
    return made


def choose(policy: Policy, context: Context, n_arms: int) -> int:
    if isinstance(policy, Privileged):
        return policy.choose_knowing(context, np.linspace(0, 1, n_arms))
    return policy.choose(context)


def play(policy: Policy, given: list[Context], n_arms: int, seed: int = 9) -> list[int]:
    rng = np.random.default_rng(seed)
    arms = []
    for context in given:
        arm = choose(policy, context, n_arms)
        policy.learn(Event(context, arm, float(rng.integers(2))))
        arms.append(arm)
    return arms


every_policy = pytest.mark.parametrize("id", IDS)
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


@every_policy
@every_shape
def test_policy_repeats_itself_when_the_seed_is_equal(id: str, shape: ProblemShape) -> None:
    given = contexts(shape, 60)
    assert play(make(id, shape, 3), given, shape.n_arms) == play(make(id, shape, 3), given, shape.n_arms)


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
def test_policy_continues_bit_for_bit_when_restored_from_bytes(id: str, shape: ProblemShape) -> None:
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
def test_policy_snapshot_shares_nothing_with_the_living_policy(id: str, shape: ProblemShape) -> None:
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
        buffers = [None if a is None else a.copy() for a in (context.observation, context.arm_features)]
        lent = Context(observation=buffers[0], arm_features=buffers[1])
        arm = choose(second, lent, shape.n_arms)
        second.learn(Event(lent, arm, float(rng.integers(2))))
        for buffer, original in zip(buffers, (context.observation, context.arm_features), strict=True):
            if buffer is not None and original is not None:
                assert np.array_equal(buffer, original)
                buffer[:] = 1e6  # a policy that kept a reference would now go astray
        arms.append(arm)
    assert arms == expected


def wrong_shape(shape: ProblemShape) -> Context:
    def grown(array: FloatArray | None) -> FloatArray | None:
        return None if array is None else np.concatenate([array, array], axis=-1)

    good = contexts(shape, 1)[0]
    return Context(observation=grown(good.observation), arm_features=grown(good.arm_features))


@every_policy
def test_policy_refuses_an_arm_out_of_range_and_stays_as_it_was(id: str) -> None:
    policy = make(id, SHAPES["plain"])
    before = snapshots.dump(policy.snapshot())
    with pytest.raises(ArmError, match="arm"):
        policy.learn(Event(Context(), 99, 1.0))
    assert snapshots.dump(policy.snapshot()) == before


@pytest.mark.parametrize("id", [id for id in IDS if id not in QUICK])
def test_policy_refuses_a_reward_that_is_not_finite_and_stays_as_it_was(id: str) -> None:
    policy = make(id, SHAPES["plain"])
    before = snapshots.dump(policy.snapshot())
    with pytest.raises(RewardError, match="reward"):
        policy.learn(Event(Context(), 0, math.nan))
    assert snapshots.dump(policy.snapshot()) == before


@pytest.mark.parametrize("id", [id for id in IDS if "lin" in id or "nlps" in id])
@pytest.mark.parametrize("kind", ["observation", "vectors"])
def test_policy_that_reads_contexts_refuses_one_of_the_wrong_shape(id: str, kind: str) -> None:
    policy = make(id, SHAPES[kind])
    with pytest.raises(ContextError, match="observation|arm_features"):
        policy.choose(wrong_shape(SHAPES[kind]))


@every_policy
def test_policy_parameters_are_refused_by_name_when_unknown_or_of_the_wrong_kind(id: str) -> None:
    with pytest.raises(ParameterError, match="no parameter 'nonsense'"):
        build_policy((id, {"nonsense": 1}), SHAPES["plain"], seed=0)
    for doc in describe(policies.entry(id).parameters):
        with pytest.raises(ParameterError, match=doc.name):
            build_policy((id, {doc.name: {"not": "a value"}}), SHAPES["plain"], seed=0)


@every_policy
def test_policy_restore_refuses_a_snapshot_of_something_else(id: str) -> None:
    policy = make(id, SHAPES["plain"])
    with pytest.raises(TidepullError):
        policy.restore({"nonsense": 1})
