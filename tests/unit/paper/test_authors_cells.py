"""Cells of the paper's table in the authors' world, and the standard errors beside them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.reporting.making import around, make_study
from tidepull.paper.authors import (
    AGAIN,
    LUCK,
    SLIP,
    across_worlds,
    authors_cells,
    authors_regrets,
    control_words,
    tally_cells,
)
from tidepull.paper.studies import combined
from tidepull.paper.table import across_cells, best_reasons, worse_bests
from tidepull.reporting.frames import Study
from tidepull.reporting.published import HORIZONS, Reported
from tidepull.reporting.stats import Summary


def authors_study(row: str, regrets: dict[str, list[float]]) -> Study:
    study = make_study(f"{row}-authors", regrets, horizon=HORIZONS[row])
    return replace(study, problem_id="authors-world", parameters={"row": row})


def test_regret_is_realised_but_for_linear_rows() -> None:
    study = authors_study("flipping-gaussian", {"d-ucb": around(1380)})
    group = study.groups[0]
    lucky = replace(
        group, rows=tuple(replace(r, optimal=5000.0, reward=4990.0 - r.regret) for r in group.rows)
    )
    np.testing.assert_allclose(
        authors_regrets("flipping-gaussian", lucky), lucky.regrets + 10, atol=1e-9
    )
    assert authors_regrets("rotating-vector-32", lucky).tolist() == lucky.regrets.tolist()


def test_cells_take_the_slip_where_the_authors_played_with_it() -> None:
    both = {"d-lin-ucb": around(615), SLIP: around(506)}
    cells = authors_cells(
        [authors_study("rotating-vector-2048", both), authors_study("rotating-vector-32", both)]
    )
    assert [(cell.row, cell.name) for cell in cells] == [
        ("rotating-vector-32", "d-lin-ucb"),
        ("rotating-vector-2048", SLIP),
    ]


def test_cells_that_are_played_again_on_other_seeds_are_told_apart() -> None:
    first = authors_study("flipping-gaussian", {"d-ucb": around(1390)})
    other = replace(authors_study("flipping-gaussian", {"d-ucb": around(1380)}), suite=AGAIN)
    assert [cell.ours.mean for cell in authors_cells([other, first])] == [1390]
    assert [cell.ours.mean for cell in authors_cells([first, other], again=True)] == [1380]


def test_trials_in_the_authors_world_stay_out_of_the_reports() -> None:
    assert combined([authors_study("flipping-gaussian", {"d-ucb": around(1380)})]) == []


def test_error_across_worlds_counts_the_papers_world_once_and_takes_its_luck_off() -> None:
    ours, paper = Summary(110.0, 5.0, math.nan, 10), Reported(100.0, 3.0)
    expected = 10.0 / math.sqrt(25 / 10 + 9 / 10 + 25 - 9)
    assert across_worlds("rotating-vector-32", ours, paper) == pytest.approx(expected)
    narrow = Summary(110.0, 2.0, math.nan, 10)
    assert across_worlds("rotating-vector-32", narrow, paper) == pytest.approx(
        10.0 / math.sqrt(4 / 10 + 9 / 10)
    )
    lucky = Summary(110.0 - LUCK["flipping-gaussian"], 2.0, math.nan, 10)
    assert across_worlds("flipping-gaussian", lucky, paper) == pytest.approx(
        10.0 / math.sqrt(4 / 10 + 9 / 10)
    )


@pytest.mark.parametrize(
    ("row", "noise", "rounds"),
    [("flipping-gaussian", 0.1, 4096), ("flipping-digits", 0.05, 4095), ("wall-following", 0.05, 5455)],
)  # fmt: skip
def test_luck_is_the_noise_of_the_authors_state(row: str, noise: float, rounds: int) -> None:
    drawn = np.random.RandomState(0).normal(0, noise, rounds).sum()
    assert LUCK[row] == pytest.approx(-drawn, abs=0.001)


def test_tally_names_the_cells_beyond_and_what_chance_gives() -> None:
    far = authors_cells([authors_study("flipping-gaussian", {"d-ucb": around(1500)})])
    assert tally_cells(far).startswith(
        "1 of 1 cells lies beyond 2 standard errors; chance gives 0.1, and 1 or more with probability 0.07"
    )
    assert "flipping-gaussian d-ucb (+" in tally_cells(far)


def test_control_of_the_digits_is_said_where_it_was_played() -> None:
    assert control_words([]) == ""
    played = authors_study("flipping-digits", {"fixed": [2843.6] * 10})
    assert control_words([played]).endswith("arm 1 has a regret of 2,843.6.")
    better, worse = (
        authors_study("flipping-digits", {"fixed": [2843.6] * 10, "rnlps-best": around(regret)})
        for regret in (3056.0, 2800.0)
    )
    assert control_words([better]).endswith("2,843.6, less than every policy of the row.")
    assert control_words([worse]) == control_words([played])


def test_cells_across_worlds_leave_out_other_problems_and_the_slip() -> None:
    regrets = {"rnlps-default": around(482), "d-lin-ucb": around(3345), "sw-lin-ucb": around(1029)}
    problems = ("flipping-digits", "rotating-vector-32", "rotating-vector-2048")
    studies = [make_study(name, regrets, horizon=HORIZONS[name]) for name in problems]
    short = make_study("wall-following", regrets, horizon=100)
    cells = list(across_cells([*studies, short]))
    assert [(cell.row, cell.name) for cell in cells] == [
        *(("rotating-vector-32", name) for name in regrets),
        *(("rotating-vector-2048", name) for name in ("rnlps-default", "sw-lin-ucb")),
    ]
    assert cells[0].z == across_worlds("rotating-vector-32", cells[0].ours, cells[0].paper)
    assert cells[0].chance == pytest.approx(0.0766, abs=1e-4)  # Student's t, 9 degrees of freedom


def test_best_networks_behind_their_default_are_named() -> None:
    regrets = {"nlps-best": around(1300), "nlps-default": around(1200)}
    regrets |= {"rnlps-best": around(400), "rnlps-default": around(410)}
    study = make_study("rotating-vector-32", regrets, horizon=HORIZONS["rotating-vector-32"])
    assert worse_bests([study]) == "best NN of rotating-vector-32 (1,300.0 against 1,200.0)"


def test_best_networks_beyond_two_errors_say_whose_search_chose_no_better_than_the_default() -> (
    None
):
    found = {
        "sinusoidal-bernoulli": {"nlps-best": around(980), "nlps-default": around(1000)},
        "rotating-vector-32": {"nlps-best": around(1570), "nlps-default": around(1270)},
        "rotating-vector-2048": {"rnlps-best": around(500), "rnlps-default": around(1118)},
        "flipping-gaussian": {"nlps-best": around(719.4)},
        "circular-markov-chain": {"rnlps-best": around(100)},
    }
    cells = authors_cells([authors_study(row, regrets) for row, regrets in found.items()])
    other = "The paper does not print its setting, and the two searches gained unlike amounts"
    assert best_reasons(cells) == {
        "best NN of sinusoidal-bernoulli": (
            "The paper's own best is no better than its default",
            "1,344.9 against 1,003.2",
        ),
        "best NN of rotating-vector-32": (
            "Our search was misled, its best is no better than our default",
            "1,570.0 against 1,270.0",
        ),
        "best RNN of rotating-vector-2048": (
            other,
            "ours 618.0, the paper's 207.4 below the default",
        ),
        "best RNN of circular-markov-chain": (other, "the paper's 1,106.3 below the default"),
    }
