"""Contexts: what each kind of field takes, how wide it is, and that a decision is encoded alike
when it is repeated."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.quick import QUICK
from tidepull.agent.clock import Clock
from tidepull.agent.fields import REMEMBERED, Boolean, Category, Cyclic, Number, Tags, Timestamp
from tidepull.agent.schema import Schema, guess, plain_context
from tidepull.errors import ContextError, ParameterError

EVERY = {
    "age": float,
    "visits": int,
    "income": Number(flag=True),
    "device": ["phone", "desktop"],
    "country": ["de", "fr", "us"],
    "city": str,
    "shop": Category(("a", "b"), unseen=1),
    "member": bool,
    "wind": Cyclic(360),
    "since": datetime,
    "tags": list,
    "sizes": Tags(("s", "m", "l")),
}
FULL = {
    "age": 31, "visits": np.int64(3), "income": 1e4, "device": "phone", "country": "fr", "city": "Ulm", "shop": "b",
    "member": True, "wind": 90, "since": date(2026, 1, 1), "tags": ["new", "vip"], "sizes": ("l",),
}  # fmt: skip


def encode(schema: Schema, contexts: list[dict[str, Any]], at: float = 1.78e9) -> list[list[float]]:
    seen = schema.fresh()
    return [schema.encode(schema.clean(context), at, seen) for context in contexts]


def test_schema_gives_rows_of_its_width_whatever_is_missing() -> None:
    schema = Schema(EVERY, Clock())
    contexts: list[dict[str, Any]] = [FULL, {}, {"age": None}, {**FULL, "age": math.nan}]
    assert {len(row) for row in encode(schema, contexts)} == {schema.width}
    assert encode(schema, [{}])[0] == [0.0, 0.0, 0.0, 1.0] + [0.0] * (schema.width - 4)


def test_schema_is_the_same_after_json() -> None:
    schema = Schema(EVERY, Clock())
    again = Schema(json.loads(json.dumps(schema.plain())), Clock())
    assert again.fields == schema.fields
    assert encode(again, [FULL, {}]) == encode(schema, [FULL, {}])


def test_clean_contexts_are_json_and_clean_already() -> None:
    schema = Schema(EVERY, Clock())
    cleaned = schema.clean(FULL)
    assert schema.clean(json.loads(json.dumps(cleaned))) == cleaned


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"agee": 3}, "there is no field 'agee'; did you mean 'age'"),
        ({"age": "31"}, "field 'age' must be a number, got '31'"),
        ({"age": True}, "field 'age' must be a number"),
        ({"age": math.inf}, "field 'age' must be at most 1e[+]15"),
        ({"member": "yes"}, "field 'member' must be true or false"),
        ({"device": ["phone"]}, "field 'device' must be text"),
        ({"city": "x" * 2000}, "field 'city' is a string of 2,000 characters"),
        ({"tags": "new"}, "field 'tags' must be a list of texts"),
        ({"tags": [["new"]]}, "field 'tags' must be text"),
        ({"since": "long ago"}, "field 'since' must be a datetime"),
        ([("age", 3)], "context must be a dictionary, got a list"),
    ],
)
def test_schema_names_the_field_that_does_not_fit(context: Any, message: str) -> None:
    with pytest.raises(ContextError, match=message):
        Schema(EVERY, Clock()).clean(context)


@pytest.mark.parametrize("kind", [complex, "float", [], {"kind": "Nothing"}, [["a"]], 3, None])
def test_schema_refuses_kinds_that_it_does_not_know(kind: Any) -> None:
    with pytest.raises(ParameterError, match="field 'x'"):
        Schema({"x": kind}, Clock())


def test_number_is_standardised_by_what_came_so_far() -> None:
    values = np.random.default_rng(0).normal(1000, 50, 300)
    rows = encode(Schema({"x": float}, Clock()), [{"x": v} for v in values])
    assert rows[0] == [0.0]
    for n in (10, 299):
        so_far = values[: n + 1]
        assert rows[n][0] == pytest.approx((values[n] - so_far.mean()) / so_far.std(), rel=1e-9)


def test_number_follows_the_latest_values_when_they_move() -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(0, 1, 5000), rng.normal(100, 1, 5 * REMEMBERED)])
    rows = encode(Schema({"x": float}, Clock()), [{"x": v} for v in values])
    assert rows[5000] == [6.0]
    assert abs(np.mean(rows[-500:])) < 0.2


def test_constant_number_is_zero_and_never_divides_by_nothing() -> None:
    rows = encode(Schema({"x": float}, Clock()), [{"x": 1e9}] * 5)
    assert rows == [[0.0]] * 5


def test_unseen_values_take_free_columns_and_then_those_of_their_hash() -> None:
    schema = Schema({"city": Category(("ulm",), unseen=2)}, Clock())
    assert schema.width == 3
    rows = encode(schema, [{"city": c} for c in ("ulm", "bonn", "kiel", "bonn", "jena", "jena")])
    assert rows[:4] == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert rows[4] == rows[5]
    assert sum(rows[4]) == 1


def test_two_known_values_share_a_column_and_others_count_as_missing() -> None:
    rows = encode(
        Schema({"d": ["phone", "desktop"]}, Clock()), [{"d": d} for d in ("phone", "desktop", "tv")]
    )
    assert rows == [[1.0], [-1.0], [0.0]]


def test_cyclic_field_and_tags_have_length_one() -> None:
    schema = Schema({"hour": Cyclic(24), "tags": Tags(("a", "b", "c"))}, Clock())
    (row,) = encode(schema, [{"hour": 6, "tags": ["a", "c", "a"]}])
    assert row == pytest.approx([1, 0, 0.5**0.5, 0, 0.5**0.5])


def test_timestamp_tells_how_long_ago_it_was() -> None:
    schema = Schema({"since": Timestamp()}, Clock())
    rows = encode(schema, [{"since": 1.78e9 - days * 86_400} for days in (0, 1, 3, 7)])
    assert [row[0] for row in rows] == pytest.approx([0, 1, np.sqrt(1.5), 1.5 / np.sqrt(1.25)])


VALUES = st.one_of(
    st.floats(-1e6, 1e6),
    st.integers(-5, 5),
    st.booleans(),
    st.sampled_from(["a", "b", "c", "2026-01-01"]),
    st.none(),
)


@QUICK
@given(st.lists(st.dictionaries(st.sampled_from("xyz"), VALUES), max_size=20))
def test_guessed_schema_takes_the_contexts_that_it_was_guessed_from(
    contexts: list[dict[str, Any]],
) -> None:
    plain = [plain_context(context) for context in contexts]
    schema = Schema(guess(plain), Clock(), guessed=True)
    rows = encode(schema, [schema.clean(context) for context in plain])
    assert all(len(row) == schema.width and np.isfinite(row).all() for row in rows)


def test_guess_finds_every_kind() -> None:
    contexts = [plain_context(FULL), plain_context({"age": 3.5, "new": None})]
    found = {name: type(field) for name, field in guess(contexts).items()}
    assert found == {
        "age": Number, "visits": Number, "income": Number, "device": Category, "country": Category, "city": Category,
        "shop": Category, "member": Boolean, "wind": Number, "since": Timestamp, "tags": Tags, "sizes": Tags,
    }  # fmt: skip


@QUICK
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["age", "city", "tags", "hour"]), st.integers(0, 9)),
        max_size=30,
    ),
    st.data(),
)
def test_encoding_is_the_same_when_what_fields_have_seen_goes_through_json(
    given_contexts: list[dict[str, int]], data: st.DataObject
) -> None:
    schema = Schema({"age": float, "city": str, "tags": list, "hour": Cyclic(24)}, Clock())
    contexts = [
        {k: [str(v), "t"] if k == "tags" else str(v) if k == "city" else v for k, v in c.items()}
        for c in given_contexts
    ]
    whole = encode(schema, contexts)
    cut = data.draw(st.integers(0, len(contexts)))
    seen = schema.fresh()
    rows = [schema.encode(schema.clean(c), 1.78e9, seen) for c in contexts[:cut]]
    seen = json.loads(json.dumps(seen))
    rows += [schema.encode(schema.clean(c), 1.78e9, seen) for c in contexts[cut:]]
    assert rows == whole
