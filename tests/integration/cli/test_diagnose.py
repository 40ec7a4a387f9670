"""`tidepull diagnose` as a user meets it, and what logs that are not fit for it hear."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.unit.logs import writing
from tidepull.cli.app import app


def diagnose(*words: object) -> Result:
    return CliRunner().invoke(app, ["diagnose", *(str(word) for word in words)])


def test_diagnose_writes_a_page_and_says_it_in_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    writing.csv(tmp_path / "shop.csv", writing.rows(200))
    done = diagnose("shop.csv", "--context", "none")
    assert done.exit_code == 0, done.output
    for words in (
        "Arms",
        "Evidence for each kind of time structure",
        "nothing changes",
        "In short",
        "shop.html written",
    ):
        assert words in done.output
    assert (tmp_path / "shop.html").read_text().startswith("<!doctype html>")


def test_diagnose_prints_only_json_and_writes_no_page_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    writing.jsonl(tmp_path / "log.jsonl", writing.rows(200))
    done = diagnose("log.jsonl", "--json", "--last", "90")
    found = json.loads(done.stdout)
    assert found["log"]["rows"] == 90
    assert 0 < found["p"] <= 1
    assert sum(found["evidence"].values()) == pytest.approx(1)
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


DAY = "2026-01-05T"
ROWS = [f"{DAY}{n // 60:02d}:{n % 60:02d}:00,{'ab'[n % 2]},{n % 3 % 2},0.5" for n in range(60)]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "has no rows; give a log with at least one decision"),
        (ROWS[:10], "has 10 rewards; at least 20 are needed"),
        ([row.replace(",0.5", ",x") for row in ROWS], "60 of 60 rows cannot be read as csv (line 2: propensity is no"),
        ([row.replace(",0,", ",,").replace(",1,", ",,") for row in ROWS], "has 0 rewards; at least 20 are needed"),
    ],
)  # fmt: skip
def test_a_log_that_is_not_fit_ends_in_one_sentence(
    tmp_path: Path, rows: list[str], sentence: str
) -> None:
    (tmp_path / "log.csv").write_text("\n".join(["time,arm,reward,propensity", *rows, ""]))
    done = diagnose(tmp_path / "log.csv", "--json")
    assert sentence in str(done.exception)
    assert getattr(done.exception, "exit_code", None) == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda row: row.replace(",b,", ",a,"), "there is only one arm, 'a': nothing can be compared"),
        (lambda row: row.replace(",1,", ",0,"), "every reward is 0: nothing can be said of which arm is better"),
        (lambda row: row.replace(",0.5", "," if "T00:30" in row else ",0.5"), "1 decisions have no propensity"),
        (lambda row: row[: row.rindex(",") + 1], "there are no propensities: what other policies would have earned"),
        (lambda row: row.replace("2026-", "2226-"), "60 rows are dated in the future, up to 2226-01-05"),
        (lambda row: row.replace("T00:30", "T09:30"), "rows were not in the order of time (1 are earlier"),
    ],
)  # fmt: skip
def test_a_log_that_needs_care_hears_a_sentence_of_it(
    tmp_path: Path, change: object, sentence: str
) -> None:
    assert callable(change)
    (tmp_path / "log.csv").write_text(
        "\n".join(["time,arm,reward,propensity", *map(change, ROWS), ""])
    )
    done = diagnose(tmp_path / "log.csv", "--json")
    assert done.exit_code == 0, done.output
    assert any(sentence in one for one in json.loads(done.stdout)["warnings"]), done.stdout


def test_diagnose_writes_the_page_where_it_is_asked_to(tmp_path: Path) -> None:
    writing.csv(tmp_path / "shop.csv", writing.rows(200))
    done = diagnose(
        tmp_path / "shop.csv", "--context", "none", "--out", tmp_path / "elsewhere.html", "--json"
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "elsewhere.html").read_text().startswith("<!doctype html>")


def test_diagnose_only_shows_how_a_log_is_understood_when_asked(tmp_path: Path) -> None:
    table = "\n".join(["seen,shown,sale,p,came", *(f"{row},2026-01-06" for row in ROWS), ""])
    (tmp_path / "log.csv").write_text(table)
    named = [
        "--time",
        "seen",
        "--arm",
        "shown",
        "--reward",
        "sale",
        "--propensity",
        "p",
        "--paid-at",
        "came",
    ]
    done = diagnose(tmp_path / "log.csv", *named, "--arms", "a,b,c", "--preview")
    assert done.exit_code == 0, done.output
    assert "60 decisions, 3 arms, read as csv" in done.output
    assert "paid_at from 'came'" in done.output
    assert "1 of 3 arms were never played" in done.output
    assert "2026-01-05 00:01:00 b (chance 0.5): 1" in done.output
    assert not (tmp_path / "log.html").exists()
