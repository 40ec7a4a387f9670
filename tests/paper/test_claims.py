from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analysis.making import around, make_study
from tidepull.analysis.frame import Study
from tidepull.paper.claims import FAILS, HOLDS, NOT_RUN, OPEN, Claim, check_claims

FIRST, BEST, CHAIN, ROTATION, EXPLORATION, STATIONARY, SENSITIVITY = range(7)


def one(number: int, *reports: Study, searches: tuple[Study, ...] = ()) -> Claim:
    return check_claims(list(reports), list(searches))[number]


def test_claims_are_not_run_when_their_trials_are_missing() -> None:
    assert [claim.outcome for claim in check_claims([], [])] == [NOT_RUN] * 7


@pytest.mark.parametrize(
    ("recurrent", "outcome"), [(300.0, HOLDS), (620.0, OPEN), (640.0, OPEN), (900.0, FAILS)]
)
def test_large_margin_holds_only_when_clear_and_large(recurrent: float, outcome: str) -> None:
    study = make_study(
        "flipping-gaussian",
        {"rnlps-default": around(recurrent), "nlps-default": around(640), "d-ucb": around(1380)},
    )
    claim = one(FIRST, study)
    assert claim.outcome == outcome
    assert claim.studies == (study,)
    assert f"{recurrent:,.1f}" in claim.evidence


def test_rotation_needs_the_conventional_to_win_slowly_and_lose_fast() -> None:
    slow = make_study("rotating-vector-2048", {"rnlps-best": around(900), "sw-lin-ucb": around(31)})
    fast = make_study("rotating-vector-32", {"rnlps-best": around(470), "sw-lin-ucb": around(1028)})
    assert one(ROTATION, slow, fast).outcome == HOLDS
    assert one(ROTATION, replace(fast, problem="rotating-vector-2048"), fast).outcome == FAILS
    assert one(ROTATION, slow).outcome == NOT_RUN


def test_exploration_is_judged_on_both_problems() -> None:
    good = {"rnlps": around(300), "rnlps-epsilon-greedy": around(400), "rnlps-boltzmann": around(500)}
    bad = {**good, "rnlps-boltzmann": around(200)}
    gaussian = make_study("flipping-gaussian", good, suite="quick-exploration")
    assert one(EXPLORATION, gaussian, make_study("sinusoidal-bernoulli", good)).outcome == HOLDS
    assert one(EXPLORATION, gaussian, make_study("sinusoidal-bernoulli", bad)).outcome == FAILS


@pytest.mark.parametrize(("regret", "outcome"), [(90.0, HOLDS), (200.0, FAILS)])
def test_stationary_policies_are_comparable_within_a_twentieth_of_random(regret: float, outcome: str) -> None:
    names = {"random": around(1600), "rnlps-default": around(regret)}
    bernoulli = make_study("stationary-bernoulli", {**names, "bernoulli-ts": around(30)})
    vector = make_study("stationary-vector", {**names, "lin-ucb": around(60)})
    assert one(STATIONARY, bernoulli, vector).outcome == outcome


def test_sensitivity_compares_the_median_settings() -> None:
    study = make_study("flipping-gaussian", {"random": [1000.0]})
    grids = {}
    for name, regrets in {"rnlps": [100.0, 150.0, 200.0], "nlps": [100.0, 700.0, 900.0]}.items():
        made = [make_study("flipping-gaussian", {name: [regret]}).groups[0] for regret in regrets]
        grids[name] = tuple(replace(group, setting=str(i)) for i, group in enumerate(made))
    claim = one(SENSITIVITY, searches=(replace(study, grids=grids),))
    assert claim.outcome == HOLDS
    assert "0.94 of rnlps, 0.33 of nlps" in claim.evidence
