"""Draws that are narrow where contexts explore by themselves, and wide for arms of which less is
known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tidepull.tide.models import kernels
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import empty_state
from tidepull.tide.models.family import Layout
from tidepull.tide.models.filters import Blocks
from tidepull.tide.models.linear import discounted, stationary
from tidepull.tide.models.noise import NoisePrior, draw_scale, lasting_scale
from tidepull.tide.models.spec import Spec
from tidepull.types import FloatArray

N_ARMS, Q = 3, 5


def taught(
    hypothesis: Spec, *, shared: bool, max_scale: float, plays: tuple[int, ...]
) -> ModelBank:
    """A bank of one hypothesis that has seen arm k in plays[k] rounds; arms pay 1, but the last one
    pays -1."""
    spec = hypothesis
    layout, prior = Layout(N_ARMS, Q, shared), NoisePrior(max_scale=max_scale)
    bank = ModelBank(layout, [[spec]], prior)
    bank.assign(0, spec)
    rng = np.random.default_rng(1)
    t = 0
    for arm, count in enumerate(plays):
        for _ in range(count):
            x = np.concatenate([[1.0], rng.standard_normal(Q - 1) / 2])
            y = (-1.0 if arm == N_ARMS - 1 else 1.0) + 0.3 * rng.standard_normal()
            bank.observe(empty_state(t, N_ARMS), arm, x, y, False)
            t += 1
    return bank


def rows(seed: int = 2) -> FloatArray:
    z = np.random.default_rng(seed).standard_normal((N_ARMS, Q - 1)) / 2
    return np.concatenate([np.ones((N_ARMS, 1)), z], axis=1)


def test_scale_is_least_when_all_arms_are_known_alike() -> None:
    np.testing.assert_array_equal(draw_scale(np.full(4, 0.3), min_scale=0.5, max_scale=2.0), 0.5)


def test_scale_asks_for_the_logarithm_of_what_the_average_arm_has() -> None:
    known = np.array([100.0, 100.0, 98.0, 2.0])  # the mean is 75
    found = draw_scale(1 / known, min_scale=0.5, max_scale=2.0)
    np.testing.assert_allclose(found[3], np.sqrt(np.log(1 + 75 / 4) / 2.0))
    np.testing.assert_array_equal(found[:3], 0.5)


def test_scale_asks_for_half_of_that_when_arms_need_half_the_plays() -> None:
    known = np.array([100.0, 100.0, 98.0, 2.0])
    found = draw_scale(1 / known, min_scale=0.5, max_scale=2.0, scale_c=0.5)
    np.testing.assert_allclose(found[3], np.sqrt(0.5 * np.log(1 + 75 / 4) / 2.0))


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "many at once"])
@pytest.mark.parametrize(
    ("hypothesis", "plays", "scale"),
    [
        (stationary(False), (80, 30, 1), lasting_scale),
        (
            discounted(0.999),
            (80, 7, 1),
            lambda known, min_scale: draw_scale(known, min_scale=min_scale, max_scale=1),
        ),
    ],
    ids=["for ever", "forgets"],
)
@pytest.mark.parametrize("min_scale_plain", [0.5, 1.0], ids=["narrow", "as they are"])
def test_draws_without_context_are_narrow_for_known_arms_and_never_wider_than_the_posterior(
    hypothesis: Spec,
    plays: tuple[int, ...],
    scale: Callable[[FloatArray, float], FloatArray],
    min_scale_plain: float,
    together: bool,
) -> None:
    spec = hypothesis
    bank = ModelBank(
        Layout(N_ARMS, 1, False), [[spec]], NoisePrior(min_scale_plain=min_scale_plain)
    )
    bank.assign(0, spec)
    rng, t = np.random.default_rng(1), 0
    for arm, count in enumerate(plays):
        for _ in range(count):
            bank.observe(
                empty_state(t, N_ARMS), arm, np.ones(1), arm + 0.3 * rng.standard_normal(), False
            )
            t += 1
    moment, X = empty_state(t, N_ARMS), np.ones((N_ARMS, 1))
    draws = (
        bank.draws({0: 6000}, moment, X, False, rng)
        if together
        else np.array([bank.draw(0, moment, X, False, rng) for _ in range(6000)])
    )
    _, leverages = bank.predict(0, moment, X)
    noise = bank.arrays.b[0] / (bank.arrays.a[0] - 1)
    factor = scale(leverages, min_scale_plain)
    np.testing.assert_allclose(draws.std(axis=0) / np.sqrt(noise * leverages), factor, rtol=0.05)
    assert factor[2] == 1.0
    assert min_scale_plain == 1.0 or 0.5 < factor[1] < 0.9, (
        "where the number of plays makes a difference"
    )


def test_hidden_states_draw_as_those_that_forget() -> None:
    leverages, errors = np.array([1 / 80, 1 / 9, 1.0]), np.array([0.3, -0.2, 0.1])
    narrow, wide = (
        Blocks(Layout(N_ARMS, 1, False), False, NoisePrior(min_scale_plain=k)) for k in (0.5, 1.0)
    )
    drawn = [
        b.sample(b.noise(), (np.zeros(3), errors, leverages), np.random.default_rng(3))
        for b in (narrow, wide)
    ]
    np.testing.assert_allclose(
        drawn[0] / drawn[1], draw_scale(leverages, min_scale=0.5, max_scale=1.0, scale_c=1.0)
    )
    n, s = np.array([80.0, 9.0, 1.0]), np.array([20.0, 3.0, 1.0])
    found = narrow.beta_draw(n, s, np.random.default_rng(4))
    alike = narrow.prior.beta_draw(
        0.5 * (n + s), 0.5 * (n - s), np.random.default_rng(4), forgets=True
    )
    np.testing.assert_array_equal(found, alike)


def test_an_arm_far_behind_the_leader_is_drawn_as_widely_as_the_posterior() -> None:
    np.testing.assert_array_equal(
        lasting_scale(1 / np.array([400.0, 100.0, 3.0]), 0.5), [0.5, 1, 1]
    )
    np.testing.assert_array_equal(lasting_scale(np.full(3, 0.1), 0.5), 0.5)


def test_a_good_arm_with_bad_luck_is_asked_as_often_as_posterior_sampling_asks() -> None:
    spec = stationary(False)
    bank = ModelBank(Layout(2, 1, False), [[spec]], NoisePrior(min_scale_plain=0.5))
    bank.assign(0, spec)
    rewards = [(0, t % 5 < 2) for t in range(4000)] + [(1, t % 6 == 0) for t in range(36)]
    for t, (arm, success) in enumerate(rewards):
        bank.observe(empty_state(t, 2), arm, np.ones(1), 1.0 if success else -1.0, True)
    draws = bank.draws(
        {0: 200_000}, empty_state(5000, 2), np.ones((2, 1)), True, np.random.default_rng(1)
    )
    asked = float(np.mean(draws[:, 1] > draws[:, 0]))
    assert asked == pytest.approx(stats.beta(1 + 6, 1 + 30).sf(0.4), rel=0.2)
    assert asked > 0.001, "at half the width it would be asked once in a million rounds"


def test_beta_draws_are_half_as_wide_for_known_arms_when_draws_are_narrow() -> None:
    won, lost = np.array([300.0, 100.0, 1.0]), np.array([100.0, 100.0, 0.0])
    rng = np.random.default_rng(2)
    wide, narrow = (
        rng.beta(
            *NoisePrior(min_scale_plain=least).beta(won, lost, forgets=False), size=(20_000, 3)
        ).std(axis=0)
        for least in (1.0, 0.5)
    )
    np.testing.assert_allclose(narrow / wide, [0.5, 0.71, 1.0], rtol=0.03)


@pytest.mark.parametrize("min_scale_plain", [0.5, 1.0])
def test_beta_draws_are_finite_when_sums_of_rewards_exceed_their_numbers(
    min_scale_plain: float,
) -> None:
    won, lost = np.array([7.0, -2.5]), np.array([-3.0, 4.0])
    prior, rng = NoisePrior(min_scale_plain=min_scale_plain), np.random.default_rng(0)
    draws = np.array([prior.beta_draw(won, lost, rng, forgets=True) for _ in range(100)])
    assert ((draws >= -1) & (draws <= 1)).all()
    assert draws[:, 0].mean() > 0.9
    assert draws[:, 1].mean() < -0.5


def test_scale_stays_between_its_bounds_whatever_is_known() -> None:
    found = draw_scale(np.array([1e-6, 1.0, 1e6]), min_scale=0.5, max_scale=2.0)
    assert found[0] == 0.5
    assert found[2] == 2.0
    assert ((found >= 0.5) & (found <= 2.0)).all()


@pytest.mark.parametrize(
    "hypothesis", [stationary(True), discounted(0.9, True)], ids=["inverse", "moments"]
)
def test_shared_outlook_adds_up_to_the_shared_draw(hypothesis: Spec) -> None:
    bank = taught(hypothesis, shared=True, max_scale=2.0, plays=(20, 5, 1))
    moment, X = empty_state(26, N_ARMS), rows()
    noise = np.random.default_rng(3).standard_normal(Q)
    draws, means, errors, leverages = (np.empty(N_ARMS) for _ in range(4))
    kernels.shared_draw(bank.arrays, 0, moment.t, moment.covariates, X, noise, draws)
    kernels.predict_shared(
        bank.arrays, 0, moment.t, moment.covariates, X, noise, means, errors, leverages
    )
    np.testing.assert_allclose(means + errors, draws, rtol=1e-12)
    silent, _, _, more = (np.empty(N_ARMS) for _ in range(4))
    kernels.shared_draw(bank.arrays, 0, moment.t, moment.covariates, X, np.zeros(Q), silent)
    np.testing.assert_allclose(means, silent, rtol=1e-12)
    for i in range(Q):  # the leverage is the sum of squared errors of unit noises
        kernels.predict_shared(
            bank.arrays, 0, moment.t, moment.covariates, X, np.eye(Q)[i], means, errors, more
        )
        leverages -= errors**2
    np.testing.assert_allclose(leverages, 0.0, atol=1e-12)


@pytest.mark.parametrize("shared", [False, True], ids=["own weights", "shared weights"])
def test_draws_have_the_scale_of_each_arm_when_one_is_hardly_known(shared: bool) -> None:
    X = rows()
    if shared:
        X[2, 1:] *= 40  # far from all that was played
    bank = taught(stationary(True), shared=shared, max_scale=2.0, plays=(60, 60, 1))
    rng, moment = np.random.default_rng(4), empty_state(121, N_ARMS)
    draws = np.array([bank.draw(0, moment, X, False, rng) for _ in range(6000)])
    leverages: FloatArray = np.empty(N_ARMS)
    if shared:
        means, errors = np.empty(N_ARMS), np.empty(N_ARMS)
        kernels.predict_shared(
            bank.arrays, 0, moment.t, moment.covariates, X, np.zeros(Q), means, errors, leverages
        )
    else:
        _, leverages = bank.predict(0, moment, X)
    noise = bank.arrays.b[0] / (bank.arrays.a[0] - 1)  # the mean of b / Gamma(a, 1)
    factor = draws.std(axis=0) / np.sqrt(noise * leverages)
    np.testing.assert_allclose(
        factor, draw_scale(leverages, min_scale=0.5, max_scale=2.0), rtol=0.05
    )
    assert factor[2] > 1.2
    assert factor[:2].max() < 0.65


def test_arm_that_disappointed_once_is_tried_again_when_draws_may_be_bold() -> None:
    moment, X = empty_state(81, N_ARMS), rows()

    def chances(max_scale: float) -> float:
        bank = taught(stationary(True), shared=False, max_scale=max_scale, plays=(40, 40, 1))
        rng = np.random.default_rng(5)
        return float(
            np.mean([np.argmax(bank.draw(0, moment, X, False, rng)) == 2 for _ in range(2000)])
        )

    assert chances(2.0) > 5 * chances(0.5)
    assert chances(2.0) > 0.02
