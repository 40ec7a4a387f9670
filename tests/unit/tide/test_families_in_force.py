"""Which families take part, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.tide.continuing import arms_after_restoring
from tidepull.experiments.loop import run_trial
from tidepull.policies import build_policy
from tidepull.random import Streams
from tidepull.tide import TideParameters
from tidepull.tide.context import ContextMap
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.patterns import Patterns
from tidepull.types import Context, ProblemShape


def test_classes_take_part_where_something_is_observed_and_nowhere_else() -> None:
    assert "classes" in TideParameters().families(observed=True)
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
    assert "turns" in TideParameters(also=("turns",)).families(observed=True, n_arms=n_arms)
    policy: Any = build_policy(("tide", {}), ProblemShape(n_arms, 2), seed=0)
    assert ("turns" in policy.inner.families) == there


def test_classes_in_blocks_are_found_and_said() -> None:
    """Who sees each arm by itself never finds most of forty: they are hardly ever right when they
    are tried."""
    found, alone = (
        run_trial("class-blocks", ("tide", {"without": without}), horizon=2000, seed=30000)
        for without in ([], ["classes"])
    )
    assert found.rewards[1000:].mean() > 1.2 * alone.rewards[1000:].mean()
    assert "arms have been right" in found.diagnostics["beliefs"]["told"]["classes"][0]["words"]


def test_policy_with_classes_continues_bit_by_bit_when_restored() -> None:
    def see(rng: np.random.Generator) -> tuple[Context, Callable[[int], float]]:
        label = int(rng.integers(5))
        x = np.eye(5)[label] * 3 + rng.normal(size=5)
        return Context(observation=x), lambda arm: float(arm == label)

    went_on, restored = arms_after_restoring(ProblemShape(5, 5), see, 150, 90)
    assert went_on == restored


@pytest.mark.parametrize("shape", [ProblemShape(3, 2), ProblemShape(3, 0, 2), ProblemShape(3)])
def test_discounted_models_take_part_where_they_are_asked_for(shape: ProblemShape) -> None:
    asked = TideParameters(also=("discounted",))
    assert "discounted" not in Patterns(TideParameters(), shape, Streams(0)).families
    assert "discounted" in Patterns(asked, shape, Streams(0)).families


def test_family_that_is_to_be_left_out_takes_no_part() -> None:
    left = set(FAMILIES) - set(TideParameters(without=("regimes",)).families())
    assert left == {"regimes", "discounted"}


@pytest.mark.parametrize(("numbers", "kept"), [(32, 32), (60, 60), (64, 64), (65, 32)])
def test_observations_of_up_to_64_numbers_are_seen_as_they_are(numbers: int, kept: int) -> None:
    assert ContextMap(ProblemShape(3, observation_dim=numbers)).dim == 1 + kept


def test_seasons_in_rounds_and_regimes_take_no_part_where_times_are_given() -> None:
    def families(context: Context) -> set[str]:
        policy: Any = build_policy("tide", ProblemShape(2), seed=0)
        policy.choose(context)
        return set(policy.explain().families)

    untimed = {"fourier", "square", "seasons", "phases", "own periods", "regimes"}
    assert untimed <= families(Context())
    assert families(Context(time=1.7e9)) == families(Context()) - untimed
    assert untimed <= families(Context(time=17.0))  # no seconds since 1970
