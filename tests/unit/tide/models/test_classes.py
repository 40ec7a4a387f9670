"""Centres of classes against dense Gaussians in the coordinates in which rows were seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tidepull.tide.jobs import finish
from tidepull.tide.models import gaussian_classes
from tidepull.tide.models.calibration import BINS, KEPT, recalibrate
from tidepull.tide.models.classes import ClassFilter
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.noise import NoisePrior
from tidepull.types import FloatArray, IntArray

K, D = 4, 3
SHARES, MEMORIES = (0.1, 0.3, 0.6), (1.0, 0.98, 0.8)


def past(n: int, seed: int = 0, *, late: bool = False) -> Window:
    """Rounds of four classes; `late`: some rewards come after those of later rounds, and some
    never."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(K, D)) @ np.array([[1.0, 0.4, 0.0], [0.0, 2.0, 0.3], [0.0, 0.0, 0.5]])
    label = rng.integers(K, size=n)
    x = np.column_stack([np.ones(n), middle[label] + rng.normal(size=(n, D)) + 3.0])
    arm = np.where(rng.random(n) < 0.5, label, rng.integers(K, size=n))
    y = np.where((arm == label) & (rng.random(n) < 0.9), 1.0, -1.0)
    t = np.sort(rng.permutation(2 * n)[:n]) if late else np.arange(n)
    if late:
        t = t[np.argsort(np.arange(n) + rng.integers(0, 6, size=n), kind="stable")]
    return Window(t.astype(np.int64), np.empty((n, 0)), arm.astype(np.int64), x, y)


class Dense:
    """The same by plain formulas: covariances in full, no white coordinates, all memories from the
    whole past."""

    def __init__(self) -> None:
        self.rows: list[FloatArray] = []
        self.due = 0.0
        self.middle: FloatArray = np.zeros(D)
        self.cov: FloatArray = np.eye(D)
        self.n, self.sums = np.zeros(K), np.zeros((K, D))
        self.told: list[tuple[int, FloatArray]] = []  # the round and P(c | x, r)
        self.weight = np.full((3, 3), 1 / 9)
        self.right, self.wrong = [19.0, 1.0], [0.5, 49.5]
        self.bins, self.odds = np.zeros((BINS, KEPT)), np.zeros(1)

    def look(self) -> None:
        rows = np.array(self.rows)
        n, scatter = len(rows), np.cov(rows.T, bias=True) * len(rows)
        ball = np.trace(scatter) / (n * D)
        self.cov = (scatter + D * ball * np.eye(D)) / (n + D) + 1e-3 * ball * np.eye(D)
        self.middle = rows.mean(0)

    def chances(self, x: FloatArray, now: int) -> FloatArray:
        made = np.empty((3, 3, K))
        for r, rho in enumerate(SHARES):
            like = np.empty(K)
            for c in range(K):
                v = 1 / ((1 - rho) / rho + self.n[c])
                mean = self.middle + v * (self.sums[c] - self.n[c] * self.middle)
                like[c] = multivariate_normal.pdf(x, mean, (1 - rho) * (1 + v) * self.cov)
            for g, gamma in enumerate(MEMORIES):
                often = sum((gamma ** (now - t) * p for t, p in self.told), np.zeros(K))
                joint = (0.2 / K + often) * like
                made[r, g] = joint / joint.sum()
        return made

    def observe(self, t: int, arm: int, row: FloatArray, y: float) -> float:
        x = row[1:]
        self.rows.append(x)
        if len(self.rows) >= self.due:
            if len(self.rows) == 1:
                self.middle, self.cov = x.copy(), np.eye(D)
            else:
                self.look()
            self.due = math.floor(1.05 * len(self.rows)) + 1
        now = max([t, *(s for s, _ in self.told)])
        each = self.chances(x, now)
        sure, luck = (p[0] / sum(p) if y > 0 else p[1] / sum(p) for p in (self.right, self.wrong))
        pays = np.where(np.arange(K) == arm, sure, luck)
        said = float(np.sum(self.weight * (each @ pays)))
        after = np.einsum("rg,rgk->k", self.weight, each) * pays / said
        self.weight = 0.99 * self.weight * (each @ pays) / said + 0.01 / 9
        self.right[int(y < 0)] += after[arm]
        self.wrong[int(y < 0)] += 1 - after[arm]
        self.told.append((t, after))
        if y > 0:
            self.n[arm] += after[arm]
            self.sums[arm] += after[arm] * x
        chance = said if y > 0 else 1 - said
        args = (2 * chance - 1, 0.0, y, math.log(said), 0.0, True, NoisePrior().memory)
        return float(recalibrate(self.bins, self.odds, *args))


def scores_of(made: ClassFilter, window: Window) -> FloatArray:
    return np.array(
        [
            made.observe(int(t), int(arm), x, float(y), True)
            for t, arm, x, y in zip(window.t, window.arm, window.x, window.y, strict=True)
        ]
    )


@pytest.mark.parametrize("late", [False, True])
def test_classes_say_what_dense_gaussians_say_of_every_reward(late: bool) -> None:
    window, dense, made = past(120, late=late), Dense(), ClassFilter(K, D)
    wanted = [
        dense.observe(int(t), int(arm), x, float(y))
        for t, arm, x, y in zip(window.t, window.arm, window.x, window.y, strict=True)
    ]
    np.testing.assert_allclose(scores_of(made, window), wanted, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(made.arrays.weight, dense.weight, rtol=1e-8)
    np.testing.assert_allclose(made.arrays.payoffs, [dense.right, dense.wrong], rtol=1e-8)
    now = int(window.t.max()) + 7
    shown = np.empty(K)
    held, nothing = made._box(made.arrays), np.zeros(K)
    gaussian_classes.predict(held, now, window.x[3, 1:].copy(), 0.0, nothing, nothing, shown)
    expected = np.einsum("rg,rgk->k", dense.weight, dense.chances(window.x[3, 1:], now))
    np.testing.assert_allclose(shown, expected, rtol=1e-7)


def test_draw_of_centres_equals_moving_each_by_the_drawn_errors() -> None:
    """Only how far a centre moves along the way to the row, and the squares of the rest, are
    drawn."""
    window, made = past(80), ClassFilter(K, D)
    scores_of(made, window)
    known, rho, width = made.arrays, SHARES[1], 0.7
    known.weight[...] = 0.0
    known.weight[1, 0] = 1.0
    z = known.white @ (window.x[5, 1:] - known.origin)
    v = 1 / ((1 - rho) / rho + known.n_rows)
    errors = np.random.default_rng(2).normal(size=(K, D))
    way = z - v[:, None] * known.white_sums
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    along = (errors * way).sum(1)
    shown = np.empty(K)
    held, across = made._box(known), (errors**2).sum(1) - along**2
    gaussian_classes.predict(held, 80, window.x[5, 1:].copy(), width, along, across, shown)
    moved = v[:, None] * known.white_sums + width * np.sqrt((1 - rho) * v)[:, None] * errors
    log_like = -0.5 * ((z - moved) ** 2).sum(1) / ((1 - rho) * (1 + v)) - 0.5 * D * np.log1p(v)
    joint = (0.2 / K + known.frequency[0]) * np.exp(log_like - log_like.max())
    np.testing.assert_allclose(shown, joint / joint.sum(), rtol=1e-9)


def test_classes_live_through_a_window_as_they_would_round_by_round() -> None:
    window = past(300, late=True)
    one, all_ = ClassFilter(K, D), ClassFilter(K, D)
    scores = scores_of(one, window)
    np.testing.assert_array_equal(finish(all_.replay(window, True)), scores)
    for name, value in one.snapshot().items():
        np.testing.assert_array_equal(all_.snapshot()[name], value)


def test_failure_speaks_for_arms_that_were_never_tried() -> None:
    rng, made = np.random.default_rng(0), ClassFilter(3, 2)
    row = np.array([1.0, 0.0, 0.0])
    for t in range(60):
        made.observe(t, t % 2, row + np.append(0.0, rng.normal(size=2)), -1.0, True)
    shown = made.draw(60, np.tile(row, (3, 1)), True, rng)
    assert int(np.argmax(shown)) == 2
    assert shown[2] > 0.5
    pays = made.arrays.payoffs
    sure, luck = pays[:, 0] / pays.sum(axis=1)
    # Chances add up to 1, and are told as expected rewards from -1 to 1.
    assert (0.5 * (shown + 1)).sum() == pytest.approx(3 * luck + (sure - luck))


def test_success_is_recognised_by_what_was_seen_and_by_how_often_the_class_came_lately() -> None:
    made, rng = ClassFilter(3, 2), np.random.default_rng(1)
    middle = np.array([[1.0, 4.0, 0.0], [1.0, -4.0, 0.0], [1.0, 0.0, 4.0]])
    for t in range(120):
        noise = np.append(0.0, rng.normal(size=2))
        made.observe(t, t % 3, middle[t % 3] + noise, 1.0, True)
    for arm in range(3):
        assert int(np.argmax(made.draw(120, np.tile(middle[arm], (3, 1)), True, rng))) == arm
    for t in range(120, 180):
        made.observe(t, 1, middle[1] + np.append(0.0, rng.normal(size=2)), 1.0, True)
    between = np.tile((middle[0] + middle[1]) / 2, (3, 1))
    assert int(np.argmax(made.draw(180, between, True, rng))) == 1


def test_classes_say_nothing_of_rewards_that_are_not_of_two_kinds() -> None:
    made, window = ClassFilter(K, D), past(20)
    before = made.snapshot()
    scores = [made.observe(t, 0, window.x[t], 0.3 * t, False) for t in range(20)]
    assert scores == [-4.0 - math.log1p((0.3 * t) ** 2) for t in range(20)]
    np.testing.assert_allclose(finish(made.replay(window, False)), -4.0 - np.log1p(window.y**2))
    for name, value in made.snapshot().items():
        np.testing.assert_array_equal(value, before[name])
    drawn = made.draw(20, window.x[:K], False, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn, np.random.default_rng(0).standard_normal(K))


def test_absurd_row_leaves_everything_finite() -> None:
    made, window = ClassFilter(K, D), past(60)
    scores_of(made, window)
    score = made.observe(60, 1, np.array([1.0, 1e300, -1e300, 0.0]), 1.0, True)
    assert math.isfinite(score)
    assert np.abs(made.arrays.sums).max() < 1e7
    for value in made.snapshot().values():
        assert np.isfinite(value).all()
    shown = made.draw(61, np.tile([1.0, 1e300, 0.0, 1.0], (K, 1)), True, np.random.default_rng(0))
    assert np.isfinite(shown).all()


def test_rows_that_never_change_leave_everything_finite() -> None:
    made = ClassFilter(2, 3)
    for t in range(50):
        assert math.isfinite(
            made.observe(t, t % 2, np.array([1.0, 0.0, 5.0, 5.0]), 1.0 - 2 * (t % 2), True)
        )
    shown = made.draw(50, np.tile([1.0, 0.0, 5.0, 5.0], (2, 1)), True, np.random.default_rng(0))
    assert int(np.argmax(shown)) == 0


def test_classes_continue_from_a_snapshot_and_refuse_what_does_not_fit() -> None:
    # White coordinates were looked for at row 91, and are not again until row 96.
    window, made, other = past(93), ClassFilter(K, D), ClassFilter(K, D)
    scores_of(made, window)
    saved = made.snapshot()
    other.restore(saved)
    more = past(30, seed=3)
    np.testing.assert_array_equal(scores_of(made, more), scores_of(other, more))
    before = other.snapshot()
    for name, wrong in (
        ("mean", np.zeros(D + 1)),
        ("sums", np.full((K, D), np.nan)),
        ("frequency", np.full((3, K), -1.0)),
        ("n_rows", np.full(K, -1.0)),
        ("rows", np.array([-1.0, 0.0])),
        ("payoffs", np.zeros((2, 2))),
        ("weight", np.zeros((3, 3))),
        ("weight", np.full((3, 3), 1.0)),
        ("white", np.full((D, D), 1e300)),
        ("bins", np.tile([1.0, 2.0, 0.0], (BINS, 1))),
        ("latest", np.zeros(1)),
    ):
        with pytest.raises(ValueError, match=name):
            other.restore({**saved, name: wrong})
    for name, value in other.snapshot().items():
        np.testing.assert_array_equal(value, before[name])


def test_classes_tell_how_many_arms_have_been_right_and_what_counts() -> None:
    made = ClassFilter(K, D)
    scores_of(made, past(200))
    (told,) = made.findings(0.5, 0.5)
    assert told.words.startswith("4 of 4 arms have been right, a right arm pays in ")
    assert told.facts["found"] == 4
    assert 0.6 < told.facts["sure"] < 1
    made.arrays.weight[...] = [[0, 0, 1.0]] * 3
    assert made.findings(0.5, 0.5)[0].words.endswith(", how often in the last 5 rounds counts")


@pytest.mark.parametrize(
    ("layout", "count"),
    [
        (Layout(3, 6, False), 1),
        (Layout(3, 1, False), 0),
        (Layout(3, 6, True), 0),
        (Layout(900, 33, False), 1),
        (Layout(20_000, 3, False), 0),
        (Layout(1000, 65, False), 0),
    ],
)
def test_classes_sit_where_arms_have_their_own_weights_on_an_observation_that_is_not_too_wide(
    layout: Layout, count: int
) -> None:
    maker = FAMILIES["classes"].filters
    assert maker is not None
    assert len(maker(layout, NoisePrior(), 0)) == count


def test_classes_of_one_number_decide_as_those_of_many() -> None:
    rng, made = np.random.default_rng(4), ClassFilter(2, 1)
    for t in range(80):
        label = t % 2
        made.observe(t, label, np.array([1.0, 4.0 * label + rng.normal()]), 1.0, True)
    for label in range(2):
        row = np.tile([1.0, 4.0 * label], (2, 1))
        assert int(np.argmax(made.draw(80, row, True, rng))) == label


def test_fresh_classes_know_nothing_of_what_others_learnt() -> None:
    made = ClassFilter(K, D)
    scores_of(made, past(40))
    fresh, empty = made.reset_copy(None), ClassFilter(K, D)
    for name, value in fresh.snapshot().items():
        np.testing.assert_array_equal(value, empty.snapshot()[name])
    fresh.refresh_ridge()
    arms: IntArray = np.bincount(past(40).arm)
    assert len(arms) == K
