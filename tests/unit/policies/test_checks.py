"""What passes the checks, and in which form; wrong values of every kind run over all policies in
`conformance/`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.errors import ArmError, ContextError, EventError, RewardError
from tidepull.policies.checks import LARGEST, Checks, RoundCounter
from tidepull.types import Context, Event, ProblemShape

PLAIN = Checks(ProblemShape(3))
RICH = Checks(ProblemShape(3, observation_dim=2, arm_dim=2))
GOOD = Context(
    np.array([1.0, 2.0]), np.arange(6.0).reshape(3, 2), np.array([True, False, True]), 7.5
)


def begun(n: int = 4) -> RoundCounter:
    rounds = RoundCounter()
    for _ in range(n):
        rounds.begin()
    return rounds


def test_clean_input_passes_as_it_is() -> None:
    assert PLAIN.context(Context()) is not None
    for checks, context in ((PLAIN, Context()), (RICH, GOOD)):
        assert checks.context(context) is context
        event = Event(context, 2, 0.5, 1)
        assert checks.event(event, begun())[0] is event
        for arm in (0, 1, 2):
            assert checks.event(Event(context, arm, 0.5, 3), begun())[0].arm == arm


def test_input_of_another_kind_is_made_clean() -> None:
    context = RICH.context(
        Context([1, 2], np.arange(6, dtype=np.float32).reshape(3, 2), [True, False, True], 3)  # type: ignore[arg-type]
    )
    assert context.observation is not None
    assert context.observation.dtype == np.float64
    assert context.arm_features is not None
    assert context.arm_features.dtype == np.float64
    np.testing.assert_array_equal(context.arm_features, GOOD.arm_features)
    assert context.available is not None
    assert context.available.tolist() == [True, False, True]
    assert (context.time, type(context.time)) == (3.0, float)
    event, decided = RICH.event(Event(GOOD, np.int8(2), np.float32(0.5), np.int64(1)), begun())  # type: ignore[arg-type]
    assert (event.arm, type(event.arm), event.reward, type(event.reward)) == (2, int, 0.5, float)
    assert (event.decided, decided) == (1, 1)
    by_columns = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    made = RICH.context(Context(np.ones(2), by_columns)).arm_features
    assert made is not None
    assert made.flags.c_contiguous
    np.testing.assert_array_equal(made, by_columns)


def test_empty_arrays_stand_for_what_the_problem_does_not_have() -> None:
    context = PLAIN.context(Context(observation=np.empty(0), arm_features=np.empty((3, 0))))
    assert context.observation is None
    assert context.arm_features is None
    with pytest.raises(ContextError, match="observation must be None"):
        PLAIN.context(Context(observation=np.ones(2)))


@pytest.mark.parametrize("value", [LARGEST, -LARGEST])
def test_largest_numbers_pass_wherever_they_stand(value: float) -> None:
    for place in range(2):
        observation = np.zeros(2)
        observation[place] = value
        assert RICH.context(Context(observation, np.full((3, 2), value))).observation is observation
    assert PLAIN.event(Event(Context(), 0, value, 0), begun())[0].reward == value


@pytest.mark.parametrize("value", [1.0001e15, 1e20, -1e20, 1e300, np.inf, -np.inf, np.nan])
def test_numbers_beyond_are_refused_wherever_they_stand(value: float) -> None:
    for place in range(2):
        observation, features = np.zeros(2), np.zeros((3, 2))
        observation[place] = value
        with pytest.raises(ContextError, match="observation must hold finite numbers"):
            RICH.context(Context(observation, np.zeros((3, 2))))
        features[2, place] = value
        with pytest.raises(ContextError, match="arm_features must hold finite numbers"):
            RICH.context(Context(np.zeros(2), features))
    with pytest.raises(RewardError, match="reward must be finite"):
        PLAIN.event(Event(Context(), 0, value, 0), begun())


@pytest.mark.parametrize("arm", [-1, 3, 1.0, True, "1", None, np.float64(1), np.bool_(True)])
def test_arm_must_be_a_whole_number_of_an_arm(arm: Any) -> None:
    with pytest.raises(ArmError, match="arm must be a whole number from 0 to 2"):
        PLAIN.event(Event(Context(), arm, 0.5, 0), begun())


@pytest.mark.parametrize("reward", ["1", None, True, [1.0], np.bool_(True), 1j])
def test_reward_must_be_a_number(reward: Any) -> None:
    with pytest.raises(RewardError, match="reward must be a number"):
        PLAIN.event(Event(Context(), 0, reward, 0), begun())


@pytest.mark.parametrize("decided", [1.0, "1", True, np.float64(1)])
def test_round_must_be_a_whole_number(decided: Any) -> None:
    with pytest.raises(EventError, match="decided must be the whole number of a round"):
        PLAIN.event(Event(Context(), 0, 0.5, decided), begun())


@pytest.mark.parametrize(
    "mask", [[True, True], [1, 0, 1], [False] * 3, "yes", np.ones((3, 1), bool)]
)
def test_mask_must_leave_an_arm(mask: Any) -> None:
    with pytest.raises(ContextError, match="available must be 3 booleans"):
        PLAIN.context(Context(available=mask))


@pytest.mark.parametrize("time", ["noon", True, np.nan, np.inf, 1e21, -1e21, [1]])
def test_time_must_be_a_finite_number(time: Any) -> None:
    with pytest.raises(ContextError, match="time must be"):
        PLAIN.context(Context(time=time))
    assert PLAIN.context(Context(time=1e20)).time == 1e20


@pytest.mark.parametrize("what", [None, 3, {"observation": None}])
def test_contexts_and_events_must_be_such(what: Any) -> None:
    with pytest.raises(ContextError, match=r"context must be a tidepull\.Context"):
        PLAIN.context(what)
    with pytest.raises(EventError, match=r"event must be a tidepull\.Event"):
        PLAIN.event(what, begun())


@pytest.mark.parametrize(
    "values",
    [
        None,
        [1.0],
        [[1.0, 2.0]],
        [1.0, True],
        ["a", "b"],
        [[1.0], [1.0, 2.0]],
        [None, 1.0],
        np.ones(2) > 0,
    ],
)
def test_features_must_be_numbers_of_the_right_shape(values: Any) -> None:
    with pytest.raises(ContextError, match="observation"):
        RICH.context(Context(values, np.zeros((3, 2))))
