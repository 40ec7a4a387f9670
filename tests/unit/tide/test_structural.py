"""`structural-ts` beside dense Gaussian-process regression, and what its likelihoods are for."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidepull.policies import build_policy
from tidepull.state import checksum
from tidepull.tide.models.boxed import PythonBox
from tidepull.tide.models.structural import (
    Blocks,
    ModelStructure,
    StructuralModels,
)
from tidepull.tide.models.structural_kernels import (
    draw_models,
    draw_values,
    learn_reward,
    reweigh,
)
from tidepull.tide.structural import ANY, BINARY, HURDLE, likelihood_of
from tidepull.tide.structural_mixture import (
    StructuralMixture,
    draw,
    steady_structures,
    structures_of,
)
from tidepull.types import Context, Event, FloatArray, ProblemShape

HOUR, DAY = 3600.0, 86_400.0


def dense_outlook(
    structure: ModelStructure, blocks: Blocks, X: FloatArray, hours: FloatArray, y: FloatArray,
    noise: FloatArray, x: FloatArray, hour: float,
) -> tuple[float, float]:  # fmt: skip
    """Mean and variance at x by a Gaussian process whose covariance has an Ornstein-Uhlenbeck
    deviation."""
    v = structure.variances(blocks)

    def kernel(A: FloatArray, a: FloatArray, B: FloatArray, b: FloatArray) -> FloatArray:
        fade = structure.persistence ** np.abs(a[:, None] - b[None, :])
        constant = (A[:, :-1] * v[:-1]) @ B[:, :-1].T
        return np.asarray(constant + v[-1] * np.outer(A[:, -1], B[:, -1]) * fade)

    K = kernel(X, hours, X, hours) + np.diag(noise)
    k = kernel(x[None], np.array([hour]), X, hours)[0]
    prior = kernel(x[None], np.array([hour]), x[None], np.array([hour]))[0, 0]
    return float(k @ np.linalg.solve(K, y)), float(prior - k @ np.linalg.solve(K, k))


def outlook(
    models: StructuralModels, m: int, X: FloatArray, now: float
) -> tuple[FloatArray, FloatArray]:
    """Means and variances of x'w of every arm under model m."""
    mean, cov = models.posterior(m, now)
    return np.einsum("kd,kd->k", X, mean), np.einsum("kd,kde,ke->k", X, cov, X)


@pytest.mark.parametrize("index", [0, 4, 8, 13, 22, 35])
def test_filter_is_gaussian_process_regression(index: int) -> None:
    rng = np.random.default_rng(index)
    blocks = Blocks(2, crossed=True)
    structures = structures_of(blocks)
    models, structure = StructuralModels(structures, blocks, 2), structures[index]
    hours = np.cumsum(rng.exponential(2.0, 40)) + 400_000.0
    X = np.array([blocks.features(h * HOUR, rng.standard_normal(2)) for h in hours])
    y, arms, noise = rng.standard_normal(40), rng.integers(2, size=40), np.empty(40)
    for i in range(40):
        noise[i] = models.noises[index]
        models.observe(int(arms[i]), X[i], float(y[i]), float(hours[i]), None)
    now, rows = hours[-1] + 5.0, np.array([X[3], X[7]])
    means, variances = outlook(models, index, rows, now)
    for k in range(2):
        own = arms == k
        expected = dense_outlook(
            structure, blocks, X[own], hours[own], y[own], noise[own], rows[k], now
        )
        assert (means[k], variances[k]) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("index", [0, 4, 8, 13])
def test_reward_that_comes_late_counts_for_its_own_time(index: int) -> None:
    blocks = Blocks(0)
    structure = structures_of(blocks)[index]
    models = StructuralModels([structure], blocks, 1)
    hours = np.array([1000.0, 997.0])  # the second was decided before the first, and came later
    X = np.array([blocks.features(hour * HOUR, np.empty(0)) for hour in hours])
    y, noise = np.array([0.7, -1.1]), np.empty(2)
    for i in range(2):
        noise[i] = models.noises[0]
        models.observe(0, X[i], float(y[i]), float(hours[i]), None)
    assert models._clock[0] == 1000.0
    means, variances = outlook(models, 0, X[:1], 1000.0)
    expected = dense_outlook(structure, blocks, X, hours, y, noise, X[0], 1000.0)
    assert (means[0], variances[0]) == pytest.approx(expected, rel=1e-7)


def test_deviation_is_explored_only_as_far_as_it_lasts() -> None:
    blocks = Blocks(0)
    structures = [s for s in structures_of(blocks) if s.persistence in (1.0, 0.8)][:6]
    models = StructuralModels(structures, blocks, 1)
    x = blocks.features(0.0, np.empty(0))[None]
    for m, structure in enumerate(structures):
        _, whole = outlook(models, m, x, 0.0)
        drawn = models.draws(np.array([m]), np.ones((1, 1)), x[0], 0.0, np.ones(3), 0.0, 1.0)
        deviation = structure.variances(blocks)[-1]
        assert whole[0] - drawn[0, 0] ** 2 == pytest.approx(
            deviation * (1 - structure.persistence**48)
        )


def test_student_prediction_and_noise() -> None:
    from scipy.stats import t as student

    blocks = Blocks()
    models = StructuralModels(structures_of(blocks), blocks, 1)
    x = blocks.features(5 * HOUR, np.empty(0))
    a, b, variance = 1.0, 0.5, outlook(models, 0, x[None], 0.0)[1][0]
    score = models.observe(0, x, 1.3, 0.0, None)[0]
    assert score == pytest.approx(student.logpdf(1.3, 2 * a, scale=math.sqrt(variance + b / a)))
    noise = 0.995 * b + 0.005 * 0.5 + 0.5 * 1.3**2 * 0.5 / (variance + 0.5)
    assert models.noises[0] == pytest.approx(noise / (a + 0.5))


def test_two_point_prediction_is_the_mean() -> None:
    blocks = Blocks()
    models = StructuralModels(structures_of(blocks), blocks, 1)
    x = blocks.features(None, np.empty(0))
    for reward in (1.0, 1.0, -1.0):
        mean = outlook(models, 0, x[None], 0.0)[0][0]
        chance = (mean + 1) / 2
        score = models.observe(0, x, reward, 0.0, (-1.0, 1.0))[0]
        assert score == pytest.approx(math.log(chance if reward > 0 else 1 - chance))


@pytest.mark.parametrize(
    ("rewards", "likelihood"),
    [
        ([0, 1, 1], BINARY),
        ([0, 12.5, 3.1, 0, 8.0], HURDLE),
        ([0.2, 12.5, 3.1], ANY),
        ([-1, 0, 2, 3], ANY),
        ([0, 5, 5, 0], ANY),
    ],
)
def test_likelihood_follows_the_rewards(rewards: list[float], likelihood: int) -> None:
    assert likelihood_of(np.array(rewards, float)) == likelihood


def catch_up(policy: Any) -> None:
    while policy.upkeep():
        pass


def reward_of(policy_id: str, chances: FloatArray, *, scale: float, seed: int) -> float:
    """Mean expected reward over the last third of three weeks of 100 visits a day; `chances` has
    a row for each hour. Payments are lognormal where `scale` is positive."""
    rng, total, rounds = np.random.default_rng(seed), 0.0, 2100
    policy = build_policy(policy_id, ProblemShape(chances.shape[1]), seed=seed)
    for i in range(rounds):
        context = Context(time=1_767_571_200.0 + i * DAY / 100)
        assert context.time is not None
        means = chances[int(context.time % DAY // HOUR)]
        arm = policy.choose(context)
        paid = rng.random(len(means)) < means
        size = np.exp(scale * rng.standard_normal()) if scale else 1.0
        policy.learn(Event(context, arm, float(paid[arm]) * size))
        catch_up(policy)
        total += means[arm] * (i >= 2 * rounds // 3)
    return 3 * total / rounds


@pytest.mark.parametrize("scale", [0.0, 1.5])
def test_hours_are_found(scale: float) -> None:
    hours = np.arange(24)
    chances = np.stack([0.2 + 0.15 * np.cos(2 * np.pi * (hours - k * 8) / 24) for k in range(3)], 1)
    earned = reward_of("structural-ts", chances, scale=scale, seed=5)
    best, fixed = chances.max(axis=1).mean(), chances.mean(axis=0).max()
    assert earned > fixed + 0.7 * (best - fixed)


def test_without_a_time_a_level_is_learnt() -> None:
    policy = build_policy("structural-ts", ProblemShape(3), seed=1)
    rng = np.random.default_rng(2)
    arms = []
    for _ in range(600):
        arm = policy.choose(Context())
        policy.learn(Event(Context(), arm, float(rng.random() < (0.2, 0.6, 0.3)[arm])))
        catch_up(policy)
        arms.append(arm)
    assert np.mean(np.array(arms[300:]) == 1) > 0.85


def test_arm_that_was_never_played_is_drawn_with_its_whole_width() -> None:
    blocks, rng = Blocks(0), np.random.default_rng(0)
    shrunk = next(s for s in structures_of(blocks) if s.scale < 0.1 and s.persistence == 1.0)
    mixture = StructuralMixture([shrunk], blocks, 3)
    x = blocks.features(0.0, np.empty(0))
    for n in range(200):
        mixture.learn(0, x, float(rng.random() < 0.5), float(n), binary=True, count=n + 1)
    X = np.broadcast_to(x, (3, len(x)))
    ((ms, z),) = draw([mixture], 4000, False, PythonBox(rng))
    draws = mixture.values(ms, z, X, 200.0, False)
    prior = mixture.spread * math.sqrt(mixture.models.priors([0], X)[0, 0])
    _, variances = outlook(mixture.models, 0, X, 200.0)
    known = mixture.spread * math.sqrt(variances[0])
    assert draws[:, 1:].std(axis=0) == pytest.approx([prior, prior], rel=0.05)
    assert draws[:, 0].std() < 0.7 * known


def test_arm_without_a_click_is_known_no_better_than_an_average_arm() -> None:
    """Else a few visits without a click settle that it never pays."""
    blocks = Blocks(0)
    (steady, _) = steady_structures(blocks)
    models, x = StructuralModels([steady], blocks, 1), blocks.features(0.0, np.empty(0))
    spread, visits = math.sqrt(0.05 * 0.95), 60
    for n in range(visits):
        models.observe(0, x, -0.05 / spread, float(n), (-0.05 / spread, 0.95 / spread))
    variance = outlook(models, 0, x[None], float(visits))[1][0]
    assert variance == pytest.approx(1 / (1 / steady.scale + visits))


def test_arm_with_less_than_a_tenth_of_the_rewards_is_drawn_with_its_whole_width() -> None:
    blocks, rng = Blocks(0), np.random.default_rng(0)
    mixture = StructuralMixture([steady_structures(blocks)[0]], blocks, 2)
    x = blocks.features(0.0, np.empty(0))
    for n in range(3000):
        reward = float(rng.random() < 0.5)
        mixture.learn(int(n % 15 == 0), x, reward, float(n), binary=True, count=n + 1)
    ((ms, z),) = draw([mixture], 4000, False, PythonBox(rng))
    draws = mixture.values(ms, z, x[None], 3000.0, False)
    _, variances = outlook(mixture.models, 0, np.stack([x, x]), 3000.0)
    scales = draws.std(axis=0) / (mixture.spread * np.sqrt(variances))
    assert scales == pytest.approx([0.3, 1.0], rel=0.05)


def test_structures_in_which_nothing_changes_have_three_percent_of_the_prior() -> None:
    blocks = Blocks(2, crossed=True)
    steady = steady_structures(blocks)
    mixture = StructuralMixture(steady + structures_of(blocks), blocks, 1)
    assert np.exp(mixture.log_weights[: len(steady)]).sum() == pytest.approx(1 / 33)
    assert not any(one.day or one.week or one.persistence < 1.0 for one in steady)


def events(count: int, *, money: bool = False, dim: int = 0, seed: int = 0) -> list[Event]:
    """Rewards of two arms, an hour apart."""
    rng = np.random.default_rng(seed)
    return [
        Event(
            Context(time=1_767_571_200.0 + n * HOUR, observation=rng.standard_normal(dim)),
            int(rng.integers(2)),
            float(rng.random() < 0.4) * (math.exp(rng.standard_normal()) if money else 1.0),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("money", [False, True])
def test_calls_pay_for_one_reward_each_and_learn_the_same(
    money: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once: Any = build_policy("structural-ts", ProblemShape(2, 1), seed=0)
    in_slices: Any = build_policy("structural-ts", ProblemShape(2, 1), seed=0)
    observe = StructuralModels.observe
    calls: list[int] = []

    def counted(*given: Any) -> Any:
        calls.append(1)
        return observe(*given)

    monkeypatch.setattr(StructuralModels, "observe", counted)
    for event in events(560, money=money, dim=1):
        at_once.learn(event)
        catch_up(at_once)
        for work in (lambda event=event: in_slices.learn(event), in_slices.upkeep):
            calls.clear()
            work()
            assert len(calls) <= 1 + money
        in_slices.upkeep()
    assert in_slices.pending
    assert checksum(at_once.snapshot()) != checksum(in_slices.snapshot())
    catch_up(in_slices)
    assert checksum(at_once.snapshot()) == checksum(in_slices.snapshot())


def test_snapshot_in_the_middle_of_a_replay_goes_on_where_it_was() -> None:
    first: Any = build_policy("structural-ts", ProblemShape(2, 2), seed=0)
    other: Any = build_policy("structural-ts", ProblemShape(2, 2), seed=1)
    for event in events(40, money=True, dim=2):
        first.learn(event)
        first.upkeep()
    assert first.pending
    other.restore(first.snapshot())
    for event in events(60, money=True, dim=2, seed=3):
        for policy in (first, other):
            policy.learn(event)
            policy.upkeep()
    assert checksum(first.snapshot()) == checksum(other.snapshot())


def test_units_follow_rewards_that_are_not_0_or_1_however_late_they_come() -> None:
    policy: Any = build_policy("structural-ts", ProblemShape(2), seed=0)
    for event in events(1100):
        policy.learn(event)
        catch_up(policy)
    for event in events(200, money=True, seed=1):
        policy.learn(replace(event, reward=10 * event.reward))
        policy.upkeep()
        policy.upkeep()
    catch_up(policy)
    assert policy.inner._fit.likelihood == HURDLE


def test_without_upkeep_the_latest_rewards_are_learnt_in_the_end() -> None:
    policy: Any = build_policy("structural-ts", ProblemShape(2), seed=0)
    for event in events(1300):
        policy.learn(event)
    assert policy.pending
    catch_up(policy)
    assert policy.inner._fit.n_learnt == policy.inner._count == 1300


def test_draws_explore_a_deviation_only_as_far_as_it_lasts() -> None:
    blocks, rng = Blocks(0), np.random.default_rng(0)
    passing = next(s for s in structures_of(blocks) if s.persistence == 0.8)
    mixture = StructuralMixture([passing], blocks, 2)
    x = blocks.features(0.0, np.empty(0))
    for n in range(200):
        mixture.learn(0, x, float(rng.random() < 0.5), float(n), binary=True, count=n + 1)
    X = np.broadcast_to(x, (2, len(x)))
    ((ms, z),) = draw([mixture], 4000, False, PythonBox(rng))
    draws = mixture.values(ms, z, X, 200.0, False)
    lasting = mixture.spread * math.sqrt(mixture.models.priors([0], X)[0, 1])
    whole = mixture.spread * math.sqrt(outlook(mixture.models, 0, X, 200.0)[1][1])
    assert draws[:, 1].std() == pytest.approx(lasting, rel=0.05)
    assert whole > 1.08 * lasting


def same_bits(kernel: Any, *args: Any) -> None:
    """What runs until a kernel is compiled gives what the kernel gives."""
    one, other = copy.deepcopy(args), copy.deepcopy(args)
    assert kernel.py_func(*one) == kernel.until_compiled(*other)
    for given, first, second in zip(args, one, other, strict=True):
        if isinstance(given, PythonBox):
            assert first.arrays.bit_generator.state == second.arrays.bit_generator.state
        elif isinstance(given, np.ndarray):
            assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("context_dim", [0, 3, 14])
@pytest.mark.parametrize("binary", [True, False])
def test_what_runs_until_kernels_are_compiled_has_their_bits(
    context_dim: int, binary: bool
) -> None:
    rng, blocks = np.random.default_rng(3), Blocks(context_dim, crossed=context_dim == 3)
    models = StructuralModels(structures_of(blocks)[:20], blocks, 3)
    kinds = (-0.6, 1.4) if binary else None
    for n in range(40):
        x = blocks.features(7e3 * n, rng.normal(size=context_dim))
        y = kinds[n % 2] if kinds is not None else float(rng.normal())
        models.observe(n % 2, x, y, 2.0 * n + 7 * (n % 3), kinds)
    told, ones = np.zeros((3, 20)), np.ones(20)
    known = models._mean, models._cov, models._v, models._places
    of = models._a, models._b, told
    zero, one, square = (-0.6, 1.4, 2.0**2) if binary else (0.0, 0.0, 0.0)
    for decay, ago in ((models._rho**0.7, ones), (ones, models._rho**1.3)):
        same_bits(
            learn_reward, *known, models._sizes, 1, x, decay, ago, 1.4, zero, one, square, *of
        )
    log_weights, scores = np.log(rng.dirichlet(ones)), rng.normal(size=20)
    same_bits(reweigh, log_weights, scores, np.log(ones / 20), math.log(0.99), math.log(0.01))
    weights, counts = rng.dirichlet(ones, 2), np.array([3, 5] * 10)
    ms, z = np.zeros((2, 6), np.int64), np.zeros((2, 6, 5))
    same_bits(draw_models, PythonBox(rng), weights, counts, ms, z)
    drawn, values = np.array([4, 0, 19, 4]), np.zeros((4, 3))
    decays, widths = rng.random((3, 3)), np.array([0.4, 1.0, 2.0])
    of_time = x, decays, models._persistence, models._lasting
    to_draw = drawn, rng.normal(size=(4, 3)), widths, 0.3, 0.7, values
    parts = models._starts, models._squares, models._is_met, models._a, models._b
    same_bits(draw_values, *known, *parts, *of_time, *to_draw)
