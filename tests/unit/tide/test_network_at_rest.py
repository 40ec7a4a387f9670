"""A network that nobody expects anything of dozes, and knows all when it wakes; what else keeps
work small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.encoders.recurrent import RecurrentEncoder
from tidepull.errors import SnapshotError
from tidepull.policies import build_policy
from tidepull.tide.jobs import STEPS, Job, JobQueue
from tidepull.tide.mixture import Mixture
from tidepull.tide.models import network
from tidepull.types import Context, Event, ProblemShape


def test_rounds_that_are_only_noted_are_read_at_the_next_training() -> None:
    made = []
    for dozing in (False, True):
        encoder = RecurrentEncoder(
            ProblemShape(3), units=(8, 8, 8), learning_rate=0.01, rng=np.random.default_rng(0)
        )
        for t in range(40):
            encoder.open()
            if dozing and 10 <= t < 35:
                encoder.note(Context(), t % 3)
            else:
                encoder.decide(Context(), t % 3)
            encoder.pay(t, float(t % 2))
        encoder.refit(2)
        made.append((encoder.features(Context()), *encoder.encode_history()))
    for usual, noted in zip(*made, strict=True):
        np.testing.assert_array_equal(noted, usual)


def test_weight_of_who_rests_stays_and_its_prior_returns() -> None:
    mixture = Mixture(np.array([0.7, 0.2, 0.1]), np.arange(3), ("a", "b", "c"), 0.1)
    mixture.pause(2)
    np.testing.assert_allclose(mixture.prior, [7 / 9, 2 / 9, 0.0])
    for _ in range(50):
        mixture.reweigh(np.array([-1.0, -2.0, np.nan]))
    assert np.exp(mixture.log_weights).sum() == pytest.approx(1)
    assert np.exp(mixture.log_weights[2]) < 0.1
    mixture.resume(2, 0.1)
    np.testing.assert_allclose(mixture.prior, [0.7, 0.2, 0.1])


@pytest.fixture
def drowsy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_ALWAYS_ACTIVE", 32)
    monkeypatch.setattr(network, "_ACTIVE_ROUNDS", 32)
    monkeypatch.setattr(network, "_LIGHT", 0.5)


def tide() -> Any:
    return build_policy("tide", ProblemShape(2), seed=0)


def play(policy: Any, first: int, stop: int) -> list[tuple[int, bool]]:
    rng, played = np.random.default_rng(7), []
    noise = rng.random(stop)
    for t in range(first, stop):
        arm = policy.choose(Context())
        reward = float(noise[t] < (0.9 if arm == 0 else 0.2))
        policy.learn(Event(Context(), arm, reward))
        while policy.upkeep():
            pass
        played.append((arm, policy.inner._patterns._network.paused))
    return played


@pytest.mark.usefixtures("drowsy")
def test_network_that_is_not_needed_dozes_but_for_a_while_at_powers_of_two() -> None:
    policy = tide()
    dozing = [asleep for _, asleep in play(policy, 0, 200)]
    assert dozing[63] == dozing[94] is False
    assert dozing[95] == dozing[126] is True
    assert dozing[127] == dozing[158] is False
    assert dozing[159] is True


@pytest.mark.usefixtures("drowsy")
def test_snapshot_of_a_policy_whose_network_dozes_changes_no_later_bit() -> None:
    policy, other = tide(), tide()
    play(policy, 0, 110)
    assert policy.inner._patterns._network.paused
    other.restore(policy.snapshot())
    assert play(other, 110, 180) == play(policy, 110, 180)
    np.testing.assert_array_equal(
        other.inner._patterns._mixture.log_weights, policy.inner._patterns._mixture.log_weights
    )


@pytest.mark.parametrize(("count", "share"), [(4, 0.1), (100, 0.01)])
def test_no_more_than_one_in_so_many_is_given_back(count: int, share: float) -> None:
    prior, scores = np.array([0.7, 0.2, 0.1]), np.array([-1.0, -2.0, -9.0])
    mixture = Mixture(prior.copy(), np.arange(3), ("a", "b", "c"), 0.1)
    mixture.reweigh(scores.copy(), count)
    learnt = prior * np.exp(scores) / (prior @ np.exp(scores))
    np.testing.assert_allclose(np.exp(mixture.log_weights), (1 - share) * learnt + share * prior)


def test_snapshot_holds_only_what_hypotheses_in_play_have_learnt() -> None:
    shape = ProblemShape(3, observation_dim=4)
    policy = build_policy("tide", shape, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(40):
        context = Context(observation=rng.normal(size=4))
        policy.learn(Event(context, policy.choose(context), float(rng.random() < 0.5)))
        while policy.upkeep():
            pass
    bank = policy.inner._patterns._bank  # type: ignore[attr-defined]
    specs = [bank.spec(m) for m in np.flatnonzero(bank.arrays.active)]
    used = sum(bank.layout.blocks(spec) * bank.layout.dim(spec) ** 2 for spec in specs)
    saved = bank.snapshot()
    assert len(saved["mat"]) == used < bank.arrays.mat.size
    with pytest.raises(SnapshotError, match="does not fit in 'mat'"):
        bank.copy().restore({**saved, "mat": saved["mat"][1:]})


def test_slice_counts_what_every_piece_of_work_costs_beside_its_steps() -> None:
    done = []

    def work(_: str, __: int) -> Job[None]:
        for i in range(10):
            done.append(i)
            yield 1

    agenda = JobQueue(work, overhead=STEPS // 4)
    agenda.put("search", 1)
    assert agenda.slice()
    assert len(done) == 4
