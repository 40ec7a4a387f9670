"""`NeuralLinear` with rewards that come late, trainings in slices, and a bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tidepull.encoders import FeedforwardEncoder, RecurrentEncoder
from tidepull.encoders.wrappers import RawFeatures
from tidepull.errors import EventError, ParameterError
from tidepull.experiments.loop import run_trial
from tidepull.policies import policies
from tidepull.policies.neural_linear import NeuralLinear
from tidepull.policies.presets import NlpsParameters, RnlpsParameters, nlps, rnlps
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.problems import build_problem, shape_of
from tidepull.random import Streams
from tidepull.state import dump, load
from tidepull.types import Context, Event, ProblemShape

PLAIN = ProblemShape(n_arms=4)
EPOCHS = 4


def make(id: str, shape: ProblemShape = PLAIN, **given: Any) -> NeuralLinear:
    options = {"units": (8, 8, 8), "epochs": EPOCHS, "train_every": 16, **given}
    if id == "rnlps":
        return rnlps(RnlpsParameters(**options), shape, Streams(0))
    return nlps(NlpsParameters(**options), shape, Streams(0))


def play(
    policy: NeuralLinear, rounds: int, *, delay: int = 0, slices: int | None = None
) -> list[int]:
    """Rewards of 1 for arm 0, each `delay` rounds late; then some slices of upkeep (None: all)."""
    first, arms = policy.rounds, []
    for t in range(rounds):
        arms.append(policy.choose(Context()))
        if t >= delay:
            late = t - delay
            policy.learn(Event(Context(), arms[late], float(arms[late] == 0), decided=first + late))
        keep_up(policy, slices)
    return arms


def keep_up(policy: NeuralLinear, slices: int | None = None) -> None:
    done = 0
    while done != slices and policy.upkeep():
        done += 1


both = pytest.mark.parametrize("id", ["rnlps", "nlps"])


@both
def test_forced_rounds_play_every_arm_once_when_no_reward_comes(id: str) -> None:
    assert play(make(id), 4, delay=100) == [0, 1, 2, 3]


@both
def test_rounds_count_choices_and_events_without_a_choice(id: str) -> None:
    policy = make(id)
    assert policy.rounds == 0
    policy.choose(Context())
    assert policy.rounds == 1
    policy.learn(Event(Context(), 2, 1.0))
    assert policy.rounds == 1
    policy.learn(Event(Context(), 2, 1.0))
    assert policy.rounds == 2
    policy.choose(Context())
    policy.learn(Event(Context(), 1, 0.5, decided=3))
    assert policy.rounds == 4
    policy.learn(Event(Context(), 1, 0.5, decided=2))
    np.testing.assert_array_equal(policy.encoder.known_rounds(), [0, 1, 2, 3])
    assert policy.encoder.encode_history()[1].tolist() == [1.0, 1.0, 0.5, 0.5]


@both
@pytest.mark.parametrize(
    ("decided", "message"),
    [
        (3, "round 3 has not been chosen yet"),
        (-1, "round -1 has not"),
        (0, "round 0 has its reward already"),
    ],
)
def test_events_of_unknown_or_finished_rounds_are_refused_and_change_nothing(
    id: str, decided: int, message: str
) -> None:
    policy = make(id)
    policy.choose(Context())
    policy.learn(Event(Context(), 0, 1.0, decided=0))
    policy.choose(Context())
    before = dump(policy.snapshot())
    with pytest.raises(EventError, match=message):
        policy.learn(Event(Context(), 0, 1.0, decided=decided))
    assert dump(policy.snapshot()) == before


@both
def test_late_event_that_names_another_arm_gives_what_that_arm_would_have_given(id: str) -> None:
    amended, told = make(id), make(id)
    for policy in (amended, told):
        play(policy, 20)
        proposed = policy.choose(Context())
    other = (proposed + 1) % 4
    told.learn(Event(Context(), other, 0.5, decided=20))
    amended.choose(Context())
    amended.learn(Event(Context(), other, 0.5, decided=20))
    for one, two in zip(
        amended.encoder.encode_history(), told.encoder.encode_history(), strict=True
    ):
        np.testing.assert_allclose(one, two, atol=1e-5)
    np.testing.assert_allclose(amended.posterior.mean, told.posterior.mean, atol=1e-3)
    assert (
        amended.snapshot()["reading"]["pulls"].tolist()
        == told.snapshot()["reading"]["pulls"].tolist()
    )


@both
def test_lost_rewards_are_no_part_of_the_posterior(id: str) -> None:
    policy = make(id)
    for t in range(40):
        arm = policy.choose(Context())
        if t % 3:
            policy.learn(Event(Context(), arm, 1.0, decided=t))
        keep_up(policy)
    features, rewards = policy.encoder.encode_history()
    assert len(rewards) == 26
    fresh = LinearGaussian(
        policy.encoder.dim, prior_std=0.5 if id == "rnlps" else 1.0, noise_std=0.1
    )
    fresh.refit(features, rewards)
    np.testing.assert_allclose(policy.posterior.mean, fresh.mean, atol=1e-6)


# Trainings in slices.


@both
def test_training_takes_a_slice_for_each_epoch_and_one_to_adopt(id: str) -> None:
    policy = make(id)
    play(policy, 15)
    policy.learn(Event(Context(), policy.choose(Context()), 1.0))
    assert policy.pending
    assert [policy.upkeep() for _ in range(EPOCHS + 2)] == [True] * EPOCHS + [False, False]
    assert policy.diagnostics()["trainings"] == 1


@both
def test_network_and_posterior_change_together_in_the_last_slice(id: str) -> None:
    policy, idle = make(id), make(id)
    for one in (policy, idle):
        play(one, 15)
        one.learn(Event(Context(), one.choose(Context()), 1.0))
    for _ in range(EPOCHS):
        assert policy.upkeep()
        assert policy.choose(Context()) == idle.choose(Context())
        for one in (policy, idle):
            one.learn(Event(Context(), 1, 0.5))
        assert policy.encoder.version == 0
        np.testing.assert_array_equal(policy.posterior.mean, idle.posterior.mean)
    policy.upkeep()
    assert policy.encoder.version == 1
    features, rewards = policy.encoder.encode_history()
    assert len(rewards) == 16 + EPOCHS
    fresh = LinearGaussian(
        policy.encoder.dim, prior_std=0.5 if id == "rnlps" else 1.0, noise_std=0.1
    )
    fresh.refit(features, rewards)
    np.testing.assert_array_equal(policy.posterior.mean, fresh.mean)


@both
def test_training_that_becomes_due_during_another_follows_it(id: str) -> None:
    policy = make(id, train_every=8)
    play(policy, 8, slices=0)
    policy.upkeep()
    play(policy, 8, slices=0)
    keep_up(policy)
    assert policy.diagnostics()["trainings"] == 2


@both
@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("slices", [0, 1, 3])
def test_policy_restored_in_mid_training_continues_bit_for_bit(
    id: str, delay: int, slices: int
) -> None:
    original, copy = make(id), make(id)
    play(original, 40, delay=delay)
    play(original, 24 - original._t % 16 + 16, delay=delay, slices=0)
    keep_up(original, slices)
    original.choose(Context())
    copy.restore(load(dump(original.snapshot())))
    assert copy.pending
    assert original.pending
    for policy in (original, copy):
        policy.learn(Event(Context(), 3, 0.25))
        keep_up(policy, 2)
    assert play(original, 30, delay=delay, slices=2) == play(copy, 30, delay=delay, slices=2)
    assert dump(original.snapshot()) == dump(copy.snapshot())
    assert original.diagnostics()["trainings"] > 2


@both
def test_training_that_diverges_in_slices_leaves_no_trace(
    id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidepull.parameters.LARGEST", 1e40)  # what is allowed does not explode
    policy, untrained = make(id, learning_rate=1e30), make(id, learning_rate=1e30)
    assert play(policy, 40) == play(untrained, 40, slices=0)
    assert policy.diagnostics()["failed_trainings"] == 2
    assert dump(policy.encoder.snapshot()) == dump(untrained.encoder.snapshot())
    assert dump(policy.posterior.snapshot()) == dump(untrained.posterior.snapshot())


# Memory.


@both
@pytest.mark.parametrize("raw", [False, True])
def test_memory_keeps_rows_and_bytes_flat_when_some_rewards_never_come(id: str, raw: bool) -> None:
    policy = make(id, memory=64, raw_features=raw, epochs=1)
    sizes = set()
    for t in range(600):
        arm = policy.choose(Context())
        if t % 4:
            policy.learn(Event(Context(), arm, 1.0, decided=t))
        keep_up(policy)
        if t >= 200 and t % 4 == 3:
            taken = policy.snapshot()
            sizes.add(n_bytes(taken))
            assert len(taken["reading"]["waiting"]) == 16
    assert len(sizes) == 1
    assert policy.encoder.oldest == 600 - 64
    assert len(policy.encoder.encode_history()[1]) == 48


@both
def test_memory_bounds_what_waits_when_no_reward_comes_at_all(id: str) -> None:
    policy = make(id, memory=64)
    for _ in range(300):
        policy.choose(Context())
    assert len(policy.snapshot()["reading"]["waiting"]) == 64


@both
def test_reward_of_a_forgotten_round_is_counted_and_not_learnt(
    id: str, caplog: pytest.LogCaptureFixture
) -> None:
    policy = make(id, memory=64)
    for _ in range(100):
        policy.choose(Context())
    before = dump({**policy.snapshot(), "counts": {}})
    policy.learn(Event(Context(), 0, 1.0, decided=34))
    assert policy.diagnostics()["too_late"] == 1
    assert dump({**policy.snapshot(), "counts": {}}) == before
    assert "round 34 was ignored: the round is forgotten" in caplog.text
    policy.learn(Event(Context(), 0, 1.0, decided=35))
    assert policy.diagnostics()["too_late"] == 1
    assert policy.encoder.known_rounds().tolist() == [35]


@both
def test_memory_at_least_as_long_as_the_trial_changes_nothing(id: str) -> None:
    arms = [
        run_trial(
            "flipping-gaussian", (id, {"units": (8, 8, 8), "memory": memory}), horizon=96
        ).arms.tolist()
        for memory in (None, 96)
    ]
    assert arms[0] == arms[1]


@both
def test_memory_shorter_than_the_trial_is_restored_in_mid_trial_bit_for_bit(id: str) -> None:
    world = build_problem("rotating-vector-32", seed=0)
    original, copy = (make(id, shape_of(world), memory=64, raw_features=True) for _ in range(2))
    for t in range(200):
        if t == 130:
            copy.restore(load(dump(original.snapshot())))
        context = world.context()
        arm = original.choose(context)
        assert t < 130 or copy.choose(context) == arm
        event = Event(context, arm, world.step(arm))
        for policy in (original, copy) if t >= 130 else (original,):
            policy.learn(event)
            keep_up(policy)
    assert dump(original.snapshot()) == dump(copy.snapshot())


@both
def test_memory_below_64_rounds_is_refused(id: str) -> None:
    with pytest.raises(ParameterError, match="memory must be ≥ 64"):
        policies.resolve((id, {"memory": 63}))


def n_bytes(part: Any) -> int:
    """Bytes of all arrays in a snapshot."""
    if isinstance(part, dict):
        return sum(n_bytes(value) for value in part.values())
    return part.nbytes if isinstance(part, np.ndarray) else 0


# Whole trials.


@both
def test_trial_with_late_and_lost_rewards_learns(id: str) -> None:
    small = {"units": (16, 16, 16), "epochs": 8, "learning_rate": 0.01 if id == "rnlps" else 0.05}
    late = run_trial("stationary-bernoulli", (id, small), horizon=600, delay="geometric:20:0.05")
    random = run_trial("stationary-bernoulli", "random", horizon=600)
    assert late.regret[-1] < 0.6 * random.regret[-1]
    assert late.diagnostics["too_late"] == 0


class AppendOnly:
    """The least that an encoder of one's own must have."""

    def __init__(self, inner: RecurrentEncoder) -> None:
        self._inner = inner

    @property
    def dim(self) -> int:
        return self._inner.dim

    @property
    def version(self) -> int:
        return self._inner.version

    def features(self, context: Context) -> Any:
        return self._inner.features(context)

    def append(self, event: Event) -> Any:
        return self._inner.append(event)

    def refit(self, epochs: int) -> float:
        return self._inner.refit(epochs)

    def encode_history(self) -> Any:
        return self._inner.encode_history()

    def snapshot(self) -> Any:
        return self._inner.snapshot()

    def restore(self, snapshot: Any) -> None:
        self._inner.restore(snapshot)


def own(wrap: Callable[[RecurrentEncoder], Any]) -> NeuralLinear:
    encoder = RecurrentEncoder(
        PLAIN, units=(8, 8, 8), learning_rate=0.01, rng=np.random.default_rng(0)
    )
    return NeuralLinear(
        wrap(encoder),
        LinearGaussian(wrap(encoder).dim, prior_std=0.5, noise_std=0.1),
        n_arms=4,
        epochs=2,
        train_every=16,
        forced_rounds=4,
        rng=np.random.default_rng(1),
    )


def test_encoder_with_the_least_methods_works_where_rewards_come_at_once() -> None:
    least, full = own(AppendOnly), own(lambda encoder: encoder)
    assert play(least, 60) == play(full, 60)
    np.testing.assert_array_equal(least.posterior.mean, full.posterior.mean)


def test_encoder_with_the_least_methods_refuses_late_rewards_in_one_sentence() -> None:
    policy = own(AppendOnly)
    policy.choose(Context())
    policy.choose(Context())
    message = "round 0 comes after the next choice, and AppendOnly cannot wait for rewards: give it the methods of"
    with pytest.raises(EventError, match=message):
        policy.learn(Event(Context(), 0, 1.0, decided=0))
    policy.learn(Event(Context(), 1, 1.0, decided=1))


def test_raw_features_go_with_their_rounds_when_rewards_are_late() -> None:
    shape = ProblemShape(3, arm_dim=2)
    rng = np.random.default_rng(0)
    inner = FeedforwardEncoder(
        shape, units=(8, 8, 8), order=1, sinusoids=1, learning_rate=0.01, memory=64, rng=rng
    )
    encoder = RawFeatures(inner, shape)
    arms = rng.normal(size=(400, 3, 2))
    for t in range(300):
        encoder.decide(Context(arm_features=np.zeros((3, 2))), t % 3)
    assert len(encoder._arms) <= 2 * 64 + 1
    for t in range(300, 400):
        encoder.decide(Context(arm_features=arms[t]), t % 3)
    encoder.amend(370, Context(arm_features=arms[370]), 2)
    assert encoder.pay(370, 1.0)[-2:].tolist() == arms[370, 2].tolist()
    assert encoder.pay(350, 1.0)[-2:].tolist() == arms[350, 350 % 3].tolist()
    assert encoder.encode_history()[0][:, -2:].tolist() == [
        arms[350, 2].tolist(),
        arms[370, 2].tolist(),
    ]
