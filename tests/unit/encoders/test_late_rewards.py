"""What networks see while rewards are pending, against inputs written down plainly and JAX in
float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import numpy as np
import pytest

from tests.unit.encoders import oracle
from tests.unit.encoders.replay import (
    Decided,
    Paid,
    Story,
    feedforward_inputs,
    late_story,
    recurrent_inputs,
    rewards,
)
from tidepull import state as snapshots
from tidepull.encoders import FeedforwardEncoder, RecurrentEncoder
from tidepull.encoders.training import finish
from tidepull.errors import EventError, ParameterError, RewardError, TrainingError
from tidepull.types import Context, Event, FloatArray, ProblemShape

Encoder: TypeAlias = RecurrentEncoder | FeedforwardEncoder
Make: TypeAlias = Callable[..., Encoder]

ORDER = 3
SHAPES = [
    pytest.param(ProblemShape(4), id="plain"),
    pytest.param(ProblemShape(3, observation_dim=3), id="observation"),
    pytest.param(ProblemShape(4, arm_dim=5), id="arm-features"),
]


def recurrent(shape: ProblemShape, **settings: Any) -> RecurrentEncoder:
    options: dict[str, Any] = {
        "units": (8, 8, 8),
        "learning_rate": 0.01,
        "dtype": np.float64,
        **settings,
    }
    return RecurrentEncoder(shape, rng=np.random.default_rng(0), **options)


def feedforward(shape: ProblemShape, **settings: Any) -> FeedforwardEncoder:
    options: dict[str, Any] = {
        "units": (8, 8, 8),
        "learning_rate": 0.01,
        "dtype": np.float64,
        **settings,
    }
    return FeedforwardEncoder(
        shape, order=ORDER, sinusoids=2, rng=np.random.default_rng(0), **options
    )


both = pytest.mark.parametrize("make", [recurrent, feedforward])
every_shape = pytest.mark.parametrize("shape", SHAPES)


def tell(encoder: Encoder, story: Story) -> FloatArray:
    """Play a story through an encoder; features of the chosen arms as they were."""
    seen = []
    for step in story:
        if isinstance(step, Paid):
            encoder.pay(step.number, step.reward)
        else:
            candidates = encoder.features(step.context)
            seen.append(encoder.decide(step.context, step.arm))
            tolerance = 1e-13 if candidates.dtype == np.float64 else 1e-6
            np.testing.assert_allclose(seen[-1], candidates[step.arm], rtol=0, atol=tolerance)
    return np.array(seen)


def plain_features(encoder: Encoder, shape: ProblemShape, story: Story) -> FloatArray:
    """Features of every round by JAX, one step after another from the first."""
    with jax.enable_x64(True):
        weights = oracle.tree_of(encoder._network.weights)
        if isinstance(encoder, RecurrentEncoder):
            made = oracle.recurrent_features(weights, recurrent_inputs(shape, story), None)
        else:
            made = oracle.feedforward_features(weights, feedforward_inputs(shape, story, ORDER))
        return np.asarray(made)


@both
@every_shape
def test_features_equal_the_plain_network_when_rewards_are_late(
    make: Make, shape: ProblemShape
) -> None:
    encoder, story = make(shape), late_story(shape, 60, delay=9)
    seen = tell(encoder, story)
    np.testing.assert_allclose(seen, plain_features(encoder, shape, story), rtol=0, atol=1e-11)


@both
@every_shape
def test_trained_network_says_of_each_decision_what_it_would_have_said_then(
    make: Make, shape: ProblemShape
) -> None:
    encoder, story = make(shape), late_story(shape, 90, delay=9)
    tell(encoder, story[:100])
    encoder.refit(3)
    tell(encoder, story[100:])
    features, paid = encoder.encode_history()
    known = ~np.isnan(rewards(story))
    assert 0 < known.sum() < len(known)
    np.testing.assert_array_equal(encoder.known_rounds(), np.flatnonzero(known))
    np.testing.assert_array_equal(paid, rewards(story)[known])
    np.testing.assert_allclose(
        features, plain_features(encoder, shape, story)[known], rtol=0, atol=1e-11
    )


@both
def test_reward_that_arrives_after_the_round_was_opened_is_no_part_of_it(make: Make) -> None:
    shape = ProblemShape(3)
    encoder, twin = make(shape), make(shape)
    for one in (encoder, twin):
        one.decide(Context(), 0)
    opened = encoder.features(Context())
    encoder.pay(0, 5.0)
    np.testing.assert_array_equal(encoder.features(Context()), opened)
    np.testing.assert_allclose(
        encoder.decide(Context(), 1), twin.decide(Context(), 1), rtol=0, atol=1e-13
    )
    twin.pay(0, 5.0)
    np.testing.assert_array_equal(encoder.features(Context()), twin.features(Context()))
    assert np.abs(encoder.features(Context()) - opened).max() > 1e-3


@both
@every_shape
def test_gradient_leaves_out_rows_whose_reward_is_pending(make: Make, shape: ProblemShape) -> None:
    single, double = make(shape, dtype=np.float32), make(shape)
    story = late_story(shape, 50, delay=9)
    tell(single, story)
    tell(double, story)
    known = np.flatnonzero(~np.isnan(rewards(story)))

    def loss(p: oracle.Tree) -> Any:
        if isinstance(single, RecurrentEncoder):
            features = oracle.recurrent_features(p, recurrent_inputs(shape, story), None)
        else:
            features = oracle.feedforward_features(p, feedforward_inputs(shape, story, ORDER))
        return oracle.loss(p, features[known], rewards(story)[known], 0.001)

    inputs, targets = double._history.inputs, double._history.rewards
    oracle.assert_same_gradient(single._network, double._network, inputs, targets, loss)


@both
def test_loss_after_training_is_the_mean_over_known_rewards(make: Make) -> None:
    shape = ProblemShape(4)
    encoder, story = make(shape), late_story(shape, 50, delay=9)
    tell(encoder, story)
    loss = encoder.refit(2)
    features, paid = encoder.encode_history()
    weights = encoder._network.weights
    penalised = weights.flat[: weights.n_penalised]
    expected = np.mean((features @ weights["output"] - paid) ** 2) + 0.0005 * penalised @ penalised
    assert loss == pytest.approx(expected, rel=1e-12)


@both
@every_shape
def test_amended_round_is_read_as_if_its_arm_had_been_decided(
    make: Make, shape: ProblemShape
) -> None:
    story = late_story(shape, 40, delay=9)
    number = 20
    place = [i for i, step in enumerate(story) if isinstance(step, Decided)][number]
    decided = story[place]
    assert isinstance(decided, Decided)
    right = Decided(decided.context, (decided.arm + 1) % shape.n_arms)
    story = [step for step in story if not (isinstance(step, Paid) and step.number == number)]
    amended, twin = make(shape), make(shape)
    tell(amended, story)
    amended.amend(number, right.context, right.arm)
    tell(twin, [*story[:place], right, *story[place + 1 :]])
    for encoder in (amended, twin):
        encoder.pay(number, 0.25)
    np.testing.assert_allclose(
        amended.encode_history()[0], twin.encode_history()[0], rtol=0, atol=1e-11
    )
    context = decided.context
    np.testing.assert_allclose(
        amended.features(context), twin.features(context), rtol=0, atol=1e-11
    )


@both
@every_shape
def test_amending_a_round_while_training_disturbs_neither(make: Make, shape: ProblemShape) -> None:
    story = [
        step
        for step in late_story(shape, 40, delay=9)
        if not (isinstance(step, Paid) and step.number == 20)
    ]
    context = next(step.context for step in story if isinstance(step, Decided))
    during, before = make(shape), make(shape)
    for encoder in (during, before):
        tell(encoder, story)
    slices = during.refitting(3)
    next(slices)
    before.amend(20, context, 0)
    during.amend(20, context, 0)
    np.testing.assert_array_equal(during.features(context), before.features(context))
    np.testing.assert_array_equal(during.encode_history()[0], before.encode_history()[0])
    finish(slices)
    before.refit(3)
    difference = np.abs(during.encode_history()[0] - before.encode_history()[0]).max()
    # One epoch of three saw the other arm; what has not been paid matters to a network with a state
    # only.
    assert difference < 0.1 if isinstance(during, RecurrentEncoder) else difference == 0.0


@both
def test_rewards_of_unknown_or_finished_rounds_are_refused(make: Make) -> None:
    encoder = make(ProblemShape(3))
    encoder.decide(Context(), 0)
    before = snapshots.dump(encoder.snapshot())
    for number, reward, error, message in [
        (1, 0.5, EventError, "round 1 is not remembered"),
        (-1, 0.5, EventError, "round -1 is not remembered"),
        (0, float("nan"), RewardError, "finite"),
        (0, 1e300, RewardError, "at most 1e[+]15"),
    ]:
        with pytest.raises(error, match=message):
            encoder.pay(number, reward)
    assert snapshots.dump(encoder.snapshot()) == before
    encoder.pay(0, 0.5)
    with pytest.raises(EventError, match="has its reward already"):
        encoder.pay(0, 0.5)


@both
def test_history_without_any_reward_is_not_trained_on(make: Make) -> None:
    encoder = make(ProblemShape(3))
    encoder.decide(Context(), 0)
    with pytest.raises(TrainingError, match="no history"):
        encoder.refit(1)


@both
@every_shape
def test_encoder_restored_between_decision_and_reward_continues_bit_for_bit(
    make: Make, shape: ProblemShape
) -> None:
    story = late_story(shape, 70, delay=9)
    one, two = make(shape, dtype=np.float32), make(shape, dtype=np.float32)
    for i, step in enumerate(story):
        if isinstance(step, Decided):
            one.features(step.context)
        if i == 60:
            two.restore(snapshots.load(snapshots.dump(one.snapshot())))
        for encoder in (one, two) if i >= 60 else (one,):
            if isinstance(step, Decided):
                encoder.decide(step.context, step.arm)
            else:
                encoder.pay(step.number, step.reward)
    assert one.refit(2) == two.refit(2)
    assert snapshots.dump(one.snapshot()) == snapshots.dump(two.snapshot())


# Training in slices.


@both
@every_shape
def test_training_in_slices_equals_training_at_once(make: Make, shape: ProblemShape) -> None:
    story = late_story(shape, 60, delay=9)
    whole, sliced = make(shape, dtype=np.float32), make(shape, dtype=np.float32)
    for encoder in (whole, sliced):
        tell(encoder, story)
    loss = whole.refit(5)
    assert len([None for _ in sliced.refitting(5)]) == 5
    assert snapshots.dump(sliced.snapshot()) == snapshots.dump(whole.snapshot())
    assert loss > 0.0


@both
@every_shape
def test_rounds_during_training_are_read_by_the_last_good_network_and_again_at_the_end(
    make: Make, shape: ProblemShape
) -> None:
    story = late_story(shape, 90, delay=9)
    trained, idle, whole = make(shape), make(shape), make(shape)
    for encoder in (trained, idle, whole):
        tell(encoder, story[:90])
    slices, seen, expected = trained.refitting(4), [], []
    for i in range(90, len(story), 10):
        next(slices, None)
        if trained.version:
            break
        seen.append(tell(trained, story[i : i + 10]))
        expected.append(tell(idle, story[i : i + 10]))
    told = i
    for got, want in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(got, want)
    assert len(seen) == 4
    assert trained.version == 1
    whole.refit(4)
    tell(whole, story[90:told])
    assert np.array_equal(whole._network.weights.flat, trained._network.weights.flat)
    np.testing.assert_allclose(
        trained.encode_history()[0], whole.encode_history()[0], rtol=0, atol=1e-11
    )
    rest = story[told:]
    np.testing.assert_allclose(tell(trained, rest), tell(whole, rest), rtol=0, atol=1e-11)


@both
def test_closed_training_leaves_no_trace(make: Make) -> None:
    shape = ProblemShape(4)
    encoder, twin = make(shape), make(shape)
    for one in (encoder, twin):
        tell(one, late_story(shape, 60, delay=9))
        one.refit(2)
    slices = encoder.refitting(5)
    next(slices)
    next(slices)
    assert snapshots.dump(encoder.snapshot()) == snapshots.dump(twin.snapshot())
    slices.close()
    assert snapshots.dump(encoder.snapshot()) == snapshots.dump(twin.snapshot())
    assert encoder.refit(3) == twin.refit(3)


@both
def test_network_that_is_not_accepted_leaves_no_trace(make: Make) -> None:
    shape = ProblemShape(4)
    encoder = make(shape)
    tell(encoder, late_story(shape, 60, delay=9))
    before = snapshots.dump(encoder.snapshot())
    shown = []

    def refuse(features: FloatArray, rewards: FloatArray) -> None:
        shown.append((features, rewards))
        raise ValueError("not this one")

    with pytest.raises(ValueError, match="not this one"):
        finish(encoder.refitting(2, refuse))
    assert snapshots.dump(encoder.snapshot()) == before
    encoder.refit(2)
    np.testing.assert_array_equal(shown[0][0], encoder.encode_history()[0])
    np.testing.assert_array_equal(shown[0][1], encoder.encode_history()[1])


@both
def test_training_under_way_forbids_what_would_change_its_ground(make: Make) -> None:
    encoder = make(ProblemShape(3))
    encoder.append(Event(Context(), 0, 1.0))
    saved = encoder.snapshot()
    slices = encoder.refitting(2)
    next(slices)
    with pytest.raises(TrainingError, match="close it before you restore"):
        encoder.restore(saved)
    with pytest.raises(TrainingError, match="close it before you train"):
        encoder.refit(1)
    if isinstance(encoder, RecurrentEncoder):
        with pytest.raises(TrainingError, match="close it before you rewrite"):
            encoder.rewrite(np.zeros(1))
    slices.close()
    encoder.restore(saved)


# Memory.


def n_bytes(snapshot: Any) -> int:
    """Bytes of all arrays in a snapshot."""
    if isinstance(snapshot, dict):
        return sum(n_bytes(part) for part in snapshot.values())
    return snapshot.nbytes if isinstance(snapshot, np.ndarray) else 0


@both
@every_shape
def test_memory_trains_on_the_last_rounds_only(make: Make, shape: ProblemShape) -> None:
    story = late_story(shape, 200, delay=9)
    short = make(shape, memory=64)
    tell(short, story)
    assert (short.oldest, short.rounds) == (136, 200)
    known = ~np.isnan(rewards(story))
    np.testing.assert_array_equal(short.known_rounds(), 136 + np.flatnonzero(known[136:]))
    whole = make(shape)
    tell(whole, story)
    inputs, targets = whole._history.inputs[136:], whole._history.rewards[136:]
    expected = whole._network.loss(inputs.copy(), targets, 136)
    assert (
        short._network.loss(short._history.inputs, short._history.rewards, short.oldest) == expected
    )
    np.testing.assert_array_equal(short._network.gradient.flat, whole._network.gradient.flat)


@both
def test_memory_that_is_never_full_changes_nothing(make: Make) -> None:
    shape = ProblemShape(4)
    one, two = make(shape), make(shape, memory=64)
    for encoder in (one, two):
        tell(encoder, late_story(shape, 64, delay=9))
        encoder.refit(2)
    assert snapshots.dump(one.snapshot()) == snapshots.dump(two.snapshot())


@both
def test_memory_keeps_buffers_and_snapshots_flat(make: Make) -> None:
    shape = ProblemShape(4)
    encoder = make(shape, memory=64)
    sizes, buffers = set(), set()
    for t in range(1000):
        encoder.append(Event(Context(), t % 4, 1.0))
        if t >= 200:
            sizes.add(n_bytes(encoder.snapshot()))
            buffers.add(len(encoder._history._rewards))
    assert len(encoder.encode_history()[1]) == 64
    assert len(sizes) == 1
    assert max(buffers) <= 128


@both
def test_encoder_with_memory_is_restored_bit_for_bit(make: Make) -> None:
    shape = ProblemShape(4)
    story = late_story(shape, 150, delay=9)
    one, two = make(shape, memory=64, dtype=np.float32), make(shape, memory=64, dtype=np.float32)
    tell(one, story[:150])
    two.restore(snapshots.load(snapshots.dump(one.snapshot())))
    for encoder in (one, two):
        encoder.refit(2)
        tell(encoder, story[150:])
        encoder.refit(2)
    assert snapshots.dump(one.snapshot()) == snapshots.dump(two.snapshot())


@both
def test_reward_of_a_forgotten_round_is_refused(make: Make) -> None:
    encoder = make(ProblemShape(3), memory=64)
    for _ in range(65):
        encoder.decide(Context(), 0)
    with pytest.raises(EventError, match="round 0 is not remembered; the rounds from 1 to 64 are"):
        encoder.pay(0, 1.0)


def test_forgotten_rounds_leave_the_state_until_the_next_training() -> None:
    shape = ProblemShape(4, observation_dim=3)
    story = late_story(shape, 60, delay=0)
    one, two = recurrent(shape), recurrent(shape)
    for encoder in (one, two):
        tell(encoder, story)
    one.forget(20)
    assert (one.oldest, one.rounds) == (40, 60)
    context = Context(observation=np.ones(3))
    np.testing.assert_array_equal(one.features(context), two.features(context))
    assert len(one.encode_history()[1]) < len(two.encode_history()[1])


# New units.


@pytest.mark.parametrize(("observation_dim", "arm_dim"), [(0, 0), (3, 0), (0, 2), (3, 2)])
def test_rewritten_history_equals_one_that_was_always_in_the_new_units(
    observation_dim: int, arm_dim: int
) -> None:
    shape = ProblemShape(4, observation_dim=observation_dim, arm_dim=arm_dim)
    story = late_story(shape, 60, delay=9)

    def converted(step: Decided | Paid) -> Decided | Paid:
        if isinstance(step, Paid):
            return Paid(step.number, 3.0 * step.reward - 1.0)
        seen, arms = step.context.observation, step.context.arm_features
        context = Context(
            None if seen is None else 2.0 * seen, None if arms is None else 0.5 * arms + 1.0
        )
        return Decided(context, step.arm)

    new = [converted(step) for step in story]
    opened = next(step for step in reversed(story) if isinstance(step, Decided)).context
    encoder, expected = recurrent(shape), recurrent(shape)
    tell(encoder, story)
    tell(expected, new)
    encoder.features(opened)
    width = observation_dim + arm_dim
    contexts = expected._history.inputs[:, 1 : 1 + width]
    encoder.rewrite(np.nan_to_num(expected._history.rewards), contexts)
    np.testing.assert_allclose(
        encoder._history.inputs, expected._history.inputs, rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(encoder._history.rewards, expected._history.rewards)
    np.testing.assert_allclose(
        encoder.features(opened), expected.features(opened), rtol=0, atol=1e-11
    )
    encoder.refit(2)
    expected.refit(2)
    np.testing.assert_allclose(
        encoder.encode_history()[0], expected.encode_history()[0], rtol=0, atol=1e-9
    )


def test_rewriting_without_reading_again_leaves_state_and_features_until_the_next_training() -> (
    None
):
    read, unread, untouched = (
        recurrent(ProblemShape(3)),
        recurrent(ProblemShape(3)),
        recurrent(ProblemShape(3)),
    )
    for encoder in (read, unread, untouched):
        for reward in (0.5, 0.25, 0.125):
            encoder.append(Event(Context(), 0, reward))
    read.rewrite(np.array([5.0, 2.5, 1.25]))
    unread.rewrite(np.array([5.0, 2.5, 1.25]), read=False)
    np.testing.assert_array_equal(unread.encode_history()[0], untouched.encode_history()[0])
    np.testing.assert_array_equal(unread._h, untouched._h)
    assert np.abs(read._h - unread._h).max() > 1e-3
    read.refit(2)
    unread.refit(2)
    np.testing.assert_array_equal(unread.features(Context()), read.features(Context()))


def test_rewriting_with_nan_takes_a_reward_back_and_leaves_what_was_heard() -> None:
    encoder = recurrent(ProblemShape(3))
    for reward in (0.5, 0.25, 0.125):
        encoder.append(Event(Context(), 0, reward))
    encoder.rewrite(np.array([2.0, np.nan, 4.0]))
    assert encoder.known_rounds().tolist() == [0, 2]
    assert encoder._history.inputs[:, 0].tolist() == [0.0, 2.0, 0.25]


def test_rewriting_with_another_number_of_rows_is_refused() -> None:
    encoder = recurrent(ProblemShape(3, observation_dim=2))
    encoder.append(Event(Context(observation=np.ones(2)), 0, 1.0))
    with pytest.raises(ParameterError, match="must have 1 rows, contexts 2 columns"):
        encoder.rewrite(np.zeros(2))
    with pytest.raises(ParameterError, match="must have 1 rows, contexts 2 columns"):
        encoder.rewrite(np.zeros(1), np.zeros((1, 3)))
