"""One rule for every kind of wrong value, whatever the policy: one sentence, and nothing
changes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from tests.property.conformance.playing import (
    IDS,
    choose,
    contexts,
    every_policy,
    every_shape,
    learn,
    make,
    play,
)
from tests.property.conformance.wrong_values import (
    Wrong,
    wrong_contexts,
    wrong_events,
    wrong_features,
)
from tidepull import state as snapshots
from tidepull.errors import ContextError, NumericalError, ProblemError, TidepullError
from tidepull.policies.guard import Guarded, GuardedOracle
from tidepull.types import Context, Event, ProblemShape


def played(id: str, shape: ProblemShape) -> Guarded:
    """A policy with twenty finished rounds and two that wait for their reward."""
    policy = make(id, shape)
    given = contexts(shape, 22)
    play(policy, given[:20], shape.n_arms)
    for context in given[20:]:
        choose(policy, context, shape.n_arms)
    return policy


def refusal(give: Callable[[Any], object], value: object) -> TidepullError | None:
    try:
        give(value)
    except TidepullError as error:
        return error
    return None


def check_refusals(policy: Guarded, give: Callable[[Any], object], table: Iterable[Wrong]) -> None:
    before = snapshots.dump(policy.snapshot())
    for field, rows in groupby(table, key=lambda row: row[3]):
        for name, value, error, _ in rows:
            raised = refusal(give, value)
            sentence = f"{name}: {raised}"
            assert type(raised) is error, sentence
            assert field in str(raised), sentence
            assert "\n" not in sentence, sentence
            assert len(sentence) < 250, sentence
        assert snapshots.dump(policy.snapshot()) == before, f"a wrong {field} changed the policy"


@every_policy
@every_shape
def test_choose_refuses_every_wrong_context_and_stays_as_it_was(
    id: str, shape: ProblemShape
) -> None:
    policy = played(id, shape)
    table = wrong_contexts(shape, contexts(shape, 1)[0])
    check_refusals(policy, lambda value: choose(policy, value, shape.n_arms), table)


@every_policy
@every_shape
def test_learn_refuses_every_wrong_event_and_stays_as_it_was(id: str, shape: ProblemShape) -> None:
    policy = played(id, shape)
    good = Event(contexts(shape, 1)[0], 0, 1.0)
    table = wrong_events(shape, good, finished=19, begun=22)
    check_refusals(policy, policy.learn, table)


@every_policy
@every_shape
def test_policy_takes_numbers_of_any_kind_as_the_floats_they_are(
    id: str, shape: ProblemShape
) -> None:
    exact, loose = make(id, shape), make(id, shape)
    rng = np.random.default_rng(1)
    for _ in range(40):
        observation = rng.integers(-3, 4, shape.observation_dim)
        vectors = np.asfortranarray(rng.integers(-3, 4, (shape.n_arms, shape.arm_dim)))
        mask = [bool(rng.integers(2)) for _ in range(shape.n_arms - 1)]
        clean = Context(
            observation.astype(float) if shape.observation_dim else None,
            np.ascontiguousarray(vectors, float) if shape.arm_dim else None,
            None if id == "fixed" else np.array([*mask, True]),
            3.0,
        )
        parts: tuple[Any, ...] = (
            observation.tolist() if shape.observation_dim else np.empty(0),
            vectors if shape.arm_dim else None,
            None if id == "fixed" else [*mask, True],
            np.int32(3),
        )
        other = Context(*parts)
        arm = choose(exact, clean, shape.n_arms)
        assert choose(loose, other, shape.n_arms) == arm
        exact.learn(Event(clean, arm, 1.0))
        loose.learn(Event(other, np.int64(arm), np.float32(1)))  # type: ignore[arg-type]
    assert snapshots.dump(exact.snapshot()) == snapshots.dump(loose.snapshot())


@pytest.mark.parametrize("id", IDS)
@every_shape
def test_policy_takes_the_largest_numbers_and_can_still_be_saved(
    id: str, shape: ProblemShape
) -> None:
    policy = make(id, shape)
    rng = np.random.default_rng(1)
    largest = np.array([-1e15, 1e15])
    for _ in range(30):
        context = Context(
            rng.choice(largest, shape.observation_dim) if shape.observation_dim else None,
            rng.choice(largest, (shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
            time=1e20,
        )
        with contextlib.suppress(
            NumericalError
        ):  # d-lin-ucb says that such features must be scaled
            arm = choose(policy, context, shape.n_arms)
            reward = 1.0 if id == "bernoulli-ts" else float(rng.choice(largest))
            reward = abs(reward) if id == "hurdle-ts" else reward
            learn(policy, Event(context, arm, reward))
    assert policy.rounds > 0
    make(id, shape, seed=3).restore(snapshots.load(snapshots.dump(policy.snapshot())))


def test_oracle_refuses_means_that_are_not_a_number_for_each_arm() -> None:
    policy = make("oracle", ProblemShape(4))
    assert isinstance(policy, GuardedOracle)
    before = snapshots.dump(policy.snapshot())
    for means in wrong_features((4,)).values():
        with pytest.raises(ContextError, match="means"):
            policy.choose_knowing(Context(), means)
        assert snapshots.dump(policy.snapshot()) == before


@pytest.mark.parametrize("field", ["n_arms", "observation_dim", "arm_dim"])
@pytest.mark.parametrize("value", [-1, 1.0, "3", True, None, [2]])
def test_shape_refuses_a_number_that_is_not_whole_or_too_small(field: str, value: object) -> None:
    with pytest.raises(ProblemError, match=f"{field} must be a whole number of at least"):
        ProblemShape(**{"n_arms": 2, field: value})  # type: ignore[arg-type]


def test_shape_refuses_no_arms_at_all_and_takes_numpy_s_whole_numbers() -> None:
    with pytest.raises(ProblemError, match="n_arms must be a whole number of at least 1, got 0"):
        ProblemShape(0)
    assert type(ProblemShape(np.int64(3)).n_arms) is int  # type: ignore[arg-type]
