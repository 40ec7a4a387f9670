"""Seeds as text, and streams as a tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.quick import QUICK
from tidepull.errors import ParameterError
from tidepull.experiments.grid import parse_seeds, seeds_text
from tidepull.random import Streams

seeds = st.lists(st.integers(0, 3000), min_size=1, max_size=40)


@QUICK
@given(seeds)
def test_seeds_come_back_from_their_text(given_seeds: list[int]) -> None:
    text = seeds_text(given_seeds)
    unique = tuple(sorted(set(given_seeds)))
    if len(unique) == 1:
        with pytest.raises(ValueError, match="one seed or a count"):
            parse_seeds(text)
        text = f"{text}-{text}"
    assert parse_seeds(text) == unique
    assert parse_seeds(text.replace(" ", ", ")) == unique
    assert parse_seeds(list(given_seeds)) == unique
    spans = text.split()
    edges = [int(edge) for span in spans for edge in (span.split("-")[0], span.split("-")[-1])]
    assert all(b > a + 1 for a, b in zip(edges[1::2], edges[2::2], strict=False)), (
        "no two spans touch"
    )


@QUICK
@given(
    st.one_of(
        st.text(max_size=12),
        st.none(),
        st.integers(),
        st.lists(st.text(max_size=4) | st.booleans()),
    )
)
def test_anything_else_is_a_value_error(value: object) -> None:
    try:
        parsed = parse_seeds(value)
    except ValueError:
        return
    assert parsed == tuple(sorted(set(parsed)))
    assert all(type(seed) is int and seed >= 0 for seed in parsed)


@QUICK
@given(st.integers(0, 2**64), st.lists(st.text(max_size=5), max_size=3), st.text(max_size=5))
def test_stream_depends_on_seed_and_path_alone(seed: int, path: list[str], name: str) -> None:
    streams = Streams(seed)
    for part in path:
        streams = streams.child(part)
    drawn = streams.generator(name).integers(2**62)
    assert drawn == Streams(seed, tuple(path)).generator(name).integers(2**62)
    for other in (
        Streams(seed + 1, tuple(path)).generator(name),
        streams.child("x").generator(name),
    ):
        assert drawn != other.integers(2**62)


@pytest.mark.parametrize("seed", [-1, True, 1.5, "3", None])
def test_seed_must_be_a_whole_number(seed: object) -> None:
    with pytest.raises(ParameterError, match="seed must be a whole number"):
        Streams(seed)  # type: ignore[arg-type]
