from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tests.unit.reporting.filling import fill
from tests.unit.reporting.making import around, make_study
from tidepull.experiments.store import Store
from tidepull.experiments.suite import find_suite
from tidepull.paper.details import detail_blocks
from tidepull.paper.html import html_parts
from tidepull.paper.page import draw, paper_results, results_blocks, write_page
from tidepull.paper.studies import combined, in_column, main_groups
from tidepull.paper.table import chosen_table, overview
from tidepull.reporting import published
from tidepull.reporting.frames import load_frame


def test_studies_of_one_problem_are_combined_and_keep_both_settings_of_a_name() -> None:
    table = make_study("flipping-gaussian", {"rnlps-default": around(360), "d-ucb": around(1380)})
    chosen = make_study(
        "flipping-gaussian",
        {"rnlps-best": around(250), "rnlps-default": around(300), "d-ucb-best": around(1370)},
        suite="grid-selected",
    )
    (study,) = combined([chosen, table])
    assert [group.name for group in study.groups] == [
        "rnlps-default",
        "d-ucb",
        "rnlps-best",
        "rnlps-default-selected",
        "d-ucb-best",
    ]
    stands = in_column(study, "discounted")
    assert stands is not None
    assert stands.name == "d-ucb"
    assert [group.name for group in main_groups(study)] == ["rnlps-best", "rnlps-default", "d-ucb"]


def test_trials_that_no_suite_asks_for_any_more_stand_behind_as_an_earlier_choice() -> None:
    before = make_study("flipping-gaussian", {"rnlps-best": around(400)}, suite="")
    now = make_study("flipping-gaussian", {"rnlps-best": around(250)}, suite="grid-selected")
    (study,) = combined([before, now])
    assert [(group.name, round(group.regrets.mean())) for group in study.groups] == [
        ("rnlps-best", 250),
        ("rnlps-best-earlier", 400),
    ]


def test_other_horizons_are_not_combined() -> None:
    short = make_study("flipping-gaussian", {"random": [1.0]}, horizon=100)
    assert len(combined([short, make_study("flipping-gaussian", {"random": [2.0]})])) == 2


def test_overview_shows_ours_above_the_papers_and_the_lowest_in_bold() -> None:
    study = make_study("flipping-gaussian", {"rnlps-default": around(350), "d-ucb": around(1380)})
    row, *others = overview([study]).rows
    assert [cells[0].text for cells in others] == [
        f"{name}<br>(not played)" for name in list(published.REGRET)[1:]
    ]
    assert others[0][1].text == "*1,267.9 ± 180.3*"
    assert row[4].text.startswith("**350.0 ± 6.7**<br>*357.6 ± 88.5*<br>(+0.1 s.e.)")
    assert row[1].text == "*719.4 ± 93.5*"
    assert "**" not in row[5].text


def test_overview_shows_the_searched_setting_beside_the_one_that_reproduces_the_paper() -> None:
    regrets = {"d-ucb": around(3075), "d-ucb-best": around(3036), "sw-ucb": around(3160)}
    study = make_study("circular-markov-chain", regrets)
    same = replace(study.groups[2], name="sw-ucb-best")
    row = overview([replace(study, groups=(*study.groups, same))]).rows[0]
    assert row[5].text.startswith("**3,075.0 ± 6.7**<br>searched: 3,036.0 ± 6.7<br>*3,005.1")
    assert "searched" not in row[6].text


def test_page_says_how_settings_were_chosen() -> None:
    table = chosen_table(
        {
            name: find_suite(name).read_text()
            for name in ("paper-table", "paper-exploration-selected")
        }
    )
    assert chosen_table({"tuning": ""}).rows == ()
    rows = {(row[0].text, row[1].text): (row[2].text, row[3].text) for row in table.rows}
    vectors = "flipping-vector, rotating-vector-2048, rotating-vector-32"
    assert rows["d-lin-ucb", vectors] == (
        "–",
        "discount from the variation budget, as in the paper",
    )
    setting, words = rows["rnlps-boltzmann-best", "flipping-gaussian"]
    assert setting == (
        "temperature=0.001,learning_rate=0.01,epochs=64,train_every=32,noise_std=0.1,prior_std=0.5,units=32x32x32"
    )
    greedy, _ = rows["rnlps-epsilon-greedy-best", "flipping-gaussian"]
    assert "epsilon=0.01" in greedy
    assert "temperature" not in greedy
    assert words.startswith(
        "highest mean reward of 7 settings that successive halving left of 384, 5 trials of each "
        "(seeds 1000-1004"
    )


def test_page_links_only_to_what_was_written_and_judges_every_claim(
    store: Store, tmp_path: Path
) -> None:
    results = paper_results(load_frame([store]))
    draw(results, tmp_path / "results")
    page = write_page(results_blocks(results, "the command that made it"), tmp_path / "page.md")
    text = page.read_text()
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (tmp_path / link).stat().st_size > 0
    assert "the command that made it" in text
    assert len(re.findall(r"(?m)^\| \d+ \| ", text)) == 42
    details = write_page(detail_blocks(results, ""), tmp_path / "details.md").read_text()
    assert len(re.findall(r"(?m)^### \d+\. ", details)) == 42
    assert re.search(r"numpy \d", details)


def test_blocks_become_html_without_markdown_left_in_it() -> None:
    blocks = ["# Title", "## Part\n\nA *b* and **c** with `x < 1`.", "- one\n- two", "![p](q.svg)"]
    assert list(html_parts(blocks)) == [
        "<h2>Title</h2>",
        "<h2>Part</h2>",
        "<p>A <i>b</i> and <b>c</b> with <code>x &lt; 1</code>.</p>",
        "<ul><li>one</li><li>two</li></ul>",
    ]


def test_alternatives_to_posterior_sampling_have_a_picture_of_their_own(tmp_path: Path) -> None:
    suite = """
name = "quick-exploration"
seeds = "0-1"
horizon = 40

[[problems]]
id = "flipping-gaussian"

[[policies]]
name = "rnlps"
id = "ucb"

[[policies]]
name = "rnlps-boltzmann"
id = "random"
"""
    results = paper_results(load_frame([fill(tmp_path / "store", suite)]))
    draw(results, tmp_path / "results")
    blocks = list(results_blocks(results, ""))
    assert "![Kinds of exploration](results/exploration.svg)" in blocks
    assert blocks[blocks.index("## The paper's table") + 1] == "None of its problems was played."
    assert "rnlps-boltzmann" in (tmp_path / "results" / "exploration.svg").read_text()
