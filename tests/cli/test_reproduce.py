from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
import typer

from tidepull.bench.store.rows import load_rows
from tidepull.bench.store.store import Store
from tidepull.bench.suites.suite import load_suite
from tidepull.cli import reproduce
from tidepull.cli.reproduce import SEARCHES, Target, suites_of
from tidepull.report.build import build_report

PAPER = {"paper-table", "paper-stationary", "paper-criteo", *SEARCHES}


def test_all_is_every_part_of_the_paper_once() -> None:
    assert set(suites_of(Target.all, quick=False)) == PAPER
    assert len(suites_of(Target.all, quick=True)) == 5


@pytest.mark.parametrize("target", list(Target))
def test_every_suite_of_every_target_can_be_loaded(target: Target) -> None:
    for name in suites_of(target, quick=True):
        assert load_suite(name).specs


def test_quick_searches_and_reports_share_no_seed() -> None:
    searched = {spec.seed for spec in load_suite("quick-sensitivity").specs}
    reported = {spec.seed for name in suites_of(Target.table, quick=True) for spec in load_suite(name).specs}
    assert not searched & reported


@pytest.fixture(autouse=True)
def without_workers_and_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have tests of their own, and cost seconds."""
    monkeypatch.setattr(reproduce, "WHERE", "here")
    monkeypatch.setattr(reproduce, "build_report", partial(build_report, formats=()))


def run(target: Target, out: Path, *, trials: int) -> None:
    reproduce.reproduce(
        target,
        trials=trials,
        quick=True,
        out=out,
        workers=1,
        dry_run=False,
        retry_failed=False,
        partial=False,
        json=True,
    )


def test_reproduce_runs_only_what_is_missing_then_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = tmp_path / "small.toml"
    suite.write_text(
        'name = "small"\nseeds = "0-9"\nhorizon = 40\n[[problems]]\nid = "stationary-bernoulli"\n'
        '[[policies]]\nname = "random"\n[[policies]]\nname = "ucb"\n'
    )
    monkeypatch.setattr(reproduce, "suites_of", lambda *_, **__: [str(suite)])
    monkeypatch.setattr(reproduce, "find_suite", Path)
    store = tmp_path / "store"
    run(Target.stationary, store, trials=2)
    first = {row.hash for row in load_rows(Store.open(store)).rows}
    assert len(first) == 4
    assert (store / "report" / "index.html").exists()
    run(Target.stationary, store, trials=3)
    assert len({row.hash for row in load_rows(Store.open(store)).rows} - first) == 2
    assert "2 to do" in capsys.readouterr().err


def test_reproduce_reports_what_failed_and_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "wrong.toml"
    suite.write_text(
        'name = "wrong"\nseeds = "0-0"\nhorizon = 20\n[[problems]]\nid = "flipping-gaussian"\n'
        '[[policies]]\nname = "random"\n[[policies]]\nname = "bernoulli-ts"\n'
    )
    monkeypatch.setattr(reproduce, "suites_of", lambda *_, **__: [str(suite)])
    monkeypatch.setattr(reproduce, "find_suite", Path)
    with pytest.raises(typer.Exit) as end:
        run(Target.stationary, tmp_path / "store", trials=1)
    assert end.value.exit_code == 1
    assert "1 failed" in (tmp_path / "store" / "report" / "index.html").read_text()


def test_reproduce_reports_the_best_settings_of_a_search_on_seeds_it_never_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = tmp_path / "search.toml"
    search.write_text(
        'name = "search"\nseeds = "1000-1001"\nhorizon = 400\n[[problems]]\nid = "stationary-bernoulli"\n'
        '[[policies]]\nname = "random"\n[[policies]]\nname = "d-ucb"\ngrid = { discount = [0.9, 0.999] }\n'
    )
    monkeypatch.setattr(reproduce, "suites_of", lambda *_, **__: [str(search)])
    monkeypatch.setattr(reproduce, "SEARCHES", (str(search),))
    monkeypatch.setattr(reproduce, "_searched", lambda _: ("search", "elsewhere"))
    store = tmp_path / "store"
    reproduce.reproduce(
        Target.sensitivity,
        trials=1,
        quick=False,
        out=store,
        workers=1,
        dry_run=False,
        retry_failed=False,
        partial=False,
        json=True,
    )
    chosen = load_rows(Store.open(store), "search-selected").rows
    assert {row.name for row in chosen} == {"random", "d-ucb-best", "d-ucb-default"}
    assert {row.seed for row in chosen} == {0}
    assert "search-selected" in (store / "report" / "index.html").read_text()


def test_a_dry_run_answers_in_json_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = tmp_path / "small.toml"
    suite.write_text(
        'name = "small"\nseeds = "0-9"\nhorizon = 40\n[[problems]]\nid = "stationary-bernoulli"\n'
        '[[policies]]\nname = "random"\n'
    )
    monkeypatch.setattr(reproduce, "suites_of", lambda *_, **__: [str(suite)])
    monkeypatch.setattr(reproduce, "find_suite", Path)
    reproduce.reproduce(
        Target.table,
        trials=3,
        quick=True,
        out=tmp_path / "store",
        workers=1,
        dry_run=True,
        retry_failed=False,
        partial=False,
        json=True,
    )
    counts = json.loads(capsys.readouterr().out)
    assert (counts["done"], counts["todo"], counts["unknown"]) == (0, 3, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]
