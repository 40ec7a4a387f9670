"""`tidepull report` and `tidepull compare` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.cli.typing_it import tidepull
from tests.unit.reporting.filling import SUITE, fill


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("store")
    fill(where, SUITE.replace("0-5", "0-1"))
    return where


def test_report_says_who_won_in_plain_text_when_piped(directory: Path, tmp_path: Path) -> None:
    done = tidepull("report", str(directory), "--out", str(tmp_path), "--formats", "")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("flipping-gaussian: ")
    assert "\x1b[" not in done.stdout + done.stderr
    assert (tmp_path / "index.html").exists()


def test_report_prints_only_json_when_asked(directory: Path) -> None:
    done = tidepull("report", str(directory), "--formats", "", "--json")
    told = json.loads(done.stdout)
    assert Path(told["page"]) == directory / "report" / "index.html"
    assert told["verdicts"][0]["problem"] == "flipping-gaussian"


def test_compare_prints_differences_with_intervals_as_json(directory: Path) -> None:
    done = tidepull("compare", str(directory), str(directory), "--json")
    lines = json.loads(done.stdout)
    assert {line["difference"]["mean"] for line in lines} == {0.0}
    assert not [line for line in lines if "*" in line["policy"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "nowhere"), "there is no store at nowhere"),
        (("report", "{store}", "--formats", "gif"), "--formats knows svg, pdf, png, got 'gif'"),
        (("compare", "{store}", "nowhere"), "there is no store at nowhere"),
        (
            ("compare", "{store}", "paper"),
            "the same problem, horizon and name of the policy are needed",
        ),
    ],
)
def test_mistakes_are_said_in_one_sentence(
    directory: Path, words: tuple[str, ...], said: str
) -> None:
    done = tidepull(*(word.format(store=directory) for word in words))
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
