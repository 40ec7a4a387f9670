"""Both encoders: what they promise to a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

from tidepull import state as snapshots
from tidepull.encoders import FeedforwardEncoder, RecurrentEncoder
from tidepull.encoders.feedforward import waves
from tidepull.errors import (
    ArmError,
    ContextError,
    ParameterError,
    RewardError,
    SnapshotError,
    TrainingError,
)
from tidepull.types import Context, Event, ProblemShape

SHAPES = [
    pytest.param(ProblemShape(4), id="plain"),
    pytest.param(ProblemShape(4, observation_dim=3), id="observation"),
    pytest.param(ProblemShape(4, arm_dim=5), id="arm-features"),
    pytest.param(ProblemShape(3, observation_dim=200), id="wide"),
]


Encoder: TypeAlias = RecurrentEncoder | FeedforwardEncoder
Make: TypeAlias = Callable[..., Encoder]


def recurrent(shape: ProblemShape, seed: int = 0, **settings: Any) -> RecurrentEncoder:
    options: dict[str, Any] = {"units": (16, 16, 16), "learning_rate": 0.01, **settings}
    return RecurrentEncoder(shape, rng=np.random.default_rng(seed), **options)


def feedforward(shape: ProblemShape, seed: int = 0, **settings: Any) -> FeedforwardEncoder:
    options: dict[str, Any] = {
        "units": (16, 12, 16),
        "learning_rate": 0.01,
        "order": 2,
        "sinusoids": 2,
    }
    return FeedforwardEncoder(shape, rng=np.random.default_rng(seed), **{**options, **settings})


both = pytest.mark.parametrize("make", [recurrent, feedforward])


def draw_context(shape: ProblemShape, rng: np.random.Generator) -> Context:
    return Context(
        observation=rng.standard_normal(shape.observation_dim) if shape.observation_dim else None,
        arm_features=rng.standard_normal((shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
    )


def play(encoder: Encoder, shape: ProblemShape, rounds: int, rng: np.random.Generator) -> None:
    for _ in range(rounds):
        arm = int(rng.integers(shape.n_arms))
        encoder.append(Event(draw_context(shape, rng), arm, float(rng.standard_normal())))


@both
@pytest.mark.parametrize("shape", SHAPES)
def test_features_equal_the_sequence_read_again_from_the_start(
    make: Make, shape: ProblemShape
) -> None:
    encoder, rng = make(shape, dtype=np.float64), np.random.default_rng(1)
    play(encoder, shape, 70, rng)
    encoder.refit(3)
    play(encoder, shape, 20, rng)
    context = draw_context(shape, rng)
    candidates = encoder.features(context)
    assert candidates.shape == (shape.n_arms, encoder.dim)
    for arm in range(shape.n_arms):
        twin = make(shape, dtype=np.float64)
        twin.restore(encoder.snapshot())
        np.testing.assert_allclose(
            twin.append(Event(context, arm, 0.5)), candidates[arm], rtol=0, atol=1e-13
        )
        read_again = twin._network.encode(twin._history.inputs)
        np.testing.assert_allclose(candidates[arm], read_again[-1], rtol=0, atol=1e-11)


@both
@pytest.mark.parametrize("shape", SHAPES)
def test_history_is_encoded_under_the_present_network(make: Make, shape: ProblemShape) -> None:
    encoder, rng = make(shape, dtype=np.float64), np.random.default_rng(1)
    play(encoder, shape, 70, rng)
    before, rewards = encoder.encode_history()
    encoder.refit(3)
    play(encoder, shape, 10, rng)
    after, more_rewards = encoder.encode_history()
    assert after.shape == (80, encoder.dim)
    np.testing.assert_array_equal(more_rewards[:70], rewards)
    assert np.abs(after[:70] - before).max() > 1e-3
    np.testing.assert_allclose(
        after, encoder._network.encode(encoder._history.inputs), rtol=0, atol=1e-11
    )


@both
def test_features_change_nothing(make: Make) -> None:
    shape, rng = ProblemShape(4, observation_dim=2), np.random.default_rng(0)
    encoder = make(shape)
    play(encoder, shape, 5, rng)
    context, other = draw_context(shape, rng), draw_context(shape, rng)
    first = encoder.features(context)
    encoder.features(other)
    np.testing.assert_array_equal(encoder.features(context), first)


def test_state_equals_that_of_the_sequence_read_again() -> None:
    shape, rng = ProblemShape(4, observation_dim=3), np.random.default_rng(1)
    encoder = recurrent(shape, dtype=np.float64)
    play(encoder, shape, 70, rng)
    encoder.refit(3)
    play(encoder, shape, 20, rng)
    encoder._network.encode(encoder._history.inputs)
    h, c = encoder._network.state(90)
    np.testing.assert_allclose(encoder._h, h, rtol=0, atol=1e-11)
    np.testing.assert_allclose(encoder._c, c, rtol=0, atol=1e-11)


def test_recurrent_rows_hold_previous_reward_observation_and_arm() -> None:
    encoder = recurrent(ProblemShape(3, observation_dim=2))
    encoder.append(Event(Context(observation=np.array([5.0, 6.0])), 1, 0.75))
    encoder.append(Event(Context(observation=np.array([7.0, 8.0])), 2, 0.25))
    expected = [[0, 5, 6, 0, 1, 0, 1], [0.75, 7, 8, 0, 0, 1, 1]]
    np.testing.assert_array_equal(encoder._history.inputs, np.array(expected, np.float32))
    linear = recurrent(ProblemShape(2, arm_dim=2))
    linear.append(Event(Context(arm_features=np.array([[1.0, 2.0], [3.0, 4.0]])), 1, 0.5))
    np.testing.assert_array_equal(linear._history.inputs, np.array([[0, 3, 4, 1]], np.float32))


def test_feedforward_rows_hold_observation_arm_and_past_triplets() -> None:
    encoder = feedforward(ProblemShape(2, observation_dim=1), order=2, sinusoids=0)
    for t, (arm, reward) in enumerate([(1, 0.5), (0, 0.25), (1, 0.125)]):
        encoder.append(Event(Context(observation=np.array([t + 5.0])), arm, reward))
    expected = [
        [5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        [6, 1, 0, 5, 0, 1, 0.5, 0, 0, 0, 0, 1],
        [7, 0, 1, 6, 1, 0, 0.25, 5, 0, 1, 0.5, 1],
    ]
    np.testing.assert_array_equal(encoder._history.inputs, np.array(expected, np.float32))
    linear = feedforward(ProblemShape(2, arm_dim=2), order=1, sinusoids=0)
    for reward in (0.5, 0.25):
        linear.append(Event(Context(arm_features=np.array([[1.0, 2.0], [3.0, 4.0]])), 1, reward))
    np.testing.assert_array_equal(
        linear._history.inputs, [[3, 4, 0, 0, 0, 1], [3, 4, 3, 4, 0.5, 1]]
    )


def test_feedforward_time_is_the_index_of_the_round() -> None:
    encoder = feedforward(ProblemShape(2), order=0, sinusoids=3)
    weights, rng = encoder._network.weights, np.random.default_rng(0)
    play(encoder, ProblemShape(2), 50, rng)
    encoder.refit(1)
    angles = np.arange(50)[:, None] * weights["frequency"].astype(float) + weights[
        "phase_bias"
    ].astype(float)
    np.testing.assert_allclose(encoder._history.inputs[:, 2:-1], np.sin(angles), rtol=0, atol=1e-7)
    np.testing.assert_allclose(
        waves(weights, 50), np.sin(50.0 * weights["frequency"] + weights["phase_bias"]), atol=1e-5
    )


@both
@pytest.mark.parametrize("shape", SHAPES)
def test_restored_encoder_continues_bit_for_bit(make: Make, shape: ProblemShape) -> None:
    one, rng = make(shape), np.random.default_rng(1)
    play(one, shape, 65, rng)
    one.refit(2)
    play(one, shape, 7, rng)
    two = make(shape, seed=99)
    two.restore(snapshots.load(snapshots.dump(one.snapshot())))
    assert two.version == one.version == 1
    for encoder in (one, two):
        play(encoder, shape, 5, np.random.default_rng(2))
        encoder.refit(2)
        play(encoder, shape, 70, np.random.default_rng(3))
        encoder.refit(2)
    context = draw_context(shape, rng)
    assert one.features(context).tobytes() == two.features(context).tobytes()
    assert snapshots.dump(one.snapshot()) == snapshots.dump(two.snapshot())


@both
def test_snapshot_shares_no_memory_with_the_encoder(make: Make) -> None:
    shape, rng = ProblemShape(4), np.random.default_rng(0)
    encoder = make(shape)
    play(encoder, shape, 40, rng)
    snapshot = encoder.snapshot()
    before = snapshots.dump(snapshot)
    play(encoder, shape, 5, rng)
    encoder.refit(2)
    assert snapshots.dump(snapshot) == before


@both
def test_training_lowers_the_loss_and_counts_versions(make: Make) -> None:
    shape = ProblemShape(3)
    encoder = make(shape)
    for t in range(120):
        encoder.append(Event(Context(), t % 3, float((t // 4) % 2)))
    first = encoder.refit(1)
    last = encoder.refit(100)
    assert encoder.version == 2
    assert last < 0.5 * first


@both
def test_diverged_training_is_refused_and_leaves_everything_as_it_was(make: Make) -> None:
    shape, rng = ProblemShape(3), np.random.default_rng(0)
    encoder = make(shape)
    play(encoder, shape, 40, rng)
    encoder.refit(2)
    encoder.append(Event(Context(), 0, 1.0))
    encoder._history.rewards[-1] = 1e30
    before = snapshots.dump(encoder.snapshot())
    with pytest.raises(TrainingError, match="the loss became inf in epoch 1 of 4"):
        encoder.refit(4)
    assert snapshots.dump(encoder.snapshot()) == before
    assert np.isfinite(encoder.features(Context())).all()


@both
def test_weights_that_explode_in_the_last_epoch_are_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidepull.parameters.LARGEST", 1e40)  # what is allowed does not explode
    shape, rng = ProblemShape(3), np.random.default_rng(0)
    encoder = make(shape, learning_rate=1e38)
    play(encoder, shape, 20, rng)
    before = snapshots.dump(encoder.snapshot())
    with pytest.raises(TrainingError, match="training diverged"):
        encoder.refit(1)
    assert snapshots.dump(encoder.snapshot()) == before


@both
def test_bad_input_is_named(make: Make) -> None:
    encoder = make(ProblemShape(3, observation_dim=2, arm_dim=2))
    arms = np.ones((3, 2))
    with pytest.raises(ContextError, match="has no observation"):
        encoder.features(Context(arm_features=arms))
    with pytest.raises(ContextError, match="length 3; this policy expects 2"):
        encoder.features(Context(observation=np.ones(3), arm_features=arms))
    with pytest.raises(ContextError, match="has no arm_features"):
        encoder.features(Context(observation=np.ones(2)))
    with pytest.raises(ContextError, match=r"expects \(3, 2\)"):
        encoder.features(Context(observation=np.ones(2), arm_features=np.ones((2, 2))))
    good = Context(observation=np.ones(2), arm_features=arms)
    with pytest.raises(ArmError, match="arm 3"):
        encoder.append(Event(good, 3, 0.0))
    with pytest.raises(RewardError, match="nan"):
        encoder.append(Event(good, 0, float("nan")))
    with pytest.raises(ContextError, match="finite"):
        encoder.append(Event(Context(observation=np.array([1, np.inf]), arm_features=arms), 0, 0.0))
    with pytest.raises(TrainingError, match="no history"):
        encoder.refit(1)
    encoder.append(Event(good, 0, 1.0))
    with pytest.raises(ParameterError, match="epochs"):
        encoder.refit(0)


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (recurrent, {"units": (16, 16)}, "units"),
        (recurrent, {"units": (16, 0, 16)}, "units must be ≥ 1"),
        (recurrent, {"learning_rate": 0.0}, "learning_rate"),
        (recurrent, {"l2": -1.0}, "l2"),
        (recurrent, {"init": "zeros"}, "init"),
        (recurrent, {"bptt_window": 0}, "bptt_window"),
        (feedforward, {"units": (16, 16)}, "units"),
        (feedforward, {"order": -1}, "order"),
        (feedforward, {"sinusoids": -1}, "sinusoids"),
    ],
)
def test_settings_outside_their_range_are_refused(
    make: Make, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        make(ProblemShape(3), **settings)


@both
def test_snapshot_of_another_network_is_refused(make: Make) -> None:
    with pytest.raises(SnapshotError, match="another shape"):
        make(ProblemShape(3)).restore(make(ProblemShape(4)).snapshot())
