"""What version 13 does otherwise than version 12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.policies.tide.continuing import arms_after_restoring
from tidepull.building import build_policy
from tidepull.errors import ParameterError
from tidepull.experiments.loop import run_trial
from tidepull.policies.tide import TideParameters
from tidepull.types import Context, ProblemShape


def test_version_13_is_the_default_and_later_ones_are_refused() -> None:
    assert TideParameters().version == 13
    with pytest.raises(ParameterError, match="version"):
        TideParameters(version=14)


def test_version_13_has_classes_where_something_is_observed_and_nowhere_else() -> None:
    twelve, thirteen = TideParameters(version=12), TideParameters(version=13)
    assert "classes" in thirteen.families(observed=True)
    assert "classes" not in thirteen.families()
    assert "classes" not in twelve.families(observed=True)
    assert "classes" not in TideParameters(without=("classes",)).families(observed=True)
    for shape, wanted in (
        (ProblemShape(3, 2), True),
        (ProblemShape(3), False),
        (ProblemShape(3, 0, 2), False),
    ):
        policy: Any = build_policy(("tide", {}), shape, seed=0)
        assert ("classes" in policy.inner.families) == wanted


@pytest.mark.parametrize(("n_arms", "there"), [(16, True), (17, False)])
def test_turns_are_taken_by_few_arms_where_something_is_observed(n_arms: int, there: bool) -> None:
    assert ("turns" in TideParameters().families(observed=True, n_arms=n_arms)) == there
    assert "turns" in TideParameters().families(n_arms=n_arms)
    assert "turns" in TideParameters(version=12).families(observed=True, n_arms=n_arms)
    assert "turns" in TideParameters(also=("turns",)).families(observed=True, n_arms=n_arms)
    policy: Any = build_policy(("tide", {}), ProblemShape(n_arms, 2), seed=0)
    assert ("turns" in policy.inner.families) == there


@pytest.mark.parametrize("kind", ["arms-flip", "vectors-flip", "clicks-sine"])
def test_version_13_plays_as_version_12_where_nothing_is_observed(kind: str) -> None:
    world = ("random-world", {"world": 71001, "kind": kind})
    old, new = (run_trial(world, ("tide", {"version": v}), horizon=200, seed=1).arms for v in (12, 13))
    np.testing.assert_array_equal(old, new)


def test_version_13_finds_classes_in_blocks_and_says_so() -> None:
    """Version 12 saw each arm by itself; among forty, most are never right when they are tried."""
    earned = {}
    for policy in (("tide", {"version": 12}), ("tide", {"version": 13}), ("lin-ucb", {})):
        trial = run_trial(("class-blocks", {}), policy, horizon=2000, seed=30000)
        earned[policy[0], policy[1].get("version")] = float(trial.rewards[1000:].mean())
        told = trial.diagnostics.get("explanation", "")
    assert earned["tide", 13] > 1.2 * max(earned["tide", 12], earned["lin-ucb", None])
    trial = run_trial(("class-blocks", {}), "tide", horizon=1000, seed=30000)
    told = trial.diagnostics["beliefs"]["told"]["classes"][0]["words"]
    assert "arms have been right" in told


def test_version_13_continues_bit_by_bit_when_restored() -> None:
    def see(rng: np.random.Generator) -> tuple[Context, Callable[[int], float]]:
        label = int(rng.integers(5))
        x = np.eye(5)[label] * 3 + rng.normal(size=5)
        return Context(observation=x), lambda arm: float(arm == label)

    went_on, restored = arms_after_restoring(13, ProblemShape(5, 5), see, 150, 90)
    assert went_on == restored
