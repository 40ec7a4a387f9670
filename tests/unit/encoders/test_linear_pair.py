"""Two linear layers as one product, or in turn."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.encoders.layers import FlatWeights, LinearPair

INPUTS, FIRST, SECOND, ROUNDS = 11, 5, 8, 40


def make() -> tuple[LinearPair, FlatWeights, FlatWeights, np.random.Generator]:
    rng = np.random.default_rng(0)
    weights = FlatWeights(
        {
            "first": rng.standard_normal((INPUTS, FIRST)),
            "second": rng.standard_normal((FIRST, SECOND)),
        },
        {"first_bias": rng.standard_normal(FIRST), "second_bias": rng.standard_normal(SECOND)},
        np.float64,
    )
    gradient = weights.zeros_like()
    return LinearPair(weights, gradient, "second", np.arange(SECOND) / 10), weights, gradient, rng


@pytest.mark.parametrize("collapses", [True, False])
def test_pair_and_its_gradients_equal_the_layers_one_by_one(
    collapses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, w, g, rng = make()
    monkeypatch.setattr(pair, "collapses", lambda _: collapses)
    X = np.ones((ROUNDS, INPUTS + 1))
    X[:, :-1] = rng.standard_normal((ROUNDS, INPUTS))
    Z, DZ = np.empty((ROUNDS, SECOND)), rng.standard_normal((ROUNDS, SECOND))
    pair.forward(X, Z)
    some = np.empty((2, ROUNDS))
    pair.backward(X, DZ, slice(2, 4), some)
    A = X[:, :-1] @ w["first"] + w["first_bias"]
    DA = DZ @ w["second"].T
    np.testing.assert_allclose(
        Z, A @ w["second"] + w["second_bias"] + np.arange(SECOND) / 10, rtol=1e-12
    )
    np.testing.assert_allclose(g["second"], A.T @ DZ, rtol=1e-10)
    np.testing.assert_allclose(g["second_bias"], DZ.sum(0), rtol=1e-10)
    np.testing.assert_allclose(g["first"], X[:, :-1].T @ DA, rtol=1e-10)
    np.testing.assert_allclose(g["first_bias"], DA.sum(0), rtol=1e-10)
    np.testing.assert_allclose(some, (DA @ w["first"].T)[:, 2:4].T, rtol=1e-10)


@pytest.mark.parametrize(("n_inputs", "expected"), [(9, True), (40, True), (795, False)])
def test_layers_are_collapsed_only_when_that_is_cheaper(n_inputs: int, expected: bool) -> None:
    pair, _, _, _ = make()
    pair.n_inputs, pair.first, pair.second = n_inputs, 32, 128
    assert pair.collapses(2048) is expected
