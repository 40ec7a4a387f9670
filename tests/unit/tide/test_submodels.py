"""What is said of seasons and hours: nested models, and the arm that is surely best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tidepull.policies import build_policy
from tidepull.tide.submodels import without
from tidepull.types import Context, Event, FloatArray, ProblemShape

HOUR, DAY = 3600.0, 86_400.0
MONDAY = 1_767_571_200.0


def test_ratio_and_posterior_are_those_of_the_smaller_model() -> None:
    rng, prior, noise = np.random.default_rng(0), np.array([1.0, 0.5, 2.0, 0.3]), 0.7
    absent = np.array([False, True, False, True])
    X, y = rng.standard_normal((2, 30, 4)), rng.standard_normal((2, 30))

    def fit(v: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Posteriors and the evidence of both arms by dense regression."""
        means, covs, evidence = [], [], 0.0
        for rows, values in zip(X, y, strict=True):
            gram = (rows * v) @ rows.T + noise * np.eye(30)
            gain = np.linalg.solve(gram, rows * v)
            means.append(gain.T @ values)
            covs.append(np.diag(v) - (v[:, None] * rows.T) @ gain)
            evidence += float(multivariate_normal.logpdf(values, np.zeros(30), gram))
        return np.array(means), np.array(covs), evidence

    mean, cov, whole = fit(prior)
    expected_mean, expected_cov, part = fit(np.where(absent, 0.0, prior))
    ratio, means, covs = without(absent, mean, cov, prior)
    assert ratio == pytest.approx(part - whole)
    assert means == pytest.approx(expected_mean, abs=1e-9)
    assert covs == pytest.approx(expected_cov, abs=1e-9)


def played(
    pays: Callable[[int, float, np.random.Generator], float], n_arms: int = 2, rounds: int = 1200
) -> Any:
    """`structural-ts` after random arms, four an hour; `pays(arm, hour of the day, generator)`."""
    policy: Any = build_policy("structural-ts", ProblemShape(n_arms), seed=0)
    rng = np.random.default_rng(1)
    for t in range(rounds):
        context = Context(time=MONDAY + t * HOUR / 4)
        arm = int(rng.integers(n_arms))
        policy.learn(Event(context, arm, pays(arm, t / 4 % 24, rng)))
        while policy.upkeep():
            pass
    return policy.inner


def weights(policy: Any) -> dict[str, float]:
    return {belief.words: belief.weight for belief in policy.beliefs()}


def test_arm_that_is_always_best_is_named_at_all_hours_and_no_season_is() -> None:
    policy = played(lambda arm, _, rng: float(rng.random() < (0.2, 0.6)[arm]))
    assert (policy.week() == 1).all()
    assert weights(policy)["no season"] > 0.5
    assert sum(weights(policy).values()) == pytest.approx(1.0)


def test_hours_are_named_where_arms_take_turns_and_the_weekend_is_not() -> None:
    policy = played(lambda arm, hour, rng: float(rng.random() < (0.6, 0.2)[arm ^ (hour >= 12)]))
    table = policy.week()
    named = table >= 0
    assert named.mean() > 0.5
    inside = np.broadcast_to((np.arange(24) >= 12).astype(int), (7, 24))
    assert (table == inside)[named].all()
    said = weights(policy)
    assert sum(weight for words, weight in said.items() if "hour" in words) > 0.99
    assert sum(weight for words, weight in said.items() if "weekend" in words) < 0.25


def test_nothing_is_named_where_arms_are_alike() -> None:
    policy = played(lambda _, hour, rng: float(rng.random() < 0.3 + 0.2 * (hour < 8)), n_arms=3)
    assert (policy.week() == -1).all()


def test_larger_payments_make_an_arm_best() -> None:
    def pays(arm: int, _: float, rng: np.random.Generator) -> float:
        return float(rng.random() < 0.5) * float(np.exp(1.2 * arm + rng.standard_normal()))

    assert (played(pays).week() == 1).all()


def test_arm_that_does_badly_today_is_not_surely_best() -> None:
    before = played(lambda arm, _, rng: (0.0, 1.0)[arm] + 0.5 * rng.standard_normal())
    after = played(lambda arm, _, rng: (0.0, 1.0)[arm] + 0.5 * rng.standard_normal(), rounds=1100)
    assert (before.week() == 1).all()
    rng = np.random.default_rng(2)
    for t in range(1100, 1200):
        context = Context(time=MONDAY + t * HOUR / 4)
        after.learn(Event(context, 1, -3.0 + 0.5 * rng.standard_normal(), decided=t))
    assert (after.week() == -1).mean() > 0.9
