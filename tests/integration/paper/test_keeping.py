from __future__ import annotations

import csv
import json
import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from research.paper.results_page import write_all
from tests.unit.reporting.filling import fill
from tidepull.cli.app import app
from tidepull.errors import WrongStoreError
from tidepull.experiments.archive import read_archive
from tidepull.experiments.grid import rung_number
from tidepull.experiments.rows import load_rows
from tidepull.experiments.store import Store
from tidepull.experiments.suite import find_suite
from tidepull.paper.details import detail_blocks
from tidepull.paper.exploration import explorations
from tidepull.paper.page import (
    draw,
    halved_grids,
    missing_blocks,
    paper_results,
    played_words,
    results_blocks,
    unfinished_searches,
    write_page,
)
from tidepull.paper.reproduce import paper_suite, report_seeds
from tidepull.paper.studies import combined, keep, searches_of
from tidepull.problems.datasets import WALL_FOLLOWING
from tidepull.reporting.frames import Frame, archived_frame, load_frame
from tidepull.reporting.report import build_report
from tidepull.reporting.result_tables import halving_table
from tidepull.reporting.traces import POINTS, TrialSummary, read_curves, thinned_rounds

ROOT = Path(__file__).parents[3]
REPORT = """
name = "paper-table"
seeds = "0-5"
horizon = 120
[[problems]]
id = "flipping-gaussian"
[[problems]]
id = "stationary-bernoulli"
[[policies]]
name = "random"
[[policies]]
name = "rnlps-default"
id = "sw-ucb"
parameters = { window = 20 }
chosen = "by hand"
"""
SEARCH = """
name = "grid"
seeds = "100-102"
horizon = 80
[search]
eta = 2
rungs = [{ share = 0.5, seeds = 1 }, { share = 1.0, seeds = 3 }]
[[problems]]
id = "flipping-gaussian"
[[policies]]
name = "random"
[[policies]]
name = "d-ucb"
grid = { discount = [0.7, 0.8, 0.9, 0.95, 0.99, 0.999] }
[[policies]]
name = "sw-ucb"
grid = { window = [5, 20] }
"""


def command(*arguments: str) -> Any:
    outcome = CliRunner().invoke(app, [*arguments])
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == 0
    return json.loads(outcome.stdout) if "--json" in arguments else outcome.stdout


def searched(tmp_path: Path, store: Path, *more: str) -> Any:
    (tmp_path / "grid.toml").write_text(SEARCH)
    place = ("--out", str(store), "--on", "here", "--json")
    return command("search", str(tmp_path / "grid.toml"), *place, *more)


def pages(frame: Frame, folder: Path, known: Mapping[str, TrialSummary] | None = None) -> str:
    results = paper_results(frame, known or {})
    draw(results, folder / "results")
    write_page(detail_blocks(results, "how"), folder / "details.md")
    return write_page(results_blocks(results, "how"), folder / "results.md").read_text()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report, a grid of which one policy was played in full and the other searched by halving."""
    place = tmp_path_factory.mktemp("kept")
    fill(place / "store", REPORT)
    searched(place, place / "store", "--only", "*/d-ucb/*")
    fill(place / "store", SEARCH, only=("*/sw-ucb/*", "*/random/*"))
    return place / "store"


@pytest.fixture
def kept(store: Path, tmp_path: Path) -> Path:
    keep(Store.open(store), tmp_path / "trials")
    return tmp_path / "trials"


def test_the_page_from_kept_trials_equals_the_page_from_the_store(
    store: Path, kept: Path, tmp_path: Path
) -> None:
    frame = load_frame([Store.open(store)])
    pages(frame, tmp_path / "a")
    moved = tmp_path / "elsewhere" / "trials"
    shutil.copytree(kept, moved)
    pages(archived_frame(moved), tmp_path / "b", read_curves(moved))
    for name in ("results.md", "details.md", "results/summary.csv"):
        first, second = ((tmp_path / folder / name).read_text() for folder in "ab")
        if name.endswith(".csv"):  # times keep milliseconds
            first, second = (_without_times(text) for text in (first, second))
        assert first == second
    pictures = {file.name for file in (tmp_path / "a" / "results").iterdir()}
    assert pictures == {file.name for file in (tmp_path / "b" / "results").iterdir()}
    details = (tmp_path / "b" / "details.md").read_text()
    assert "rnlps-default" in details
    assert "by hand" in details
    halved = (
        "Chosen by halving, where the suite asks for the whole grid: d-ucb on flipping-gaussian."
    )
    assert halved in (tmp_path / "b/results.md").read_text()
    assert "flipping-gaussian, 40 rounds, one trial of each setting (0 s of CPU time):" in details
    assert (
        "Every trial that the suites ask for was played." in (tmp_path / "b/results.md").read_text()
    )


def _without_times(text: str) -> str:
    lines = [
        {k: v for k, v in line.items() if k != "cpu_seconds"}
        for line in csv.DictReader(text.splitlines())
    ]
    return json.dumps(lines)


def test_rows_come_back_as_the_store_gave_them(store: Path, kept: Path) -> None:
    before = [row for row in load_rows(Store.open(store)).rows if row.suite]
    after = archived_rows(kept)
    assert len(after) == len(before)
    for row in before:
        same = after[row.suite, row.hash, row.name, row.setting]
        expected = replace(
            row, machine="", diagnostics={}, seconds=same.seconds, cpu_seconds=same.cpu_seconds
        )
        assert same == expected
        assert same.cpu_seconds == pytest.approx(row.cpu_seconds, abs=5e-4)


def archived_rows(kept: Path) -> dict[tuple[str, ...], Any]:
    rows = read_archive(kept).loaded().rows
    return {(row.suite, row.hash, row.name, row.setting): row for row in rows}


def test_only_reported_trials_have_curves_and_they_are_thinned_regret(
    store: Path, kept: Path
) -> None:
    curves = read_curves(kept)
    rows = [row for row in load_rows(Store.open(store)).rows if row.suite == "paper-table"]
    assert set(curves) == {row.hash for row in rows}
    trial = Store.open(store).read(rows[0].hash)
    expected = trial.regret[thinned_rounds(rows[0].horizon, POINTS) - 1]
    assert curves[rows[0].hash].curve == pytest.approx(expected, rel=1e-5)
    assert curves[rows[0].hash].late == pytest.approx(trial.regret[-1] - trial.regret[-16])


AUTHORS = """
name = "paper-authors"
seeds = "0-1"
problem_seed = 0
horizon = 4096
[[problems]]
id = "authors-world"
name = "rotating-vector-2048-authors"
parameters = { row = "rotating-vector-2048" }
[[policies]]
name = "random"
[[policies]]
name = "nlps-best"
id = "sw-lin-ucb"
parameters = { window = 20 }
"""


def test_trials_in_the_authors_world_that_claims_look_at_keep_their_curves(tmp_path: Path) -> None:
    keep(fill(tmp_path / "store", AUTHORS), tmp_path / "kept")
    assert len(read_curves(tmp_path / "kept")) == 2 * 2
    page = pages(archived_frame(tmp_path / "kept"), tmp_path, read_curves(tmp_path / "kept"))
    assert "rotating-vector-2048" in page


def test_writing_again_changes_no_byte(store: Path, kept: Path) -> None:
    before = {file.name: file.read_bytes() for file in kept.iterdir()}
    keep(Store.open(store), kept)
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == before


def test_a_grid_that_was_halved_lacks_nothing(store: Path, kept: Path) -> None:
    """The exhaustive suite asks for d-ucb's whole grid too; halving left most of it out by
    design."""
    loaded = load_rows(Store.open(store), "grid")
    assert loaded.missing == ()
    assert {row.name for row in loaded.rows} == {"random", "sw-ucb"}
    assert not archived_frame(kept).gaps
    for name in ("d-ucb", "sw-ucb"):
        chosen = command(
            "select", str(store), "--suite", "grid", "--out", str(kept / "s.toml"), "--json"
        )
        assert name in {best["name"] for best in chosen["best"]}


def test_a_halved_grid_is_chosen_from_as_a_whole_once_all_of_it_was_played(
    kept: Path, tmp_path: Path
) -> None:
    def chosen() -> dict[str, int]:
        place = ("--suite", "grid", "--out", str(tmp_path / "s.toml"), "--json")
        return {b["name"]: b["settings"] for b in command("select", str(kept), *place)["best"]}

    before = archived_rows(kept)
    keep(fill(tmp_path / "new", SEARCH, only=("*/seed-10[01]",)), kept)
    assert set(archived_rows(kept)) == set(before)
    assert chosen() == {"d-ucb": 3, "sw-ucb": 2}
    keep(fill(tmp_path / "new", SEARCH, only=("*/d-ucb/*",)), kept)
    assert chosen() == {"d-ucb": 6, "sw-ucb": 2}
    assert halved_grids(archived_frame(kept)) == ""
    assert not archived_frame(kept).gaps


def test_trials_of_an_unfinished_grid_choose_nothing_and_are_not_played_again(
    kept: Path, tmp_path: Path
) -> None:
    def page() -> str:
        return pages(archived_frame(kept), tmp_path, read_curves(kept))

    before, shown = archived_rows(kept), page()
    keep(fill(tmp_path / "one", SEARCH, only=("*/d-ucb/*/seed-10[01]",)), kept)
    assert (archived_rows(kept), page()) == (before, shown)
    assert len(read_archive(kept).unfinished["grid"]) == 2 * 6 - 2 * 3
    (tmp_path / "grid.toml").write_text(SEARCH)
    place = ("--out", str(tmp_path / "two"), "--on", "here", "--known", str(kept), "--json")
    # of six settings and three seeds 12 are kept, and the last rung has played three on seed 102
    assert command("sweep", str(tmp_path / "grid.toml"), *place)["ran"] == 6 - 3
    keep(Store.open(tmp_path / "two"), kept)
    chosen = command(
        "select", str(kept), "--suite", "grid", "--out", str(tmp_path / "s.toml"), "--json"
    )
    assert {best["name"]: best["settings"] for best in chosen["best"]} == {"d-ucb": 6, "sw-ucb": 2}
    assert not any(read_archive(kept).unfinished.values())


def test_the_same_is_chosen_from_kept_trials_and_from_the_store(store: Path, kept: Path) -> None:
    arguments = ("--suite", "grid", "--out", str(kept / "selected.toml"), "--json")
    first, second = (command("select", str(place), *arguments) for place in (store, kept))
    assert first == second
    text = (kept / "selected.toml").read_text()
    assert "that successive halving left of 6, 3 trials of each (seeds 100-102, 80 rounds)" in text
    assert "highest mean reward of 2 settings, 3 trials of each" in text


def test_a_search_whose_store_is_lost_goes_on_from_kept_trials(kept: Path, tmp_path: Path) -> None:
    found = searched(tmp_path, tmp_path / "new", "--only", "*/d-ucb/*", "--known", str(kept))
    assert [line["ran"] for line in found["rungs"]] == [0, 0]
    assert not Store.open(tmp_path / "new").hashes()
    before = archived_rows(kept)
    keep(Store.open(tmp_path / "new"), kept)
    assert archived_rows(kept) == before


def test_a_sweep_whose_store_is_lost_goes_on_from_kept_trials(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "table.toml").write_text(REPORT.replace('"0-5"', '"0-7"'))
    new, before = tmp_path / "new", archived_rows(kept)
    place = ("--out", str(new), "--on", "here", "--json")
    done = command("sweep", str(tmp_path / "table.toml"), *place, "--known", str(kept))
    assert (done["total"], done["ran"]) == (8 * 2 * 2, 2 * 2 * 2)
    keep(Store.open(new), kept)
    after = archived_rows(kept)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 8
    assert len(read_curves(kept)) == 8 * 2 * 2
    pages(archived_frame(kept), tmp_path / "docs", read_curves(kept))


def test_a_later_search_on_fewer_seeds_keeps_the_random_arms_of_an_earlier_one(
    tmp_path: Path,
) -> None:
    place = tmp_path / "store"
    searched(tmp_path, place, "--only", "*/d-ucb/*", "--rungs", "1/2:2,1:3")
    searched(tmp_path, place, "--only", "*/sw-ucb/*", "--rungs", "1/2:1,1:3")
    keep(Store.open(place), tmp_path / "kept")
    again = searched(
        tmp_path,
        tmp_path / "new",
        "--only",
        "*/d-ucb/*",
        "--rungs",
        "1/2:2,1:3",
        "--known",
        str(tmp_path / "kept"),
    )
    assert [line["ran"] for line in again["rungs"]] == [0, 0]


def test_a_store_that_searched_another_part_of_the_grid_loses_no_row(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    for place, part in (("one", "*/d-ucb/*"), ("two", "*/sw-ucb/*")):
        before = archived_rows(kept)
        searched(tmp_path, tmp_path / place, "--only", part)
        keep(Store.open(tmp_path / place), kept)
        assert set(before) <= set(archived_rows(kept))
    assert {name for _, _, name, *_ in archived_rows(kept)} == {"random", "d-ucb", "sw-ucb"}


def test_suites_that_a_new_store_does_not_know_stay(kept: Path, tmp_path: Path) -> None:
    before = archived_rows(kept)
    other = fill(
        tmp_path / "other", REPORT.replace('"paper-table"', '"late"').replace("0-5", "50-51")
    )
    keep(other, kept)
    after = archived_rows(kept)
    assert {suite for suite, *_ in after} == {"late", *{suite for suite, *_ in before}}
    assert set(read_curves(kept)) == {
        hash for suite, hash, *_ in after if suite in ("late", "paper-table")
    }


def test_trials_that_a_suite_no_longer_asks_for_go(store: Path, kept: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "copy")
    fill(tmp_path / "copy", REPORT.replace("window = 20", "window = 10"))
    keep(Store.open(tmp_path / "copy"), kept)
    windows = {
        row.policy_parameters["window"]
        for key, row in archived_rows(kept).items()
        if "rnlps-default" in key
    }
    assert windows == {10}


def test_trials_that_are_missing_are_said_so(tmp_path: Path) -> None:
    keep(fill(tmp_path / "store", REPORT, only=("*/seed-0",)), tmp_path / "kept")
    gaps = archived_frame(tmp_path / "kept").gaps
    assert len(gaps.missing) == 5 * 2 * 2
    assert "flipping-gaussian/random/seed-3" in gaps.missing
    page = pages(archived_frame(tmp_path / "kept"), tmp_path, read_curves(tmp_path / "kept"))
    assert "rnlps-default on flipping-gaussian (5), stationary-bernoulli (5)" in page


def test_settings_of_an_unfinished_search_are_told_from_reports(tmp_path: Path) -> None:
    keep(fill(tmp_path / "store", SEARCH, only=("*/seed-100",)), tmp_path / "kept")
    _, lost, _ = missing_blocks(archived_frame(tmp_path / "kept"))
    assert lost.splitlines() == [
        "- of searches: d-ucb on flipping-gaussian (12); sw-ucb on flipping-gaussian (4).",
        "- of reports: random on flipping-gaussian (2); cells and claims stand on the others.",
    ]


def test_a_search_that_was_stopped_says_how_many_of_its_trials_are_missing(tmp_path: Path) -> None:
    networks = SEARCH.replace('name = "d-ucb"', 'name = "nlps"\nid = "d-ucb"')
    (tmp_path / "grid.toml").write_text(networks)
    place = ("--out", str(tmp_path / "store"), "--on", "here", "--json")
    command("search", str(tmp_path / "grid.toml"), *place, "--only", "*/nlps/*")
    whole = load_frame([Store.open(tmp_path / "store")])
    assert list(unfinished_searches(whole)) == []
    studies = tuple(study for study in whole.studies if study.suite == "grid-rung-1-of-2")
    assert list(unfinished_searches(replace(whole, studies=studies))) == [
        "best NN of flipping-gaussian: not chosen, since the search is not finished; 9 of its 15 "
        "trials are missing"
    ]


CUTS = [
    ("paper-table.csv", False),
    ("paper-table.csv", True),
    ("shared.json", False),
    ("curves.csv", False),
]


@pytest.mark.parametrize(("file", "at_a_line"), CUTS)
def test_files_that_were_cut_off_are_one_sentence(kept: Path, file: str, at_a_line: bool) -> None:
    whole = (kept / file).read_bytes()
    cut = len(whole) // 2
    (kept / file).write_bytes(whole[: whole.rindex(b"\n", 0, cut) + 1 if at_a_line else cut])
    with pytest.raises(WrongStoreError, match=f"{file} was edited or cut off"):
        (archived_frame(kept), read_curves(kept))


def test_sensitivity_shows_first_rungs_and_whole_grids_together_and_says_what_was_played(
    store: Path,
) -> None:
    studies = load_frame([Store.open(store)]).studies
    found = searches_of(studies)
    assert [played_words(study) for study in found] == [
        "flipping-gaussian, 80 rounds, 3 trials of each setting",
        "flipping-gaussian, 40 rounds, one trial of each setting",
    ]
    assert [list(study.grids) for study in found] == [["sw-ucb"], ["d-ucb"]]
    (final,) = searches_of(studies, last=True)
    assert {name: len(groups) for name, groups in final.grids.items()} == {"sw-ucb": 2, "d-ucb": 3}
    assert len(found[1].grids["d-ucb"]) == 6
    (row,) = halving_table(studies).rows
    assert row[2].text == "6 x 40 x 1, 3 x 80 x 3"


def test_searches_over_kinds_of_exploration_come_last_when_there_are_others(store: Path) -> None:
    studies = load_frame([Store.open(store)]).studies
    first = searches_of(studies)[0]
    exploring = replace(first, suite="kinds", grids={"rnlps-boltzmann": first.grids["sw-ucb"]})
    assert [study.suite for study in searches_of([exploring, *studies])][-1] == "kinds"


def test_the_report_says_what_halving_played_and_how_short_trials_rank_long_ones(
    store: Path, tmp_path: Path
) -> None:
    page = build_report([Store.open(store)], tmp_path / "report", formats=[]).page.read_text()
    assert "Searches by halving" in page
    assert "6 x 40 x 1, 3 x 80 x 3" in page
    (row,) = halving_table(load_frame([Store.open(store)]).studies).rows
    assert row[4].text.startswith("1 and 2: ")
    assert row[4].text in page


def test_a_rung_that_has_only_begun_is_no_report(store: Path) -> None:
    (study,) = [
        study
        for study in load_frame([Store.open(store)]).studies
        if study.suite == "grid-rung-2-of-2"
    ]
    assert (
        combined([study]) == explorations([replace(study, suite="exploration-rung-2-of-2")]) == []
    )
    begun = replace(study, grids={})
    assert combined([begun]) == []
    assert explorations([replace(begun, suite="exploration-rung-2-of-2")]) == []
    assert len(combined([replace(begun, suite="grid-selected")])) == 1


def test_rungs_as_long_as_the_grid_are_shown_beside_it(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(SEARCH.replace("share = 0.5", "share = 1.0"))
    place = ("--out", str(tmp_path / "store"), "--on", "here", "--json")
    command("search", str(tmp_path / "grid.toml"), *place, "--only", "*/d-ucb/*")
    fill(
        tmp_path / "store",
        SEARCH.replace("share = 0.5", "share = 1.0"),
        only=("*/sw-ucb/*", "*/random/*"),
    )
    (study,) = searches_of(load_frame([Store.open(tmp_path / "store")]).studies)
    assert played_words(study).endswith("80 rounds, 3 trials of each setting (d-ucb: 1)")


def test_the_committed_pages_are_what_the_kept_trials_give(tmp_path: Path) -> None:
    write_all(tmp_path)
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) >= 10
    for file in written:
        here = ROOT / file.relative_to(tmp_path)
        if file.suffix != ".svg":
            assert file.read_text() == here.read_text(), f"{here} is out of date"
    assert {file.name for file in (ROOT / "docs" / "results").iterdir()} == {
        file.name for file in (tmp_path / "docs" / "results").iterdir()
    }


def test_kept_trials_have_the_present_words_of_their_suites() -> None:
    texts = read_archive(ROOT / "research" / "results" / "trials").texts
    played = [name for name in texts if not rung_number(name)]
    assert len(played) >= 10
    for name in played:
        own = paper_suite(name, trials=None, one_world=False).text
        assert texts[name] == (own or find_suite(name).read_text()), name


def test_one_command_writes_the_committed_pages_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "research").symlink_to(ROOT / "research")
    monkeypatch.chdir(tmp_path)
    command("reproduce", "--no-play", "--known", "research/results/trials")
    written = {
        "results.md": "docs/results.md",
        "details.md": "research/paper/results.md",
        "results/summary.csv": "docs/results/summary.csv",
    }
    for name, committed in written.items():
        page = Path("out/reproduce") / name
        assert page.read_bytes() == (ROOT / committed).read_bytes(), name


def chosen(search: str, tmp_path: Path) -> str:
    out = tmp_path / f"{search}-selected.toml"
    place = ("--suite", search, "--out", str(out), "--seeds", report_seeds(search, None))
    command("select", str(ROOT / "research/results/trials"), *place, "--partial", "--json")
    return out.read_text()


DATA = os.environ.get("TIDEPULL_DATA")
needs_robot = pytest.mark.skipif(
    not (DATA and (Path(DATA) / WALL_FOLLOWING.name).is_file()),
    reason=f"needs {WALL_FOLLOWING.name} in TIDEPULL_DATA",
)


@pytest.mark.parametrize(
    "search",
    [
        "paper-grid-noncontextual",
        pytest.param("paper-grid-contextual", marks=needs_robot),
    ],
)
def test_the_committed_selections_are_what_the_kept_trials_give(
    search: str, tmp_path: Path
) -> None:
    assert chosen(search, tmp_path) == find_suite(f"{search}-selected").read_text()


@pytest.mark.parametrize("search", ["paper-exploration", "paper-exploration-more"])
def test_the_committed_rivals_are_what_the_kept_trials_give_and_sampling_is_the_grids(
    search: str, tmp_path: Path
) -> None:
    def settings(text: str) -> dict[tuple[str, str], dict[str, Any]]:
        return {
            (policy["name"], policy["problems"][0]): policy["parameters"]
            for policy in tomllib.loads(text)["policies"]
            if policy["name"].endswith("-best")
        }

    grids = ("paper-grid-noncontextual-selected", "paper-grid-contextual-selected")
    known = settings(chosen(search, tmp_path))
    for grid in grids:
        known |= settings(find_suite(grid).read_text())
    for place, setting in settings(find_suite(f"{search}-selected").read_text()).items():
        assert known[place].items() <= setting.items(), place
