from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidepull.errors import ParameterError, StoreError
from tidepull.experiments.archive import export, summarise
from tidepull.experiments.loop import Trial
from tidepull.experiments.maintenance import check, merge
from tidepull.experiments.rows import (
    compact,
    load_rows,
    plan_of,
    read_plans,
    take_census,
    write_plan,
)
from tidepull.experiments.spec import Result, TrialSpec, attempt
from tidepull.experiments.store import Store, decode, encode, sealed

OWN = str(Path(__file__).parents[1] / "own_trivial.py")


def lever(seed: int, **parameters: Any) -> TrialSpec:
    return TrialSpec(
        problem="coins",
        policy="lever",
        policy_parameters=parameters,
        horizon=40,
        seed=seed,
        modules=(OWN,),
    )


def filled(directory: Path, seeds: range) -> tuple[Store, list[TrialSpec]]:
    store, specs = Store.create(directory), [lever(seed) for seed in seeds]
    for spec in specs:
        store.write(attempt(spec))
    return store, specs


def worst_case(n_arms: int = 25, rounds: int = 4096) -> Trial:
    """Nothing repeats: random arms, continuous rewards, gaps and optima."""
    rng = np.random.default_rng(0)
    optimal = rng.uniform(0.2, 0.5, rounds)
    gaps = rng.uniform(0, 0.5, rounds)
    return Trial(
        arms=rng.integers(n_arms, size=rounds),
        rewards=optimal - gaps + rng.normal(0, 0.05, rounds),
        regret=np.cumsum(gaps),
        optimal=optimal,
        seconds=1.0,
    )


def test_a_trial_comes_back_as_it_was_written(tmp_path: Path) -> None:
    store, (spec,) = filled(tmp_path, range(1))
    direct = attempt(spec).trial
    assert direct is not None
    stored = store.read(spec.hash)
    assert np.array_equal(stored.arms, direct.arms)
    assert np.array_equal(stored.rewards, direct.rewards)
    np.testing.assert_allclose(stored.regret, direct.regret, rtol=4e-6)
    np.testing.assert_allclose(stored.optimal, direct.optimal, rtol=4e-6)
    assert stored.diagnostics == {"learnt": 40}
    totals = store.manifest(spec.hash)["totals"]
    assert totals["reward"] == direct.rewards.sum()
    assert totals["regret"] == direct.regret[-1]


def test_4096_rounds_take_less_than_40_kb_even_when_nothing_repeats() -> None:
    trial = worst_case()
    data = encode(trial)
    assert len(data) < 40_000
    back = decode(data, seconds=1.0, remark="", diagnostics={})
    np.testing.assert_allclose(back.rewards, trial.rewards, rtol=4e-6)
    np.testing.assert_allclose(back.regret, trial.regret, rtol=4e-6)
    np.testing.assert_allclose(back.optimal, trial.optimal, rtol=4e-6)


def test_stored_bytes_are_the_same_for_the_same_spec(tmp_path: Path) -> None:
    a, (spec,) = filled(tmp_path / "a", range(1))
    b, _ = filled(tmp_path / "b", range(1))
    assert a.data_path(spec.hash).read_bytes() == b.data_path(spec.hash).read_bytes()


def test_many_arms_keep_their_numbers() -> None:
    trial = replace(worst_case(), arms=np.full(4096, 70_000))
    assert (decode(encode(trial), seconds=0, remark="", diagnostics={}).arms == 70_000).all()


@pytest.mark.parametrize(
    "damage", ["truncate", "flip", "edit totals", "not json", "no data", "resealed elsewhere"]
)
@pytest.mark.parametrize("indexed", [False, True])
def test_damage_is_found_and_left_out(tmp_path: Path, damage: str, indexed: bool) -> None:
    store, specs = filled(tmp_path, range(3))
    if indexed:
        compact(store)
    hash = specs[1].hash
    data, manifest = store.data_path(hash), store.manifest_path(hash)
    if damage == "truncate":
        data.write_bytes(data.read_bytes()[:-10])
    elif damage == "flip":
        content = bytearray(data.read_bytes())
        content[len(content) // 2] ^= 1
        data.write_bytes(content)
    elif damage == "edit totals":
        content_text = json.loads(manifest.read_text())
        content_text["totals"]["reward"] += 1
        manifest.write_text(json.dumps(content_text))
    elif damage == "not json":
        manifest.write_bytes(manifest.read_bytes()[:100])
    elif damage == "no data":
        data.unlink()
    else:
        content_text = json.loads(manifest.read_text())
        del content_text["seal"]
        manifest.write_bytes(sealed({**content_text, "hash": "0" * 32}))
    assert set(take_census(store).damaged) == {hash}
    assert set(check(store).damaged) == {hash}
    write_plan(store, plan_of("levers", "", specs))
    loaded = load_rows(store)
    assert {row.seed for row in loaded.rows} == {0, 2}
    assert list(loaded.damaged) == ["coins/lever/seed-1"]
    with pytest.raises(StoreError, match="damaged"):
        store.read(hash)
    store.write(attempt(specs[1]))
    assert not take_census(store).damaged


def test_check_finds_an_edit_that_keeps_size_and_time(tmp_path: Path) -> None:
    store, (spec,) = filled(tmp_path, range(1))
    compact(store)
    path = store.data_path(spec.hash)
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert check(store).damaged == {spec.hash: "the data file was edited"}
    assert not check(store, remove=True).good
    assert check(store).good
    assert store.hashes() == set()


def test_removal_leaves_nothing_that_belongs_to_no_trial(tmp_path: Path) -> None:
    store, specs = filled(tmp_path, range(2))
    kept = {store.manifest_path(spec.hash) for spec in specs} | {
        store.data_path(spec.hash) for spec in specs
    }
    home = store.manifest_path(specs[0].hash)
    strays = [
        home.with_name("notes.json"),
        home.with_name(f"{specs[1].hash}-copy.json"),
        tmp_path / "trials" / "zz" / f"{specs[1].hash}.json",
        tmp_path / "trials" / "zz" / "half.parquet",
        tmp_path / "trials" / "readme.txt",
    ]
    for path in strays:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}")
    being_written = home.with_name("x.json.elsewhere@1.abcd.tmp")
    being_written.write_bytes(b"")
    found = check(store, remove=True)
    assert found.sound == 2
    assert set(tmp_path.rglob("*.*")) == kept | {being_written}
    assert not (tmp_path / "trials" / "zz").exists()
    assert check(store).orphans == []


def test_index_can_be_lost_or_damaged(tmp_path: Path) -> None:
    store, specs = filled(tmp_path, range(5))
    expected = sorted(row.hash for row in load_rows(store).rows)
    assert expected == sorted(spec.hash for spec in specs)
    compact(store)
    index = tmp_path / "index.parquet"
    content = index.read_bytes()
    for broken in (
        content,
        content[:-40],
        content[: len(content) // 2],
        b"",
        content.replace(b"coins", b"conis"),
    ):
        index.write_bytes(broken)
        assert sorted(row.hash for row in load_rows(store).rows) == expected
        assert len(take_census(store).sound) == 5


def test_a_failure_is_recorded_and_forgotten_after_success(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    spec = lever(3, fail_on_seed=3)
    store.write(attempt(spec))
    (record,) = store.failures()
    assert record["labels"]["id"] == "coins/lever/seed-3"
    assert record["spec"]["policy_parameters"]["fail_on_seed"] == 3
    assert "told to fail" in record["error"]
    write_plan(store, plan_of("levers", "", [spec]))
    assert load_rows(store).failed == {
        "coins/lever/seed-3": "RuntimeError: this policy was told to fail"
    }
    trial = attempt(lever(3)).trial
    store.write(Result(spec, trial))
    assert store.failures() == []


def test_rows_carry_every_label_and_name_what_is_missing(tmp_path: Path) -> None:
    store, specs = filled(tmp_path, range(2))
    both = [*specs, replace(specs[0], name="again"), lever(7)]
    write_plan(store, plan_of("levers", "text of the suite", both))
    loaded = load_rows(store, "levers")
    assert [(row.name, row.seed) for row in loaded.rows] == [
        ("lever", 0),
        ("lever", 1),
        ("again", 0),
    ]
    assert loaded.missing == ("coins/lever/seed-7",)
    assert read_plans(store)[0].text == "text of the suite"
    with pytest.raises(StoreError, match="has no suite 'other'; it has: levers"):
        load_rows(store, "other")


def test_merge_joins_and_names_conflicts(tmp_path: Path) -> None:
    a, specs_a = filled(tmp_path / "a", range(3))
    b, specs_b = filled(tmp_path / "b", range(2, 5))
    write_plan(a, plan_of("levers", "", specs_a))
    write_plan(b, plan_of("levers", "", specs_b))
    b.data_path(specs_b[1].hash).write_bytes(b"broken")
    merged = merge(a, [b])
    assert (merged.added, merged.present, len(merged.damaged)) == (1, 1, 1)
    loaded = load_rows(a, "levers")
    assert {row.seed for row in loaded.rows} == {0, 1, 2, 4}
    assert loaded.missing == ("coins/lever/seed-3",)

    other = Store.create(tmp_path / "c")
    different = attempt(lever(0, arm=1)).trial
    other.write(Result(specs_a[0], different))
    kept = a.data_path(specs_a[0].hash).read_bytes()
    assert merge(a, [other]).conflicts == ["coins/lever/seed-0"]
    assert a.data_path(specs_a[0].hash).read_bytes() == kept


def test_merging_two_versions_of_a_suite_never_puts_both_under_one_name(tmp_path: Path) -> None:
    a, specs_a = filled(tmp_path / "a", range(2))
    edited = [lever(seed, arm=1) for seed in range(3)]
    b = Store.create(tmp_path / "b")
    for spec in edited:
        b.write(attempt(spec))
    write_plan(a, plan_of("levers", "", specs_a))
    write_plan(b, plan_of("levers", "", edited))
    merged = merge(a, [b])
    assert (merged.added, merged.renamed) == (3, ["coins/lever/seed-0", "coins/lever/seed-1"])
    planned = [row.hash for row in load_rows(a, "levers").rows]
    assert planned == [specs_a[0].hash, specs_a[1].hash, edited[2].hash]
    assert {row.hash for row in load_rows(a).rows if not row.suite} == {
        edited[0].hash,
        edited[1].hash,
    }


def test_check_finds_unreadable_plans_and_records_of_failures(tmp_path: Path) -> None:
    store, specs = filled(tmp_path, range(1))
    write_plan(store, plan_of("levers", "", specs))
    store.write(attempt(lever(3, fail_on_seed=3)))
    assert check(store).good
    plan, record = tmp_path / "plans" / "levers.parquet", next((tmp_path / "failed").glob("*.json"))
    for path in (plan, record):
        path.write_bytes(path.read_bytes()[:-9])
    assert check(store).unreadable == [plan, record]
    assert not check(store, remove=True).good
    assert check(store).good


def test_export_writes_every_format_and_the_averages(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", range(4))
    rows = load_rows(store).rows
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        assert export(rows, tmp_path / name) == 4
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 5
    (line,) = summarise(rows)
    assert line["trials"] == 4
    assert line["seeds"] == "0-3"
    assert line["reward_mean"] == pytest.approx(np.mean([row.reward for row in rows]))
    assert line["reward_std"] == pytest.approx(
        np.std([row.reward for row in rows], ddof=1), abs=1e-6
    )
    with pytest.raises(ParameterError, match="must end in"):
        export(rows, tmp_path / "t.xls")


def test_export_keeps_only_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", range(2))
    rows = sorted(load_rows(store).rows, key=lambda row: row.seed)
    export(rows, tmp_path / "t.csv", columns=["seed", "problem"])
    assert (tmp_path / "t.csv").read_text() == "seed,problem\n0,coins\n1,coins\n"
    with pytest.raises(ParameterError, match="no column 'sed'; there are: suite"):
        export(rows, tmp_path / "t.csv", columns=["sed"])


def test_a_full_disk_is_one_sentence_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, specs = filled(tmp_path, range(2))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        StoreError, match="the disk is full: free some space and run the same command again"
    ):
        store.write(attempt(lever(9)))
    monkeypatch.undo()
    assert take_census(store).sound == {spec.hash for spec in specs}
    assert check(store).leftovers == []
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_directory_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="choose another directory"):
        Store.create(tmp_path / "file")
    with pytest.raises(StoreError, match="a part of the path is a file"):
        Store.create(tmp_path / "file" / "store")
    with pytest.raises(StoreError, match="cannot write /proc/tidepull"):
        Store.create("/proc/tidepull")


def test_a_missing_store_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store at"):
        Store.open(tmp_path / "nothing")


def test_two_processes_may_write_to_one_store(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from tidepull.experiments.spec import attempt\n"
        "from tidepull.experiments.rows import compact\n"
        "from tidepull.experiments.spec import TrialSpec\n"
        "from tidepull.experiments.store import Store\n"
        f"store = Store.create({str(tmp_path)!r})\n"
        "for seed in range(40):\n"
        "    spec = TrialSpec(problem='coins', policy='lever', horizon=40, seed=seed, "
        f"modules=({OWN!r},))\n"
        "    store.write(attempt(spec))\n"
        "    if seed % 10 == 0: compact(store)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    both = [subprocess.Popen([sys.executable, "-c", script], env=environment) for _ in range(2)]
    assert [process.wait(300) for process in both] == [0, 0]
    store = Store.open(tmp_path)
    assert check(store).good
    assert take_census(store).sound == {lever(seed).hash for seed in range(40)}


def test_encoding_needs_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be decoded"):
        decode(io.BytesIO(b"nonsense").getvalue(), seconds=0, remark="", diagnostics={})
    assert list(tmp_path.iterdir()) == []
