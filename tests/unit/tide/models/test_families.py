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
from tidepull.tide.models.discounted import DISCOUNTS, Discounted
from tidepull.tide.models.families import FAMILIES, hypothesis_of
from tidepull.tide.models.family import Filter, Layout, affordable, fixed, growing
from tidepull.tide.models.fourier import Fourier, same_peak
from tidepull.tide.models.last_event import LAST_ARM, LAST_REWARD, LastEvent
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.seasons import Seasons
from tidepull.tide.models.spec import ADDED_SINE, SINE, SQUARE, Hypothesis, Spec
from tidepull.tide.models.square import Square
from tidepull.tide.models.stationary import Stationary
from tidepull.tide.models.turns import Turns

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
        (Stationary().spec(), 1, 1),
        (Fourier(5.0).spec(), 3, 1),
        (Seasons(Fourier(5.0), Fourier(7.0)).spec(), 9, 1),
        (Seasons(Fourier(5.0), Fourier(7.0), added=True).spec(), 5, 1),
        (Seasons(Fourier(5.0), Square(7.0)).spec(), 3, 2),
        (Seasons(Square(5.0), Square(7.0)).spec(), 1, 4),
        (LastEvent().spec(), 2, 5),
        (Spec("x", shapes=(SINE, ADDED_SINE), times=LAST_REWARD.index), 10, 1),
        (Spec("x", shapes=(SQUARE, SQUARE), cell_by=LAST_ARM.index), 1, 4 * (arms + 1)),
    ):
        assert (spec.width, spec.cells(arms)) == (width, cells), spec
    with pytest.raises(ValueError, match="names no regimes"):
        Spec("x", cell_by=LAST_REWARD.index).cells(arms)


def test_layout_counts_features_and_blocks() -> None:
    layout, shared = Layout(4, 3, False), Layout(4, 3, True)
    assert layout.dim(Fourier(5.0).spec()) == 3
    assert layout.dim(Fourier(5.0, contextual=True).spec()) == 9
    assert layout.dim(Turns().spec()) == 2
    assert layout.dim(Turns(True).spec()) == 4
    assert layout.blocks(Square(5.0).spec()) == 8
    assert shared.blocks(Square(5.0).spec()) == 2


def test_hypotheses_that_would_be_too_large_are_left_out() -> None:
    assert len(fixed(Layout(2, 1000, False), Stationary(contextual=True))) == 1
    assert len(fixed(Layout(2, 1001, False), Stationary(contextual=True))) == 0
    layout = Layout(2, 5, False)
    assert affordable(layout, 1) == 150_000
    assert affordable(layout, 100) == 15
    assert affordable(layout, 1000) == 8
    assert affordable(Layout(2, 5, False, products=50_000), 100) == 8
    assert [pool.spare for flag in (False, True) for pool in growing(flag, [], [Stationary()])] == [
        24,
        8,
    ]


def test_unknown_family_is_an_error() -> None:
    for name in ("tides", "network"):
        with pytest.raises(SnapshotError, match=f"no family of hypotheses '{name}'"):
            hypothesis_of(Spec(name))


@pytest.mark.parametrize(
    ("hypothesis", "words"),
    [
        (Stationary(), "nothing changes"),
        (Stationary(True), "nothing changes, the context decides"),
        (Discounted(0.9), "drifts, the last 10 rounds count"),
        (Discounted(0.995, True), "drifts, the last 200 rounds count, the context decides"),
        (Fourier(7.25), "swings smoothly every 7.2 rounds"),
        (Fourier(7.0, 0.99, True), "swings smoothly every 7.0 rounds, drifting, with the context"),
        (Square(3.5), "repeats every 7.0 rounds, in two phases"),
        (
            Square(3.0, 1.0, 0.9, True),
            "repeats every 6.0 rounds, in two phases, drifting, with the context",
        ),
        (
            Seasons(Fourier(7.0), Square(3.0)),
            "swings smoothly every 7.0 rounds; at once repeats every 6.0 rounds, in two phases",
        ),
        (
            Seasons(Fourier(7.0), Fourier(3.0), added=True),
            "swings smoothly every 7.0 rounds; on top swings smoothly every 3.0 rounds",
        ),
    ],
)
def test_hypothesis_says_what_it_believes(hypothesis: Hypothesis, words: str) -> None:
    assert hypothesis.words == words


def test_periods_are_alike_when_the_rounds_cannot_tell_them_apart() -> None:
    n = 100
    others = 1 / (1 / 20.0 + np.array([0.0, 0.0049, -0.0049, 0.0051, -0.0051]))
    assert same_peak(others, 20.0, n).tolist() == [True, True, True, False, False]
    assert DISCOUNTS[0] == 0.5


if __name__ == "__main__":
    RECORD.write_text(json.dumps(found(), indent=1) + "\n")
