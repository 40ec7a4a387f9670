"""Each small piece of the bank by itself, against dense linear algebra: quick, compiled or not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.unit.tide.models.test_kernels import EVERY, N_ARMS, Q, make, rounds
from tidepull.errors import SnapshotError
from tidepull.tide.jobs import finish
from tidepull.tide.models import algebra, kernels
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import RoundState, empty_state
from tidepull.tide.models.families import describe
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.lagged import LAST_ARM, LAST_REWARD, last_event, last_success
from tidepull.tide.models.linear import discounted, fourier, seasons, square, stationary
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.spec import Spec
from tidepull.tide.models.turns import BELIEF, turns
from tidepull.tide.models.weights import reweigh
from tidepull.types import FloatArray

X = np.random.default_rng(3).normal(size=(N_ARMS, Q))


def spd(d: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """A sum of squares, and some vector."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(2 * d, d))
    return rows.T @ rows, rng.normal(size=d)


class Given:
    """A generator that gives what it is told to."""

    def __init__(self, gamma: float, normals: FloatArray) -> None:
        self._gamma, self._normals = gamma, normals

    def gamma(self, a: float, size: tuple[int, int] | None = None) -> Any:
        return self._gamma if size is None else np.full(size, self._gamma)

    def standard_normal(self, size: Any) -> FloatArray:
        return self._normals.copy().reshape(size)


def dense(
    hypothesis: Spec, bank: ModelBank, now: RoundState, shared: bool, seen: list[Any]
) -> list[tuple[Any, Any, Any]]:
    """phi, Lam and eta of every arm from the whole history."""
    spec, found = hypothesis, []
    for k in range(N_ARMS):
        cell, tau = hypothesis.basis(now, N_ARMS)
        phi = np.kron(tau, X[k]) if spec.contextual else tau
        if spec.appended == BELIEF.index:
            phi = np.append(phi, now.per_arm[BELIEF.index, k])
        block = (cell, 0 if shared else k)
        lam, eta = float(bank.arrays.ridge[0]) * np.eye(len(phi)), np.zeros(len(phi))
        for t, where, p, y in seen:
            if where == block:
                weight = spec.discount ** (now.t - t)
                lam += weight * np.outer(p, p)
                eta += weight * p * y
        found.append((phi, lam, eta))
    return found


def taught(
    hypothesis: Spec, shared: bool, order: list[int] | None = None
) -> tuple[ModelBank, list[Any], RoundState]:
    """A bank that learnt some rounds (in that order), and what it was taught."""
    bank, seen, given = make([hypothesis], shared), [], rounds(15, seed=2)
    for i in order or range(14):
        moment, arm, x, y = given[i]
        bank.observe(moment, arm, x, y, binary=False)
        cell, tau = hypothesis.basis(moment, N_ARMS)
        phi = np.kron(tau, x) if hypothesis.contextual else tau
        if hypothesis.appended == BELIEF.index:
            phi = np.append(phi, moment.per_arm[BELIEF.index, arm])
        seen.append((moment.t, (cell, 0 if shared else arm), phi, y))
    return bank, seen, given[14][0]


@pytest.mark.parametrize("hypothesis", EVERY, ids=describe)
def test_outlook_of_every_arm_equals_dense_algebra(hypothesis: Spec) -> None:
    bank, seen, now = taught(hypothesis, shared=False)
    means, leverages = bank.predict(0, now, X)
    for k, (phi, lam, eta) in enumerate(dense(hypothesis, bank, now, False, seen)):
        assert means[k] == pytest.approx(phi @ np.linalg.solve(lam, eta), abs=1e-9)
        assert leverages[k] == pytest.approx(phi @ np.linalg.solve(lam, phi), abs=1e-9)


@pytest.mark.parametrize(
    "hypothesis",
    [stationary(True), discounted(0.9, True), fourier(6.0), square(3.0, 1.0, contextual=True)],
    ids=describe,
)
def test_shared_draw_moves_by_the_noise_as_the_posterior_is_wide(hypothesis: Spec) -> None:
    bank, seen, now = taught(hypothesis, shared=True)
    d = bank.layout.dim(hypothesis)

    def drawn(noise: FloatArray) -> FloatArray:
        draws = np.empty(N_ARMS)
        kernels.shared_draw(bank.arrays, 0, now.t, now.covariates, X, noise, draws)
        return draws

    centre = drawn(np.zeros(d))
    moved = np.array([drawn(row) - centre for row in np.eye(d)])
    each = dense(hypothesis, bank, now, True, seen)
    np.testing.assert_allclose(centre, [phi @ np.linalg.solve(lam, eta) for phi, lam, eta in each])
    covariance = [[p @ np.linalg.solve(lam, q) for q, _, _ in each] for p, lam, _ in each]
    np.testing.assert_allclose(moved.T @ moved, covariance, atol=1e-10)


@pytest.mark.parametrize("contextual", [False, True])
def test_draw_is_as_wide_as_noise_and_scale_say(contextual: bool) -> None:
    bank, _, now = taught(fourier(6.0, contextual=contextual), shared=False)
    normals, gamma = np.array([1.0, -2.0, 0.5]), 2.5
    means, leverages = bank.predict(0, now, X)
    std = math.sqrt(bank.arrays.b[0] / gamma) * (0.5 if contextual else 1.0)
    rng: Any = Given(gamma, normals)
    np.testing.assert_allclose(
        bank.draw(0, now, X, False, rng), means + std * np.sqrt(leverages) * normals
    )


def test_shared_draws_are_as_wide_as_noise_and_scale_say() -> None:
    bank, _, now = taught(stationary(contextual=True), shared=True)
    normals, gamma = np.array([1.0, -2.0, 0.5, 0.25]), 2.5
    expected = np.empty(N_ARMS)
    std = 0.5 * math.sqrt(bank.arrays.b[0] / gamma)
    kernels.shared_draw(bank.arrays, 0, now.t, now.covariates, X, std * normals, expected)
    rng: Any = Given(gamma, normals)
    np.testing.assert_allclose(bank.draw(0, now, X, False, rng), expected)


def test_counts_of_successes_and_failures_are_those_of_each_arm_and_phase() -> None:
    """Arm 0 wins in one phase and loses in the other; arm 1 the other way round, twice as often."""
    for hypothesis, g in ((square(2.0), 1.0), (square(2.0, discount=0.5), 0.5)):
        bank = make([hypothesis])
        played = [
            (0, 1.0),
            (1, -1.0),
            (0, -1.0),
            (1, 1.0),
            (1, -1.0),
            (0, 1.0),
            (2, -1.0),
            (1, 1.0),
        ]
        expected = np.zeros((2, N_ARMS, 2))  # phase, arm, (won, lost)
        for t, (arm, y) in enumerate(played):
            bank.observe(empty_state(t, N_ARMS), arm, np.ones(Q), y, binary=True)
            expected[t // 2 % 2, arm, int(y < 0)] += g ** (9 - t)
        won, lost = np.empty(N_ARMS), np.empty(N_ARMS)
        now = empty_state(9, N_ARMS)
        kernels._counts(bank.arrays, 0, 9, now.covariates, won, lost, np.empty(kernels.MAX_WIDTH))
        np.testing.assert_allclose(won, expected[0, :, 0])
        np.testing.assert_allclose(lost, expected[0, :, 1])


def test_binary_draws_follow_the_counts() -> None:
    bank = make([stationary()])
    for t in range(40):
        bank.observe(empty_state(t, N_ARMS), t % 2, np.ones(Q), 1.0 if t % 2 else -1.0, binary=True)
    rng = np.random.default_rng(0)
    draws = np.array([bank.draw(0, empty_state(40, N_ARMS), X, True, rng) for _ in range(400)])
    np.testing.assert_allclose(0.5 * (1 + draws.mean(axis=0)), [1 / 22, 21 / 22, 0.5], atol=0.05)
    np.testing.assert_allclose(draws[:, 2].std(), 2 * math.sqrt(1 / 12), atol=0.06)


@pytest.mark.parametrize(
    "hypothesis",
    [discounted(0.8), discounted(0.9, True), fourier(5.0, 0.95), stationary(True)],
    ids=describe,
)
def test_rewards_that_come_out_of_order_count_from_their_own_rounds(hypothesis: Spec) -> None:
    bank, seen, now = taught(hypothesis, False, [3, 0, 7, 5, 1, 2, 13, 6, 4, 12, 8, 9])
    means, leverages = bank.predict(0, now, X)
    for k, (phi, lam, eta) in enumerate(dense(hypothesis, bank, now, False, seen)):
        assert means[k] == pytest.approx(phi @ np.linalg.solve(lam, eta), abs=1e-9)
        assert leverages[k] == pytest.approx(phi @ np.linalg.solve(lam, phi), abs=1e-9)


@pytest.mark.parametrize(
    ("hypothesis", "column"),
    [
        (last_event(), LAST_ARM.index),
        (last_event(), LAST_REWARD.index),
        (last_success(), None),
        (turns(), None),
    ],
)
def test_hypothesis_says_and_learns_nothing_when_its_note_is_forgotten(
    hypothesis: Spec, column: int | None
) -> None:
    bank, _, now = taught(hypothesis, shared=False)
    covariates, each = now.covariates.copy(), now.per_arm.copy()
    covariates[slice(None) if column is None else column], each[:] = np.nan, np.nan
    before = bank.snapshot()
    assert math.isnan(
        bank.observe(now._replace(covariates=covariates, per_arm=each), 1, X[1], 0.5, binary=False)[
            0
        ]
    )
    after = bank.snapshot()
    assert all(
        np.array_equal(before[name], after[name]) for name in ("a", "b", "vec", "mat", "stamp")
    )
    assert math.isfinite(bank.observe(now, 1, X[1], 0.5, binary=False)[0])


def test_hypothesis_that_asks_for_no_note_is_not_disturbed_by_forgotten_ones() -> None:
    bank, _, now = taught(fourier(6.0), shared=False)
    now.covariates[:], now.per_arm[:] = np.nan, np.nan
    assert math.isfinite(bank.observe(now, 1, X[1], 0.5, binary=False)[0])


def test_two_arms_have_blocks_of_their_own() -> None:
    bank = ModelBank(Layout(2, 1, False), [[stationary()]], NoisePrior())
    bank.assign(0, stationary())
    for t in range(20):
        bank.observe(empty_state(t, 2), t % 2, np.ones(1), 1.0 if t % 2 else -1.0, binary=False)
    means, _ = bank.predict(0, empty_state(20, 2), np.ones((2, 1)))
    np.testing.assert_allclose(means, np.array([-10, 10]) / (10 + bank.arrays.ridge[0]))


def test_empty_slots_score_nothing() -> None:
    bank = ModelBank(Layout(N_ARMS, Q, False), [[stationary()]] * 2, NoisePrior())
    bank.assign(1, stationary())
    scores = bank.observe(empty_state(0, N_ARMS), 0, X[0], 0.5, binary=False)
    assert scores[0] == -math.inf
    assert math.isfinite(scores[1])


@pytest.mark.parametrize("d", [1, 2, 4])
def test_factor_whitens(d: int) -> None:
    A, v = spd(d, d)
    U = np.full((d, d), 7.0)
    algebra.factor(A.ravel().copy(), 0.3, 0.5, d, U)
    expected = np.linalg.cholesky(0.5 * A + 0.3 * np.eye(d)).T
    np.testing.assert_allclose(np.triu(U), expected)
    white = np.linalg.solve(expected.T, v)
    algebra.whiten(U, v, d)
    np.testing.assert_allclose(v, white)


def test_pivot_never_falls_below_half_the_ridge() -> None:
    U = np.empty((2, 2))
    algebra.factor(
        np.array([1.0, 3.0, 0.0, 1.0]), 0.2, 1.0, 2, U
    )  # not a sum of squares, as after rounding
    assert U[1, 1] == pytest.approx(math.sqrt(0.1))


@pytest.mark.parametrize("a", [0.6, 1.0, 3.5, 19.9, 20.1, 60.0, 4000.0])
@pytest.mark.parametrize("e", [0.0, -0.7, 12.0])
def test_log_student_is_the_density_of_students_t(a: float, e: float) -> None:
    expected = stats.t.logpdf(e, 2 * a, scale=math.sqrt(0.37))
    assert algebra.log_student(e, a, 0.37) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("chance", "leverage", "expected"),
    [(0.7, 0.01, 0.7), (1.4, 0.0, 0.998), (-0.2, 0.0, 0.002), (0.99, 0.5, 0.75), (0.1, 2.0, 0.4)],
)
def test_no_model_is_surer_of_a_success_than_its_data_allow(
    chance: float, leverage: float, expected: float
) -> None:
    assert algebra.log_binary(1.0, chance, leverage) == pytest.approx(math.log(expected))
    assert algebra.log_binary(-1.0, chance, leverage) == pytest.approx(math.log(1 - expected))


def test_weights_of_empty_slots_stay_nothing() -> None:
    log_weights = np.array([math.log(0.5), -math.inf, math.log(0.5)])
    scores, prior = np.array([-1.0, -math.inf, -3.0]), np.array([0.5, 0.0, 0.5])
    mixture = reweigh(log_weights, scores, prior, 0.1)
    assert mixture == pytest.approx(math.log(0.5 * math.exp(-1) + 0.5 * math.exp(-3)))
    assert log_weights[1] == -math.inf
    assert np.exp(log_weights).sum() == pytest.approx(1.0)


def test_weights_survive_rewards_that_nobody_expected() -> None:
    log_weights = np.log([0.5, 0.5])
    mixture = reweigh(log_weights, np.array([-900.0, -901.0]), np.array([0.5, 0.5]), 1e-9)
    assert mixture == pytest.approx(-900 + math.log(0.5 * (1 + math.exp(-1))))
    np.testing.assert_allclose(
        np.exp(log_weights), [1 / (1 + math.exp(-1)), 1 / (1 + math.e)], rtol=1e-6
    )


def test_noise_is_learnt_with_the_memory_that_all_share() -> None:
    bank = make([stationary(), discounted(0.5)], memory=0.9)
    a, b = 1.0, np.array([0.1, 0.1])
    ridge = bank.arrays.ridge.copy()
    n, s, last = np.zeros(2), np.zeros(2), 0
    for t, y in enumerate((0.4, -1.0, 2.0, 0.1)):
        g = np.array([1.0, 0.5]) ** (t - last)
        n, s, last = g * n, g * s, t
        e, leverage = y - s / (ridge + n), 1 / (ridge + n)
        bank.observe(empty_state(t, N_ARMS), 0, X[0], y, binary=False)
        a = 0.9 * a + 0.1 + 0.5
        b = 0.9 * b + 0.1 * 0.1 + 0.5 * e**2 / (1 + leverage)
        n, s = n + 1, s + y
        np.testing.assert_allclose(bank.arrays.a, a)
        np.testing.assert_allclose(bank.arrays.b, b)


def test_ridge_follows_the_noise_within_bounds_and_the_width_of_the_prior() -> None:
    prior = NoisePrior()
    noise, own = np.array([0.04, 0.04, 1e-9, 50.0]), np.array([False, True, False, False])
    np.testing.assert_allclose(prior.ridge(noise, own), [0.04, 0.04 / 0.49, 0.003, 1.0])
    for shared in (False, True):
        bank = make([stationary(), stationary(contextual=True)], shared)
        tau2 = np.array([1.0, 1.0 if shared else 0.49])
        np.testing.assert_allclose(bank.arrays.ridge, 0.1 / tau2)
        assert [bank.assumed_noise(m) for m in range(2)] == pytest.approx([0.1, 0.1])
        bank.assign(1, stationary(contextual=True), noise=0.2)
        np.testing.assert_allclose(bank.arrays.ridge, np.array([0.1, 0.2]) / tau2)
        bank.arrays.a[:], bank.arrays.b[:] = 4.0, 1.2
        bank.adapt_ridge(0, 0.5)
        np.testing.assert_allclose(bank.arrays.ridge, np.array([0.25 * 0.3, 0.2]) / tau2)
        bank.refresh_ridges()  # slot 1 has four features, and so a root of its own
        np.testing.assert_allclose(bank.arrays.ridge, np.array([0.3, 0.2]) / tau2)


def test_reset_forgets_all_but_the_hypothesis_and_its_ridge() -> None:
    for hypothesis in (stationary(contextual=True), fourier(6.0, 0.9)):
        bank, _, _ = taught(hypothesis, shared=False)
        fresh = make([hypothesis])
        bank.reset(0)
        assert bank.spec(0) == hypothesis
        for name in ("ridge", "a", "b", "stamp", "vec", "mat"):
            np.testing.assert_allclose(getattr(bank.arrays, name), getattr(fresh.arrays, name))


def test_large_blocks_without_discount_are_kept_as_roots() -> None:
    kept: list[Spec] = [
        stationary(),
        fourier(6.0),
        stationary(True),
        discounted(0.9, True),
        turns(True),
    ]
    assert make(kept).arrays.inverse.tolist() == [False, False, True, False, True]


def test_slot_takes_no_hypothesis_that_is_too_large() -> None:
    bank = ModelBank(Layout(N_ARMS, Q, False), [[fourier(6.0)]], NoisePrior())
    bank.assign(0, fourier(9.0))
    for too_large in (stationary(contextual=True), square(3.0), last_event()):
        with pytest.raises(ValueError, match="slot 0 has no room"):
            bank.assign(0, too_large)
    waves = seasons(square(3.0), square(5.0))
    for room, spec in (
        ([waves], fourier(6.0)),
        ([waves, stationary(True)], last_event()),
    ):
        bank = ModelBank(Layout(N_ARMS, Q, False), [room], NoisePrior())
        with pytest.raises(ValueError, match="slot 0 has no room"):
            bank.assign(0, spec)


def test_window_is_lived_through_from_the_row_that_is_asked_for() -> None:
    hypothesis, given = fourier(6.0), rounds(30)
    window = Window(
        t=np.array([each[0].t for each in given]),
        covariates=np.array([each[0].row(each[1]) for each in given]),
        arm=np.array([each[1] for each in given]),
        x=np.array([each[2] for each in given]),
        y=np.array([each[3] for each in given]),
    )
    part, whole = make([hypothesis]), make([hypothesis])
    scores = finish(part.replay(0, window, False, start=20))
    assert len(scores) == 10
    expected = np.array([whole.observe(*each, binary=False)[0] for each in given[20:]])
    np.testing.assert_allclose(scores, expected)


def test_twin_learns_apart_and_takes_over_when_told() -> None:
    bank, _, now = taught(fourier(6.0), shared=False)
    before = bank.snapshot()
    twin = bank.copy()
    twin.observe(now, 0, X[0], 1.0, binary=False)
    twin.assign(0, fourier(6.5))
    assert np.array_equal(bank.snapshot()["vec"], before["vec"])
    assert bank.spec(0) == fourier(6.0)
    bank.replace_with(twin)
    assert bank.spec(0) == fourier(6.5)


def seat(**changes: Any) -> list[Any]:
    return [list(p) if isinstance(p, tuple) else p for p in Spec("fourier")._replace(**changes)]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("seats", [], "0 models, this bank has 1"),
        ("seats", [None], "active slot without a model"),
        ("seats", [seat(family=3)], "nothing is known"),
        ("seats", [seat(regime_by=99)], "nothing is known"),
        ("seats", [seat(appended=-2)], "nothing is known"),
        ("seats", [seat(shapes=(1, 9))], "unknown clocks"),
        ("seats", [seat(shapes=(1,))], "unknown clocks"),
        ("seats", [seat(periods=(0.0, 1.0))], "impossible period"),
        ("seats", [seat(discount=1.5)], "impossible period"),
        ("seats", [seat(discount=0.0)], "impossible period"),
        ("seats", [seat(offsets=(math.inf, 0.0))], "impossible period"),
        ("a", np.zeros(1), "must be positive"),
        ("b", np.array([-1.0]), "must be positive"),
        ("ridge", np.zeros(1), "must be positive"),
        ("vec", np.zeros(3), "does not fit in 'vec'"),
        ("stamp", np.zeros(3), "does not fit in 'stamp'"),
        ("a", [1.0], "does not fit in 'a'"),
    ],
)
def test_bank_refuses_what_does_not_fit(name: str, value: Any, words: str) -> None:
    bank, _, _ = taught(fourier(6.0), shared=False)
    with pytest.raises(SnapshotError, match=words):
        bank.restore({**bank.snapshot(), name: value})


def test_bank_goes_on_from_a_snapshot_with_other_hypotheses_in_its_slots() -> None:
    bank, _, now = taught(fourier(6.0, 0.9), shared=False)
    other = make([fourier(9.0, 0.9)])
    other.restore(bank.snapshot())
    assert other.spec(0) == fourier(6.0, 0.9)
    np.testing.assert_array_equal(other.predict(0, now, X)[0], bank.predict(0, now, X)[0])
