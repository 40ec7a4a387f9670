from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.analysis.filling import fill
from tests.analysis.making import make_study
from tidepull.analysis.beliefs import belief_bands, believers
from tidepull.analysis.frame import Study
from tidepull.report.belief_table import beliefs_table
from tidepull.report.build import build_report
from tidepull.report.tables import Cell, Table

SUITE = """
name = "thinking"
seeds = "0-1"
horizon = 60

[[problems]]
id = "stationary-bernoulli"

[[policies]]
name = "tide"
parameters = { without = ["network"] }

[[policies]]
name = "random"
"""


def told(rounds: list[int], **families: list[float]) -> dict[str, object]:
    return {"beliefs": {"leading": [{"words": "w", "weight": 1.0}], "rounds": rounds, "families": families}}


def study_with(*diagnostics: dict[str, object]) -> Study:
    study = make_study("flipping-gaussian", {"tide": [1.0] * len(diagnostics), "random": [2.0]})
    group = study.groups[0]
    rows = tuple(replace(row, diagnostics=d) for row, d in zip(group.rows, diagnostics, strict=True))
    return replace(study, groups=(replace(group, rows=rows), study.groups[1]))


def test_belief_bands_are_means_over_trials_at_the_rounds_that_all_have() -> None:
    study = study_with(
        told([1, 2, 3], square=[0.0, 0.5, 1.0], fourier=[0.001] * 3),
        told([1, 3], square=[0.2, 0.6], network=[0.8, 0.4]),
    )
    bands = belief_bands(study.groups[0])
    assert set(bands) == {"square", "network"}
    np.testing.assert_allclose(bands["square"].x, [1, 3])
    np.testing.assert_allclose(bands["square"].mean, [0.1, 0.8])
    np.testing.assert_allclose(bands["network"].mean, [0.4, 0.2])


def test_believers_are_only_those_whose_trials_all_came_with_beliefs() -> None:
    assert [g.name for g in believers(study_with(told([1], square=[1.0])))] == ["tide"]
    assert not list(believers(study_with(told([1], square=[1.0]), {})))


def test_beliefs_table_says_a_dash_when_there_is_one_hypothesis() -> None:
    study = study_with(told([1], square=[1.0]))
    (row,) = beliefs_table(study, study.groups[0]).rows
    assert [cell.text for cell in row] == ["seed 0", "w", "100%", "–", "–", "1.0"]


def test_report_shows_what_tide_believed_when_it_was_run(tmp_path: Path) -> None:
    made = build_report([fill(tmp_path / "store", SUITE)], tmp_path / "report", formats=["svg"])
    text = made.page.read_text()
    assert "What tide believed, mean over trials" in text
    assert "nothing changes" in text
    assert "beliefs-thinking-stationary-bernoulli-tide.svg" in {path.name for path in made.figures}


def test_table_refuses_a_row_when_it_has_too_few_cells() -> None:
    with pytest.raises(ValueError, match="every row needs 2 cells"):
        Table("t", "T", ("a", "b"), ((Cell("1"),),))
