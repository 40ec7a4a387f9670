"""Rewards late, out of order, missing: what is learnt of a round is what was known when it was
decided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.experiments.loop import run_trial
from tidepull.policies import build_policy
from tidepull.tide import pending
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import all_covariates, empty_state
from tidepull.tide.models.family import Layout, Rounds, Window
from tidepull.tide.models.lagged import LAST_ARM, LAST_REWARD
from tidepull.tide.models.linear import discounted, fourier, stationary
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.scan import sine_evidence, square_evidence
from tidepull.tide.models.spec import Spec
from tidepull.tide.window import one_by_one
from tidepull.types import Context, Event, ProblemShape

N_ARMS = 3


def tide(n_arms: int = N_ARMS, seed: int = 0, **parameters: Any) -> Any:
    return build_policy(("tide", parameters), ProblemShape(n_arms), seed=seed)


@pytest.mark.parametrize(
    "hypothesis", [discounted(0.9), fourier(7.0, 0.99), fourier(7.0), stationary()]
)
def test_reward_counts_from_the_round_of_its_decision_whenever_it_comes(
    hypothesis: Spec,
) -> None:
    rng = np.random.default_rng(0)
    spec = hypothesis
    bank = ModelBank(Layout(N_ARMS, 1, False), [[spec]], NoisePrior())
    bank.assign(0, spec)
    ridge, now = float(bank.arrays.ridge[0]), 40
    decided = rng.permutation(30)
    arms, y = rng.integers(N_ARMS, size=30), rng.normal(size=30)
    for t in decided:
        bank.observe(empty_state(int(t), N_ARMS), int(arms[t]), np.ones(1), float(y[t]), False)
    means, leverages = bank.predict(0, empty_state(now, N_ARMS), np.ones((N_ARMS, 1)))
    _, phi = hypothesis.basis(empty_state(now, N_ARMS), N_ARMS)
    for k in range(N_ARMS):
        mine = np.flatnonzero(arms == k)
        Phi = np.array([hypothesis.basis(empty_state(int(t), N_ARMS), N_ARMS)[1] for t in mine])
        weight = spec.discount ** (now - mine)
        lam = ridge * np.eye(len(phi)) + (Phi * weight[:, None]).T @ Phi
        assert means[k] == pytest.approx(
            phi @ np.linalg.solve(lam, Phi.T @ (weight * y[mine])), abs=1e-9
        )
        assert leverages[k] == pytest.approx(phi @ np.linalg.solve(lam, phi), abs=1e-9)


def test_round_is_explained_by_what_was_known_when_it_was_decided() -> None:
    policy = tide()
    arms = [policy.choose(Context()) for _ in range(2)]
    policy.learn(Event(Context(), arms[0], 1.0, decided=0))
    arms.append(policy.choose(Context()))
    policy.learn(Event(Context(), arms[1], 0.0, decided=1))
    policy.learn(Event(Context(), arms[2], 1.0, decided=2))
    covariates = policy.snapshot()["state"]["patterns"]["recent"]["covariates"][:3]
    np.testing.assert_array_equal(covariates[:, LAST_ARM.index], [0, 0, 1 + arms[0]])
    np.testing.assert_array_equal(covariates[:, LAST_REWARD.index], [np.nan, np.nan, 1.0])


def test_order_in_which_rewards_come_does_not_matter_to_what_only_time_explains() -> None:
    first, second = tide(seed=1, without=["network"]), tide(seed=1, without=["network"])
    rng = np.random.default_rng(3)
    rewards = rng.normal(size=15)
    for policy in (first, second):
        arms = [policy.choose(Context()) for _ in range(15)]
        order = range(15) if policy is first else reversed(range(15))
        for t in order:
            policy.learn(Event(Context(), arms[t], float(rewards[t]), decided=t))
    seats = first.snapshot()["state"]["patterns"]["bank"]["seats"]
    lasting = [
        m for m, seat in enumerate(seats) if seat and seat[0] in ("stationary", "fourier", "square")
    ]
    assert len(lasting) > 50
    for policy in (first, second):
        policy.choose(Context())
    for m in lasting[:40]:
        means = [
            policy.inner._patterns._bank.predict(m, empty_state(15, N_ARMS), np.ones((N_ARMS, 1)))[
                0
            ]
            for policy in (first, second)
        ]
        np.testing.assert_allclose(means[0], means[1], atol=1e-9)


@pytest.mark.parametrize(
    ("problem", "delay", "most"),
    [("sinusoidal-bernoulli", 8, 0.25), ("flipping-gaussian", 5, 0.12)],
)
def test_season_is_found_when_rewards_come_late(problem: str, delay: int, most: float) -> None:
    trial = run_trial(problem, "tide", horizon=500, seed=3, delay=delay)
    chance = run_trial(problem, "random", horizon=500, seed=3)
    assert trial.regret[-1] < most * chance.regret[-1]
    assert trial.diagnostics["explanation"].startswith(
        ("swings smoothly every 32", "repeats every 20.0")
    )


def test_reward_older_than_the_trail_is_learnt_by_what_needs_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending, "CAPACITY", 8)
    policy = tide()
    arms = [policy.choose(Context()) for _ in range(12)]
    policy.learn(Event(Context(), arms[2], 1.0, decided=2))
    assert policy.diagnostics()["too_late"] == 1
    state = policy.snapshot()["state"]["patterns"]
    assert np.isnan(state["recent"]["covariates"][0, LAST_ARM.index])
    seats = [seat[0] for seat in state["bank"]["seats"] if seat]
    stationary, remembering = seats.index("stationary"), seats.index("last event")
    assert (
        policy.inner._patterns._bank.arrays.a[stationary]
        != policy.inner._patterns._bank.arrays.a[remembering]
    )
    policy.learn(Event(Context(), arms[11], 1.0, decided=11))
    assert policy.diagnostics()["too_late"] == 1
    while policy.upkeep():
        pass
    assert np.exp(policy.inner._patterns._mixture.log_weights).sum() == pytest.approx(1.0)


def test_trail_forgets_decisions_whose_reward_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "CAPACITY", 16)
    policy = tide(without=["network"])
    for _ in range(100):
        policy.choose(Context())
    assert policy.snapshot()["state"]["patterns"]["pending"]["t"] == list(range(84, 100))


def test_scan_passes_over_rounds_without_a_reward() -> None:
    """Rewards out of order and with gaps: the same evidence as from the rows that came, by dense
    algebra."""
    rng = np.random.default_rng(5)
    t = rng.permutation(np.sort(rng.choice(120, 80, replace=False)) + 30)
    arm, y = rng.integers(N_ARMS, size=80), rng.normal(size=80)
    window = Window(t, np.zeros((80, len(all_covariates()))), arm, np.ones((80, 1)), y)
    rounds = one_by_one(window)
    assert rounds.t0 == t.min()
    assert (rounds.arm >= 0).sum() == 80

    def evidence(Phi: Any, block: Any) -> float:
        explained = volume = 0.0
        for b in np.unique(block):
            rows, d = Phi[block == b], Phi.shape[1]
            lam, eta = 0.1 * np.eye(d) + rows.T @ rows, rows.T @ y[block == b]
            explained += eta @ np.linalg.solve(lam, eta)
            volume += np.linalg.slogdet(lam)[1] - d * np.log(0.1)
        return float(-(1 + len(y) / 2) * np.log(0.1 + (y @ y - explained) / 2) - volume / 2)

    angle = 2 * np.pi * 0.07 * t
    sine = sine_evidence(np.array([0.07]), rounds, N_ARMS)[0]
    assert sine == pytest.approx(
        evidence(np.stack([np.ones(80), np.cos(angle), np.sin(angle)], 1), arm), abs=1e-7
    )
    phase = np.floor((t + 2) / 9).astype(int) % 2
    square = square_evidence(np.array([9.0]), np.array([2.0]), rounds, N_ARMS)[0]
    assert square == pytest.approx(evidence(np.ones((80, 1)), 2 * arm + phase), abs=1e-7)


def test_window_without_gaps_is_scanned_as_it_is() -> None:
    t = np.arange(7, 12)
    window = Window(
        t, np.zeros((5, len(all_covariates()))), np.zeros(5, int), np.ones((5, 1)), np.arange(5.0)
    )
    rounds = one_by_one(window)
    assert isinstance(rounds, Rounds)
    assert rounds.y is window.y


def test_network_is_told_which_arm_was_really_played() -> None:
    """A reward that comes late for another arm than the one proposed corrects what the network
    read."""
    policies = [tide(2, seed=s) for s in (0, 0)]
    for policy in policies:
        for _ in range(3):
            policy.choose(Context())
    policies[0].learn(Event(Context(), 0, 1.0, decided=0))
    policies[1].learn(Event(Context(), 1, 1.0, decided=0))
    inputs = [
        policy.snapshot()["state"]["patterns"]["network"]["encoder"]["history"]["inputs"][0]
        for policy in policies
    ]
    assert inputs[0][1:].tolist() == [1.0, 0.0]
    assert inputs[1][1:].tolist() == [0.0, 1.0]
