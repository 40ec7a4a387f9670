"""Run lengths against the sum over all segmentations of a short past, computed with plain
formulas."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest
from scipy.stats import t as student

from tidepull.tide.jobs import finish
from tidepull.tide.models import changes, filters
from tidepull.tide.models.changes import ARM_HAZARDS, HAZARDS, RunLengthFilter
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.filters import NOISE, RIDGE, Blocks
from tidepull.types import FloatArray, IntArray

PLAIN = np.ones(1)


def filter_of(
    n_arms: int,
    dim: int = 1,
    *,
    together: bool = True,
    contextual: bool = False,
    shared: bool = False,
) -> RunLengthFilter:
    return RunLengthFilter(Blocks(Layout(n_arms, dim, shared), contextual), together)


def segment_likelihood(y: FloatArray, arm: IntArray) -> float:
    """Of rewards of -1 and 1 in one stretch: the integral over every arm's chance."""
    total = 0.0
    for k in np.unique(arm):
        won, n = int((y[arm == k] > 0).sum()), int((arm == k).sum())
        total += math.lgamma(1 + won) + math.lgamma(1 + n - won) - math.lgamma(2 + n)
    return math.exp(total)


def evidence(t: IntArray, y: FloatArray, arm: IntArray, hazard: float) -> float:
    """P(rewards) as the sum over all sets of change points between consecutive rounds that were
    paid."""
    n, total = len(y), 0.0
    for cuts in itertools.product((False, True), repeat=n - 1):
        chance, start = 1.0, 0
        for i, cut in enumerate(cuts):
            stays = (1 - hazard) ** int(t[i + 1] - t[i])
            chance *= 1 - stays if cut else stays
            if cut:
                chance *= segment_likelihood(y[start : i + 1], arm[start : i + 1])
                start = i + 1
        total += chance * segment_likelihood(y[start:], arm[start:])
    return total


def some_past(n: int, n_arms: int, seed: int = 0) -> tuple[IntArray, FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.integers(1, 4, n)) - 1
    return t, np.where(rng.random(n) < 0.6, 1.0, -1.0), rng.integers(n_arms, size=n)


def scores_of(
    made: RunLengthFilter, t: IntArray, y: FloatArray, arm: IntArray, binary: bool = True
) -> FloatArray:
    return np.array(
        [
            made.observe(int(a), int(k), PLAIN, float(r), binary)
            for a, r, k in zip(t, y, arm, strict=True)
        ]
    )


def test_likelihood_of_all_arms_together_equals_the_sum_over_all_segmentations() -> None:
    t, y, arm = some_past(9, 3)
    made = filter_of(3)
    scores = scores_of(made, t, y, arm)
    for n in range(1, 10):
        expected = np.mean([evidence(t[:n], y[:n], arm[:n], g) for g in HAZARDS])
        assert scores[:n].sum() == pytest.approx(math.log(expected), rel=1e-12)
    each = np.array([evidence(t, y, arm, g) for g in HAZARDS])
    assert made.arrays.belief == pytest.approx(each / each.sum(), rel=1e-9)


def test_likelihood_of_arms_by_themselves_equals_the_product_over_arms_for_each_hazard() -> None:
    t, y, arm = some_past(11, 2, seed=3)
    expected = np.mean(
        [
            math.prod(evidence(t[arm == k], y[arm == k], arm[arm == k], g) for k in range(2))
            for g in ARM_HAZARDS
        ]
    )
    scores = scores_of(filter_of(2, together=False), t, y, arm)
    assert scores.sum() == pytest.approx(math.log(expected), rel=1e-12)


def test_weights_are_the_chances_of_the_latest_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "HAZARDS", (0.1,))
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    t, arm, n = np.arange(6), np.zeros(6, np.int64), 6
    made = filter_of(1)
    scores_of(made, t, y, arm)
    # P(latest change at s, rewards) = P(rewards before s) g P(rewards from s on without a change)
    joint = np.empty(n)
    for s in range(n):
        before = evidence(t[:s], y[:s], arm[:s], 0.1) * 0.1 if s else 1.0
        joint[s] = before * 0.9 ** (n - 1 - s) * segment_likelihood(y[s:], arm[s:])
    order = np.argsort(made.arrays.start[0, :n])
    assert made.arrays.start[0, order].tolist() == list(range(n))
    assert made.arrays.weight[0, 0, order] == pytest.approx(joint / joint.sum(), rel=1e-12)


def test_runs_predict_real_rewards_as_student_with_the_noise_shared_out_by_weight() -> None:
    rng = np.random.default_rng(5)
    y, hazard, n = rng.normal(0.3, 0.4, 12), np.array(HAZARDS), 12
    y[6:] -= 1.0
    made = filter_of(1)
    scores = scores_of(made, np.arange(n), y, np.zeros(n, np.int64), binary=False)
    a, b, ridge = NOISE.a0, NOISE.b0, float(made.arrays.noise[RIDGE])
    weights = np.ones((3, 1))  # of runs that began in rounds 0, 1, ...
    belief = np.full(3, 1 / 3)
    for i in range(n):
        if i:
            weights = np.concatenate([(1 - hazard[:, None]) * weights, hazard[:, None]], axis=1)
        precision = ridge + i - np.arange(i + 1)
        means = np.array([y[s:i].sum() for s in range(i + 1)]) / precision
        density = student(2 * a, means, np.sqrt(b / a * (1 + 1 / precision))).pdf(y[i])
        told = weights @ density
        assert scores[i] == pytest.approx(math.log(belief @ told), rel=1e-9, abs=1e-8)
        weights, belief = weights * density / told[:, None], belief * told / (belief @ told)
        errors = (y[i] - means) ** 2 / (1 + 1 / precision)
        a = NOISE.memory * a + (1 - NOISE.memory) * NOISE.a0 + 0.5
        b = (
            NOISE.memory * b
            + (1 - NOISE.memory) * NOISE.b0
            + 0.5 * float(belief @ weights @ errors)
        )
    assert made.arrays.noise[:2] == pytest.approx([a, b], rel=1e-9)


@pytest.mark.parametrize("together", [True, False])
def test_blocks_with_a_context_are_ridge_regressions_on_what_came_since_the_run_began(
    together: bool,
) -> None:
    rng = np.random.default_rng(1)
    made = filter_of(2, 3, contextual=True, together=together)
    X, y, arm = rng.standard_normal((14, 3)), rng.standard_normal(14), rng.integers(2, size=14)
    for i in range(14):
        made.observe(i, int(arm[i]), X[i], float(y[i]), False)
    ridge, x = float(made.arrays.noise[RIDGE]), rng.standard_normal((2, 3))
    for r in np.flatnonzero(made.arrays.start[0] >= 0):
        start = int(made.arrays.start[0, r])
        places = np.array([(0, r, 0), (0, r, 1) if together else (1, -1, 0)])
        means, leverages = np.empty(2), np.empty(2)
        filters.predict(made.arrays, places, x, means, leverages)
        mine = (np.arange(14) >= start) & (arm == 0)
        precision = ridge * np.eye(3) + X[mine].T @ X[mine]
        assert means[0] == pytest.approx(
            x[0] @ np.linalg.solve(precision, X[mine].T @ y[mine]), rel=1e-9
        )
        assert leverages[0] == pytest.approx(x[0] @ np.linalg.solve(precision, x[0]), rel=1e-9)


def test_late_reward_is_learnt_by_runs_that_had_begun_and_moves_no_weight_of_the_others() -> None:
    made = filter_of(1)
    scores_of(made, np.array([0, 1, 3, 4]), np.array([1.0, 1.0, -1.0, -1.0]), np.zeros(4, np.int64))
    start, weight, n = (
        np.array(part) for part in (made.arrays.start[0], made.arrays.weight[0], made.arrays.n[0])
    )
    old, young = (start >= 0) & (start <= 2), start > 2
    chance = (1 + 0.5 * (n[:, 0] + made.arrays.s[0, :, 0])) / (2 + n[:, 0])
    belief = np.array(made.arrays.belief)
    score = made.observe(2, 0, PLAIN, 1.0, True)
    told = (weight[:, old] @ chance[old]) / weight[:, old].sum(axis=1)
    assert score == pytest.approx(math.log(belief @ told))
    assert (made.arrays.n[0, old, 0] == n[old, 0] + 1).all()
    assert (made.arrays.n[0, young] == n[young]).all()
    assert made.arrays.weight[0][:, young] == pytest.approx(weight[:, young])
    assert made.arrays.weight[0][:, old] == pytest.approx(
        weight[:, old] * chance[old] / told[:, None]
    )


def test_late_reward_of_a_time_that_no_run_remembers_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "_MOST_RUNS", 3)
    made = filter_of(1)
    scores_of(
        made, np.arange(5, 60), np.where(np.arange(55) < 27, 1.0, -1.0), np.zeros(55, np.int64)
    )
    before = made.snapshot()
    assert math.isnan(made.observe(2, 0, PLAIN, 1.0, True))
    assert all(np.array_equal(made.snapshot()[name], before[name]) for name in before)


def test_lightest_run_leaves_when_there_is_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_MOST_RUNS", 8)
    made = filter_of(1)
    rng = np.random.default_rng(2)
    y = np.where(rng.random(400) < np.where(np.arange(400) < 200, 0.9, 0.1), 1.0, -1.0)
    scores_of(made, np.arange(400), y, np.zeros(400, np.int64))
    assert (made.arrays.start[0] >= 0).sum() == 8
    assert made.arrays.weight[0].sum(axis=1) == pytest.approx(np.ones(3))
    assert 195 <= made.arrays.start[0, made.arrays.lead[0]] <= 210


def test_draw_knows_of_changes_that_may_have_come_since_the_last_reward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "HAZARDS", (0.05,))
    monkeypatch.setattr(changes, "ARM_HAZARDS", (0.05,))
    monkeypatch.setattr(changes, "_CURIOSITY", 0.25)
    made = filter_of(1, together=False)
    scores_of(made, np.arange(60), np.ones(60), np.zeros(60, np.int64))
    rng = np.random.default_rng(0)
    soon = np.array([made.draw(60, np.ones((1, 1)), True, rng)[0] for _ in range(4000)])
    late = np.array([made.draw(90, np.ones((1, 1)), True, rng)[0] for _ in range(4000)])
    # A fresh draw lies below the middle half of the time; arms by themselves with a quarter of the
    # chance.
    known = float(np.mean(soon < 0.0)) - 0.25 * 0.05 / 2
    assert abs(np.mean(late < 0.0) - (0.5 * 0.25 * (1 - 0.95**31) + known)) < 0.02
    assert np.mean(soon < 0.0) < 0.06
    together = filter_of(1)
    scores_of(together, np.arange(60), np.ones(60), np.zeros(60, np.int64))
    late = np.array([together.draw(90, np.ones((1, 1)), True, rng)[0] for _ in range(4000)])
    assert abs(np.mean(late < 0.0) - 0.5 * (1 - 0.95**31)) < 0.04


def test_changes_are_dated_and_say_which_arm_moved() -> None:
    made = filter_of(2)
    rng = np.random.default_rng(4)
    t = np.arange(1500)
    level = np.where(t < 500, 0.9, np.where(t < 1000, 0.1, 0.6))
    arm = t % 2
    y = np.where(rng.random(1500) < np.where(arm == 0, level, 0.5), 1.0, -1.0)
    scores_of(made, t, y, arm)
    first, second = made.findings(0.5, 0.5)
    assert abs(first.facts["round"] - 500) <= 10
    assert abs(second.facts["round"] - 1000) <= 10
    assert first.facts["chance"] > 0.8
    assert second.facts["chance"] > 0.8
    assert [moved["arm"] for moved in first.facts["arms"]] == [0]
    at, then = first.facts["round"], second.facts["round"]
    mean = [
        0.5 + 0.5 * y[(arm == 0) & part].mean()
        for part in (t < at, (t >= at) & (t < then), t >= then)
    ]
    assert first.facts["arms"][0]["before"] == pytest.approx(mean[0])
    assert first.facts["arms"][0]["after"] == pytest.approx(mean[1])
    assert second.facts["arms"][0]["before"] == pytest.approx(mean[1])
    assert second.facts["arms"][0]["after"] == pytest.approx(mean[2])
    assert (
        first.words
        == f"changed at round {first.facts['round']} ({first.facts['chance']:.0%}): "
        + (
            f"arm 0 fell from {first.facts['arms'][0]['before']:.2g} to "
            f"{first.facts['arms'][0]['after']:.2g}"
        )
    )
    assert "arm 0 rose from" in second.words


def test_false_alarm_is_taken_back() -> None:
    made = filter_of(1)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(900) < 0.8, 1.0, -1.0)
    y[300:312] = -1.0
    believed = set()
    for t in range(900):
        made.observe(t, 0, PLAIN, float(y[t]), True)
        believed.add(len(made.findings(0.5, 0.5)))
    assert 1 in believed or 2 in believed
    assert [
        change.facts["round"] for change in made.findings(0.5, 0.5) if change.facts["round"] < 290
    ] == []


@pytest.mark.parametrize(
    ("contextual", "shared", "together"),
    [(False, False, False), (True, False, True), (True, True, True)],
)
def test_living_through_a_window_equals_round_by_round_and_snapshots_lose_nothing(
    contextual: bool, shared: bool, together: bool
) -> None:
    rng = np.random.default_rng(7)
    n, t = 40, np.arange(40)
    t[20:22] = t[[21, 20]]
    window = Window(
        t,
        np.empty((n, 0)),
        rng.integers(3, size=n),
        rng.standard_normal((n, 4)),
        rng.standard_normal(n),
    )
    one = filter_of(3, 4, together=together, contextual=contextual, shared=shared)
    two = one.reset_copy(None)
    scores = [
        one.observe(int(window.t[i]), int(window.arm[i]), window.x[i], float(window.y[i]), False)
        for i in range(n)
    ]
    assert finish(two.replay(window, False)).tolist() == scores
    three = one.reset_copy(None)
    three.restore(copy.deepcopy(two.snapshot()))
    draws = [f.draw(41, window.x[:3], False, np.random.default_rng(1)) for f in (one, two, three)]
    assert np.array_equal(draws[0], draws[1])
    assert np.array_equal(draws[0], draws[2])
    broken = one.snapshot()
    broken["weight"] = broken["weight"][..., :-1]
    with pytest.raises(ValueError, match="weight"):
        three.restore(broken)
    for name, value in (("lead", 100), ("n_changes", 17), ("noise", np.nan), ("noise", -1.0)):
        broken = one.snapshot()
        broken[name][...] = value
        with pytest.raises(ValueError, match=name):
            three.restore(broken)
    assert all(
        np.array_equal(two.snapshot()[name], part) for name, part in three.snapshot().items()
    )


def test_ridge_follows_the_noise_in_new_units() -> None:
    made = filter_of(1)
    scores_of(
        made,
        np.arange(300),
        np.random.default_rng(0).normal(0, 0.5, 300),
        np.zeros(300, np.int64),
        False,
    )
    noise = float(made.arrays.noise[1] / made.arrays.noise[0])
    assert isinstance(anew := made.reset_copy(0.5), RunLengthFilter)
    assert anew.arrays.noise[RIDGE] == pytest.approx(0.25 * noise)
    made.refresh_ridge()
    assert made.arrays.noise[RIDGE] == pytest.approx(noise)
    assert noise == pytest.approx(0.25, rel=0.3)
