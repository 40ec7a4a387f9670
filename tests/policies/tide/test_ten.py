"""What version 10 does otherwise than version 9: averages of hypotheses, narrower draws, less discounted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.policies.tide.test_shares import grown
from tidepull.building import build_policy
from tidepull.experiments.loop import run_trial
from tidepull.policies.tide import Tide, TideParameters
from tidepull.random import Streams
from tidepull.types import Context, Event, FloatArray, ProblemShape


def means_of(bank: Any, slots: Mapping[int, int], now: Any, X: FloatArray, binary: bool) -> FloatArray:
    """Expected rewards under each slot, from a hundred thousand draws of each."""
    rng = np.random.default_rng(5)
    return np.array([bank.draws({m: 100_000}, now, X, binary, rng).mean(axis=0) for m in slots])


@pytest.mark.parametrize("binary", [True, False])
def test_draw_about_others_has_the_average_of_their_means_and_its_own_width(binary: bool) -> None:
    bank, now, X, rng = grown(2, binary, 10)
    active = np.flatnonzero(bank.arrays.active)
    asked = {int(active[0]): 2, int(active[5]): 1, int(active[9]): 5}
    m = int(active[5])
    alone = bank.draws({m: 100_000}, now, X, binary, rng)
    about = bank.draws({m: 100_000}, now, X, binary, rng, about=asked)
    expected = np.average(means_of(bank, asked, now, X, binary), axis=0, weights=list(asked.values()))
    tolerance = 5 * alone.std(axis=0).max() / 300
    np.testing.assert_allclose(about.mean(axis=0), expected, atol=2 * tolerance)
    np.testing.assert_allclose(about.std(axis=0), alone.std(axis=0), rtol=0.02)


def test_draws_of_all_about_all_come_in_the_order_of_slots() -> None:
    bank, now, X, _ = grown(2, False, 10)
    slots = [int(m) for m in np.flatnonzero(bank.arrays.active)[:3]]
    found = {slots[0]: 1, slots[1]: 2, slots[2]: 1}
    plain = bank.draws(found, now, X, False, np.random.default_rng(3))
    about = bank.draws(found, now, X, False, np.random.default_rng(3), about=found)
    means = np.repeat([bank.outlook(m, now, X)[0] for m in slots], [1, 2, 1], axis=0)
    np.testing.assert_allclose(about, plain - means + means.mean(axis=0), atol=1e-12)


def test_only_one_hypothesis_is_drawn_as_before() -> None:
    bank, now, X, _ = grown(2, False, 10)
    m = int(np.flatnonzero(bank.arrays.active)[4])
    plain = bank.draws({m: 3}, now, X, False, np.random.default_rng(3))
    np.testing.assert_array_equal(
        bank.draws({m: 3}, now, X, False, np.random.default_rng(3), about={m: 16}), plain
    )


@pytest.mark.parametrize("problem", ["flipping-bernoulli", "flipping-gaussian"])
def test_version_10_plays_as_version_9_where_there_is_no_context(problem: str) -> None:
    nine, ten = (
        run_trial(problem, ("tide", {"version": version}), horizon=200, seed=3).arms for version in (9, 10)
    )
    np.testing.assert_array_equal(nine, ten)


def test_discounted_hypotheses_have_left_where_there_are_observations_and_come_back_when_asked_for() -> None:
    def there(version: int, shape: ProblemShape, **more: Any) -> bool:
        return "discounted" in Tide(TideParameters(version=version, **more), shape, Streams(0)).families

    seen, vectors, arms = ProblemShape(3, 2), ProblemShape(3, 0, 2), ProblemShape(3)
    assert [there(10, shape) for shape in (seen, vectors, arms)] == [False, True, True]
    assert there(9, seen)
    assert there(10, seen, also=("discounted",))


@pytest.mark.parametrize(
    ("version", "shape", "punctual"),
    [(10, ProblemShape(3), True), (9, ProblemShape(3), False), (10, ProblemShape(3, 2), False)],
)
def test_old_seasons_keep_time_in_version_10_where_there_is_no_context(
    version: int, shape: ProblemShape, punctual: bool
) -> None:
    assert Tide(TideParameters(version=version), shape, Streams(0))._births._punctual is punctual


def test_known_arms_are_drawn_with_a_quarter_of_the_width_with_contexts() -> None:
    assert [TideParameters(version=version).boldness() for version in (9, 10)] == [0.5, 0.25]
    tide = Tide(TideParameters(), ProblemShape(3, 2), Streams(0))
    assert float(tide._bank._widths[0]) == tide._bank.prior.boldness == 0.25


def test_decision_asks_sixteen_hypotheses_and_credits_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    policy: Any = build_policy(("tide", {"without": ["network", "classes"]}), ProblemShape(3, 2), seed=0)
    rng, asked = np.random.default_rng(1), []
    bank = policy.inner._bank
    draws = bank.draws

    def noted(found: Mapping[int, int], *rest: Any, about: Mapping[int, int] | None = None) -> FloatArray:
        asked.append((dict(found), dict(about or {})))
        made: FloatArray = draws(found, *rest, about=about)
        return made

    monkeypatch.setattr(bank, "draws", noted)
    for t in range(40):
        context = Context(rng.normal(size=2))
        arm = policy.choose(context)
        policy.learn(Event(context, arm, float(rng.normal(arm)), decided=t))
    by_average = [(found, about) for found, about in asked if about]
    assert len(by_average) > 25  # a few explore, and regimes on trial may decide
    for found, about in by_average:
        assert sum(about.values()) == 16
        assert list(found.values()) == [1]
        assert set(found) <= set(about)
    assert any(len(about) > 1 for _, about in by_average)
