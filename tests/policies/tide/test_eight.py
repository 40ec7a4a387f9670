"""What version 8 does otherwise than version 5."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.hypotheses.families import FAMILIES
from tidepull.hypotheses.family import Layout
from tidepull.hypotheses.noise import NoisePrior
from tidepull.policies.tide import TideParameters


def test_version_8_has_the_families_and_bounds_of_version_5() -> None:
    five, eight = TideParameters(version=5), TideParameters(version=8)
    assert eight.families() == five.families()
    assert (eight.width(), eight.wildness()) == (five.width(), five.wildness())


def test_version_8_draws_known_arms_narrowly_and_version_5_does_not() -> None:
    assert [(p.narrowest(), p.plays()) for p in (TideParameters(version=5), TideParameters(version=8))] == [
        (1.0, 1.0),
        (0.5, 0.5),
    ]


@pytest.mark.parametrize(
    ("family", "priors"),
    [("changes", (0.04, 1.6, 0.16)), ("discounted", (0.06, 0.06, 0.006)), ("regimes", (0.04, 0.04, 0.01))],
)
def test_prior_of_a_family_is_that_of_the_version(family: str, priors: tuple[float, ...]) -> None:
    assert tuple(FAMILIES[family].prior_in(version) for version in (4, 5, 8)) == priors


@pytest.mark.parametrize("version", [6, 7])
def test_version_that_was_dropped_is_refused_by_name(version: int) -> None:
    with pytest.raises(ParameterError, match=f"version must be 4, 5 or 8 to 13, got {version}"):
        TideParameters(version=version)


def test_regimes_draw_with_the_width_of_their_posterior_when_others_draw_narrowly() -> None:
    """A regime in which no arm pays must go on asking after arms that paid nothing in it."""
    maker = FAMILIES["regimes"].filters
    assert maker is not None
    drawn = []
    for narrowest in (0.5, 1.0):
        (made,) = maker(Layout(3, 1, False), NoisePrior(narrowest=narrowest), 1)
        for t in range(300):
            made.observe(t, t % 3, np.ones(1), 1.0 if t % 2 else -1.0, True)
        drawn.append(made.draw(300, np.ones((3, 1)), True, np.random.default_rng(0)))
    np.testing.assert_array_equal(drawn[0], drawn[1])
