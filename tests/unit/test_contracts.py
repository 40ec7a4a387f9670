"""The small parts that everything stands on: seeds, parameters, snapshots, registry."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from tidepull import state as snapshots
from tidepull.errors import ParameterError, SnapshotError, UnknownIdError
from tidepull.parameters import NoParameters, Parameters, describe, parameter
from tidepull.random import Streams
from tidepull.registry import Entry, Registry


@dataclass(frozen=True, kw_only=True)
class Sample(Parameters):
    window: int = parameter(10, "rounds", ge=1)
    discount: float = parameter(0.9, "weight", gt=0, le=1)
    units: tuple[int, ...] = parameter((32, 32), "layers", ge=1)
    variant: Literal["paper", "code"] = parameter("paper", "which")
    noise: float | Literal["infer"] | None = parameter(None, "noise", gt=0)
    start: Literal["cold", "warm"] = parameter("cold", "how", stored_as={"cold": "freezing"})


def test_streams_give_equal_numbers_for_equal_paths_and_others_otherwise() -> None:
    first = Streams(3).child("problem").generator("noise").random(5)
    again = Streams(3).child("problem").generator("noise").random(5)
    other = Streams(3).child("policy").generator("noise").random(5)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_renamed_parameter_takes_both_names_and_is_stored_under_the_earlier_one() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Renamed(Parameters):
        share: float = parameter(0.5, "which", earlier_name="wild")

    assert Renamed.from_mapping({"wild": 0.2}) == Renamed.from_mapping({"share": 0.2})
    assert Renamed(share=0.2).to_mapping() == {"wild": 0.2}


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_streams_refuse_a_seed_that_is_not_a_natural_number(seed: Any) -> None:
    with pytest.raises(ParameterError, match="seed"):
        Streams(seed)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"windw": 3}, "x: there is no parameter 'windw' .did you mean 'window'"),
        ({"window": 0}, "window must be ≥ 1, got 0"),
        ({"window": 2.5}, "window must be a whole number, got 2.5"),
        ({"window": True}, "window must be a whole number"),
        ({"discount": float("nan")}, "discount must be finite"),
        ({"discount": 1.5}, "discount must be ≤ 1"),
        ({"window": 10**400}, "window must be finite"),
        ({"units": (3, 0)}, "units must be ≥ 1"),
        ({"units": 3}, "units must be a list of whole number"),
        ({"variant": "other"}, "variant must be a 'paper' or 'code', got 'other'"),
        ({"noise": "guess"}, "noise must be"),
    ],
)
def test_parameters_name_the_field_when_a_value_is_wrong(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        Sample.from_mapping(values, owner="x")


def test_parameters_take_plain_values_when_they_mean_the_same() -> None:
    made = Sample.from_mapping(
        {"window": 3.0, "discount": 1, "units": [4, np.int64(5)], "noise": "infer"}
    )
    assert made == Sample(window=3, discount=1.0, units=(4, 5), noise="infer")
    assert Sample.from_mapping(made.to_mapping()) == made


def test_describe_shows_default_kind_and_range_of_every_field() -> None:
    docs = {doc.name: doc for doc in describe(Sample)}
    assert docs["discount"].range == "> 0, ≤ 1"
    assert docs["noise"].default == "auto"
    assert docs["variant"].kind == "'paper' or 'code'"


def test_snapshot_round_trips_through_bytes_when_nested() -> None:
    rng = np.random.default_rng(1)
    state = {
        "rng": snapshots.generator_state(rng),
        "parts": [{"x": np.arange(3.0)}, None, 1.5, "a"],
        "n": 2**80,
    }
    back = snapshots.load(snapshots.dump(state))
    assert np.array_equal(back["parts"][0]["x"], np.arange(3.0))
    assert back["n"] == 2**80
    expected = rng.random(4)
    fresh = np.random.default_rng(99)
    snapshots.restore_generator(fresh, back["rng"])
    assert np.array_equal(fresh.random(4), expected)


def test_snapshot_refuses_objects_and_damaged_bytes() -> None:
    with pytest.raises(SnapshotError, match="JSON values and arrays only"):
        snapshots.dump({"bad": object()})
    data = snapshots.dump({"x": np.arange(100.0)})
    with pytest.raises(SnapshotError, match="damaged"):
        snapshots.load(data[: len(data) // 2])


def test_registry_refuses_duplicates_and_suggests_the_nearest_id() -> None:
    registry: Registry[object] = Registry("policy")
    registry.add(Entry("sw-ucb", "windowed", Sample, object))
    with pytest.raises(ParameterError, match="already"):
        registry.add(Entry("sw-ucb", "again", NoParameters, object))
    with pytest.raises(UnknownIdError, match="did you mean 'sw-ucb'"):
        registry.entry("sw-ubc")


def test_import_of_the_package_stays_light() -> None:
    heavy = ("numba", "scipy", "matplotlib", "ray", "torch")
    code = f"import sys, tidepull; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
