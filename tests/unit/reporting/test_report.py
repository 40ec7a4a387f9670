from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.unit.reporting.filling import SUITE, fill
from tidepull.experiments.store import Store
from tidepull.reporting.figures import band_figure
from tidepull.reporting.report import ReportFiles, build_report, thinned


@pytest.fixture(scope="module")
def made(store: Store, tmp_path_factory: pytest.TempPathFactory) -> ReportFiles:
    return build_report([store], tmp_path_factory.mktemp("report"), formats=["svg"])


def test_page_is_one_file_that_asks_for_nothing_else(made: ReportFiles) -> None:
    text = made.page.read_text()
    assert len(text) < 5_000_000
    assert not re.findall(r'(?:src|href)="(?!#|data:)', text)
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "prefers-color-scheme: dark" in text


def test_page_holds_data_for_every_chart_it_shows(made: ReportFiles) -> None:
    text = made.page.read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    asked = re.findall(r'data-chart="([^"]+)"', text)
    assert sorted(asked) == sorted(data)
    assert len([id for id in asked if id.startswith("regret-")]) == 3


def test_page_says_the_suite_the_versions_and_the_verdicts(made: ReportFiles) -> None:
    text = made.page.read_text()
    assert "Quick policies on short trials." in text
    assert re.search(r"numpy \d", text)
    assert "class=notice" not in text
    assert 'role="alert"' not in text


def test_figures_and_tables_are_written_beside_the_page(made: ReportFiles) -> None:
    assert all(path.stat().st_size > 0 for path in (*made.figures, *made.tables))
    names = {path.name for path in made.figures}
    assert {"curves-tiny.svg", "sensitivity-tiny.svg", "regret-tiny-flipping-gaussian.svg"} <= names
    assert {path.suffix for path in made.tables} == {".md", ".csv", ".tex"}


def test_figures_are_the_same_bytes_when_drawn_again(made: ReportFiles, tmp_path: Path) -> None:
    bands = made.suites[0].studies[0].bands("regret")
    paths = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for path in paths:
        band_figure(bands, title="t", xlabel="x", ylabel="y", paths=[path])
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_page_says_at_the_top_what_failed_and_what_is_missing(
    broken_store: Store, tmp_path: Path
) -> None:
    text = build_report([broken_store], tmp_path, formats=[]).page.read_text()
    alert = text.index('role="alert"')
    assert alert < text.index("<h2>")
    notice = text[alert : alert + 3000]
    assert "5 failed, 20 missing" in notice
    assert "flipping-gaussian/bernoulli-ts/seed-0" in notice


def test_charts_are_thinned_evenly_when_the_page_would_grow_too_large() -> None:
    series = {"name": "a", "x": list(range(100)), "y": list(range(100))}
    chart = {"kind": "lines", "series": [series]}
    small = thinned({"c": chart}, most_numbers=50)["c"]["series"][0]
    assert small["x"] == small["y"]
    assert small["x"][0] == 0
    assert small["x"][-1] == 99
    assert len(small["x"]) <= 30
    assert thinned({"c": chart}, most_numbers=200) == {"c": chart}


def test_one_problem_at_two_lengths_gives_two_of_every_file(tmp_path: Path) -> None:
    stores = [
        fill(
            tmp_path / f"{rounds}",
            SUITE.replace("200", f"{rounds}"),
            only=("stationary-bernoulli/*ucb/seed-0",),
        )
        for rounds in (40, 80)
    ]
    made = build_report(stores, tmp_path / "report", formats=["svg"])
    for files in (made.figures, made.tables):
        assert len(set(files)) == len(files)
    names = {path.name for path in (*made.figures, *made.tables)}
    assert {f"regret-tiny-stationary-bernoulli-{n}-rounds.svg" for n in (40, 80)} <= names
    text = made.page.read_text()
    assert text.count('id="details-tiny-stationary-bernoulli-') == 2
    assert len(re.findall(r' id="([^"]+)"', text)) == len(set(re.findall(r' id="([^"]+)"', text)))
