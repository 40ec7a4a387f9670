"""Stories of regimes against the sum over all paths of a short past, computed with plain
formulas."""

from __future__ import annotations

import copy
import itertools
import math
import threading

import numpy as np
import pytest

from tidepull.tide.jobs import finish
from tidepull.tide.models import filters, particles, regimes
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.filters import RIDGE, Blocks
from tidepull.tide.models.particles import Particles
from tidepull.tide.models.regimes import RegimeFilter
from tidepull.types import FloatArray, IntArray

PLAIN = np.ones(1)
STAY, NEWNESS = 200.0, 1.0


def filter_of(
    n_arms: int, dim: int = 1, *, contextual: bool = False, shared: bool = False
) -> RegimeFilter:
    return RegimeFilter(Blocks(Layout(n_arms, dim, shared), contextual), seed=12)


def play(made: RegimeFilter, t: IntArray, arm: IntArray, y: FloatArray) -> FloatArray:
    return np.array(
        [
            made.observe(int(a), int(k), PLAIN, float(r), True)
            for a, k, r in zip(t, arm, y, strict=True)
        ]
    )


def path_chance(path: tuple[int, ...], t: IntArray, arm: IntArray, y: FloatArray) -> float:
    """Of a path (regimes numbered as they appear) together with its rewards."""
    known, visits, rounds = 1, {0: 1}, {0: 0.0}
    moves: dict[tuple[int, int], int] = {}
    counts: dict[tuple[int, int], list[int]] = {}
    chance = 1.0
    for step, regime in enumerate(path):
        if step:
            last, gap = path[step - 1], int(t[step] - t[step - 1])
            left = sum(n for (i, _), n in moves.items() if i == last)
            stays = (1 - (1 + left) / (STAY + rounds[last])) ** gap
            entered = sum(visits.values())
            new = 1.0 if known == 1 else NEWNESS / (NEWNESS + entered)
            if regime == last:
                chance *= stays
            elif regime == known:
                chance *= (1 - stays) * new
                known, visits[regime], rounds[regime] = known + 1, 0, 0.0
            else:
                to = {j: moves.get((last, j), 0) + visits[j] / entered for j in visits if j != last}
                chance *= (1 - stays) * (1 - new) * to[regime] / sum(to.values())
            if regime != last:
                moves[last, regime] = moves.get((last, regime), 0) + 1
                visits[regime] += 1
            rounds[regime] += gap
        won, lost = counts.setdefault((regime, int(arm[step])), [0, 0])
        chance *= (1 + (won if y[step] > 0 else lost)) / (2 + won + lost)
        counts[regime, int(arm[step])][0 if y[step] > 0 else 1] += 1
    return chance


def all_paths(n: int) -> list[tuple[int, ...]]:
    return [
        path
        for path in itertools.product(range(n), repeat=n)
        if path[0] == 0 and all(path[i] <= max(path[:i]) + 1 for i in range(1, n))
    ]


def test_likelihood_equals_the_sum_over_all_paths_when_there_is_room_for_all_of_them() -> None:
    rng = np.random.default_rng(0)
    t = np.array([0, 1, 2, 4, 5])
    arm, y = rng.integers(2, size=5), np.where(rng.random(5) < 0.5, 1.0, -1.0)
    scores = play(filter_of(2), t, arm, y)
    for n in range(1, 6):
        expected = sum(path_chance(path, t, arm, y) for path in all_paths(n))
        assert scores[:n].sum() == pytest.approx(math.log(expected), rel=1e-12)
    assert len(all_paths(5)) == 52


def test_stories_are_kept_with_the_right_weight_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regimes, "_PARTICLES", 5)
    rng = np.random.default_rng(1)
    t, arm, y = np.arange(6), rng.integers(2, size=6), np.where(rng.random(6) < 0.5, 1.0, -1.0)
    paths = {path: path_chance(path, t, arm, y) for path in all_paths(6)}
    expected = sum(paths.values())
    found = []
    for seed in range(3000):
        made = RegimeFilter(Blocks(Layout(2, 1, False), False), seed)
        found.append(math.exp(play(made, t, arm, y).sum()))
    assert np.std(found) > 0
    assert abs(np.mean(found) - expected) < 4 * np.std(found) / math.sqrt(len(found))


def weights_kept(weights: FloatArray, most: int, u: float) -> FloatArray:
    made, chosen = weights.copy(), np.empty(len(weights), np.int64)
    count = particles._resample(made, most, u, chosen)
    kept = np.zeros(len(weights))
    kept[chosen[:count]] = made[chosen[:count]]
    return kept


def test_candidates_are_kept_without_bias_and_no_heavy_one_is_lost() -> None:
    rng = np.random.default_rng(3)
    weights = rng.random(40) ** 8
    weights[[3, 17]] = 0.0
    kept = np.array([weights_kept(weights, 10, u) for u in (np.arange(5000) + 0.5) / 5000])
    assert ((kept > 0).sum(axis=1) <= 10).all()
    assert (kept > 0).sum(axis=1).mean() > 9.9
    assert kept.mean(axis=0) == pytest.approx(weights, abs=2e-3)
    c = kept[kept > 0].min()
    assert np.allclose(kept[:, weights >= c], weights[weights >= c])


def test_choice_of_candidates_ends_where_weights_lie_on_the_threshold_but_for_rounding() -> None:
    """Whole multiples of one weight: of 20,000 such choices several once went on for ever."""
    rng, ended = np.random.default_rng(0), []

    def choose_often() -> None:
        for _ in range(20_000):
            most = int(rng.integers(2, 24))
            count = int(rng.integers(most + 1, 5 * most))
            weights = rng.random() * rng.integers(1, 4, size=count)
            kept = weights_kept(weights, most, 0.5)
            ended.append(abs(kept.sum() / weights.sum() - 1) < 1.0 and (kept > 0).sum() <= most)

    worker = threading.Thread(
        target=choose_often, daemon=True
    )  # a kernel that does not end cannot be interrupted
    worker.start()
    worker.join(60)
    assert len(ended) == 20_000
    assert all(ended)


def test_everybody_is_kept_when_there_is_room() -> None:
    weights = np.array([0.2, 0.0, 0.7, 0.1])
    assert np.array_equal(weights_kept(weights, 3, 0.4), weights)


def test_number_of_the_round_is_uniform_and_depends_on_seed_and_round() -> None:
    with np.errstate(over="ignore"):  # whole numbers modulo 2^64
        drawn = np.array([[particles._uniform(seed, t) for t in range(500)] for seed in range(20)])
    assert ((drawn >= 0) & (drawn < 1)).all()
    assert len(np.unique(drawn)) == drawn.size
    assert np.histogram(drawn, 10, (0, 1))[0] == pytest.approx(np.full(10, 1000), abs=130)


def returning(seed: int, n: int = 3000) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    levels = np.array([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5], [0.2, 0.2, 0.9]])
    ruled = np.arange(n) // 200 % 3
    arm = rng.integers(3, size=n)
    return np.arange(n), arm, np.where(rng.random(n) < levels[ruled, arm], 1.0, -1.0), ruled


def test_regimes_are_counted_recognised_and_described() -> None:
    t, arm, y, ruled = returning(0)
    made = filter_of(3)
    play(made, t, arm, y)
    (told,) = made.findings(0.5, 0.5)
    facts = told.facts
    assert (facts["regime"], facts["of"], facts["seen"]) == (int(ruled[-1]) + 1, 3, 5)
    assert facts["stay"] == pytest.approx(200, abs=8)
    assert abs(facts["since"] - 2800) <= 8
    assert np.argmax(facts["followed_by"], axis=1).tolist() == [1, 2, 0]
    assert np.array(facts["means"])[0] == pytest.approx([0.9, 0.1, 0.5], abs=0.08)
    assert told.words.startswith(
        f"the third of three regimes ({facts['chance']:.0%}), seen 5 times"
    )


def test_draws_follow_the_regime_that_returned() -> None:
    t, arm, y, _ = returning(1, 2400)
    made = filter_of(3)
    play(made, t, arm, y)
    rng = np.random.default_rng(0)
    more = np.where(rng.random(8) < 0.9, 1.0, -1.0)
    play(
        made, np.arange(2400, 2408), np.zeros(8, np.int64), more
    )  # the first regime pays for arm 0
    best = [int(np.argmax(made.draw(2408, np.ones((3, 1)), True, rng))) for _ in range(300)]
    assert best.count(0) > 270


def test_late_reward_is_learnt_by_stories_whose_regime_ruled_already() -> None:
    made = filter_of(1)
    play(made, np.array([0, 1, 3, 4]), np.zeros(4, np.int64), np.array([1.0, 1.0, -1.0, -1.0]))
    ps = made.arrays
    alive, since, weight = ps.weight > 0, np.array(ps.since), np.array(ps.weight)
    total = np.array(ps.n.sum(axis=(1, 2)))
    n, s = (part[np.arange(len(weight)), ps.now, 0].copy() for part in (ps.n, ps.s))
    awake = alive & (since <= 2)
    chance = (1 + 0.5 * (n + s)) / (2 + n)
    told = (weight[awake] @ chance[awake]) / weight[awake].sum()
    assert made.observe(2, 0, PLAIN, 1.0, True) == pytest.approx(math.log(told))
    assert (ps.n.sum(axis=(1, 2))[awake] == total[awake] + 1).all()
    assert (ps.n.sum(axis=(1, 2))[alive & ~awake] == total[alive & ~awake]).all()
    assert ps.weight[alive & ~awake] == pytest.approx(weight[alive & ~awake])
    assert ps.weight.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("shared", [False, True])
def test_blocks_with_a_context_are_ridge_regressions_on_the_rounds_of_their_regime(
    shared: bool,
) -> None:
    rng = np.random.default_rng(1)
    made = filter_of(2, 3, contextual=True, shared=shared)
    X, y, arm = rng.standard_normal((30, 3)), rng.standard_normal(30), rng.integers(2, size=30)
    made.arrays.settings[0] = 1e12  # nobody ever leaves
    for i in range(30):
        made.observe(i, int(arm[i]), X[i], float(y[i]), False)
    story, x = int(np.argmax(made.arrays.weight)), rng.standard_normal((2, 3))
    means, errors, leverages = np.empty((3, 2))
    z = rng.standard_normal(3)
    filters.predict_shared(made.arrays, story, 0, x, z, means, errors, leverages)
    mine = np.full(30, True) if shared else arm == 0
    precision = made.arrays.noise[RIDGE] * np.eye(3) + X[mine].T @ X[mine]
    assert means[0] == pytest.approx(
        x[0] @ np.linalg.solve(precision, X[mine].T @ y[mine]), rel=1e-9
    )
    assert leverages[0] == pytest.approx(x[0] @ np.linalg.solve(precision, x[0]), rel=1e-9)
    assert errors[0] == pytest.approx(
        x[0] @ np.linalg.cholesky(np.linalg.inv(precision)) @ z, rel=1e-9
    )


@pytest.mark.parametrize(("contextual", "shared"), [(False, False), (True, False), (True, True)])
def test_living_through_a_window_equals_round_by_round_and_snapshots_lose_nothing(
    contextual: bool, shared: bool
) -> None:
    rng = np.random.default_rng(7)
    n, t = 60, np.arange(60)
    t[20:22] = t[[21, 20]]
    window = Window(
        t,
        np.empty((n, 0)),
        rng.integers(3, size=n),
        rng.standard_normal((n, 4)),
        rng.standard_normal(n),
    )
    one = filter_of(3, 4, contextual=contextual, shared=shared)
    two = one.reset_copy(None)
    scores = [
        one.observe(int(window.t[i]), int(window.arm[i]), window.x[i], float(window.y[i]), False)
        for i in range(n)
    ]
    assert finish(two.replay(window, False)).tolist() == scores
    three = one.reset_copy(None)
    three.restore(copy.deepcopy(two.snapshot()))
    for i in range(5):
        draws = [
            f.draw(60 + i, window.x[:3], False, np.random.default_rng(i)) for f in (one, two, three)
        ]
        assert np.array_equal(draws[0], draws[1])
        assert np.array_equal(draws[0], draws[2])
        told = {f.observe(60 + i, 0, window.x[i], 0.3, False) for f in (one, two, three)}
        assert len(told) == 1
    broken = one.snapshot()
    broken["moves"] = broken["moves"][:-1]
    with pytest.raises(ValueError, match="moves"):
        three.restore(broken)
    for name, value in (("now", 6), ("known", 7), ("weight", np.nan)):
        broken = one.snapshot()
        broken[name][...] = value
        with pytest.raises(ValueError, match=name):
            three.restore(broken)


def test_weights_stay_finite_and_add_up_when_a_reward_is_absurd() -> None:
    made = filter_of(2)
    rng = np.random.default_rng(0)
    for t in range(200):
        y = 1e12 if t == 120 else float(rng.normal())
        assert np.isfinite(made.observe(t, t % 2, PLAIN, y, False))
    ps: Particles = made.arrays
    assert ps.weight.sum() == pytest.approx(1.0)
