"""The schedule and the failure handling of `NeuralLinear`, on an encoder simple enough to follow by
hand."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from tidepull.errors import NumericalError, SnapshotError, TrainingError
from tidepull.policies.neural_linear import NeuralLinear
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.state import dump, load
from tidepull.types import Context, Event, FloatArray, Snapshot

N_ARMS = 3


class ScriptedEncoder:
    """Features one-hot(arm) * scale; every refit adds `growth` to the scale, or fails as told."""

    def __init__(self) -> None:
        self.arms: list[int] = []
        self.rewards: list[float] = []
        self.version = 0
        self.scale = 1.0
        self.fail: Exception | None = None
        self.loss = 0.5
        self.growth = 1.0
        self.trained_at: list[int] = []

    @property
    def dim(self) -> int:
        return N_ARMS

    def features(self, context: Context) -> FloatArray:
        return self.scale * np.eye(N_ARMS)

    def append(self, event: Event) -> FloatArray:
        self.arms.append(event.arm)
        self.rewards.append(event.reward)
        features: FloatArray = self.scale * np.eye(N_ARMS)[event.arm]
        return features

    def refit(self, epochs: int) -> float:
        self.trained_at.append(len(self.arms))
        self.version += 1
        self.scale += self.growth
        if self.fail is not None:
            raise self.fail
        return self.loss

    def encode_history(self) -> tuple[FloatArray, FloatArray]:
        return self.scale * np.eye(N_ARMS)[self.arms], np.array(self.rewards)

    def snapshot(self) -> Snapshot:
        return {
            "arms": list(self.arms),
            "rewards": list(self.rewards),
            "version": self.version,
            "scale": self.scale,
        }

    def restore(self, snapshot: Snapshot) -> None:
        self.arms, self.rewards = list(snapshot["arms"]), list(snapshot["rewards"])
        self.version, self.scale = snapshot["version"], snapshot["scale"]


def _policy(
    encoder: ScriptedEncoder,
    *,
    posterior: LinearGaussian | None = None,
    train_every: int = 8,
    forced_rounds: int = N_ARMS,
) -> NeuralLinear:
    return NeuralLinear(
        encoder,
        posterior or LinearGaussian(N_ARMS, prior_std=1.0, noise_std=0.1),
        n_arms=N_ARMS,
        epochs=2,
        train_every=train_every,
        forced_rounds=forced_rounds,
        rng=np.random.default_rng(0),
    )


def _play(policy: NeuralLinear, rounds: int, reward: float = 1.0) -> list[int]:
    arms = []
    for _ in range(rounds):
        arms.append(policy.choose(Context()))
        policy.learn(Event(Context(), arms[-1], reward))
        _keep_up(policy)
    return arms


def _keep_up(policy: NeuralLinear) -> None:
    while policy.upkeep():
        pass


@pytest.mark.parametrize(("forced", "expected"), [(1, [0]), (3, [0, 1, 2]), (5, [0, 1, 2, 0, 1])])
def test_forced_rounds_play_the_least_pulled_arms_in_order(
    forced: int, expected: list[int]
) -> None:
    assert _play(_policy(ScriptedEncoder(), forced_rounds=forced), forced) == expected


def test_forced_rounds_honour_availability() -> None:
    policy = _policy(ScriptedEncoder())
    context = Context(available=np.array([False, True, True]))
    assert policy.choose(context) == 1
    policy.learn(Event(context, 1, 0.0))
    assert policy.choose(context) == 2
    policy.learn(Event(context, 2, 0.0))
    assert policy.choose(Context()) == 0


def test_training_happens_at_every_multiple_once_forced_rounds_are_over() -> None:
    encoder = ScriptedEncoder()
    _play(_policy(encoder, train_every=2, forced_rounds=3), 9)
    assert encoder.trained_at == [4, 6, 8]


def test_neither_choosing_nor_learning_trains() -> None:
    encoder = ScriptedEncoder()
    policy = _policy(encoder)
    _play(policy, 7)
    assert not policy.pending
    policy.learn(Event(Context(), policy.choose(Context()), 1.0))
    for _ in range(4):
        policy.choose(Context())
        assert policy.pending
    assert encoder.trained_at == []
    assert not policy.upkeep()
    assert not policy.pending
    assert not policy.upkeep()
    assert encoder.trained_at == [8]


def test_unavailable_arms_are_never_chosen() -> None:
    policy = _policy(ScriptedEncoder())
    _play(policy, 10)
    context = Context(available=np.array([False, True, False]))
    assert {policy.choose(context) for _ in range(50)} == {1}


@pytest.mark.parametrize(
    "fail", [FloatingPointError("overflow"), TrainingError("the loss is nan"), None]
)
def test_exploding_training_keeps_the_last_good_network(
    fail: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = ScriptedEncoder()
    policy = _policy(encoder)
    _play(policy, 9)
    assert encoder.scale == 2.0
    encoder.fail, encoder.loss = fail, float("inf")
    with caplog.at_level(logging.WARNING, "tidepull"):
        _play(policy, 24)
    assert encoder.scale == 2.0
    assert len(encoder.arms) == 33
    assert len(caplog.records) == 1
    counts = policy.diagnostics()
    assert (counts["trainings"], counts["failed_trainings"], counts["last_loss"]) == (1, 3, 0.5)
    encoder.fail, encoder.loss = None, 0.25
    _play(policy, 8)
    counts = policy.diagnostics()
    assert (counts["trainings"], counts["failed_trainings"], counts["last_loss"]) == (2, 3, 0.25)


def test_singular_posterior_after_training_keeps_the_last_good_network(
    caplog: pytest.LogCaptureFixture,
) -> None:
    encoder = ScriptedEncoder()
    policy = _policy(encoder)
    _play(policy, 15)
    before = dump(policy.snapshot()["posterior"])
    encoder.growth = 1e200
    policy.learn(Event(Context(), 0, 1.0))
    updated = dump(policy.snapshot()["posterior"])
    assert updated != before
    with caplog.at_level(logging.WARNING, "tidepull"):
        assert not policy.upkeep()
    assert encoder.scale == 2.0
    assert dump(policy.snapshot()["posterior"]) == updated
    encoder.growth = 1.0
    _play(policy, 8)
    assert encoder.scale == 3.0
    counts = policy.diagnostics()
    assert (counts["trainings"], counts["failed_posteriors"]) == (2, 1)
    assert len(caplog.records) == 1


class Clumsy(LinearGaussian):
    """A posterior that has forgotten everything before it finds that it cannot refit."""

    def refit(self, X: FloatArray, Y: FloatArray) -> None:
        self.restore(
            LinearGaussian(self.dim, prior_std=self.prior_std, noise_std=self.noise_std).snapshot()
        )
        raise NumericalError("singular")


def test_posterior_that_spoils_itself_in_a_refit_is_put_back() -> None:
    encoder = ScriptedEncoder()
    policy = _policy(encoder, posterior=Clumsy(N_ARMS, prior_std=1.0, noise_std=0.1))
    _play(policy, 7)
    policy.learn(Event(Context(), policy.choose(Context()), 1.0))
    before = dump(policy.posterior.snapshot())
    assert not policy.upkeep()
    assert dump(policy.posterior.snapshot()) == before
    assert policy.diagnostics()["failed_posteriors"] == 1


def test_round_that_the_posterior_cannot_take_in_is_counted() -> None:
    encoder = ScriptedEncoder()
    policy = _policy(encoder)
    _play(policy, 5)
    before = dump(policy.snapshot()["posterior"])
    encoder.scale = 1e200
    policy.learn(Event(Context(), 1, 1.0))
    assert policy.diagnostics()["failed_posteriors"] == 1
    assert dump(policy.snapshot()["posterior"]) == before


def test_features_that_are_not_finite_are_refused() -> None:
    encoder = ScriptedEncoder()
    encoder.scale = float("nan")
    with pytest.raises(NumericalError, match="not finite"):
        _policy(encoder).choose(Context())


def test_diagnostics_hold_no_loss_before_the_first_training() -> None:
    assert _policy(ScriptedEncoder()).diagnostics() == {
        "trainings": 0,
        "too_late": 0,
        "failed_trainings": 0,
        "failed_posteriors": 0,
    }


@pytest.mark.parametrize("rounds", [0, 2, 8, 21])
def test_restored_policy_continues_bit_for_bit(rounds: int) -> None:
    original, copy = _policy(ScriptedEncoder()), _policy(ScriptedEncoder())
    _play(original, rounds)
    copy.restore(load(dump(original.snapshot())))
    assert copy.diagnostics() == original.diagnostics()
    assert _play(copy, 40) == _play(original, 40)
    assert dump(copy.snapshot()) == dump(original.snapshot())


def test_snapshot_shares_no_memory_with_the_policy() -> None:
    policy = _policy(ScriptedEncoder())
    _play(policy, 12)
    snapshot = policy.snapshot()
    before = dump(snapshot)
    _play(policy, 12)
    assert dump(snapshot) == before


def test_foreign_snapshots_are_refused() -> None:
    policy = _policy(ScriptedEncoder())
    with pytest.raises(SnapshotError, match="of kind 'ucb'"):
        policy.restore({"kind": "ucb"})
    taken = policy.snapshot()
    snapshot = {**taken, "reading": {**taken["reading"], "pulls": np.zeros(7, np.int64)}}
    with pytest.raises(SnapshotError, match="7 arms, this policy has 3"):
        policy.restore(snapshot)
