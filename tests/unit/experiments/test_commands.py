"""`tidepull sweep` and `tidepull store` as people type them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tidepull.cli.app import app
from tidepull.errors import StoreError, SuiteError
from tidepull.experiments.store import Store

OWN = Path(__file__).with_name("own_trivial.py")
SUITE = f"""
name = "small"
seeds = "0-2"
horizon = 20
modules = ["{OWN}"]
[[problems]]
id = "coins"
[[policies]]
name = "lever"
[[policies]]
name = "brittle"
id = "lever"
parameters = {{ fail_on_seed = 1 }}
"""


def tidepull(*arguments: object) -> Result:
    outcome = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return outcome


def answer(*arguments: object) -> Any:
    return json.loads(tidepull(*arguments, "--json").stdout)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SUITE)
    return tmp_path / "small.toml"


@pytest.fixture
def store(suite: Path, tmp_path: Path) -> Path:
    assert tidepull("sweep", suite, "--out", tmp_path / "a", "--on", "here").exit_code == 1
    return tmp_path / "a"


def test_a_dry_run_counts_and_writes_nothing(suite: Path, tmp_path: Path) -> None:
    counts = answer("sweep", suite, "--out", tmp_path / "none", "--dry-run", "--workers", 2)
    assert (counts["total"], counts["done"], counts["todo"], counts["unknown"]) == (6, 0, 6, 6)
    assert not (tmp_path / "none").exists()


def test_a_sweep_names_failures_and_the_next_one_leaves_them_but_does_not_succeed(
    suite: Path, store: Path
) -> None:
    again = tidepull("sweep", suite, "--out", store, "--on", "here")
    assert again.exit_code == 1
    assert "6 trials, 5 done, 0 to do" in again.stderr
    assert "1 failed earlier; --retry-failed runs them again" in again.stderr
    retried = tidepull("sweep", suite, "--out", store, "--on", "here", "--retry-failed")
    assert retried.exit_code == 1
    assert (
        "failed coins/brittle/seed-1: RuntimeError: this policy was told to fail" in retried.stderr
    )


def test_a_sweep_answers_in_json(suite: Path, tmp_path: Path) -> None:
    summary = answer("sweep", suite, "--out", tmp_path / "b", "--on", "here", "--only", "*/lever/*")
    assert (summary["total"], summary["ran"], summary["failed"]) == (3, 3, 0)


def test_info_counts_what_there_is(store: Path) -> None:
    lines = {line["name"]: line for line in answer("store", "info", store)}
    assert (lines["lever"]["trials"], lines["brittle"]["trials"], lines["brittle"]["of"]) == (
        3,
        2,
        3,
    )


def test_check_fails_on_damage_and_removes_it_when_asked(store: Path) -> None:
    assert answer("store", "check", store)["sound"] == 5
    next(store.glob("trials/*/*.parquet")).write_bytes(b"cut")
    damaged = tidepull("store", "check", store)
    assert damaged.exit_code == 1
    assert "4 trials sound, 1 damaged, 1 failed" in damaged.stderr
    assert tidepull("store", "check", store, "--remove").exit_code == 1
    assert tidepull("store", "check", store).exit_code == 0


def test_compact_export_merge_and_diff(store: Path, tmp_path: Path) -> None:
    assert answer("store", "compact", store)["indexed"] == 5
    out = tidepull("store", "export", store, "--out", tmp_path / "all.csv", "--by-setting")
    assert "1 failed: coins/brittle/seed-1" in out.stderr
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 3
    assert answer("store", "merge", tmp_path / "b", store)["added"] == 5
    assert tidepull("store", "diff", store, tmp_path / "b").exit_code == 0
    next((tmp_path / "b").glob("trials/*/*.json")).unlink()
    assert tidepull("store", "diff", store, tmp_path / "b").exit_code == 1


def test_mistakes_are_one_sentence(suite: Path, tmp_path: Path) -> None:
    suite.write_text(SUITE.replace('"lever"', '"leever"', 1))
    with pytest.raises(
        SuiteError,
        match=r"small\.toml: policies\[1\] \(leever\): there is no policy 'leever'; did you",
    ):
        tidepull("sweep", suite, "--out", tmp_path / "c")
    with pytest.raises(StoreError, match="there is no store at"):
        tidepull("store", "check", tmp_path / "nowhere")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "cat.png").write_text("")
    with pytest.raises(StoreError, match="pictures is no store: it has neither trials nor plans"):
        tidepull("store", "check", tmp_path / "pictures")
    (tmp_path / "file").write_text("")
    suite.write_text(SUITE)
    with pytest.raises(StoreError, match="choose another directory"):
        tidepull("sweep", suite, "--out", tmp_path / "file")


def test_an_unreadable_manifest_is_run_again(store: Path, suite: Path) -> None:
    path = next(path for path in store.glob("trials/*/*.json"))
    path.unlink()
    path.mkdir()  # Unreadable even for root.
    said = tidepull("sweep", suite, "--out", store, "--on", "here", "--dry-run")
    assert "damaged, will be run again" in said.stderr
    path.rmdir()
    assert (
        tidepull("sweep", suite, "--out", store, "--on", "here").exit_code == 1
    )  # one failed earlier
    assert len(Store.open(store).hashes()) == 5


def test_a_dry_run_makes_up_no_time_that_it_does_not_know(suite: Path, tmp_path: Path) -> None:
    said = tidepull("sweep", suite, "--out", tmp_path / "[1]", "--dry-run", "--workers", 2).stderr
    assert "time left not known yet\n" in said
    assert "0 s" not in said
    assert "[1]" in said


def test_every_damaged_trial_is_counted_where_not_all_are_named(
    store: Path, tmp_path: Path
) -> None:
    many = tmp_path / "many.toml"
    many.write_text(SUITE.replace('seeds = "0-2"', 'seeds = "0-12"'))
    tidepull("sweep", many, "--out", store, "--on", "here", "--only", "*/lever/*")
    for path in store.glob("trials/*/*.parquet"):
        path.write_bytes(b"cut")
    said = tidepull(
        "sweep", many, "--out", store, "--on", "here", "--only", "*/lever/*", "--dry-run"
    ).stderr
    assert said.count("will be run again") == 10
    assert "and 3 more damaged ones" in said
