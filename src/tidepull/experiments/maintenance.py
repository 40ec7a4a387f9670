"""Looking after a store: check every byte, clear what crashes left behind, join stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tidepull._internal.files import TEMPORARY, abandoned, explained, read_whole, write_whole
from tidepull.errors import StoreError
from tidepull.experiments import rows
from tidepull.experiments.store import CIRCUMSTANCES, Store


@dataclass(frozen=True, slots=True)
class StoreCondition:
    """The state of a store after every byte was read; `unreadable` are plans and records of
    failures, `orphans` files that belong to no trial, `leftovers` temporary ones of writers that
    are gone."""

    sound: int
    damaged: dict[str, str]
    orphans: list[Path]
    leftovers: list[Path]
    failed: int
    unreadable: list[Path]

    @property
    def good(self) -> bool:
        """Nothing damaged; orphans and leftovers do no harm."""
        return not self.damaged and not self.unreadable


@dataclass(slots=True)
class MergeResult:
    """What a merge did; `conflicts` are trials that came out differently on two machines, `renamed`
    those whose name stands for another trial here (an edited suite or module): they are copied and
    belong to no suite."""

    added: int = 0
    present: int = 0
    damaged: dict[str, str] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)
    renamed: list[str] = field(default_factory=list)


def check(store: Store, *, remove: bool = False) -> StoreCondition:
    """Read and verify everything; with `remove`, delete what is damaged, orphaned or left over."""
    census = rows.take_census(store, trust_index=False)
    manifests = store.hashes()
    with explained("read", store.directory):
        files = [path for path in (store.directory / "trials").rglob("*") if not path.is_dir()]
        files = [path for path in files if path.suffix != TEMPORARY]  # somebody may be writing
    leftovers = abandoned(store.directory)
    known = {
        path for hash in manifests for path in (store.manifest_path(hash), store.data_path(hash))
    }
    orphans = sorted(set(files) - known)
    condition = StoreCondition(
        sound=len(census.sound),
        damaged=census.damaged,
        orphans=orphans,
        leftovers=leftovers,
        failed=len(store.failures()),
        unreadable=[*rows.unreadable_plans(store), *store.unreadable_failures()],
    )
    if remove:
        doomed = [*orphans, *leftovers, *condition.unreadable]
        for hash in census.damaged:
            doomed += [store.manifest_path(hash), store.data_path(hash)]
        with explained("remove", store.directory):
            for path in doomed:
                path.unlink(missing_ok=True)
            for folder in (store.directory / "trials").glob("*/"):
                with suppress(OSError):  # not empty
                    folder.rmdir()
    return condition


def merge(into: Store, others: Iterable[Store]) -> MergeResult:
    """Copy into the first store what the others have and it lacks; every trial is verified on the
    way."""
    merged = MergeResult()
    here = rows.take_census(into)
    for other in others:
        there = rows.take_census(other)
        merged.damaged.update(there.damaged)
        for hash in sorted(there.sound):
            if hash not in here.sound:
                _copy(other, into, hash)
                here.sound.add(hash)
                merged.added += 1
            elif _agree(into, other, hash):
                merged.present += 1
            else:
                merged.conflicts.append(str(into.manifest(hash)["labels"]["id"]))
        _copy_failures(other, into, here)
        merged.renamed += _join_plans(other, into)
    return merged


def differences(a: Store, b: Store) -> list[str]:
    """In what two stores differ apart from times and machines; empty when they hold the same
    results."""
    sentences = [
        f"{hash}: only in {store.directory}"
        for store, other in ((a, b), (b, a))
        for hash in sorted(store.hashes() - other.hashes())
    ]
    for hash in sorted(a.hashes() & b.hashes()):
        faults = [f"{store.directory}: {fault}" for store in (a, b) if (fault := store.fault(hash))]
        if faults:
            sentences.append(f"{hash}: {'; '.join(faults)}")
        elif a.data_path(hash).read_bytes() != b.data_path(hash).read_bytes():
            sentences.append(f"{hash}: the rounds differ")
        elif _lasting(a.manifest(hash)) != _lasting(b.manifest(hash)):
            sentences.append(f"{hash}: the manifests differ")
    for what, ours, theirs in (
        ("failed trials", *([_lasting(record) for record in store.failures()] for store in (a, b))),
        ("plans", rows.read_plans(a), rows.read_plans(b)),
    ):
        if ours != theirs:
            sentences.append(f"the {what} differ")
    return sentences


def _lasting(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key not in CIRCUMSTANCES}


def _copy(source: Store, target: Store, hash: str) -> None:
    for path in (source.data_path(hash), source.manifest_path(hash)):
        data = read_whole(path)
        if data is None:
            raise StoreError(f"{path} vanished while it was being copied; merge again")
        write_whole(target.directory / path.relative_to(source.directory), data)
    with suppress(FileNotFoundError):
        target.failure_path(hash).unlink()


def _agree(a: Store, b: Store, hash: str) -> bool:
    if a.manifest(hash)["data"]["sha256"] == b.manifest(hash)["data"]["sha256"]:
        return True
    # Other versions of pyarrow may pack the same rounds into other bytes.
    first, second = a.read(hash), b.read(hash)
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("arms", "rewards", "regret", "optimal")
    )


def _copy_failures(source: Store, target: Store, here: rows.Census) -> None:
    for record in source.failures():
        hash = record["hash"]
        if hash not in here.sound:
            write_whole(target.failure_path(hash), read_whole(source.failure_path(hash)) or b"")


def _join_plans(source: Store, target: Store) -> list[str]:
    """One plan of both; where a name stands for two trials the first is kept, never both. Returns
    the others."""
    own = {plan.suite: plan for plan in rows.read_plans(target)}
    renamed: list[str] = []
    for plan in rows.read_plans(source):
        first = own.get(plan.suite, plan)
        trials: dict[str, rows.Planned] = {}
        for trial in (*first.trials, *plan.trials):
            first_trial = trials.setdefault(trial.id, trial)
            renamed += [trial.id] if first_trial.hash != trial.hash else []
        rows.write_plan(
            target, rows.Plan(plan.suite, first.text, tuple(trials.values()), first.modules)
        )
    return renamed
