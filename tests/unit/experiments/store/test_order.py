"""In which order the store touches the disk, and what it says of what is not there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.experiments.store.test_store import filled, lever
from tidepull._internal.files import write_whole
from tidepull.errors import StoreError, WrongStoreError
from tidepull.experiments import maintenance
from tidepull.experiments import store as room
from tidepull.experiments.archive import export
from tidepull.experiments.loop import Trial
from tidepull.experiments.maintenance import check, differences, merge
from tidepull.experiments.rows import (
    Plan,
    compact,
    load_rows,
    plan_of,
    read_plans,
    stamp_of,
    take_census,
    write_plan,
)
from tidepull.experiments.spec import Result, attempt
from tidepull.experiments.store import Store, decode, encode, sealed, unsealed


def test_trial_exists_only_when_its_rounds_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest makes a trial exist, so that it is written last: a crash in between leaves an
    orphan."""
    result, store = attempt(lever(0)), Store.create(tmp_path)
    written: list[str] = []

    def dies_after_one(path: Path, data: bytes) -> None:
        if written:
            raise KeyboardInterrupt
        written.append(path.suffix)
        write_whole(path, data)

    monkeypatch.setattr(room, "write_whole", dies_after_one)
    with pytest.raises(KeyboardInterrupt):
        store.write(result)
    assert written == [".parquet"]
    assert store.hashes() == set()
    assert [path.suffix for path in check(store).orphans] == [".parquet"]


def test_copy_of_a_trial_exists_only_when_its_rounds_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, _ = filled(tmp_path / "a", range(1))
    written: list[str] = []
    monkeypatch.setattr(maintenance, "write_whole", lambda path, _: written.append(path.suffix))
    merge(Store.create(tmp_path / "b"), [source])
    assert written == [".parquet", ".json"]


def test_store_is_tried_out_before_any_work_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that takes a directory but no data is found out at once."""

    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(room, "write_whole", full)
    with pytest.raises(StoreError, match="disk is full"):
        Store.create(tmp_path / "deep" / "store")


def test_trying_out_leaves_nothing_behind(tmp_path: Path) -> None:
    Store.create(tmp_path / "store")
    Store.create(tmp_path / "store")
    assert list((tmp_path / "store").iterdir()) == []


def test_success_removes_the_record_of_a_failure_and_no_other(tmp_path: Path) -> None:
    store, spec, other = Store.create(tmp_path), lever(0), lever(1)
    for one in (spec, other):
        store.write(Result(one, None, error="Traceback\nValueError: no"))
    assert [record["hash"] for record in store.failures()] == sorted(
        [spec.hash, other.hash], key=lambda h: "seed-0" if h == spec.hash else "seed-1"
    )
    store.write(attempt(spec))
    assert [record["hash"] for record in store.failures()] == [other.hash]


def test_fault_of_a_trial_is_named(tmp_path: Path) -> None:
    store, (spec,) = filled(tmp_path, range(1))
    data, manifest = store.data_path(spec.hash), store.manifest_path(spec.hash)
    whole, text = data.read_bytes(), manifest.read_bytes()
    assert store.fault(spec.hash) == ""
    data.write_bytes(whole[:-3])
    assert (
        store.fault(spec.hash)
        == f"the data file has {len(whole) - 3} bytes instead of {len(whole)}"
    )
    data.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert store.fault(spec.hash) == "the data file was edited"
    with pytest.raises(StoreError, match="missing or damaged"):
        store.read(spec.hash)
    data.unlink()
    assert store.fault(spec.hash) == "the data file is missing"
    with pytest.raises(StoreError, match="missing or damaged"):
        store.read(spec.hash)
    data.write_bytes(whole)
    content = unsealed(text)
    assert content is not None
    manifest.write_bytes(sealed({**content, "hash": "0" * 32}))
    assert store.fault(spec.hash) == "the manifest is missing, unreadable or was edited"
    assert store.fault("f" * 32) == "the manifest is missing, unreadable or was edited"


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"3", b"{}", b'{"a": 1}', b'{"a": 1, "seal": "x"}', b"\xff"]
)
def test_what_is_not_sealed_is_nothing(text: bytes) -> None:
    assert unsealed(text) is None
    assert unsealed(sealed({"a": 1})) == {"a": 1}


def test_manifest_holds_totals_of_the_whole_trial(tmp_path: Path) -> None:
    trial = Trial(
        arms=np.array([0, 1]),
        rewards=np.array([0.25, 0.5]),
        regret=np.array([1.0, 1.5]),
        optimal=np.array([1.25, 1.0]),
        seconds=0.5,
        diagnostics={"deep": {"values": [np.float64(1.5), float("nan"), (2, np.int64(3))]}},
    )
    store = Store.create(tmp_path)
    store.write(Result(lever(0), trial, machine="here", cpu_seconds=2.0))
    manifest = store.manifest(lever(0).hash)
    assert manifest["totals"] == {"reward": 0.75, "regret": 1.5, "optimal": 2.25}
    assert manifest["diagnostics"] == {"deep": {"values": [1.5, "nan", [2, 3]]}}
    assert (manifest["machine"], manifest["seconds"], manifest["cpu_seconds"]) == ("here", 0.5, 2.0)
    row = load_rows(store).rows[0]
    assert (row.reward, row.regret, row.optimal) == (0.75, 1.5, 2.25)
    assert (row.suite, row.seed, row.horizon) == ("", 0, 40)


def test_numbers_keep_18_bits() -> None:
    exact = np.array([0.0, 1.0, -1.0, 262_144.0, 0.5])
    values = np.concatenate([exact, [1 + 2.0**-17, 1 + 2.0**-18, 1 + 2.0**-19, 3.3, -0.1]])
    trial = Trial(
        arms=np.array([0, 32_767, 32_768, 1, 2, 3, 4, 5, 6, 7]), rewards=values, regret=np.cumsum(values),
        optimal=values, seconds=0.0,
    )  # fmt: skip
    back = decode(encode(trial), seconds=0.0, remark="x", diagnostics={})
    np.testing.assert_array_equal(back.arms, trial.arms)
    np.testing.assert_array_equal(back.rewards[:5], exact)
    np.testing.assert_array_equal(back.rewards[5:8], [1 + 2.0**-17, 1 + 2.0**-17, 1.0])
    np.testing.assert_allclose(back.rewards, values, rtol=2.0**-18)
    assert back.remark == "x"
    with pytest.raises(StoreError, match="cannot be decoded"):
        decode(b"PAR1", seconds=0.0, remark="", diagnostics={})


def test_index_is_trusted_only_while_files_are_as_they_were(tmp_path: Path) -> None:
    store, specs = filled(tmp_path, range(3))
    assert compact(store).sound == {spec.hash for spec in specs}
    assert stamp_of(store, "0" * 32) == ""
    stamp = stamp_of(store, specs[0].hash)
    assert stamp == " ".join(
        f"{path.stat().st_size}:{path.stat().st_mtime_ns}"
        for path in (store.data_path(specs[0].hash), store.manifest_path(specs[0].hash))
    )
    store.data_path(specs[0].hash).write_bytes(b"broken")
    wanted = {spec.hash for spec in specs[:2]}
    census = take_census(store, wanted)
    assert census.sound == {specs[1].hash}
    assert list(census.damaged) == [specs[0].hash]
    assert take_census(store, trust_index=False).sound == {specs[1].hash, specs[2].hash}
    index = (tmp_path / "index.parquet").read_bytes()
    assert compact(store).sound == {specs[1].hash, specs[2].hash}
    assert (tmp_path / "index.parquet").read_bytes() != index


def test_check_removes_what_is_broken_and_nothing_else(tmp_path: Path) -> None:
    store, specs = filled(tmp_path, range(3))
    store.manifest_path(specs[0].hash).unlink()  # an orphan
    store.data_path(specs[1].hash).write_bytes(b"broken")
    store.write(Result(lever(8), None, error="ValueError: no"))
    condition = check(store)
    assert (condition.sound, len(condition.damaged), len(condition.orphans), condition.failed) == (
        1,
        1,
        1,
        1,
    )
    assert not condition.good
    assert store.data_path(specs[1].hash).exists(), "looking removes nothing"
    check(store, remove=True)
    after = check(store)
    assert (after.sound, after.damaged, after.orphans, after.failed) == (1, {}, [], 1)
    assert after.good
    (tmp_path / "failed" / "x.json").write_text("{")
    assert not check(store).good


def test_merge_counts_what_was_there_and_what_came(tmp_path: Path) -> None:
    a, specs = filled(tmp_path / "a", range(2))
    b, _ = filled(tmp_path / "b", range(1, 3))
    b.write(Result(lever(0), None, error="ValueError: no"))
    b.write(Result(lever(7), None, error="ValueError: no"))
    write_plan(b, plan_of("tiny", "text", [lever(1), lever(2)]))
    merged = merge(a, [b])
    assert (merged.added, merged.present, merged.conflicts, merged.renamed) == (1, 1, [], [])
    assert [record["hash"] for record in a.failures()] == [lever(7).hash], (
        "what is there has not failed"
    )
    assert [plan.suite for plan in read_plans(a)] == ["tiny"]
    b.data_path(specs[1].hash).write_bytes(b"broken")
    again = merge(a, [b])
    assert (again.added, again.present, list(again.damaged)) == (0, 1, [specs[1].hash])


def test_differences_between_stores_are_named(tmp_path: Path) -> None:
    a, specs = filled(tmp_path / "a", range(2))
    b, _ = filled(tmp_path / "b", range(2))
    assert differences(a, b) == []
    b.write(Result(lever(7), None, error="ValueError: no"))
    assert differences(a, b) == ["the failed trials differ"]
    write_plan(a, plan_of("tiny", "text", specs))
    assert differences(a, b) == ["the failed trials differ", "the plans differ"]
    a.write(attempt(lever(5)))
    assert differences(a, b)[0] == f"{lever(5).hash}: only in {tmp_path / 'a'}"
    assert differences(b, a)[0] == f"{lever(5).hash}: only in {tmp_path / 'a'}"
    other = attempt(specs[0])
    assert other.trial is not None
    b.write(Result(specs[0], replace(other.trial, rewards=other.trial.rewards + 1)))
    assert any(line == f"{specs[0].hash}: the rounds differ" for line in differences(a, b))
    b.data_path(specs[1].hash).unlink()
    assert any("the data file is missing" in line for line in differences(a, b))


def test_plan_is_written_anew_only_when_it_changed(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    plan = plan_of("tiny", "text", [lever(0), lever(1)])
    write_plan(store, plan)
    path = tmp_path / "plans" / "tiny.parquet"
    stamp = path.stat().st_mtime_ns, path.stat().st_ino
    write_plan(store, plan)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == stamp
    assert read_plans(store) == [plan]
    assert plan.modules
    assert [trial.id for trial in plan.trials] == ["coins/lever/seed-0", "coins/lever/seed-1"]
    write_plan(store, Plan("tiny", "other", plan.trials[:1]))
    assert [len(each.trials) for each in read_plans(store)] == [1]


def test_rows_tell_missing_damaged_and_failed_apart(tmp_path: Path) -> None:
    store, specs = filled(tmp_path, range(2))
    write_plan(store, plan_of("tiny", "text", [*specs, lever(2), lever(3)]))
    store.write(Result(lever(3), None, error="Traceback\n\nValueError: no\n"))
    store.data_path(specs[1].hash).write_bytes(b"broken")
    store.write(attempt(lever(9)))
    rows = load_rows(store)
    assert [row.seed for row in rows.rows] == [0, 9]
    assert [row.suite for row in rows.rows] == ["tiny", ""]
    assert [row.seed for row in load_rows(store, "tiny").rows] == [0]
    assert rows.missing == ("coins/lever/seed-2",)
    assert list(rows.damaged) == ["coins/lever/seed-1"]
    assert rows.failed == {"coins/lever/seed-3": "ValueError: no"}
    assert [id for id, _ in rows.lost] == [f"coins/lever/seed-{seed}" for seed in (1, 2, 3)]
    assert "problem_seed" not in rows.rows[0].code
    assert "results_version" in rows.rows[0].code
    with pytest.raises(WrongStoreError, match="has no suite 'other'; it has: tiny"):
        load_rows(store, "other")


def test_exported_averages_are_those_of_each_setting(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", range(3))
    store.write(attempt(lever(1, arm=2)))
    rows = load_rows(store).rows
    path = tmp_path / "out.jsonl"
    assert export(rows, path, by_setting=True) == 2
    lines = {line["trials"]: line for line in map(json.loads, path.read_text().splitlines())}
    alike = [row.regret for row in rows if row.policy_parameters["arm"] is None]
    assert lines[3]["seeds"] == "0-2"
    assert lines[3]["regret_mean"] == pytest.approx(np.mean(alike), abs=1e-6)
    assert lines[3]["regret_std"] == pytest.approx(np.std(alike, ddof=1), abs=1e-6)
    assert lines[1]["regret_std"] is None
    assert export([], tmp_path / "empty.csv") == 0
