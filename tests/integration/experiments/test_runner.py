from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from tidepull.errors import InputError, StoreError
from tidepull.experiments.executors import InProcess, LocalProcesses
from tidepull.experiments.maintenance import check, differences
from tidepull.experiments.rows import compact, load_rows
from tidepull.experiments.runner import estimator, prepare, start, sweep
from tidepull.experiments.spec import Result, TrialSpec
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite, parse_suite
from tidepull.protocols import Executor

HERE = Path(__file__).parents[2] / "unit" / "experiments"
TEXT = """
name = "levers"
seeds = "0-3"
horizon = 30
modules = ["own_trivial.py"]
[[problems]]
id = "coins"
[[problems]]
id = "few-coins"
[[policies]]
name = "lever"
grid = { arm = [0, 1] }
[[policies]]
name = "first"
id = "lever"
parameters = { arm = 0 }
[[policies]]
name = "brittle"
id = "lever"
parameters = { fail_on_seed = 2 }
"""


class Backwards:
    """The same trials in the opposite order."""

    def run(self, specs: Iterable[TrialSpec]) -> Iterator[Result]:
        return InProcess().run(reversed(list(specs)))


@pytest.fixture
def suite() -> Suite:
    return parse_suite(TEXT, where="levers.toml", folder=HERE)


def run(
    suite: Suite,
    directory: Path,
    executor: Executor,
    *,
    most: int = 10**9,
    retry_failed: bool = False,
) -> int:
    store = Store.create(directory)
    work = prepare(suite, store, retry_failed=retry_failed)
    progress = start(suite, store, work)
    results = sweep(work, store, executor, progress)
    count = sum(1 for _, _ in zip(range(most), results, strict=False))
    results.close()  # type: ignore[attr-defined]
    return count


def test_results_are_the_same_bytes_whatever_the_workers_order_or_interruptions(
    suite: Suite, tmp_path: Path
) -> None:
    assert run(suite, tmp_path / "a", InProcess()) == 24
    assert run(suite, tmp_path / "b", LocalProcesses(3)) == 24
    # What had finished ahead of an interruption is kept too, so how many are left each time is a
    # matter of speed.
    assert run(suite, tmp_path / "c", Backwards(), most=7) == 7
    assert run(suite, tmp_path / "c", Backwards(), most=3) <= 3
    assert run(suite, tmp_path / "c", LocalProcesses(2)) <= 17
    a, b, c = (Store.open(tmp_path / name) for name in "abc")
    assert differences(a, b) == []
    assert differences(a, c) == []
    assert check(a).good


def test_a_trial_under_two_labels_runs_once_and_counts_twice(suite: Suite, tmp_path: Path) -> None:
    run(suite, tmp_path, InProcess())
    rows = load_rows(Store.open(tmp_path), "levers").rows
    names = sorted(row.name for row in rows if row.problem == "coins" and row.seed == 0)
    assert names == ["brittle", "first", "lever", "lever"]
    assert len(Store.open(tmp_path).hashes()) == 22


def test_failures_are_kept_and_only_retried_when_asked(suite: Suite, tmp_path: Path) -> None:
    run(suite, tmp_path, InProcess())
    store = Store.open(tmp_path)
    work = prepare(suite, store)
    assert work.todo == ()
    assert work.failed_before == ("coins/brittle/seed-2", "few-coins/brittle/seed-2")
    assert [spec.id for spec in prepare(suite, store, retry_failed=True).todo] == list(
        work.failed_before
    )
    assert run(suite, tmp_path, InProcess(), retry_failed=True) == 2


def test_damaged_trials_run_again(suite: Suite, tmp_path: Path) -> None:
    run(suite, tmp_path / "a", InProcess())
    run(suite, tmp_path / "b", InProcess())
    store = Store.open(tmp_path / "b")
    compact(store)
    first, second = suite.specs[0].hash, suite.specs[1].hash
    store.data_path(first).write_bytes(b"cut")
    store.manifest_path(second).write_text(json.dumps({"edited": True}))
    work = prepare(suite, store)
    assert sorted(work.damaged) == sorted([suite.specs[0].id, suite.specs[1].id])
    assert run(suite, tmp_path / "b", InProcess()) == 2
    assert differences(Store.open(tmp_path / "a"), store) == []


def test_only_keeps_to_a_pattern_and_names_a_useless_one(suite: Suite, tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    work = prepare(suite, store, only=["few-coins/lever/*", "coins/first/seed-3"])
    assert len(work.todo) == 9
    with pytest.raises(
        InputError,
        match=r"no trial of levers fits nothing\*; ids look like coins/lever/arm=0/seed-0",
    ):
        prepare(suite, store, only=["nothing*"])


def test_results_that_reached_the_driver_are_kept_when_it_is_interrupted(
    suite: Suite, tmp_path: Path
) -> None:
    class Interrupted:
        def run(self, specs: Iterable[TrialSpec]) -> Iterator[Result]:
            yield from islice(InProcess().run(specs), 5)
            raise KeyboardInterrupt

    store = Store.create(tmp_path)
    work = prepare(suite, store)
    progress = start(suite, store, work)
    with pytest.raises(KeyboardInterrupt):
        list(sweep(work, store, Interrupted(), progress))
    assert progress.done == 5
    assert len(store.hashes()) == 5


def test_a_full_disk_stops_the_sweep_with_one_sentence(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(tmp_path)
    work = prepare(suite, store)
    progress = start(suite, store, work)
    write, calls = os.fsync, iter(range(100))

    def fill_up(file: int) -> None:
        if next(calls) >= 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(file)

    monkeypatch.setattr(os, "fsync", fill_up)
    with pytest.raises(StoreError, match="the disk is full"):
        list(sweep(work, store, InProcess(), progress))
    monkeypatch.undo()
    assert check(store).sound == progress.done > 0
    assert len(prepare(suite, store).todo) == work.total - progress.done


def test_time_left_is_known_once_something_alike_was_measured(suite: Suite, tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    work = prepare(suite, store)
    assert estimator(store, work).seconds_left() == (0.0, 24)
    run(suite, tmp_path, InProcess(), most=4)
    work = prepare(suite, store)
    seconds, unknown = estimator(store, work).seconds_left()
    assert seconds > 0
    assert unknown == 0


def test_what_a_crash_left_behind_is_cleared_at_the_next_start(
    suite: Suite, tmp_path: Path
) -> None:
    store = Store.create(tmp_path)
    (tmp_path / "trials" / "ab").mkdir(parents=True)
    dead = tmp_path / "trials" / "ab" / "abc.json.nohost@1.0123.tmp"
    gone = tmp_path / "trials" / "ab" / f"abc.json.{socket.gethostname()}@4194999.0123.tmp"
    for path in (dead, gone):
        path.write_bytes(b"half")
    run(suite, tmp_path, InProcess())
    assert dead.exists()
    assert not gone.exists()
    assert check(store).good
