from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer

from tidepull.cli import reproduce
from tidepull.cli.sweep import sweep
from tidepull.errors import ParameterError
from tidepull.experiments.rows import load_rows
from tidepull.experiments.store import Store
from tidepull.experiments.suite import find_suite, load_suite
from tidepull.paper import reproduce as paper_reproduce
from tidepull.paper.reproduce import (
    ONE_WORLD,
    SEARCHES,
    PaperPart,
    paper_suite,
    searches_of_part,
    suites_of_part,
)
from tidepull.paper.studies import keep
from tidepull.paper.theory.simulate import configurations
from tidepull.reporting.report import build_report

ROOT = Path(__file__).parents[3]
PAPER = {
    "paper-table",
    "paper-authors",
    "paper-authors-again",
    "paper-stationary",
    "paper-criteo",
    "paper-exploration-report",
    "paper-grid-noncontextual-selected",
    "paper-grid-contextual-selected",
    "paper-exploration-selected",
}
AUTHORS = {"paper-authors", "paper-authors-again"}
CASES = len(list(configurations(horizon=8, seeds=2, seed=0)))
SMALL = (
    'name = "small"\nseeds = "0-9"\nhorizon = 40\n[[problems]]\nid = "stationary-bernoulli"\n'
    '[[policies]]\nname = "random"\n[[policies]]\nname = "ucb"\n'
)
SEARCH = (
    'name = "search"\nseeds = "1000-1001"\nhorizon = 400\n[[problems]]\nid = "stationary-bernoulli"\n'
    '[[policies]]\nname = "random"\n[[policies]]\nname = "d-ucb"\ngrid = { discount = [0.9, 0.999] }\n'
)


def test_all_is_every_part_of_the_paper_once() -> None:
    assert (
        set(suites_of_part(PaperPart.all, quick=False)) - {"paper-exploration-more-selected"}
        == PAPER
    )
    assert searches_of_part(PaperPart.all) == SEARCHES
    assert len(suites_of_part(PaperPart.all, quick=True)) == 5


def test_table_has_its_best_columns_from_the_selection_that_comes_along() -> None:
    names = {
        spec.name
        for name in suites_of_part(PaperPart.table, quick=False)
        for spec in load_suite(name).specs
    }
    assert {
        "rnlps-best",
        "nlps-best",
        "rnlps-default",
        "nlps-default",
        "d-ucb",
        "d-ucb-best",
    } <= names
    assert searches_of_part(PaperPart.table) == ()


@pytest.mark.parametrize("name", sorted(PAPER - AUTHORS | set(SEARCHES)))
def test_one_world_has_one_realisation_of_each_problem_and_as_many_trials(name: str) -> None:
    alone, own = (
        paper_suite(name, trials=None, one_world=True),
        paper_suite(name, trials=None, one_world=False),
    )
    assert own.text == ""
    assert alone.text.replace(f"problem_seed = {ONE_WORLD}\n", "") == find_suite(name).read_text()
    if name == "paper-table":
        specs = alone.load().specs
        assert {spec.problem_seed for spec in specs} == {ONE_WORLD}
        assert [spec.seed for spec in specs] == [spec.seed for spec in own.load().specs]


@pytest.mark.parametrize("name", sorted(AUTHORS))
def test_one_world_leaves_the_authors_world_as_it_is(name: str) -> None:
    alone, own = (paper_suite(name, trials=None, one_world=world) for world in (True, False))
    assert alone == own


def test_cells_that_are_played_again_share_settings_and_no_seed_with_the_table() -> None:
    table, again = (
        {(s.problem_name, s.name): s.policy_parameters for s in load_suite(name).specs}
        for name in ("paper-authors", "paper-authors-again")
    )
    assert again.items() <= table.items()
    suite = paper_suite("paper-authors-again", trials=3, one_world=False)
    assert {spec.seed for spec in suite.load().specs} == set(range(10, 30))


def test_the_authors_world_has_the_best_networks_of_our_searches_beside_the_papers(
    tmp_path: Path,
) -> None:
    best = {
        (spec.name, spec.problem_name): spec.policy_parameters
        for spec in paper_suite("paper-authors", trials=None, one_world=False).load().specs
        if spec.name == "rnlps-best"
    }
    assert len(best) == 9
    chosen = {
        spec.problem: spec.policy_parameters
        for spec in load_suite("paper-grid-noncontextual-selected").specs
        if spec.name == "rnlps-best"
    }
    for row in ("flipping-gaussian", "flipping-bernoulli", "circular-markov-chain"):
        assert best["rnlps-best", f"{row}-authors"] == chosen[row]
    own = find_suite("paper-grid-noncontextual-selected").read_text()
    text = own.replace("epochs = 64", "epochs = 3")
    (tmp_path / "paper-grid-noncontextual-selected.toml").write_text(text)
    suite = paper_suite("paper-authors", trials=None, one_world=False, chosen=tmp_path)
    assert "epochs = 3," in suite.text


@pytest.mark.parametrize("target", list(PaperPart))
def test_every_suite_of_every_target_can_be_loaded(target: PaperPart) -> None:
    for name in suites_of_part(target, quick=True):
        assert load_suite(name).specs


def test_quick_searches_and_reports_share_no_seed() -> None:
    searched = {spec.seed for spec in load_suite("quick-sensitivity").specs}
    reported = {
        spec.seed
        for name in suites_of_part(PaperPart.table, quick=True)
        for spec in load_suite(name).specs
    }
    assert not searched & reported


@pytest.fixture(autouse=True)
def without_workers_and_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have tests of their own, and cost seconds."""
    monkeypatch.setattr(reproduce, "WHERE", "here")
    monkeypatch.setattr(reproduce, "build_report", partial(build_report, formats=()))
    monkeypatch.setattr(reproduce, "draw", lambda *_: None)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite that stands for all of the paper."""
    return standing(tmp_path, monkeypatch, SMALL)


def standing(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    suite = folder / "small.toml"
    suite.write_text(text)
    monkeypatch.setattr(reproduce, "suites_of_part", lambda *_, **__: [str(suite)])
    monkeypatch.setattr(paper_reproduce, "find_suite", Path)
    return suite


def run(target: PaperPart, out: Path, **changed: Any) -> None:
    usual: dict[str, Any] = {
        "trials": None,
        "quick": True,
        "one_world": False,
        "search": True,
        "exhaustive": False,
    }
    usual |= {
        "play": True,
        "known": None,
        "workers": 1,
        "dry_run": False,
        "retry_failed": False,
        "partial": False,
        "json": True,
    }
    reproduce.reproduce(target, out=out, **(usual | changed))


@pytest.mark.usefixtures("small")
def test_reproduce_runs_only_what_is_missing_then_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    run(PaperPart.stationary, store, trials=2)
    first = {row.hash for row in load_rows(Store.open(store)).rows}
    assert len(first) == 4
    run(PaperPart.stationary, store, trials=3)
    assert len({row.hash for row in load_rows(Store.open(store)).rows} - first) == 2
    assert "2 to do" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_page_has_the_papers_table_every_claim_and_the_theorem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reproduce, "QUICK", {"horizon": 8, "seeds": 2, "seed": 0})
    store = tmp_path / "store"
    run(PaperPart.all, store, trials=2)
    said = capsys.readouterr()
    assert "NaN" not in said.out
    claims = json.loads(said.out)["claims"]
    assert {claim["outcome"] for claim in claims} == {"open"}
    assert "41 claims" in said.err
    page = (store / "report" / "index.html").read_text()
    assert "The paper&#x27;s table" in page or "The paper's table" in page
    assert "41 claims of the paper: 0 hold, 0 fail, 41 open, 0 not judged." in page
    assert f"{CASES} of {CASES} configurations keep every promise" in page
    assert 'id="stationary' in page or "small-stationary-bernoulli" in page


@pytest.mark.usefixtures("small")
def test_without_playing_the_page_is_made_from_what_is_there(tmp_path: Path) -> None:
    store = tmp_path / "store"
    run(PaperPart.stationary, store, trials=2)
    page = store / "report" / "index.html"
    page.unlink()
    run(PaperPart.all, store, trials=9, play=False)
    assert page.exists()
    assert len(load_rows(Store.open(store)).rows) == 4


@pytest.mark.usefixtures("small")
def test_one_world_is_played_and_said_on_the_page(tmp_path: Path) -> None:
    store = tmp_path / "store"
    run(PaperPart.stationary, store, trials=3, one_world=True)
    rows = load_rows(Store.open(store)).rows
    assert {row.problem_seed for row in rows} == {ONE_WORLD}
    assert {row.seed for row in rows} == {0, 1, 2}
    assert "played in one realisation of it" in (store / "report" / "index.html").read_text()


def test_theory_alone_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size = {"horizon": 8, "seeds": 2, "seed": 0}
    monkeypatch.setattr(reproduce, "QUICK", size)
    run(PaperPart.theory, tmp_path)
    assert len(json.loads(capsys.readouterr().out)) == CASES
    written = (tmp_path / "theory.json").stat().st_mtime_ns
    run(PaperPart.theory, tmp_path)
    assert (tmp_path / "theory.json").stat().st_mtime_ns == written
    monkeypatch.setitem(size, "horizon", 9)
    run(PaperPart.theory, tmp_path)
    assert (tmp_path / "theory.json").stat().st_mtime_ns > written


def test_reproduce_reports_what_failed_and_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = SMALL.replace("stationary-bernoulli", "flipping-gaussian").replace(
        "ucb", "bernoulli-ts"
    )
    standing(tmp_path, monkeypatch, wrong)
    with pytest.raises(typer.Exit) as end:
        run(PaperPart.stationary, tmp_path / "store", trials=1)
    assert end.value.exit_code == 1
    assert "1 failed" in (tmp_path / "store" / "report" / "index.html").read_text()


@pytest.mark.parametrize("exhaustive", [True, False])
def test_reproduce_reports_the_best_settings_of_a_search_on_seeds_it_never_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exhaustive: bool
) -> None:
    standing(tmp_path, monkeypatch, SEARCH)
    monkeypatch.setattr(reproduce, "suites_of_part", lambda *_, **__: [])
    search = tmp_path / "search.toml"
    search.write_text(SEARCH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "searches_of_part", lambda _: ("search.toml",))
    monkeypatch.setattr(reproduce, "_chosen", partial(_named, reproduce._chosen))
    store = tmp_path / "store"
    run(PaperPart.sensitivity, store, trials=1, quick=False, exhaustive=exhaustive)
    chosen = load_rows(Store.open(store), "search-selected").rows
    assert {row.name for row in chosen} == {"random", "d-ucb-best", "d-ucb-default"}
    assert {row.seed for row in chosen} == {0}
    assert "search-selected" in (store / "report" / "index.html").read_text()


def test_known_trials_are_not_played_again_and_give_the_same_choice_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing(tmp_path, monkeypatch, SEARCH)
    monkeypatch.setattr(reproduce, "suites_of_part", lambda *_, **__: [])
    (tmp_path / "search.toml").write_text(SEARCH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce, "searches_of_part", lambda _: ("search.toml",))
    monkeypatch.setattr(reproduce, "_chosen", partial(_named, reproduce._chosen))
    first, known, second = (tmp_path / name for name in ("first", "known", "second"))
    run(PaperPart.sensitivity, first, trials=1, quick=False)
    keep(Store.open(first), known)
    run(PaperPart.sensitivity, second, trials=1, quick=False, known=known)
    assert not Store.open(second).hashes()
    for file in ("suites/search-selected.toml", "results.md", "details.md"):
        texts = [(out / file).read_text() for out in (first, second)]
        assert without_command(texts[0]) == without_command(texts[1])


def without_command(text: str) -> str:
    return re.sub("```\n.*\n```", "", text, count=1)


def test_reproduce_writes_the_published_pages_from_the_kept_trials(tmp_path: Path) -> None:
    kept = ROOT / "research" / "results" / "trials"
    run(PaperPart.all, tmp_path, quick=False, play=False, known=kept)
    for file, published in (("results", "docs"), ("details", "research/paper")):
        page = (ROOT / published / "results.md").read_text()
        assert without_command((tmp_path / f"{file}.md").read_text()) == without_command(page)


def test_a_folder_without_kept_trials_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="--known: .* holds no kept trials"):
        run(PaperPart.all, tmp_path / "out", known=tmp_path)


def _named(chosen: Callable[..., str | None], search: str, *rest: Any) -> str | None:
    """The suite of the test is a file; its name is without the ending."""
    return chosen(search.removesuffix(".toml"), *rest)


def test_own_search_stands_instead_of_the_selection_that_comes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    along = standing(tmp_path, monkeypatch, SMALL.replace("small", "search-selected"))
    (tmp_path / "search.toml").write_text(SEARCH)
    monkeypatch.chdir(tmp_path)
    along.rename(tmp_path / "search-selected")
    monkeypatch.setattr(reproduce, "suites_of_part", lambda *_, **__: ["search-selected"])
    store = tmp_path / "store"
    run(PaperPart.table, store, trials=1, quick=False)
    assert {row.name for row in load_rows(Store.open(store), "search-selected").rows} == {
        "random",
        "ucb",
    }
    sweep("search.toml", store, on="here")
    run(PaperPart.table, store, trials=1, quick=False)
    chosen = load_rows(Store.open(store), "search-selected").rows
    assert {row.name for row in chosen} == {"random", "d-ucb-best", "d-ucb-default"}


@pytest.mark.usefixtures("small")
def test_a_dry_run_answers_in_json_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(PaperPart.table, tmp_path / "store", trials=3, dry_run=True)
    counts = json.loads(capsys.readouterr().out)
    assert (counts["done"], counts["todo"], counts["unknown"]) == (0, 6, 6)
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]
