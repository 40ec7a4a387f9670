"""`tidepull data`: both commands end to end, and their mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tidepull
from tidepull.cli.data import app
from tidepull.errors import DataError
from tidepull.problems.criteo.banners import load

runner = CliRunner()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("criteo") / "made.tsv.gz"
    result = runner.invoke(
        app, ["synthesize-criteo", "--rows", "3000", "--out", str(path), "--seed", "4"]
    )
    assert result.exit_code == 0
    assert "3,000 synthetic impressions" in result.output
    return path


def test_prepare_writes_what_was_asked_for(dataset: Path, tmp_path: Path) -> None:
    target = tmp_path / "prepared.npz"
    arguments = ["--out", str(target), "--dim", "7", "--sample", "2000", "--seed", "3"]
    result = runner.invoke(app, ["prepare-criteo", str(dataset), *arguments])
    assert result.exit_code == 0
    assert "3,000 rows read, 2,000 sampled" in result.output
    assert "synthetic Criteo" in result.output
    about = load(target).about
    assert (about["dim"], about["rows_sampled"], about["seed"]) == (7, 2000, 3)


def test_prepare_writes_into_the_cache_by_default(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert runner.invoke(app, ["prepare-criteo", str(dataset), "--dim", "5"]).exit_code == 0
    assert load(tmp_path / "tidepull" / "criteo-5.npz").dim == 5


def test_prepare_writes_nothing_when_the_file_is_truncated(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.tsv.gz").write_bytes(dataset.read_bytes()[:20_000])
    target = tmp_path / "prepared.npz"
    result = runner.invoke(
        app, ["prepare-criteo", str(tmp_path / "cut.tsv.gz"), "--out", str(target)]
    )
    assert isinstance(result.exception, DataError)
    assert not target.exists()


def test_missing_file_is_one_sentence_and_exit_code_two(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(tidepull.__file__).parents[1])}
    code = "import sys; from tidepull.cli import main; sys.argv[0] = 'tidepull'; main()"
    arguments = ["data", "prepare-criteo", str(tmp_path / "nowhere.tsv.gz")]
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("tidepull: there is no file")
    assert len(result.stderr.splitlines()) == 1
