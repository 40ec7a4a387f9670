"""The specialist learns values and nothing else, and what problems tell it is the truth without the
values."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from tidepull.errors import ProblemError
from tidepull.experiments.loop import run_trial
from tidepull.policies import build_policy
from tidepull.policies.guard import GuardedSpecialist
from tidepull.problems import build_problem
from tidepull.problems.random_worlds import KINDS
from tidepull.protocols import HasStructure
from tidepull.types import Context, Event, FloatArray, ProblemShape, Structure

NAMED: list[Any] = [
    "stationary-bernoulli", "flipping-gaussian", "sinusoidal-bernoulli", "circular-markov-chain", "flipping-vector",
    "rotating-vector-32", "wall-clock-bernoulli", "change-points-bernoulli", "returning-regimes", "class-blocks",
    ("wild-rewards", {"half_period": 40}), ("steady-contexts", {"rank": 3}), ("steady-contexts", {"shared": True}),
    *(("random-world", {"world": 7, "kind": kind}) for kind in KINDS if not kind.endswith("walk")),
]  # fmt: skip


@pytest.mark.parametrize("named", NAMED, ids=str)
def test_structure_and_some_values_give_the_means_of_every_round(named: Any) -> None:
    """One weight vector for each group must explain all its rounds: least squares has nothing left
    over."""
    problem = build_problem(named, seed=4)
    assert isinstance(problem, HasStructure)
    rng = np.random.default_rng(0)
    seen: dict[int, list[tuple[FloatArray, float]]] = defaultdict(list)
    for _ in range(400):
        told, means = problem.structure(), problem.means()
        for group, vector, mean in zip(told.groups, told.vectors, means, strict=True):
            seen[int(group)].append((vector, mean))
        problem.step(int(rng.integers(problem.n_arms)))
    for rows in seen.values():
        X, y = np.array([x for x, _ in rows]), np.array([m for _, m in rows])
        w = np.linalg.lstsq(X, y, rcond=None)[0]
        assert np.abs(X @ w - y).max() < 1e-9
    repeated = sum(len(rows) for rows in seen.values()) / len(seen)
    assert repeated > 2 * len(next(iter(seen.values()))[0][0])  # else anything could be explained


def test_beliefs_are_those_of_a_direct_regression_when_rewards_come_late() -> None:
    shape = ProblemShape(n_arms=3, arm_dim=2)
    policy = build_policy("specialist", shape, seed=0)
    assert isinstance(policy, GuardedSpecialist)
    rng = np.random.default_rng(1)
    noise, std = 0.3, np.array([0.5, 2.0])
    kept = []
    for t in range(40):
        X = rng.normal(size=(3, 2))
        told = Structure(np.array([0, 1, t % 2]), X, noise, np.zeros(2), std)
        arm = policy.choose_told(Context(arm_features=X), told)
        kept.append((t, arm, int(told.groups[arm]), X, float(rng.normal())))
    for t, arm, _, X, reward in rng.permutation(np.array(kept, dtype=object)):
        policy.learn(Event(Context(arm_features=X), int(arm), float(reward), decided=int(t)))
    for group in (0, 1):
        A = np.array([X[arm] for _, arm, g, X, _ in kept if g == group])
        y = np.array([reward for _, _, g, _, reward in kept if g == group])
        precision = np.diag(std**-2.0) + A.T @ A / noise**2
        value = policy._inner._values[group]  # type: ignore[attr-defined]
        assert value.mean == pytest.approx(np.linalg.solve(precision, A.T @ y / noise**2), abs=1e-9)
        assert value.spread == pytest.approx(np.linalg.inv(precision), abs=1e-9)


def test_a_walking_value_is_less_well_known_with_every_round() -> None:
    policy = build_policy("specialist", ProblemShape(n_arms=1), seed=0)
    assert isinstance(policy, GuardedSpecialist)
    told = Structure(np.zeros(1, np.int64), np.ones((1, 1)), 0.2, np.zeros(1), np.ones(1), step=0.1)
    variance = 1.0
    for t in range(5):
        variance += 0.01 * (t > 0)
        policy.choose_told(Context(), told)
        policy.learn(Event(Context(), 0, 0.5, decided=t))
        # Learnt after the round has begun: the next one is 0.01 wider again.
        variance = 1 / (1 / (variance + (0.01 if t == 0 else 0.0)) + 1 / 0.04)
        assert float(policy._inner._values[0].spread[0, 0]) == pytest.approx(variance)  # type: ignore[attr-defined]


def test_specialist_is_refused_by_a_problem_that_does_not_tell_its_structure() -> None:
    class Secret:
        n_arms = 2

        def context(self) -> Context:
            return Context()

        def means(self) -> FloatArray:
            return np.array([0.0, 1.0])

        def step(self, arm: int) -> float:
            return float(arm)

    with pytest.raises(ProblemError, match="Secret does not tell its structure"):
        run_trial(Secret(), "specialist", horizon=5)


def test_specialist_leaves_random_far_behind_where_everything_returns() -> None:
    regret = run_trial("returning-regimes", "specialist", horizon=3000, seed=1).regret[-1]
    assert regret < run_trial("returning-regimes", "random", horizon=3000, seed=1).regret[-1] / 5
