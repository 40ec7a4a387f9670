"""How widely arms are drawn, and around what: known arms narrowly, with observations around an
average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.unit.tide.test_shares import grown
from tidepull.policies import build_policy
from tidepull.random import Streams
from tidepull.tide import TideParameters
from tidepull.tide.models.families import FAMILIES
from tidepull.tide.models.family import Layout
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.patterns import Patterns
from tidepull.types import Context, Event, FloatArray, ProblemShape


def means_of(
    bank: Any, slots: Mapping[int, int], now: Any, X: FloatArray, binary: bool
) -> FloatArray:
    """Expected rewards under each slot, from a hundred thousand draws of each."""
    rng = np.random.default_rng(5)
    return np.array([bank.draws({m: 100_000}, now, X, binary, rng).mean(axis=0) for m in slots])


@pytest.mark.parametrize("binary", [True, False])
def test_draw_about_others_has_the_average_of_their_means_and_its_own_width(binary: bool) -> None:
    bank, now, X, rng = grown(2, binary)
    active = np.flatnonzero(bank.arrays.active)
    asked = {int(active[0]): 2, int(active[5]): 1, int(active[9]): 5}
    m = int(active[5])
    alone = bank.draws({m: 100_000}, now, X, binary, rng)
    about = bank.draws({m: 100_000}, now, X, binary, rng, about=asked)
    expected = np.average(
        means_of(bank, asked, now, X, binary), axis=0, weights=list(asked.values())
    )
    tolerance = 5 * alone.std(axis=0).max() / 300
    np.testing.assert_allclose(about.mean(axis=0), expected, atol=2 * tolerance)
    np.testing.assert_allclose(about.std(axis=0), alone.std(axis=0), rtol=0.02)


def test_draws_of_all_about_all_come_in_the_order_of_slots() -> None:
    bank, now, X, _ = grown(2, False)
    slots = [int(m) for m in np.flatnonzero(bank.arrays.active)[:3]]
    found = {slots[0]: 1, slots[1]: 2, slots[2]: 1}
    plain = bank.draws(found, now, X, False, np.random.default_rng(3))
    about = bank.draws(found, now, X, False, np.random.default_rng(3), about=found)
    means = np.repeat([bank.predict(m, now, X)[0] for m in slots], [1, 2, 1], axis=0)
    np.testing.assert_allclose(about, plain - means + means.mean(axis=0), atol=1e-12)


def test_hypothesis_that_is_alone_is_drawn_about_itself() -> None:
    bank, now, X, _ = grown(2, False)
    m = int(np.flatnonzero(bank.arrays.active)[4])
    plain = bank.draws({m: 3}, now, X, False, np.random.default_rng(3))
    np.testing.assert_array_equal(
        bank.draws({m: 3}, now, X, False, np.random.default_rng(3), about={m: 16}), plain
    )


@pytest.mark.parametrize(
    ("shape", "plays"),
    [(ProblemShape(3), 0.5), (ProblemShape(3, 0, 2), 0.5), (ProblemShape(3, 2), 1.0)],
)
def test_arms_count_as_known_later_where_each_has_weights_of_its_own(
    shape: ProblemShape, plays: float
) -> None:
    prior = Patterns(TideParameters(), shape, Streams(0))._bank.prior
    assert (prior.scale_c, prior.min_scale_plain, prior.max_scale) == (plays, 0.5, 2.0)


def test_known_arms_are_drawn_with_a_quarter_of_the_width_with_contexts() -> None:
    tide = Patterns(TideParameters(), ProblemShape(3, 2), Streams(0))
    assert float(tide._bank._draw_scales[0]) == tide._bank.prior.min_scale == 0.25


def test_decision_asks_sixteen_hypotheses_and_credits_one_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy: Any = build_policy(
        ("tide", {"without": ["network", "classes"]}), ProblemShape(3, 2), seed=0
    )
    rng, asked = np.random.default_rng(1), []
    bank = policy.inner._groups(Context(observation=np.zeros(2)))[1]._bank
    draws = bank.draws

    def noted(
        found: Mapping[int, int], *rest: Any, about: Mapping[int, int] | None = None
    ) -> FloatArray:
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


def test_regimes_draw_with_the_width_of_their_posterior_when_others_draw_narrowly() -> None:
    """A regime in which no arm pays must go on asking after arms that paid nothing in it."""
    maker = FAMILIES["regimes"].filters
    assert maker is not None
    drawn = []
    for min_scale_plain in (0.5, 1.0):
        (made,) = maker(Layout(3, 1, False), NoisePrior(min_scale_plain=min_scale_plain), 1)
        for t in range(300):
            made.observe(t, t % 3, np.ones(1), 1.0 if t % 2 else -1.0, True)
        drawn.append(made.draw(300, np.ones((3, 1)), True, np.random.default_rng(0)))
    np.testing.assert_array_equal(drawn[0], drawn[1])
