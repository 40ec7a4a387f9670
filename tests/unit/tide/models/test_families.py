"""Who is there from the start: every hypothesis of every family, on record.

A change of this record changes what `tide` decides: raise the version of its registry entry, and
record it anew (`python -m tests.unit.tide.models.test_families`).
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidepull.errors import SnapshotError
from tidepull.random import Streams
from tidepull.tide import TideParameters
from tidepull.tide.models.families import FAMILIES, describe
from tidepull.tide.models.family import Filter, Layout, affordable, fixed, growing
from tidepull.tide.models.lagged import LAST_ARM, LAST_REWARD, last_event
from tidepull.tide.models.linear import DISCOUNTS, discounted, fourier, seasons, square, stationary
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.spec import ADDED_SINE, SINE, SQUARE, Spec
from tidepull.tide.models.turns import turns
from tidepull.tide.patterns import Patterns
from tidepull.tide.search import same_peak
from tidepull.types import ProblemShape

RECORD = Path(__file__).parents[3] / "golden" / "families.json"
LAYOUTS = {
    "8 arms": Layout(8, 1, False),
    "4 arms, 3 numbers": Layout(4, 3, False),
    "10 arms, 33 numbers": Layout(10, 33, False),
    "64 arms": Layout(64, 1, False),
    "65 arms": Layout(65, 1, False),
    "2 arms, 200 numbers": Layout(2, 201, False),
    "25 vectors in the plane": Layout(25, 3, True),
    "25 vectors in 50 dimensions": Layout(25, 51, True),
}


def found() -> dict[str, Any]:
    made: dict[str, Any] = {}
    for family in FAMILIES.values():
        made[family.name] = {
            "prior": family.prior,
            "pools": {
                f"{name}{', with context' if contextual else ''}": [
                    [
                        len(pool.initial),
                        pool.spare,
                        len(pool.room),
                        _digest(pool.initial),
                        _digest(pool.room),
                    ]
                    for pool in family.pools(layout, contextual)
                ]
                for name, layout in LAYOUTS.items()
                for contextual in (False, True)
            },
        }
        if family.filters is not None:
            made[family.name]["filters"] = {
                name: [
                    [one.words, _numbers(one)] for one in family.filters(layout, NoisePrior(), 0)
                ]
                for name, layout in LAYOUTS.items()
            }
    return made


def _numbers(one: Filter) -> int:
    """How many numbers it keeps, whatever it learns."""
    return sum(int(np.size(part)) for part in one.snapshot().values())


def _digest(specs: tuple[Spec, ...]) -> str:
    """Periods come from powers, whose last bits may differ from machine to machine."""
    plain = [
        [[float(f"{x:.9g}") for x in part] if isinstance(part, tuple) else part for part in spec]
        for spec in specs
    ]
    return sha256(json.dumps(plain).encode()).hexdigest()[:12]


@pytest.mark.parametrize("family", FAMILIES)
def test_family_begins_as_recorded(family: str) -> None:
    assert found()[family] == json.loads(RECORD.read_text())[family]


def test_families_have_priors_and_colours_of_their_own() -> None:
    assert all(0 < family.prior <= FAMILIES["stationary"].prior for family in FAMILIES.values())
    colours = [family.colour for family in FAMILIES.values()]
    assert len(set(colours)) == len(colours)


def test_width_and_cells_of_compositions() -> None:
    arms = 4
    for spec, width, cells in (
        (stationary(), 1, 1),
        (fourier(5.0), 3, 1),
        (seasons(fourier(5.0), fourier(7.0)), 9, 1),
        (seasons(fourier(5.0), fourier(7.0), added=True), 5, 1),
        (seasons(fourier(5.0), square(7.0)), 3, 2),
        (seasons(square(5.0), square(7.0)), 1, 4),
        (last_event(), 2, 5),
        (Spec("x", shapes=(SINE, ADDED_SINE), interaction=LAST_REWARD.index), 10, 1),
        (Spec("x", shapes=(SQUARE, SQUARE), regime_by=LAST_ARM.index), 1, 4 * (arms + 1)),
    ):
        assert (spec.width, spec.n_regimes(arms)) == (width, cells), spec
    with pytest.raises(ValueError, match="names no regimes"):
        Spec("x", regime_by=LAST_REWARD.index).n_regimes(arms)


def test_layout_counts_features_and_blocks() -> None:
    layout, shared = Layout(4, 3, False), Layout(4, 3, True)
    assert layout.dim(fourier(5.0)) == 3
    assert layout.dim(fourier(5.0, contextual=True)) == 9
    assert layout.dim(turns()) == 2
    assert layout.dim(turns(True)) == 4
    assert layout.blocks(square(5.0)) == 8
    assert shared.blocks(square(5.0)) == 2


def test_hypotheses_that_would_be_too_large_are_left_out() -> None:
    assert len(fixed(Layout(2, 1000, False), stationary(contextual=True))) == 1
    assert len(fixed(Layout(2, 1001, False), stationary(contextual=True))) == 0
    layout = Layout(2, 5, False)
    assert affordable(layout, 1) == 150_000
    assert affordable(layout, 100) == 15
    assert affordable(layout, 1000) == 8
    assert affordable(Layout(2, 5, False, products=50_000), 100) == 8
    plain = Layout(2, 1, False)
    spare = [
        growing(*given, [], [stationary()])[0].spare
        for given in ((plain, False), (layout, False), (layout, True))
    ]
    assert spare == [24, 16, 8]


@pytest.mark.parametrize("shape", [ProblemShape(3, observation_dim=d) for d in (1, 3, 12, 64)])
def test_there_are_at_most_250_models_with_observations(shape: ProblemShape) -> None:
    patterns = Patterns(TideParameters(), shape, Streams(0))
    assert len(patterns._mixture.prior) <= 250


def test_unknown_family_is_an_error() -> None:
    for name in ("tides", "network"):
        with pytest.raises(SnapshotError, match=f"no family of linear models '{name}'"):
            describe(Spec(name))


@pytest.mark.parametrize(
    ("hypothesis", "words"),
    [
        (stationary(), "nothing changes"),
        (stationary(True), "nothing changes, the context decides"),
        (discounted(0.9), "drifts, the last 10 rounds count"),
        (discounted(0.995, True), "drifts, the last 200 rounds count, the context decides"),
        (fourier(7.25), "swings smoothly every 7.2 rounds"),
        (fourier(7.0, contextual=True), "swings smoothly every 7.0 rounds, with the context"),
        (square(3.5), "repeats every 7.0 rounds, in two phases"),
        (
            square(3.0, 1.0, contextual=True),
            "repeats every 6.0 rounds, in two phases, with the context",
        ),
        (
            seasons(fourier(7.0), square(3.0)),
            "swings smoothly every 7.0 rounds; at once repeats every 6.0 rounds, in two phases",
        ),
        (
            seasons(fourier(7.0), fourier(3.0), added=True),
            "swings smoothly every 7.0 rounds; on top swings smoothly every 3.0 rounds",
        ),
    ],
)
def test_hypothesis_says_what_it_believes(hypothesis: Spec, words: str) -> None:
    assert describe(hypothesis) == words


def test_periods_are_alike_when_the_rounds_cannot_tell_them_apart() -> None:
    n = 100
    others = 1 / (1 / 20.0 + np.array([0.0, 0.0049, -0.0049, 0.0051, -0.0051]))
    assert same_peak(others, 20.0, n).tolist() == [True, True, True, False, False]
    assert DISCOUNTS[0] == 0.5


if __name__ == "__main__":
    RECORD.write_text(json.dumps(found(), indent=1) + "\n")
