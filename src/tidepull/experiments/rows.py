"""What a store holds: the index of sound manifests, plans of suites, and tidy rows with the totals
of each trial.

An entry of the index counts only while size and time of change of its two files are those at which
their checksums were verified; every other trial is verified anew. The index can be deleted at any
time.

A plan is what a suite asked for: every trial's hash under its names, and the suite's own text. One
trial may have several names (the best setting of a grid may be the default one): results belong to
hashes, names to plans.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from tidepull._internal.files import explained, read_whole, replacing, write_whole
from tidepull.errors import StoreError, WrongStoreError
from tidepull.experiments.delay import AT_ONCE, delay_slug
from tidepull.experiments.grid import searched_suite
from tidepull.experiments.spec import TrialSpec, canonical
from tidepull.experiments.store import Store, arrow, names_of

_INDEX_COLUMNS = ("hash", "stamp", "manifest")
_BATCH = 2048

Indexed: TypeAlias = tuple[str, str, str]


@dataclass(slots=True)
class Census:
    """Which trials of a store can be used, and what is wrong with the others (hash to reason)."""

    sound: set[str] = field(default_factory=set)
    damaged: dict[str, str] = field(default_factory=dict)


def take_census(
    store: Store, wanted: Container[str] | None = None, *, trust_index: bool = True
) -> Census:
    """Verify every trial, or the wanted ones only; without the index, every byte is read."""
    known: dict[str, str] = dict(_indexed(store, ("hash", "stamp"))) if trust_index else {}
    census = Census()
    for hash in store.hashes():
        if wanted is not None and hash not in wanted:
            continue
        if hash in known and known[hash] == stamp_of(store, hash):
            census.sound.add(hash)
        elif fault := store.fault(hash):
            census.damaged[hash] = fault
        else:
            census.sound.add(hash)
    return census


def entries(store: Store, census: Census) -> Iterator[Indexed]:
    """Hash, stamp and manifest of every sound trial; `census` fills as the iteration goes on."""
    left = store.hashes()
    for hash, stamp, manifest in _indexed(store, _INDEX_COLUMNS):
        if hash in left and stamp == stamp_of(store, hash):
            left.remove(hash)
            census.sound.add(hash)
            yield hash, stamp, manifest
    for hash in sorted(left):
        stamp = stamp_of(store, hash)
        if fault := store.fault(hash):
            census.damaged[hash] = fault
            continue
        census.sound.add(hash)
        yield hash, stamp, (read_whole(store.manifest_path(hash)) or b"").decode()


def compact(store: Store) -> Census:
    """Write the index anew, in little memory whatever the size of the store."""
    pa, pq = arrow()
    census = Census()
    schema = pa.schema([pa.field(name, pa.string(), nullable=False) for name in _INDEX_COLUMNS])
    rows = entries(store, census)
    with (
        replacing(store.directory / "index.parquet") as file,
        pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        while batch := list(islice(rows, _BATCH)):
            columns = [pa.array(column, pa.string()) for column in zip(*batch, strict=True)]
            writer.write_table(pa.table(columns, schema=schema))
    return census


def stamp_of(store: Store, hash: str) -> str:
    """Sizes and times of change of a trial's two files; empty when one is missing."""
    try:
        stats = [os.stat(path) for path in (store.data_path(hash), store.manifest_path(hash))]
    except OSError:
        return ""
    return " ".join(f"{stat.st_size}:{stat.st_mtime_ns}" for stat in stats)


def _indexed(store: Store, columns: tuple[str, ...]) -> Iterator[Any]:
    """Rows of the index as it is; nothing from where it is missing or damaged."""
    pa, pq = arrow()
    path = store.directory / "index.parquet"
    if not path.exists():
        return
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(_BATCH, columns=list(columns), use_threads=False):
                yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return


_PLAN_COLUMNS = ("hash", "problem", "name", "setting", "seed", "delay")


@dataclass(frozen=True, slots=True)
class Planned:
    """One trial that a suite asked for."""

    hash: str
    problem: str
    name: str
    setting: str
    seed: int
    delay: str = AT_ONCE

    @property
    def id(self) -> str:
        """As `TrialSpec.id`."""
        parts = (self.problem, delay_slug(self.delay), self.name, self.setting, f"seed-{self.seed}")
        return "/".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Plan:
    """A suite as it was run: its name, its text, its trials, the user's own modules that it
    needs."""

    suite: str
    text: str
    trials: tuple[Planned, ...]
    modules: tuple[str, ...] = ()


def plan_of(suite: str, text: str, specs: Iterable[TrialSpec]) -> Plan:
    """The plan of a suite's specs."""
    specs = list(specs)
    trials = []
    for spec in specs:
        _, problem, name, setting = names_of(spec).values()
        trials.append(Planned(spec.hash, problem, name, setting, spec.seed, spec.delay_text))
    return Plan(suite, text, tuple(trials), specs[-1].modules if specs else ())


def write_plan(store: Store, plan: Plan) -> None:
    """Keep a plan; an earlier one of the same suite is replaced."""
    pa, pq = arrow()
    columns = {name: [getattr(trial, name) for trial in plan.trials] for name in _PLAN_COLUMNS}
    about = {"suite": plan.suite, "text": plan.text, "modules": json.dumps(plan.modules)}
    table = pa.table(columns).replace_schema_metadata(about)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_statistics=False)
    path = store.directory / "plans" / f"{plan.suite}.parquet"
    if read_whole(path) != buffer.getvalue():
        write_whole(path, buffer.getvalue())


def read_plans(store: Store) -> list[Plan]:
    """All plans of a store, by name."""
    folder = store.directory / "plans"
    with explained("read", folder):
        paths = sorted(folder.glob("*.parquet"), key=lambda path: path.stem)
        return [_read(read_whole(path) or b"", str(path)) for path in paths]


def unreadable_plans(store: Store) -> list[Path]:
    """Plans that were cut off or edited."""
    damaged = []
    for path in sorted((store.directory / "plans").glob("*.parquet")):
        try:
            _read(read_whole(path) or b"", str(path))
        except StoreError:
            damaged.append(path)
    return damaged


def _read(data: bytes, path: str) -> Plan:
    pa, pq = arrow()
    try:
        table = pq.read_table(pa.BufferReader(data), use_threads=False)
        metadata = table.schema.metadata
        # Plans that were written before delays have no such column.
        present = [name for name in _PLAN_COLUMNS if name != "delay" or name in table.column_names]
        columns = [table.column(name).to_pylist() for name in present]
        trials = tuple(Planned(*values) for values in zip(*columns, strict=True))
        modules = tuple(json.loads(metadata.get(b"modules", b"[]")))
        return Plan(metadata[b"suite"].decode(), metadata[b"text"].decode(), trials, modules)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        raise StoreError(
            f"the plan {path} is damaged; run the suite's sweep again to rewrite it"
        ) from None


_SHOWN = (
    "problem", "problem_parameters", "policy", "policy_parameters", "horizon", "seed", "problem_seed", "delay",
)  # fmt: skip
"""What of a spec a row shows in fields of its own."""


@dataclass(frozen=True, slots=True)
class Row:
    """One trial under one name. `remark` is the problem's own ("synthetic Criteo"); totals are
    exact.

    `delay` is how late rewards came ("0", "8", "geometric:20:0.05"). `code` is what else the result
    hangs on: your own modules, data files, and tidepull's versions of results.
    """

    suite: str
    hash: str
    problem: str
    name: str
    setting: str
    problem_id: str
    problem_parameters: Mapping[str, Any]
    policy: str
    policy_parameters: Mapping[str, Any]
    horizon: int
    seed: int
    problem_seed: int
    reward: float
    regret: float
    optimal: float
    seconds: float
    cpu_seconds: float
    machine: str
    remark: str
    diagnostics: Mapping[str, Any]
    versions: Mapping[str, str]
    code: str = ""
    delay: str = AT_ONCE

    @property
    def played(self) -> str:
        """The problem's name, with the delay where there is one; no other world of the suite has
        it."""
        return "-".join(part for part in (self.problem, delay_slug(self.delay)) if part)


@dataclass(frozen=True, slots=True)
class Rows:
    """What a store holds of its suites: rows, ids asked for but not there, damaged ids with their
    faults.

    `lost` are id and hash of all that is missing, damaged or failed.
    """

    rows: tuple[Row, ...]
    missing: tuple[str, ...]
    damaged: Mapping[str, str]
    failed: Mapping[str, str]
    lost: tuple[tuple[str, str], ...] = ()


def load_rows(store: Store, suite: str | None = None) -> Rows:
    """Rows of one suite, or of all; trials that no suite of the store asks for come under the suite
    ''."""
    plans = every = read_plans(store)
    if suite is not None:
        plans = [plan for plan in every if plan.suite == suite]
        if not plans:
            known = ", ".join(plan.suite for plan in every) or "none"
            raise WrongStoreError(
                f"the store {store.directory} has no suite '{suite}'; it has: {known}"
            )
    census = Census()
    manifests = {hash: json.loads(text) for hash, _, text in entries(store, census)}
    errors = {one["hash"]: str(one["error"]).strip().splitlines()[-1] for one in store.failures()}
    asked = [(plan, trial) for plan in plans for trial in asked_trials(plan, every, manifests)]
    rows = [
        _row(plan.suite, trial, manifests[trial.hash])
        for plan, trial in asked
        if trial.hash in manifests
    ]
    if suite is None:
        rows.extend(_unplanned(manifests, plans))
    lost = [trial for _, trial in asked if trial.hash not in manifests]
    return Rows(
        rows=tuple(rows),
        missing=tuple(t.id for t in lost if t.hash not in census.damaged and t.hash not in errors),
        damaged={
            trial.id: census.damaged[trial.hash] for trial in lost if trial.hash in census.damaged
        },
        failed={trial.id: errors[trial.hash] for trial in lost if trial.hash in errors},
        lost=tuple((trial.id, trial.hash) for trial in lost),
    )


def asked_trials(plan: Plan, every: Sequence[Plan], stored: Container[str]) -> list[Planned]:
    """A plan's trials. Of a grid that was searched by halving and not played in full, they are the
    rungs' alone: what is not there was left out by design."""
    rungs = {
        (trial.problem, trial.delay, trial.name)
        for other in every
        if other.suite != plan.suite and searched_suite(other.suite) == plan.suite
        for trial in other.trials
    }
    lacking = {(t.problem, t.delay, t.name) for t in plan.trials if t.hash not in stored}
    return [t for t in plan.trials if (t.problem, t.delay, t.name) not in rungs & lacking]


def _unplanned(manifests: Mapping[str, Any], plans: list[Plan]) -> Iterator[Row]:
    planned = {trial.hash for plan in plans for trial in plan.trials}
    for hash, manifest in manifests.items():
        if hash not in planned:
            spec = manifest["spec"]
            names = {name: manifest["labels"][name] for name in ("problem", "name", "setting")}
            delay = spec.get("delay", AT_ONCE)
            trial = Planned(hash=hash, seed=spec["seed"], delay=delay, **names)
            yield _row("", trial, manifest)


def _row(suite: str, trial: Planned, manifest: Mapping[str, Any]) -> Row:
    spec = manifest["spec"]
    return Row(
        suite=suite,
        problem_id=spec["problem"],
        **{name: getattr(trial, name) for name in ("hash", "problem", "name", "setting")},
        # As an archive keeps them, so that tables of both are the same.
        seconds=round(manifest["seconds"], 3),
        cpu_seconds=round(manifest["cpu_seconds"], 3),
        remark=manifest["label"],
        code=canonical({key: value for key, value in spec.items() if key not in _SHOWN}),
        delay=spec.get("delay", AT_ONCE),
        **{name: spec[name] for name in _SHOWN if name not in ("problem", "delay")},
        **{name: manifest["totals"][name] for name in ("reward", "regret", "optimal")},
        **{name: manifest[name] for name in ("machine", "diagnostics", "versions")},
    )
