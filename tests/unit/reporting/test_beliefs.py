from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.reporting.filling import fill
from tests.unit.reporting.making import make_study
from tidepull.policies import policies
from tidepull.reporting.frames import Study
from tidepull.reporting.report import build_report
from tidepull.reporting.result_tables import belief_bands, beliefs_table, believers, misunderstood
from tidepull.reporting.tables import Cell, Table

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
    return {
        "beliefs": {
            "leading": [{"words": "w", "weight": 1.0}],
            "rounds": rounds,
            "families": families,
        }
    }


def study_with(*diagnostics: dict[str, object]) -> Study:
    study = make_study("flipping-gaussian", {"tide": [1.0] * len(diagnostics), "random": [2.0]})
    group = study.groups[0]
    rows = tuple(
        replace(row, diagnostics=d) for row, d in zip(group.rows, diagnostics, strict=True)
    )
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


OTHER_FORMS: list[object] = [
    "red",
    ["red"],
    7,
    {"leading": "red"},
    {"leading": [{"words": 3, "weight": 1.0}], "rounds": [], "families": {}},
    {"leading": [{"words": "w", "weight": "nan"}], "rounds": [], "families": {}},
    {"leading": [{"words": "w", "weight": 1.0}], "rounds": [1, 2], "families": {"square": [1.0]}},
    {"leading": [{"words": "w", "weight": 1.0}], "rounds": [1, 1], "families": {}},
    {"leading": [{"words": "w", "weight": 1.0}], "rounds": None, "families": {}},
    {"leading": [{"words": "w", "weight": 1.0}], "rounds": [1], "families": [0.5]},
]


@pytest.mark.parametrize("other", OTHER_FORMS, ids=str)
def test_beliefs_in_another_form_are_left_out_and_named(other: object) -> None:
    study = study_with({"beliefs": other})
    assert not list(believers(study))
    assert [group.name for group in misunderstood(study)] == ["tide"]


def test_no_beliefs_at_all_are_not_worth_a_remark() -> None:
    nothings: list[dict[str, object]] = [{}, {"beliefs": {}}, {"beliefs": None}]
    for nothing in nothings:
        assert not list(misunderstood(study_with(nothing)))


OWN = """
from dataclasses import dataclass

from tidepull.parameters import Parameters, parameter
from tidepull.policies.baselines import RandomPolicy
from tidepull.registry import Entry, policies


@dataclass(frozen=True, kw_only=True)
class DreamerParameters(Parameters):
    mood: str = parameter("", "any text")


class Dreamer(RandomPolicy):
    def diagnostics(self):
        return {"beliefs": ["in another form"]}


policies.add(Entry("dreamer", "believes otherwise", DreamerParameters, Dreamer))
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a policy of one's own, with beliefs in a form of its own and texts that mean something in
    HTML."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "dreams.py").write_text(OWN)
    suite = (
        f'name = "own"\nseeds = "0-1"\nhorizon = 20\nmodules = ["{folder / "dreams.py"}"]\n'
        '[[problems]]\nid = "stationary-bernoulli"\n'
        '[[policies]]\nname = "dreamer"\ngrid = { mood = ["<!--<script>", "</script>", "&amp;"] }\n'
    )
    yield build_report(
        [fill(folder / "store", suite)], folder / "report", formats=[]
    ).page.read_text()
    del policies._entries["dreamer"]


def test_report_goes_on_without_beliefs_in_another_form_and_says_so(page: str) -> None:
    assert "dreamer told beliefs in another form than this page can show" in page


def test_texts_of_settings_cannot_break_the_page(page: str) -> None:
    begin = page.index('id="data">') + len('id="data">')
    data = page[begin : page.index("</script>", begin)]
    assert "<" not in data
    hovers = [
        s["hover"] for chart in json.loads(data).values() for s in chart["series"] if "hover" in s
    ]
    assert ["mood=&amp;", "mood=<!--<script>", "mood=</script>"] in [
        sorted(hover) for hover in hovers
    ]
    assert page.count("<script") == page.count("</script>") == 2
