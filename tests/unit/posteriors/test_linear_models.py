"""Rank-one changes against fresh solves, over many rounds."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.errors import NumericalError, SnapshotError
from tidepull.policies.linear import WIDE, DiscountedLinearUcbParameters, discounted_linear_ucb
from tidepull.posteriors.linear_models import (
    DiscountedModels,
    StationaryModels,
    WideDiscountedModels,
    WindowedModels,
)
from tidepull.random import Streams
from tidepull.types import FloatArray, ProblemShape

LAMBDA = 0.1


def unit_rows(n: int, d: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ rng.standard_normal(d) + 0.05 * rng.standard_normal(n)


def fresh(X: FloatArray, Y: FloatArray, queries: FloatArray) -> tuple[FloatArray, FloatArray]:
    V = LAMBDA * np.eye(X.shape[1]) + X.T @ X
    return queries @ np.linalg.solve(V, X.T @ Y), np.diag(queries @ np.linalg.solve(V, queries.T))


def worst(got: tuple[FloatArray, FloatArray], wanted: tuple[FloatArray, FloatArray]) -> float:
    return max(float(np.abs(got[0] - wanted[0]).max()), float(np.abs(got[1] / wanted[1] - 1).max()))


@pytest.mark.parametrize("window", [None, 50, 3000])
def test_error_stays_below_1e_8_over_100_000_rounds(window: int | None) -> None:
    n, d = 100_000, 10
    X, Y = unit_rows(n, d)
    queries = unit_rows(25, d, seed=1)[0]
    models = (
        StationaryModels(1, d, LAMBDA) if window is None else WindowedModels(1, d, LAMBDA, window)
    )
    error = 0.0
    for t in range(n):
        models.update(0, X[t], float(Y[t]), t)
        if (t + 1) % 9973 == 0 or t == n - 1:
            first = 0 if window is None else max(0, t + 1 - window)
            wanted = fresh(X[first : t + 1], Y[first : t + 1], queries)
            error = max(error, worst(models.predict(0, queries), wanted))
    assert error < 1e-8


def test_windowed_models_survive_rows_of_very_different_size() -> None:
    d, window = 4, 6
    X, Y = unit_rows(400, d)
    X[::17] *= 1e5  # such a row, taken back, leaves rounding errors as large as everything else
    models = WindowedModels(1, d, LAMBDA, window)
    for t in range(400):
        models.update(0, X[t], float(Y[t]), t)
        if t % 17 == window - 1:  # no large row is left in the window
            first = max(0, t + 1 - window)
            wanted = fresh(X[first : t + 1], Y[first : t + 1], X[1:5])
            assert worst(models.predict(0, X[1:5]), wanted) < 1e-4


def test_models_side_by_side_learn_only_their_own_rows_but_share_the_window() -> None:
    X, Y = unit_rows(60, 3)
    owners = np.random.default_rng(3).integers(3, size=60)
    models = WindowedModels(3, 3, LAMBDA, 12)
    for t in range(60):
        models.update(int(owners[t]), X[t], float(Y[t]), t)
        last = np.arange(max(0, t - 11), t + 1)
        for model in range(3):
            rows = last[owners[last] == model]
            assert models.weights[model] == len(rows)
            assert worst(models.predict(model, X[:4]), fresh(X[rows], Y[rows], X[:4])) < 1e-10


def test_discounted_models_equal_the_recursion_with_its_prior_term() -> None:
    gamma = 0.9
    X, Y = unit_rows(80, 3)
    models = DiscountedModels(1, 3, LAMBDA, gamma)
    identity = LAMBDA * np.eye(3)
    V, V_tilde, b = identity, identity, np.zeros(3)
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        models.update(0, x, float(y), t)
        V = gamma * V + np.outer(x, x) + (1 - gamma) * identity
        V_tilde = gamma**2 * V_tilde + np.outer(x, x) + (1 - gamma**2) * identity
        b = gamma * b + y * x
        inverse = np.linalg.inv(V)
        wanted = X[:5] @ inverse @ b, np.diag(X[:5] @ inverse @ V_tilde @ inverse @ X[:5].T)
        assert worst(models.predict(0, X[:5]), wanted) < 1e-11


def test_wide_models_equal_those_that_add_up_before_and_after_they_do_so_themselves() -> None:
    d, gamma = 40, 0.97
    X, Y = unit_rows(150, d)
    wide, summed = WideDiscountedModels(2, d, LAMBDA, gamma), DiscountedModels(2, d, LAMBDA, gamma)
    for t in range(150):
        model = int(t % 5 == 0)  # the first has more rounds than numbers after 50, the second never
        for models in (wide, summed):
            models.update(model, X[t], float(Y[t]), t)
        for model in range(2):
            assert worst(wide.predict(model, X[:4]), summed.predict(model, X[:4])) < 1e-9
        np.testing.assert_allclose(wide.weights, summed.weights)
    assert [type(m) for m in wide._models].count(DiscountedModels) == 1


def test_wide_models_refuse_a_row_that_is_not_finite_and_keep_what_they_knew() -> None:
    X, Y = unit_rows(3, 5)
    models = WideDiscountedModels(1, 5, LAMBDA, 0.9)
    models.update(0, X[0], float(Y[0]), 0)
    before = models.predict(0, X)
    with pytest.raises(NumericalError, match="not finite"):
        models.update(0, np.full(5, np.inf), 1.0, 1)
    assert worst(models.predict(0, X), before) == 0.0


def test_discounted_policy_computes_from_its_rounds_where_observations_are_wide() -> None:
    for numbers, kind in ((WIDE - 2, DiscountedModels), (WIDE - 1, WideDiscountedModels)):
        shape = ProblemShape(n_arms=2, observation_dim=numbers)
        policy = discounted_linear_ucb(DiscountedLinearUcbParameters(), shape, Streams(0))
        assert type(policy._models) is kind


def test_wide_models_continue_from_a_snapshot_of_models_that_add_up() -> None:
    d, gamma = 12, 0.95
    X, Y = unit_rows(30, d)
    summed, wide = DiscountedModels(2, d, LAMBDA, gamma), WideDiscountedModels(2, d, LAMBDA, gamma)
    for t in range(20):
        summed.update(t % 2, X[t], float(Y[t]), t)
    wide.restore(summed.snapshot())
    for t in range(20, 30):
        for models in (summed, wide):
            models.update(t % 2, X[t], float(Y[t]), t)
    for model in range(2):
        assert worst(wide.predict(model, X[:4]), summed.predict(model, X[:4])) == 0.0
    np.testing.assert_array_equal(wide.weights, summed.weights)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"decided": np.arange(3) + 5}, "after its latest"),
        (
            {"decided": np.arange(9), "rows": np.zeros((9, 5)), "rewards": np.zeros(9)},
            "9 rounds of 5 numbers",
        ),
        ({"rewards": np.zeros(4)}, "rewards"),
    ],
)
def test_wide_models_refuse_rounds_that_do_not_fit(wrong: dict[str, FloatArray], says: str) -> None:
    X, Y = unit_rows(3, 5)
    models = WideDiscountedModels(2, 5, LAMBDA, 0.9)
    for t in range(3):
        models.update(0, X[t], float(Y[t]), t)
    saved, before = models.snapshot(), models.predict(0, X)
    with pytest.raises(SnapshotError, match=says):
        models.restore({**saved, "models": [{**saved["models"][0], **wrong}, saved["models"][1]]})
    with pytest.raises(SnapshotError, match="1 linear models, expected 2"):
        models.restore({**saved, "models": saved["models"][:1]})
    assert worst(models.predict(0, X), before) == 0.0
