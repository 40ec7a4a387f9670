"""Stores: whatever was written comes back, and whatever happens to the bytes is found out."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.quick import QUICK
from tidepull.errors import StoreError
from tidepull.experiments.loop import Trial
from tidepull.experiments.maintenance import check, differences, merge
from tidepull.experiments.rows import compact, load_rows, take_census
from tidepull.experiments.spec import Result, TrialSpec
from tidepull.experiments.store import Store, decode, encode, sealed, unsealed

numbers = st.floats(-1e6, 1e6, width=32)
rounds = st.lists(
    st.tuples(st.integers(0, 70_000), numbers, st.floats(0, 1e3, width=32)), min_size=1, max_size=30
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e300, 1e300) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def spec(seed: int) -> TrialSpec:
    return TrialSpec(problem="stationary-bernoulli", policy="random", horizon=5, seed=seed)


def trial(of: list[tuple[int, float, float]]) -> Trial:
    arms, rewards, gaps = (np.array(column) for column in zip(*of, strict=True))
    return Trial(
        arms=arms, rewards=rewards, regret=np.cumsum(gaps), optimal=rewards + gaps, seconds=0.5
    )


@QUICK
@given(rounds)
def test_rounds_come_back_from_their_file(of: list[tuple[int, float, float]]) -> None:
    given_trial = trial(of)
    back = decode(encode(given_trial), seconds=0.5, remark="r", diagnostics={"d": 1})
    np.testing.assert_array_equal(back.arms, given_trial.arms)
    np.testing.assert_allclose(back.rewards, given_trial.rewards, rtol=4e-6, atol=1e-38)
    np.testing.assert_allclose(back.optimal, given_trial.optimal, rtol=4e-6, atol=1e-38)
    np.testing.assert_allclose(back.regret, given_trial.regret, rtol=4e-6, atol=1e-38)
    assert (back.remark, back.diagnostics) == ("r", {"d": 1})
    assert encode(back) == encode(decode(encode(back), seconds=0.5, remark="", diagnostics={}))


@QUICK
@given(st.dictionaries(st.text().filter(lambda name: name != "seal"), plain, max_size=4), st.data())
def test_seal_breaks_with_any_byte(content: dict[str, object], data: st.DataObject) -> None:
    text = sealed(content)
    assert unsealed(text) == content
    place = data.draw(st.integers(0, len(text) - 1))
    other = bytearray(text)
    other[place] ^= data.draw(st.integers(1, 255))
    assert unsealed(bytes(other)) in (None, content), "white space may differ, and nothing else"
    assert unsealed(text[:place]) in (None, content)


@settings(QUICK, max_examples=20)
@given(st.lists(rounds, min_size=1, max_size=3), st.data())
def test_any_damage_to_a_stored_trial_is_found(
    trials: list[list[tuple[int, float, float]]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(folder)
        for seed, of in enumerate(trials):
            store.write(Result(spec(seed), trial(of), machine="here"))
        if data.draw(st.booleans()):
            compact(store)
        victim = data.draw(st.integers(0, len(trials) - 1))
        path = data.draw(st.sampled_from([store.data_path, store.manifest_path]))(spec(victim).hash)
        content = bytearray(path.read_bytes())
        at = data.draw(st.integers(0, len(content) - 2))
        damaged = (
            bytes(content[:at])
            if data.draw(st.booleans())
            else bytes(content[:at] + b"~" + content[at + 2 :])
        )
        path.write_bytes(damaged)
        hashes = {spec(seed).hash for seed in range(len(trials))}
        census = take_census(store)
        assert census.sound | set(census.damaged) == hashes
        assert set(census.damaged) == {spec(victim).hash}
        assert len(load_rows(store).rows) == len(trials) - 1
        try:
            store.read(spec(victim).hash)
        except StoreError:
            pass
        else:
            raise AssertionError("a damaged trial was read")
        check(store, remove=True)
        assert check(store).good
        assert store.hashes() == hashes - {spec(victim).hash}


@QUICK
@given(
    st.dictionaries(st.integers(0, 5), rounds, max_size=4),
    st.sets(st.integers(0, 5)),
    st.sets(st.integers(0, 5)),
)
def test_merging_is_the_union_in_any_order(
    trials: dict[int, list[tuple[int, float, float]]], first: set[int], second: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stores = []
        for name, mine in (("a", first), ("b", second)):
            stores.append(Store.create(Path(folder) / name))
            for seed in sorted(mine & set(trials)):
                stores[-1].write(Result(spec(seed), trial(trials[seed]), machine=name))
        a, b = stores
        one, two = (Store.create(Path(folder) / name) for name in ("ab", "ba"))
        merged = merge(one, [a, b])
        merge(two, [b, a])
        assert differences(one, two) == []
        assert one.hashes() == a.hashes() | b.hashes()
        assert merged.added == len(one.hashes())
        assert merged.present == len(a.hashes() & b.hashes())
        again = merge(one, [a, b])
        assert (again.added, again.conflicts) == (0, [])
