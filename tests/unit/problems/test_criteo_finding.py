"""Which prepared file is used, and the synthetic one that is made once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tidepull
from tidepull.errors import DataError, StoreError
from tidepull.experiments.loop import run_trial
from tidepull.problems import build_problem
from tidepull.problems.criteo import banners
from tidepull.problems.criteo.banners import Prepared, find_prepared, prepared_name, save
from tidepull.problems.criteo.prepare import feature_rows, prepare_blocks


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TIDEPULL_DATA", raising=False)
    monkeypatch.setattr(banners, "SYNTHETIC_ROWS", 2000)
    return tmp_path / "cache" / "tidepull"


@pytest.fixture(scope="module")
def real() -> Prepared:
    prepared = prepare_blocks(feature_rows(2000, seed=5), dim=4, sample=2000)
    return replace(prepared, about=prepared.about | {"synthetic": False})


def with_theta(prepared: Prepared, first: float) -> Prepared:
    return replace(prepared, theta=np.array([first, 0.0, 0.0, 0.0]))


def test_path_comes_before_data_directory_before_cache_before_synthetic(
    real: Prepared, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_prepared(None, 4).synthetic
    save(with_theta(real, 1.0), cache / prepared_name(4))
    assert find_prepared(None, 4).theta[0] == 1.0
    save(with_theta(real, 2.0), tmp_path / "data" / prepared_name(4))
    assert find_prepared(None, 4).theta[0] == 1.0
    monkeypatch.setenv("TIDEPULL_DATA", str(tmp_path / "data"))
    assert find_prepared(None, 4).theta[0] == 2.0
    save(with_theta(real, 3.0), tmp_path / "mine.npz")
    assert find_prepared(str(tmp_path / "mine.npz"), 4).theta[0] == 3.0
    assert find_prepared(None, 3).synthetic


def test_missing_path_is_an_error_and_not_the_synthetic_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no prepared Criteo file"):
        find_prepared(str(tmp_path / "nowhere.npz"), 4)


def test_synthetic_file_is_made_once(cache: Path) -> None:
    first = find_prepared(None, 4)
    (file,) = cache.iterdir()
    made = file.stat().st_mtime_ns
    again = find_prepared(None, 4)
    assert file.stat().st_mtime_ns == made
    np.testing.assert_array_equal(first.clicked, again.clicked)


def test_damaged_synthetic_file_is_refused_and_made_anew_once_deleted(cache: Path) -> None:
    find_prepared(None, 4)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    with pytest.raises(DataError, match=r"criteo-synthetic-1-4\.npz .*damaged"):
        build_problem(("criteo-flipping", {"dim": 4}), seed=0)
    file.unlink()
    find_prepared(None, 4)
    assert file.read_bytes() == whole


def test_impossible_cache_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(StoreError, match="cannot write .*XDG_CACHE_HOME"):
        find_prepared(None, 4)


def test_processes_that_start_at_once_read_the_same(cache: Path) -> None:
    code = (
        "from tidepull.problems.criteo import banners\n"
        "banners.SYNTHETIC_ROWS = 20_000\n"
        "print(input())\n"
        "prepared = banners.find_prepared(None, 6)\n"
        "import hashlib; print(hashlib.sha256(prepared.clicked.tobytes()).hexdigest())\n"
    )
    source = str(Path(tidepull.__file__).parents[1])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": source},
        )
        for _ in range(4)
    ]  # fmt: skip
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate()[0].split() for process in started]
    assert [process.returncode for process in started] == [0, 0, 0, 0]
    assert len({output[1] for output in outputs}) == 1
    assert [file.name for file in cache.iterdir()] == ["criteo-synthetic-1-6.npz"]


def test_trial_carries_the_label() -> None:
    class First:
        def choose(self, context: object) -> int:
            return 0 if context is not None else 1

        def learn(self, event: object) -> None:
            del event

    trial = run_trial(("criteo-partial-flip", {"dim": 4}), First(), horizon=5)
    assert trial.remark == "synthetic Criteo"


def test_synthetic_impressions_are_those_of_their_version() -> None:
    """When this fails, raise `SYNTHETIC_VERSION` and write down the new hash."""
    rows = next(feature_rows(2000, seed=0))
    digest = hashlib.sha256(rows.categories.tobytes() + rows.clicked.tobytes()).hexdigest()
    assert (banners.SYNTHETIC_VERSION, digest) == (
        1,
        "b8fdfa93e321c0f589fe606f2dcfb6c4318a276ac5c68535d98e7629cdcae6e4",
    )
