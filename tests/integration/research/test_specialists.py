"""The yardsticks for worlds in stretches: GLR-klUCB against its definition, and who is told the
structure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from research.benchmarks.glr import GLRklUCB, _changed, _index, _kl
from research.benchmarks.specialists import KnowsVectors, specialist
from research.benchmarks.tide_stretches import RIGHT, WRONG, problem_of
from tidepull.experiments.loop import run_trial
from tidepull.problems import build_problem
from tidepull.problems.random_worlds import KINDS
from tidepull.types import Context, Event


def test_glr_finds_the_change_that_the_definition_finds() -> None:
    rng = np.random.default_rng(0)
    rewards = (rng.random(120) < np.where(np.arange(120) < 61, 0.9, 0.2)).astype(float)
    delta, found = 0.01, []
    for n in range(2, 121):
        mean = rewards[:n].mean()
        splits = [
            s
            for s in range(1, n, 10)
            if s * _kl(rewards[:s].mean(), mean) + (n - s) * _kl(rewards[s:n].mean(), mean)
            >= math.log(3 * n**1.5 / delta)
        ]
        found.append(splits[0] if splits else -1)
        assert _changed(rewards, n, delta) == found[-1]
    assert set(found[:60]) == {-1}
    assert 41 <= found[-1] <= 71


def test_index_is_the_largest_chance_within_the_bound() -> None:
    q = _index(0.3, 0.1)
    assert _kl(0.3, q) == pytest.approx(0.1, abs=1e-9)
    assert q > 0.3


def test_glr_follows_a_change_with_few_restarts() -> None:
    policy = GLRklUCB(2, 4000, 1)
    rng, played = np.random.default_rng(1), []
    for t in range(4000):
        arm = policy.choose(Context())
        played.append(arm)
        level = (0.9 if t < 2000 else 0.1, 0.5)[arm]
        policy.learn(Event(Context(), arm, float(rng.random() < level)))
    assert 1 <= policy.restarts <= 3  # the first split may keep a little of what came before
    assert np.mean(played[1000:2000]) < 0.1
    assert np.mean(played[2200:]) > 0.9


def test_specialist_loses_less_than_glr_and_recognises_what_returns() -> None:
    lost = {}
    for name in ("specialist", "glr"):
        problem = build_problem("returning-regimes", seed=2)
        told = specialist(problem, 3000, 0) if name == "specialist" else GLRklUCB(8, 3000, 10)
        assert told is not None
        lost[name] = float(run_trial("returning-regimes", told, horizon=3000, seed=2).regret[-1])
    assert lost["specialist"] < 0.5 * lost["glr"]


def test_specialist_knows_vectors_and_says_when_nothing_is_known() -> None:
    named = ("random-world", {"world": 3, "kind": "vectors-returning"})
    told = specialist(build_problem(named, seed=0), 400, 0)
    assert isinstance(told, KnowsVectors)
    regret = run_trial(named, told, horizon=400, seed=0).regret
    assert regret[-1] < 0.3 * run_trial(named, "random", horizon=400, seed=0).regret[-1]
    for kind in ("arms-walk", "labels-flip"):
        assert specialist(build_problem(("random-world", {"kind": kind}), seed=0), 400, 0) is None


def test_every_kind_of_the_table_is_a_problem() -> None:
    assert set(WRONG) <= set(KINDS)
    for kind in (*RIGHT, *WRONG):
        named, horizon, _ = problem_of(kind, 60_000)
        build_problem(named, seed=0).step(0)
        assert horizon >= 1024
