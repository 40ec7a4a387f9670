"""`tidepull backtest` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.unit.logs import writing
from tidepull.cli.app import app
from tidepull.errors import DataError


def backtest(*words: object) -> Result:
    return CliRunner().invoke(app, ["backtest", *(str(word) for word in words)])


def test_backtest_shows_policies_intervals_and_how_much_was_learnt(tmp_path: Path) -> None:
    writing.csv(tmp_path / "log.csv", writing.rows(200))
    done = backtest(
        tmp_path / "log.csv",
        "--policies",
        "random,arm:red,ucb",
        "--context",
        "none",
        "--by",
        "weekday",
    )
    assert done.exit_code == 0, done.output
    for words in (
        "logged",
        "arm:red",
        "replay-dr",
        "By weekday",
        "Monday",
        "it learnt from",
        "read as csv",
    ):
        assert words in done.output


def test_backtest_prints_only_json_when_asked(tmp_path: Path) -> None:
    writing.jsonl(tmp_path / "log.jsonl", writing.rows(200))
    done = backtest(tmp_path / "log.jsonl", "--json", "--last", "90", "--estimators", "ips")
    found = json.loads(done.stdout)
    assert found["log"]["rows"] == 90
    assert [(one["policy"], one["estimator"]) for one in found["estimates"]] == [
        ("logged", "mean"),
        ("random", "ips"),
    ]
    assert found["weights"]["random"]["effective"] == pytest.approx(90)


def test_backtest_needs_propensities_or_the_word_that_arms_were_as_likely(tmp_path: Path) -> None:
    table = [{name: row[name] for name in ("at", "arm", "reward")} for row in writing.rows()]
    writing.csv(tmp_path / "log.csv", table)
    done = backtest(tmp_path / "log.csv")
    assert isinstance(done.exception, DataError)
    assert "--uniform" in str(done.exception)
    assert backtest(tmp_path / "log.csv", "--uniform").exit_code == 0


def test_backtest_takes_parameters_of_policies_and_names_those_that_are_wrong(
    tmp_path: Path,
) -> None:
    writing.csv(tmp_path / "log.csv", writing.rows(200))
    words = (tmp_path / "log.csv", "--context", "none", "--json", "--policies")
    done = backtest(*words, "ucb,d-ucb:discount=0.9:xi=0.1")
    found = {one["policy"] for one in json.loads(done.stdout)["estimates"]}
    assert found == {"logged", "ucb", "d-ucb:discount=0.9:xi=0.1"}
    for policy, sentence in (
        ("d-ucb:discount", "write parameters as id:name=value"),
        ("d-ucb:discount=0.9:discount=0.8", "discount is given twice"),
        ("d-ucb:discount=2", "discount"),
        ("d-ucb:speed=2", "speed"),
    ):
        assert sentence in str(backtest(*words, policy).exception)
