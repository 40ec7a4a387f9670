"""What version 5 switches on, and that version 4 has none of it."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.hypotheses.families import FAMILIES
from tidepull.policies.tide import Tide, TideParameters
from tidepull.policies.tide.context import ContextMap
from tidepull.random import Streams
from tidepull.types import Context, Event, ProblemShape

NEW = ["changes", "regimes", "calendar", "clock"]


def test_version_5_has_all_new_families_and_version_4_none_unless_asked() -> None:
    four, five = (TideParameters(version=version).families() for version in (4, 5))
    assert [name for name in five if name not in four] == NEW
    assert [name for name in FAMILIES if name not in five] == ["trend", "classes"]
    assert "regimes" not in TideParameters(version=5, without=("regimes",)).families()
    assert "clock" in TideParameters(also=("clock",)).families()


def test_version_5_draws_boldly_and_sets_wild_rewards_aside() -> None:
    four, five = TideParameters(version=4), TideParameters(version=5)
    assert (four.width(), four.wildness()) == (0.5, 0.0)
    assert (five.width(), five.wildness()) == (2.0, 0.01)
    assert TideParameters(version=5, boldest=3.0, wild=0.1).width() == 3.0
    assert TideParameters(version=5, boldest=3.0, wild=0.1).wildness() == 0.1
    policy = Tide(five, ProblemShape(2), Streams(0))
    for t in range(64):
        policy.learn(Event(Context(), t % 2, 1e14 if t == 40 else t % 2 + 0.1 * (t % 5), t))
    assert policy.diagnostics()["set_aside"] == 1


@pytest.mark.parametrize(
    ("numbers", "kept", "kept_by_4"), [(32, 32, 32), (60, 60, 32), (64, 64, 32), (65, 32, 32)]
)
def test_version_5_leaves_observations_of_up_to_64_numbers_as_they_are(
    numbers: int, kept: int, kept_by_4: int
) -> None:
    shape = ProblemShape(3, observation_dim=numbers)
    assert ContextMap(shape, wide=True).dim == 1 + kept
    assert ContextMap(shape).dim == 1 + kept_by_4


@pytest.mark.parametrize(("start", "unit"), [(1.7e9, "hours"), (0.0, "")])
def test_version_5_speaks_of_hours_only_where_times_are_seconds_since_1970(start: float, unit: str) -> None:
    without = ("network", "changes", "regimes", "calendar", "fourier", "square", "seasons", "turns")
    policy, rng = (
        Tide(TideParameters(version=5, without=without), ProblemShape(2), Streams(0)),
        np.random.default_rng(0),
    )
    for t in range(260):
        context = Context(time=start + 5000.0 * t + 4000.0 * float(rng.random()))
        phase = np.sin(2 * np.pi * float(context.time or 0.0) / 40_000.0)
        arm = policy.choose(context)
        policy.learn(Event(context, arm, float(phase * (1 - 2 * arm) + 0.1 * rng.normal()), t))
        while policy.upkeep():
            pass
    words = policy.explain().beliefs[0].words
    assert words.startswith("repeats every ")
    assert ("hours" in words) == bool(unit)


def test_changes_are_likelier_beforehand_in_version_5_alone() -> None:
    few = tuple(name for name in FAMILIES if name not in ("stationary", "changes"))
    for version, prior in ((4, 0.04), (5, 1.6)):
        parameters = TideParameters(version=version, also=("changes",), without=few)
        policy = Tide(parameters, ProblemShape(3), Streams(0))
        assert policy.family_weights() == pytest.approx([0.8 / (0.8 + prior), prior / (0.8 + prior)])
