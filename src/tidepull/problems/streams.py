"""Real streams with hours: records in which every arm's reward of every hour is known.

`docs/problems.md` defines them. `tidepull data prepare-streams` writes one file of arrays for each
(`prepare_streams.py`); the table of electricity is read as it is where it is there.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from tidepull.errors import DataError
from tidepull.parameters import Parameters, parameter
from tidepull.problems import datasets
from tidepull.problems.drift import read_only
from tidepull.problems.tables import TableWorld, WorldTable
from tidepull.random import Streams
from tidepull.types import FloatArray

StreamName = Literal[
    "electricity", "parking", "airports", "carriers", "wind", "power", "billboards", "retail",
    "prompts",
]  # fmt: skip
STREAMS: tuple[str, ...] = get_args(StreamName)

ELECTRICITY = datasets.DataFile(
    name="electricity/prices_2022_2023.csv.gz",
    sha256="89fa95adc131919fd24131ac8d14f6ef0bfa0faa474b6167f2bca0bfd198292e",
    n_bytes=0,
    url="https://raw.githubusercontent.com/HewlettPackard/green-dcc/"
    "3f6ea95cb835b89ba50b0ef76d66d14b8037643e/data/electricity_prices/standardized",
)
ZONES = ("US-CAL-CISO", "US-TEX-ERCO", "US-MIDA-PJM", "US-NY-NYIS", "AU-VIC", "ES")
"""The arms of `electricity`."""
_LEAST_PRICE, _LARGEST_PRICE = -100.0, 500.0


@dataclass(frozen=True, kw_only=True)
class StreamParameters(Parameters):
    """Parameters of `stream`."""

    name: StreamName = parameter("electricity", "the stream")


def stream(parameters: StreamParameters, _: Streams) -> TableWorld:
    """The record, the same under every seed."""
    path = path_of(parameters.name)
    return TableWorld(_prepared(path) if path.suffix == ".npz" else _electricity(path))


def stream_files(parameters: StreamParameters) -> list[Path]:
    """The file that is read; nothing where there is none, as building the problem says why."""
    try:
        return [path_of(parameters.name)]
    except DataError:
        return []


def path_of(name: str) -> Path:
    """The file of a stream in TIDEPULL_DATA, else in the cache."""
    path = datasets.find(ELECTRICITY.name) if name == "electricity" else None
    path = path or datasets.find(f"streams/{name}.npz")
    if path is None:
        raise DataError(
            f"streams/{name}.npz is not in TIDEPULL_DATA or {datasets.cache_directory()}: run "
            "tidepull data prepare-streams"
        )
    return path


@cache
def _electricity(path: Path) -> WorldTable:
    datasets.require_intact(path, ELECTRICITY)
    with gzip.open(path, "rt") as file:
        rows = np.loadtxt(file, delimiter=",", skiprows=1)
    rewards = electricity_rewards(rows[:, 1 : 1 + len(ZONES)])
    return WorldTable(read_only(rewards), read_only(rewards), read_only(rows[:, 0]))


def electricity_rewards(prices: FloatArray) -> FloatArray:
    """Minus the price, clipped to -100 and 500 USD/MWh."""
    return -np.clip(prices, _LEAST_PRICE, _LARGEST_PRICE)


@cache
def _prepared(path: Path) -> WorldTable:
    try:
        with np.load(path) as arrays:
            columns = {name: read_only(arrays[name]) for name in arrays.files}
        return WorldTable(
            columns["rewards"], columns["rewards"], columns.get("time"), columns.get("observation")
        )
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise DataError(
            f"{path} is damaged ({type(error).__name__}): remove it and run tidepull data "
            "prepare-streams"
        ) from None
