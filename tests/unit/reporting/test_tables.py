from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.reporting.making import around, make_study
from tidepull.experiments.store import Store
from tidepull.reporting import result_tables
from tidepull.reporting.figures import colour, dashes
from tidepull.reporting.frames import Study, load_frame
from tidepull.reporting.published import Reported, paper_column, reported, standard_errors, verdict
from tidepull.reporting.stats import Sensitivity, sensitivities
from tidepull.reporting.tables import (
    Cell,
    Table,
    number,
    spread,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
)

TABLE = Table(
    "t",
    "A <title>",
    ("policy", "regret"),
    ((Cell("a_b & c"), spread(1234.5, 6.7, best=True)), (Cell("x|y"), number(float("nan")))),
)


def test_markdown_marks_the_best_and_keeps_pipes_inside_cells() -> None:
    lines = to_markdown(TABLE).splitlines()
    assert lines[1] == "| :--- | ---: |"
    assert lines[2] == "| a_b & c | **1,234.5 ± 6.7** |"
    assert lines[3] == "| x\\|y | – |"


def test_latex_escapes_what_latex_would_misread() -> None:
    text = to_latex(TABLE)
    assert r"a\_b \& c & \textbf{1,234.5 $\pm$ 6.7} \\" in text
    assert text.count("{") == text.count("}")


def test_csv_reads_back_as_shown() -> None:
    rows = list(csv.reader(io.StringIO(to_csv(TABLE))))
    assert rows == [["policy", "regret"], ["a_b & c", "1,234.5 ± 6.7"], ["x|y", "–"]]


def test_html_escapes_and_carries_the_numbers_to_sort_by() -> None:
    text = to_html(TABLE)
    assert "A &lt;title&gt;" in text
    assert 'data-value="1234.5"' in text


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("rnlps-best", "rnlps-best"),
        ("d-ucb", "discounted"),
        ("d-lin-ucb-best", "discounted"),
        ("sw-lin-ucb", "windowed"),
        ("tide", None),
        ("rnlps", None),
    ],
)
def test_names_stand_for_columns_of_the_paper(name: str, column: str | None) -> None:
    assert paper_column(name) == column


def test_paper_is_quoted_only_at_its_own_horizon(store: Store) -> None:
    study = load_frame([store]).studies[0]
    assert reported(study, "d-ucb") is None
    longer = Study(
        study.suite,
        study.problem,
        study.problem_id,
        study.parameters,
        4096,
        "",
        study.groups,
        study.grids,
    )
    assert reported(longer, "d-ucb") == Reported(1381.3, 13.32)
    header = result_tables.results_table("s", [longer]).columns
    assert header[header.index("d-ucb*") + 1 : header.index("d-ucb*") + 3] == (
        "d-ucb, paper",
        "d-ucb, difference in s.e.",
    )


def test_difference_is_in_standard_errors_of_both_samples(store: Store) -> None:
    group = load_frame([store]).studies[0].groups[0]
    theirs = Reported(100.0, 10.0)
    error = math.sqrt(group.regrets.var(ddof=1) / 6 + 100 / 10)
    assert math.isclose(standard_errors(group, theirs), (group.regrets.mean() - 100) / error)


def test_results_table_has_the_lowest_contender_in_bold(store: Store) -> None:
    studies = load_frame([store]).studies
    table = result_tables.results_table("tiny", studies)
    for study, row in zip(studies, table.rows, strict=True):
        bold = [cell.text for cell in row if cell.best]
        mean, std = study.contenders[0].regrets.mean(), study.contenders[0].regrets.std(ddof=1)
        assert bold == [f"{mean:,.1f} ± {std:,.1f}"]


def test_sensitivity_is_sorted_and_scored_between_random_and_best(store: Store) -> None:
    found = sensitivities(load_frame([store]).studies[2])
    assert [s.name for s in found] == ["d-ucb"]
    assert (np.diff(found[0].means) <= 0).all()
    assert found[0].scores is not None
    assert found[0].scores[0] == 1.0


def test_verdict_names_the_winner_when_the_interval_leaves_out_zero(store: Store) -> None:
    study = load_frame([store]).studies[2]
    first, second = study.contenders[:2]
    said = verdict(study)
    assert first.name in said
    assert second.name in said
    assert ("won" in said) != said.startswith("No clear winner")
    assert f"{first.regrets.mean():,.1f}" in said


def test_verdict_compares_with_another_policy_when_one_setting_has_two_names() -> None:
    study = make_study("flipping-gaussian", {"rnlps-best": around(250), "nlps-best": around(700)})
    twin = replace(study.groups[0], name="rnlps-default-selected")
    said = verdict(replace(study, groups=(*study.groups, twin)))
    assert said.startswith("rnlps-best won: regret 250.0 over 10 trials, 450.0 less than nlps-best")


def test_verdict_calls_nobody_the_winner_who_lost_on_the_common_seeds() -> None:
    study = make_study(
        "flipping-gaussian", {"ucb": [10, 11, 12, 13, 0, 0, 0, 0], "d-ucb": [9, 10, 11, 12.5]}
    )
    assert study.contenders[0].name == "ucb"
    said = verdict(study)
    assert said.startswith("No clear winner")
    assert "0.9 more than d-ucb (95% interval 0.5 to 1.3; better on 0 of 4 seeds)" in said


def test_results_table_marks_settings_that_were_chosen_on_its_trials(store: Store) -> None:
    table = result_tables.results_table("tiny", load_frame([store]).studies)
    assert "d-ucb*" in table.columns
    assert "ucb" in table.columns
    assert table.note.startswith("*")


def test_details_have_no_column_that_is_empty(store: Store) -> None:
    study = load_frame([store]).studies[0]
    assert (
        result_tables.details_table(study, 80.0, {}).columns[-1]
        == "paper, share of random's regret"
    )
    assert "paper" not in result_tables.details_table(study, 80.0, {}).columns


def test_variants_of_one_policy_have_lines_that_can_be_told_apart() -> None:
    lines = [
        dashes(name)
        for name in ("d-ucb-tuned", "d-ucb-default", "d-ucb-boltzmann", "d-ucb-epsilon")
    ]
    assert lines[0] == ()
    assert len(set(lines)) == 4


def test_kinds_of_exploration_look_different_with_default_and_best_settings() -> None:
    rules = ("rnlps", "rnlps-epsilon-greedy", "rnlps-boltzmann")
    names = [f"{rule}-{setting}" for rule in rules for setting in ("default", "best")]
    assert len({(colour(name), dashes(name)) for name in names}) == len(names)


def test_figures_against_random_arms_are_explained_beside_the_table() -> None:
    study = make_study("flipping-gaussian", {"d-ucb": around(100.0), "random": around(80.0)})
    table = result_tables.details_table(study, 80.0, {})
    assert {"share of random's regret", "trials worse than random"} <= set(table.columns)
    assert "0 is the oracle, 1 is random" in table.note
    assert "more regret than random arms have on average" in table.note
    assert result_tables.details_table(study, None, {}).note == ""


def test_score_far_below_random_is_said_in_words() -> None:
    scores = np.array([1.0, -27.5, -60.0])
    found = Sensitivity("d-ucb", np.array([3.0, 2.0, 1.0]), ("a", "b", "c"), (1, 1, 1), scores)
    study = make_study("flipping-gaussian", {"d-ucb": around(100.0)})
    table = result_tables.sensitivity_table(study, [found])
    cell = table.rows[0][table.columns.index("median setting's score")]
    assert (cell.text, cell.value) == ("below random", -27.5)
    assert "1 is as good as the best, 0 as random" in table.note
