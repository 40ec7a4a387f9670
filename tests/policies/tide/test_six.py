"""What version 6 does otherwise than version 5."""

from __future__ import annotations

import pytest

from tidepull.hypotheses.families import FAMILIES
from tidepull.policies.tide import TideParameters


def test_version_6_has_the_families_and_bounds_of_version_5() -> None:
    five, six = TideParameters(version=5), TideParameters(version=6)
    assert six.families() == five.families()
    assert (six.width(), six.wildness()) == (five.width(), five.wildness())


def test_version_6_draws_known_arms_narrowly_and_version_5_does_not() -> None:
    assert [(p.narrowest(), p.plays()) for p in (TideParameters(version=5), TideParameters(version=6))] == [
        (1.0, 1.0),
        (0.5, 0.5),
    ]


@pytest.mark.parametrize(
    ("family", "priors"),
    [("changes", (0.04, 1.6, 0.16)), ("discounted", (0.06, 0.06, 0.006)), ("regimes", (0.04, 0.04, 0.04))],
)
def test_prior_of_a_family_is_that_of_the_version(family: str, priors: tuple[float, ...]) -> None:
    assert tuple(FAMILIES[family].prior_in(version) for version in (4, 5, 6)) == priors
