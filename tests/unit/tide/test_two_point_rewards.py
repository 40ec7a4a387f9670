"""Rewards of two kinds where arms have weights of their own on an observation: found, judged by
density, put right."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tests.unit.tide.continuing import arms_after_restoring
from tidepull.errors import SnapshotError
from tidepull.experiments.loop import run_trial
from tidepull.random import Streams
from tidepull.tide import TideParameters
from tidepull.tide.gated import GatedModel
from tidepull.tide.models import kernels, particles
from tidepull.tide.models.algebra import log_two_point
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.calibration import BINS, KEPT, recalibrate
from tidepull.tide.models.covariates import empty_state
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Filter, Layout
from tidepull.tide.models.linear import stationary
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.patterns import Patterns
from tidepull.tide.scale import RewardScale, Seen, Units, two_means_threshold
from tidepull.tide.two_point import explained_within, fit_two_clusters
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape

BY_DENSITY = NoisePrior(by_density=True)


def chance_of_one(mean: float, a: float, scale2: float) -> float:
    """From scipy's densities at 1 and at -1."""
    one, other = (float(stats.t.pdf(y, 2 * a, mean, math.sqrt(scale2))) for y in (1.0, -1.0))
    return float(np.clip(one / (one + other), 0.002, 0.998))


# ---- two kinds of rewards


def noisy(n: int, share: float = 0.5, noise: float = 0.1, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    return 3.0 + 10.0 * (rng.random(n) < share) + 10.0 * noise * rng.normal(size=n)


def seen(rewards: FloatArray, arms: IntArray | None = None, x: FloatArray | None = None) -> Seen:
    n = len(rewards)
    return Seen(
        rewards,
        np.zeros(n, np.int64) if arms is None else arms,
        np.ones((n, 1)) if x is None else x,
    )


def two_point_scale(rewards: FloatArray) -> RewardScale:
    """A scale whose units are those of two kinds."""
    scale = RewardScale(1, two_point=True)
    scale.recount([0] * len(rewards), rewards)
    scale.units = scale.fitted(seen(rewards))
    assert scale.units.two_point
    return scale


def test_two_kinds_are_found_when_noise_is_small_beside_their_distance() -> None:
    units = two_point_scale(noisy(200)).units
    assert units.binary
    assert units.centre == units.threshold == pytest.approx(8, abs=0.2)
    assert units.spread == pytest.approx(5, abs=0.2)


@pytest.mark.parametrize(
    "rewards",
    [
        np.random.default_rng(1).normal(size=500),
        np.random.default_rng(1).random(500),
        np.random.default_rng(1).exponential(size=500),
        noisy(500, noise=0.3),
        np.repeat([0.0, 0.5, 1.0], 50),
        np.full(100, 7.0),
        noisy(15),
        np.append(np.zeros(50), 1.0),
        np.repeat([5.0, 5.000000000000001], 50),
    ],
    ids=["bell", "even", "skew", "blurred", "three", "one", "few", "single", "rounding"],
)
def test_no_two_kinds_are_found_when_there_are_none(rewards: FloatArray) -> None:
    scale = RewardScale(1, two_point=True)
    scale.recount([0] * len(rewards), rewards)
    assert not scale.fitted(seen(rewards)).two_point


def test_known_kinds_stay_when_one_becomes_rare_and_go_when_rewards_leave_them() -> None:
    scale = two_point_scale(noisy(200))
    rare = noisy(2000, share=0.999, seed=2)
    assert fit_two_clusters(rare, two_means_threshold(rare)) is None
    assert scale.fitted(seen(rare)) == scale.units
    assert not scale.is_stale(seen(rare))
    for other in (noisy(2000, noise=0.3, seed=2), np.append(rare, 40.0), noisy(500, seed=3) + 4.0):
        assert scale.is_stale(seen(other))


def test_kinds_that_have_moved_lately_are_stale_though_the_window_is_long() -> None:
    """Within the range of the old ones, so that every reward fits."""
    scale, rng = two_point_scale(noisy(1800)), np.random.default_rng(4)
    moved = rng.choice([8.5, 15.0], 64)
    assert all(map(scale.fits, moved))
    assert scale.is_stale(seen(np.concatenate([noisy(1800), moved])))


@pytest.mark.parametrize("by", ["arm", "context", "context of each arm", "time", "noise"])
def test_kinds_go_when_something_says_how_much_is_paid_within_one(by: str) -> None:
    rng = np.random.default_rng(5)
    arms, x, right = rng.integers(3, size=400), rng.normal(size=(400, 4)), rng.random(400) < 0.7
    more = {
        "arm": arms - 1.0,
        "context": x[:, 2],
        "context of each arm": (arms - 1) * x[:, 2],
        "time": np.sin(np.arange(400) / 5),
        "noise": rng.normal(size=400),
    }[by]
    rewards = right + 0.1 * more + 0.02 * rng.normal(size=400)
    scale = RewardScale(3, two_point=True)
    scale.recount([int(arm) for arm in arms], rewards)
    assert scale.fitted(seen(rewards, arms, x)).two_point is (by == "noise")


@pytest.mark.parametrize("values", [(0.1, 0.7), (0.0, 0.3), (1 / 3, 2 / 3)])
def test_rounding_within_a_kind_is_not_taken_for_more(values: tuple[float, float]) -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        paid, arms = rng.choice(values, 200), rng.integers(3, size=200)
        assert not explained_within(paid, arms, rng.normal(size=(200, 5)), sum(values) / 2)


def test_noise_within_a_kind_is_hardly_ever_taken_for_more() -> None:
    rng, wrong = np.random.default_rng(6), 0
    for _ in range(400):
        n, dim, arms = (
            int(rng.integers(16, 300)),
            int(rng.integers(2, 65)),
            int(rng.integers(2, 12)),
        )
        rewards, played = noisy(n, seed=int(rng.integers(10**6))), rng.integers(arms, size=n)
        wrong += explained_within(rewards, played, rng.normal(size=(n, dim)), 8.0)
    assert wrong <= 12


def test_scale_takes_kinds_only_when_asked_and_says_which_reward_is_of_none() -> None:
    with_kinds, without = two_point_scale(noisy(100)), RewardScale(1)
    without.recount([0] * 100, noisy(100))
    assert not without.fitted(seen(noisy(100))).two_point
    assert (with_kinds.standardise(3.4), with_kinds.standardise(14.0)) == (-1.0, 1.0)
    assert [with_kinds.fits(reward) for reward in (3.0, 14.0, 0.0, 30.0)] == [
        True,
        True,
        True,
        False,
    ]


def test_scale_becomes_stale_when_two_kinds_show_only_later() -> None:
    for kinds in (False, True):
        scale = RewardScale(1, two_point=kinds)
        scale.recount([0] * 100, noisy(100))
        scale.units = Units(*scale._from_totals(), 8.0, False)
        assert scale.is_stale(seen(noisy(100))) is kinds


def test_scale_comes_back_from_a_snapshot_with_kinds() -> None:
    scale, other = two_point_scale(noisy(100)), RewardScale(1, two_point=True)
    other.restore(scale.snapshot())
    assert other.units == scale.units


# ---- chances from densities


@pytest.mark.parametrize("a", [1.0, 30.0, 101.0])
def test_chance_of_a_kind_is_that_of_students_densities_at_both(a: float) -> None:
    rng = np.random.default_rng(int(a))
    for _ in range(100):
        mean, scale2 = float(rng.normal(scale=1.5)), float(rng.exponential())
        p = chance_of_one(mean, a, scale2)
        assert log_two_point(1.0, mean, a, scale2) == pytest.approx(math.log(p))
        assert log_two_point(-1.0, mean, a, scale2) == pytest.approx(math.log(1 - p))


@pytest.mark.parametrize(
    ("mean", "scale2"), [(1.0, 1e-300), (-1e200, 1e-9), (0.0, 1e-12), (1e3, 1e3)]
)
def test_chance_of_a_kind_is_finite_and_never_sure_when_numbers_are_extreme(
    mean: float, scale2: float
) -> None:
    for y in (-1.0, 1.0):
        assert math.log(0.002) <= log_two_point(y, mean, 100.0, scale2) < 0


@pytest.mark.parametrize("prior", [NoisePrior(), BY_DENSITY], ids=["plain", "by density"])
def test_bank_scores_kinds_by_density_when_told_so(prior: NoisePrior) -> None:
    bank = ModelBank(Layout(1, 3, False), [[stationary(contextual=True)]], prior)
    bank.assign(0, stationary(contextual=True))
    ridge, rng = float(bank.arrays.ridge[0]), np.random.default_rng(3)
    lam, eta, a, b, h = ridge * np.eye(3), np.zeros(3), prior.a0, prior.b0, prior.memory
    for t in range(40):
        x = np.array([1.0, *rng.normal(size=2)])
        y = 1.0 if x[1] + 0.5 * rng.normal() > 0 else -1.0
        mean, leverage = float(x @ np.linalg.solve(lam, eta)), float(x @ np.linalg.solve(lam, x))
        (score,) = bank.observe(empty_state(t, 1), 0, x, y, True)
        if prior.by_density:
            p = chance_of_one(mean, a, b / a * (1 + leverage))
        else:
            least = max(0.002, leverage / (1 + 2 * leverage))
            p = float(np.clip((1 + mean) / 2, least, 1 - least))
        assert score == pytest.approx(math.log(p if y > 0 else 1 - p))
        lam, eta = lam + np.outer(x, x), eta + y * x
        a, b = (
            h * a + (1 - h) * prior.a0 + 0.5,
            h * b + (1 - h) * prior.b0 + 0.5 * (y - mean) ** 2 / (1 + leverage),
        )


def regimes(prior: NoisePrior) -> Filter:
    maker = FAMILIES["regimes"].gated
    assert maker is not None
    (made,) = maker(Layout(2, 2, False), prior, 1)
    return made


def test_regimes_score_kinds_by_density_when_told_so() -> None:
    x, prior = np.array([1.0, 0.5]), BY_DENSITY
    told = [regimes(made) for made in (NoisePrior(), prior)]
    for filter in told:
        assert filter.observe(0, 0, x, 1.0, True) == pytest.approx(math.log(0.5))
    plain, by_density = (math.exp(filter.observe(1, 0, x, 1.0, True)) for filter in told)
    ridge = float(prior.ridge(np.array(prior.b0 / prior.a0), np.array(True)))
    lam = ridge * np.eye(2) + np.outer(x, x)
    mean, leverage = float(x @ np.linalg.solve(lam, x)), float(x @ np.linalg.solve(lam, x))
    unseen = float(x @ x) / ridge
    a = prior.memory * prior.a0 + (1 - prior.memory) * prior.a0 + 0.5
    b = prior.b0 + 0.5 / (1 + unseen)
    left = 1 / 200  # for a regime that nobody has seen, where both kinds are as likely
    expected = (1 - left) * chance_of_one(mean, a, b / a * (1 + leverage)) + left * 0.5
    assert by_density == pytest.approx(expected, rel=1e-6)
    assert plain != pytest.approx(expected, rel=1e-3)


# ---- the hypothesis on trial


def test_chances_on_trial_are_put_right_by_what_came_of_earlier_ones() -> None:
    one, rng = GatedModel(regimes(BY_DENSITY), 0.01, 1e-5), np.random.default_rng(5)
    bins, odds = np.zeros((BINS, KEPT)), np.zeros(1)
    for _ in range(200):
        p, y = float(rng.uniform(0.01, 0.99)), float(rng.choice([-1.0, 1.0]))
        score = math.log(p if y > 0 else 1 - p)
        expected = recalibrate(bins, odds, 2 * p - 1, 0.0, y, score, 0.0, True, NoisePrior().memory)
        assert one.recalibrate(score, y, True) == pytest.approx(expected)
    said_rightly = [one.recalibrate(math.log(0.6), 1.0, True) for _ in range(300)]
    assert said_rightly[-1] > math.log(0.95)  # 0.6 has come to mean nearly always


def test_densities_and_silence_on_trial_stay_as_they_are() -> None:
    one = GatedModel(regimes(BY_DENSITY), 0.01, 1e-5)
    assert one.recalibrate(-3.0, 0.4, False) == -3.0
    assert math.isnan(one.recalibrate(math.nan, 1.0, True))


def test_trial_continues_from_a_snapshot_with_its_bins_and_begins_anew_without() -> None:
    one, other = (GatedModel(regimes(BY_DENSITY), 0.01, 1e-5) for _ in range(2))
    for _ in range(80):
        one.recalibrate(math.log(0.6), 1.0, True)
    other.restore(one.snapshot())
    before = one.recalibrate(math.log(0.6), 1.0, True)
    assert (
        other.recalibrate(math.log(0.6), 1.0, True)
        == before
        > one.reset_copy(None).recalibrate(math.log(0.6), 1.0, True)
    )
    damaged = {**one.snapshot(), "bins": np.zeros((2, 2))}
    with pytest.raises(SnapshotError, match="bins"):
        other.restore(damaged)


# ---- the whole policy


def taught(noise: float, rounds: int = 80) -> Patterns:
    """Two arms, of which the sign of the observation says which one pays 1."""
    tide = Patterns(TideParameters(without=("network",)), ProblemShape(2, 3), Streams(1))
    rng = np.random.default_rng(2)
    for t in range(rounds):
        context, paid = Context(observation=rng.normal(size=3)), noise * rng.normal()
        arm = tide.choose(context)
        assert context.observation is not None
        tide.learn(Event(context, arm, float(arm == (context.observation[0] > 0)) + paid, t))
        while tide.upkeep():
            pass
    return tide


def test_two_kinds_are_told_apart_unless_noise_blurs_them() -> None:
    assert taught(0.1)._scale.units.two_point
    assert not taught(0.5)._scale.units.two_point


def test_chances_come_from_densities_where_something_is_observed_alone() -> None:
    observed, unseen = (
        Patterns(TideParameters(), shape, Streams(1))
        for shape in (ProblemShape(2, 3), ProblemShape(2))
    )
    assert [tide._bank.arrays.settings[kernels.BY_DENSITY] for tide in (observed, unseen)] == [1, 0]
    assert unseen._gated is None
    assert observed._gated is not None
    assert observed._gated.filter.arrays.settings[particles.BY_DENSITY] == 1  # type: ignore[attr-defined]


def test_rewards_of_two_kinds_are_1_and_minus_1_to_newborns_and_put_right_the_one_on_trial() -> (
    None
):
    tide = taught(0.1)
    assert set(tide._recent.window(tide._scale.units).y) == {-1.0, 1.0}
    assert tide._gated is not None
    assert tide._gated._bins[:, 0].sum() > 60  # it lived through the first sixteen again


def taught_on(tide: Patterns, rewards: list[tuple[int, float]], upkeep: int = 10**6) -> None:
    """More rounds, in which nothing that is seen matters."""
    rng, first = np.random.default_rng(3), tide._recent.count
    for t, (arm, reward) in enumerate(rewards, first):
        context = Context(observation=rng.normal(size=3))
        tide.choose(context)
        tide.learn(Event(context, arm, reward, t))
        for _ in range(upkeep):
            if not tide.upkeep():
                break


def test_kinds_that_move_within_their_range_are_noticed_before_the_next_power_of_two() -> None:
    tide, rng = taught(0.02, 80), np.random.default_rng(8)
    known = tide._scale.units
    assert known.two_point
    moved = [
        (int(arm), 0.65 + 0.65 * arm + 0.02 * rng.normal()) for arm in rng.integers(2, size=120)
    ]
    assert all(tide._scale.fits(reward) for _, reward in moved)
    taught_on(tide, moved)
    assert tide._recent.count == 200
    assert tide._scale.units != known


def test_reward_of_neither_kind_that_comes_while_kinds_are_worked_in_undoes_them() -> None:
    tide = taught(0.05, 15)
    taught_on(tide, [(0, 0.98)], upkeep=1)
    assert tide.pending
    taught_on(tide, [(1, 5.0), (1, 0.03)], upkeep=1)
    while tide.upkeep():
        pass
    assert not tide._scale.units.two_point


def test_rebuilding_ends_when_many_rewards_followed_one_of_neither_kind() -> None:
    tide, rng = taught(0.02, 80), np.random.default_rng(8)
    usual = [(int(arm), arm + 0.02 * rng.normal()) for arm in rng.integers(2, size=70)]
    taught_on(tide, [(1, 3.0), *usual], upkeep=0)
    for _ in range(20_000):
        if not tide.upkeep():
            break
    assert not tide.pending
    assert not tide._scale.units.two_point


def test_what_the_network_said_in_densities_is_not_compared_with_chances_when_kinds_are_found() -> (
    None
):
    others = [name for name in FAMILIES if name not in ("stationary", "network")]
    tide = Patterns(TideParameters(without=tuple(others)), ProblemShape(2, 3), Streams(1))
    rng = np.random.default_rng(2)
    paid = [(int(arm), float(arm) + 0.02 * rng.normal()) for arm in rng.integers(2, size=1024)]
    paid[:140] = [(arm, rng.random()) for arm, _ in paid[:140]]
    taught_on(tide, paid[:-1])
    assert not tide._scale.units.two_point
    assert np.isfinite(tide._recent.network()).any()
    taught_on(tide, paid[-1:])
    assert tide._scale.units.two_point
    assert np.isnan(tide._recent.network()).all()


def regret_of(paid: FloatArray, rounds: int = 700, seed: int = 1) -> float:
    """Over the second half, where the arm that an observation names pays its own amount, and others
    nothing."""
    n = len(paid)
    tide = Patterns(TideParameters(without=("network",)), ProblemShape(n, 4), Streams(seed))
    rng, lost = np.random.default_rng(seed), 0.0
    for t in range(rounds):
        context, noise = Context(observation=rng.normal(size=4)), 0.02 * rng.normal()
        arm = tide.choose(context)
        tide.learn(Event(context, arm, float(paid[arm]) + noise, t))
        lost += float(paid.max() - paid[arm]) * (t >= rounds // 2)
        while tide.upkeep():
            pass
    return lost


def test_better_of_two_good_arms_is_found_when_both_pay_what_counts_as_one_kind() -> None:
    assert max(regret_of(np.array([0.0, 1.0, 1.2, 0.0]), seed=seed) for seed in (1, 2)) < 4


def test_reward_of_neither_kind_leaves_everything_finite_while_it_is_worked_in() -> None:
    tide, rng = taught(0.05), np.random.default_rng(9)
    assert tide._scale.units.two_point
    for i, reward in enumerate([4.0, 1.0, 0.02, 0.97, 1.03, -0.01]):
        context = Context(observation=rng.normal(size=3))
        tide.choose(context)
        tide.learn(Event(context, i % 2, reward, 80 + i))
        tide.upkeep()
        arrays = tide._bank.arrays
        assert np.isfinite(arrays.odds).all()
        np.testing.assert_allclose(
            arrays.bins[..., 1], arrays.bins[..., 2]
        )  # successes, and no errors
        assert np.isfinite(tide._mixture.log_weights[arrays.active.nonzero()[0]]).all()
    while tide.upkeep():
        pass
    assert not tide._scale.units.two_point


def test_seasons_that_are_none_cost_hardly_anything() -> None:
    """By bells, which fit no rewards of two kinds, they lead one after the other, each until its
    first mistake."""
    world = ("random-world", {"world": 71004, "kind": "labels-stationary"})
    regret = run_trial(world, "tide", horizon=1536, seed=71004).regret
    assert regret[-1] - regret[127] <= 3


def test_policy_that_knows_two_kinds_continues_bit_by_bit_when_restored() -> None:
    def see(rng: np.random.Generator) -> tuple[Context, Callable[[int], float]]:
        x, noise = rng.normal(size=4), 0.05 * rng.normal(size=3)
        return Context(
            observation=x
        ), lambda arm: float(arm == int(np.argmax(x[:3]))) + float(noise[arm])

    went_on, restored = arms_after_restoring(ProblemShape(3, 4), see, 150, 90)
    assert went_on == restored
