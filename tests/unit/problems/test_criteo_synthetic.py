"""The made-up file: schema, cardinalities, click rate, repeatability."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tidepull.errors import ParameterError, StoreError
from tidepull.problems.criteo import prepare
from tidepull.problems.criteo.dataset import COLUMNS, FEATURES
from tidepull.problems.criteo.prepare import (
    CARDINALITIES,
    CLICK_RATE,
    Columns,
    feature_rows,
    impressions,
    write_synthetic,
)


@pytest.fixture(scope="module")
def drawn() -> Columns:
    blocks = list(impressions(100_000, seed=0))
    return {name: np.concatenate([block[name] for block in blocks]) for name in COLUMNS}


def test_impressions_have_the_published_cardinalities(drawn: Columns) -> None:
    for name, count in CARDINALITIES.items():
        distinct = len(np.unique(drawn[name]))
        assert distinct <= count
        assert distinct >= (0.99 if name != "cat7" else 0.4) * count


def test_impressions_are_clicked_at_the_published_rate(drawn: Columns) -> None:
    standard_error = np.sqrt(CLICK_RATE * (1 - CLICK_RATE) / 100_000)
    assert abs(drawn["click"].mean() - CLICK_RATE) < 5 * standard_error


def test_click_rate_depends_on_the_features(drawn: Columns) -> None:
    for name in FEATURES:
        values, inverse, counts = np.unique(drawn[name], return_inverse=True, return_counts=True)
        rates = np.bincount(inverse, drawn["click"]) / counts
        popular = counts > 500
        assert len(values[popular]) > 1
        chance = np.sqrt(CLICK_RATE * (1 - CLICK_RATE) / counts[popular].min())
        assert rates[popular].std() > chance


def test_columns_tell_one_story(drawn: Columns) -> None:
    converted = drawn["conversion"] == 1
    assert 0.03 < converted.mean() < 0.08
    assert (drawn["conversion_timestamp"][converted] > drawn["timestamp"][converted]).all()
    for name in ("conversion_timestamp", "conversion_id", "click_pos", "click_nb"):
        assert (drawn[name][~converted] == -1).all()
    assert (drawn["attribution"] <= drawn["conversion"] * drawn["click"]).all()
    led = drawn["click_nb"] > 0
    assert (drawn["click_pos"][led] < drawn["click_nb"][led]).all()
    assert (np.diff(drawn["timestamp"]) >= 0).all()


def test_feature_rows_are_the_same_impressions() -> None:
    block = next(impressions(500, seed=3))
    rows = next(feature_rows(500, seed=3))
    np.testing.assert_array_equal(rows.categories.T, [block[name] for name in FEATURES])
    np.testing.assert_array_equal(rows.clicked, block["click"] == 1)


def test_file_has_the_published_schema(tmp_path: Path) -> None:
    write_synthetic(tmp_path / "file.tsv.gz", rows=300, seed=0)
    with gzip.open(tmp_path / "file.tsv.gz", "rt") as file:
        header, *lines = file.read().splitlines()
    assert tuple(header.split("\t")) == COLUMNS
    assert len(lines) == 300
    block = next(impressions(300, seed=0))
    for name, column in zip(
        COLUMNS, zip(*[line.split("\t") for line in lines], strict=True), strict=True
    ):
        np.testing.assert_array_equal(np.array(column, float), block[name])


def test_file_has_the_same_bytes_for_the_same_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        write_synthetic(tmp_path / name, rows=400, seed=seed)
    first, again, other = ((tmp_path / name).read_bytes() for name in "abc")
    assert first == again != other


def test_write_reports_every_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "BLOCK", 1000)
    heard: list[int] = []
    write_synthetic(tmp_path / "file", rows=2500, seed=0, on_rows=heard.append)
    assert heard == [1000, 2000, 2500]
    assert all(before < after for before, after in pairwise(heard))


def test_write_leaves_the_old_file_when_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.tsv.gz"
    path.write_bytes(b"old")

    def interrupted(rows: int, *, seed: int) -> object:
        yield from impressions(rows, seed=seed)
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare, "impressions", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_synthetic(path, rows=100, seed=0)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_refuses_no_rows(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="rows must be at least 1"):
        write_synthetic(tmp_path / "file", rows=0, seed=0)


def test_write_names_the_file_when_the_place_is_impossible(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(
        StoreError, match=r"cannot write .*file\.tsv\.gz: a part of the path is a file"
    ):
        write_synthetic(tmp_path / "taken" / "file.tsv.gz", rows=10, seed=0)
