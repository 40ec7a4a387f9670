"""Arm vectors of more numbers than directions are kept: seen whole by who believes that nothing
changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.tide.continuing import arms_after_restoring
from tidepull.errors import SnapshotError
from tidepull.experiments.loop import run_trial
from tidepull.policies import build_policy
from tidepull.tide import search
from tidepull.tide.context import ContextMap
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import empty_state
from tidepull.tide.models.family import Layout
from tidepull.tide.models.linear import discounted, fourier, stationary
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.spec import Spec
from tidepull.types import Context, Event, FloatArray, ProblemShape

NARROW, WIDE, ARMS = 3, 9, 4  # three waves on the narrow context have nine numbers, too
PRIOR = NoisePrior(min_scale=0.25, max_scale=2.0)


def test_vectors_stand_whole_behind_their_leading_directions_when_there_are_more_of_their_numbers() -> (
    None
):
    shape, rng = ProblemShape(5, arm_dim=100), np.random.default_rng(0)
    raw = rng.normal(size=(300, 100)) * np.linspace(0.5, 2, 100)
    whole = ContextMap(shape).fitted(raw)
    assert (whole.dim, whole.narrow, whole.whole_dim) == (166, 65, 101)
    rows = whole.rows(raw[:5])
    np.testing.assert_array_equal(rows[:, :65], whole.rows(raw[:5])[:, : whole.narrow])
    np.testing.assert_array_equal(rows[:, 65], 1.0)
    ratios = rows[:, 66:] / raw[:5]
    np.testing.assert_allclose(ratios, ratios[:1].repeat(5, axis=0))
    assert np.mean(np.sum(whole(raw)[:, 66:] ** 2, axis=1)) == pytest.approx(1)
    np.testing.assert_allclose(
        ratios[0] ** 2 * raw.std(axis=0), ratios[0, 0] ** 2 * raw[:, 0].std(), rtol=0.1
    )


@pytest.mark.parametrize(
    ("shape", "wide"),
    [
        (ProblemShape(5, arm_dim=64), 0),
        (ProblemShape(5, arm_dim=65), 66),
        (ProblemShape(5, arm_dim=256), 257),
        (ProblemShape(5, arm_dim=257), 0),
        (ProblemShape(1000, arm_dim=100), 0),
        (ProblemShape(128, arm_dim=66), 67),
        (ProblemShape(129, arm_dim=66), 0),
        (ProblemShape(100, arm_dim=250), 0),
        (ProblemShape(5, observation_dim=100), 0),
        (ProblemShape(5), 0),
    ],
)
def test_only_vectors_that_a_decision_can_afford_are_kept_whole(
    shape: ProblemShape, wide: int
) -> None:
    assert ContextMap(shape).whole_dim == wide


def test_map_of_vectors_without_any_length_shows_nothing() -> None:
    made = ContextMap(ProblemShape(2, arm_dim=70)).fitted(np.zeros((2, 70)))
    rows = made.rows(np.ones((2, 70)))
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(rows[:, 66:], 0.0)


def bank_of(hypotheses: list[Spec], wide: int) -> ModelBank:
    specs = list(hypotheses)
    layout = Layout(ARMS, NARROW, True, wide_dim=wide)
    bank = ModelBank(layout, [[spec] for spec in specs], PRIOR)
    for m, spec in enumerate(specs):
        bank.assign(m, spec)
    return bank


def rows_of(rng: np.random.Generator) -> FloatArray:
    X = rng.normal(size=(ARMS, NARROW + WIDE))
    X[:, [0, NARROW]] = 1.0
    return X


def test_who_believes_that_nothing_changes_sees_all_and_the_others_what_is_narrow() -> None:
    others: list[Spec] = [discounted(0.9, True), fourier(7.3, contextual=True)]
    wide, narrow, rng = (
        bank_of([stationary(True), *others], WIDE),
        bank_of(others, 0),
        np.random.default_rng(1),
    )
    assert wide.arrays.dim.tolist() == [WIDE, NARROW, 3 * NARROW]
    ridge = float(wide.arrays.ridge[0])
    lam, eta, y = ridge * np.eye(WIDE), np.zeros(WIDE), 0.0
    for t in range(60):
        X = rows_of(rng)
        x, y = X[t % ARMS], float(rng.normal())
        scores = wide.observe(empty_state(t, ARMS), t % ARMS, x, y, False)
        np.testing.assert_array_equal(
            scores[1:], narrow.observe(empty_state(t, ARMS), t % ARMS, x[:NARROW], y, False)
        )
        lam, eta = lam + np.outer(x[NARROW:], x[NARROW:]), eta + y * x[NARROW:]
    X = rows_of(rng)
    means, covariance = wide._predict_wide(0, X)
    F = X[:, NARROW:]
    np.testing.assert_allclose(means, F @ np.linalg.solve(lam, eta))
    np.testing.assert_allclose(covariance, F @ np.linalg.solve(lam, F.T), atol=1e-12)


def learnt(rng: np.random.Generator, prior: NoisePrior) -> tuple[ModelBank, FloatArray]:
    """A bank after thirty rewards, and Lam of who sees all."""
    layout, spec = Layout(ARMS, NARROW, True, wide_dim=WIDE), stationary(True)
    bank = ModelBank(layout, [[spec]], prior)
    bank.assign(0, spec)
    lam = float(bank.arrays.ridge[0]) * np.eye(WIDE)
    for t in range(30):
        X = rows_of(rng)
        bank.observe(empty_state(t, ARMS), 0, X[0], 1.0, False)
        lam += np.outer(X[0, NARROW:], X[0, NARROW:])
    return bank, lam


def test_draws_of_who_sees_all_vary_together_as_weights_do() -> None:
    rng = np.random.default_rng(2)
    bank, lam = learnt(rng, NoisePrior(min_scale=1.0, max_scale=1.0))
    X = rows_of(rng)
    X[1] = X[0]  # two arms that are alike are drawn alike
    F, a, b = X[:, NARROW:], float(bank.arrays.a[0]), float(bank.arrays.b[0])
    drawn = bank.draws({0: 20_000}, empty_state(30, ARMS), X, False, rng)
    expected = b / (a - 1) * F @ np.linalg.solve(lam, F.T)
    np.testing.assert_allclose(np.cov(drawn.T), expected, atol=0.05 * expected.max())
    np.testing.assert_allclose(drawn[:, 0], drawn[:, 1], atol=1e-6)


def test_many_draws_of_who_sees_all_are_those_of_one_after_the_other() -> None:
    bank, _ = learnt(np.random.default_rng(3), PRIOR)
    X, moment = rows_of(np.random.default_rng(4)), empty_state(30, ARMS)
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    together = bank.draws({0: 3}, moment, X, False, one)
    np.testing.assert_array_equal(
        together, [bank.draw(0, moment, X, False, other) for _ in range(3)]
    )


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e12])
def test_draws_of_who_sees_all_are_finite_when_vectors_are_tiny_huge_or_alike(size: float) -> None:
    bank, _ = learnt(np.random.default_rng(3), PRIOR)
    X = np.full((ARMS, NARROW + WIDE), size)
    assert np.isfinite(
        bank.draw(0, empty_state(30, ARMS), X, False, np.random.default_rng(6))
    ).all()


@pytest.mark.parametrize(
    ("spec", "steady"),
    [
        (stationary(True), True),
        (discounted(0.9, True), False),
        (fourier(5.0, contextual=True), False),
        (Spec("turns", appended=0, contextual=True), False),
        (Spec("last event", regime_by=0, contextual=True), False),
    ],
)
def test_time_does_not_count_only_where_there_is_neither_clock_nor_note_nor_discount(
    spec: Spec, steady: bool
) -> None:
    assert spec.steady is steady


def test_wide_vectors_are_learnt() -> None:
    world = ("random-world", {"world": 71002, "kind": "vectors-wide"})
    regret, random = (
        run_trial(world, policy, horizon=500, seed=71002).regret[-1]
        for policy in ("tide", "random")
    )
    assert regret < 0.3 * random


def test_policy_on_wide_vectors_continues_bit_by_bit_when_restored() -> None:
    def see(rng: np.random.Generator) -> tuple[Context, Callable[[int], float]]:
        context = Context(arm_features=rng.normal(size=(3, 70)))
        return context, list(map(float, rng.normal(size=3))).__getitem__

    went_on, restored = arms_after_restoring(ProblemShape(3, arm_dim=70), see, 80, 50)
    assert went_on == restored


def test_newborns_are_looked_for_in_what_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    widths, made = [], search._PoolSearch

    def watched(*given: Any) -> search._PoolSearch:
        widths.append(given[2].x.shape[1])
        return made(*given)

    monkeypatch.setattr(search, "_PoolSearch", watched)
    policy, rng = (
        build_policy("tide", ProblemShape(3, arm_dim=70), seed=1),
        np.random.default_rng(1),
    )
    for _ in range(25):
        context = Context(arm_features=rng.normal(size=(3, 70)))
        policy.learn(Event(context, policy.choose(context), float(rng.normal())))
        while policy.upkeep():
            pass
    assert set(widths) == {65}


def test_map_that_does_not_fit_is_refused() -> None:
    made = ContextMap(ProblemShape(2, arm_dim=70))
    with pytest.raises(SnapshotError, match="has the shape"):
        made.restore({**made.snapshot(), "each": np.zeros(3)})
