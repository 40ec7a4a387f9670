"""What a suite asked for: every trial's hash under its names, and the suite's own text, kept in the store.

One trial may have several names (the best setting of a grid may be the default one): results belong to
hashes, names to plans.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tidepull._internal.files import explained, read_whole, write_whole
from tidepull.errors import StoreError
from tidepull.experiments.delay import AT_ONCE, delay_slug
from tidepull.experiments.store.manifest import names_of
from tidepull.experiments.store.store import Store
from tidepull.experiments.store.trial_file import arrow
from tidepull.experiments.suites.spec import TrialSpec

_COLUMNS = ("hash", "problem", "name", "setting", "seed", "delay")


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
    """A suite as it was run: its name, its text, its trials, the user's own modules that it needs."""

    suite: str
    text: str
    trials: tuple[Planned, ...]
    modules: tuple[str, ...] = ()


def plan_of(suite: str, text: str, specs: Iterable[TrialSpec]) -> Plan:
    """The plan of a suite's specs."""
    trials = []
    modules: tuple[str, ...] = ()
    for spec in specs:
        modules = spec.modules
        names = names_of(spec)
        trials.append(
            Planned(spec.hash, names["problem"], names["name"], names["setting"], spec.seed, spec.delay_text)
        )
    return Plan(suite, text, tuple(trials), modules)


def write_plan(store: Store, plan: Plan) -> None:
    """Keep a plan; an earlier one of the same suite is replaced."""
    pa, pq = arrow()
    table = pa.table({name: [getattr(trial, name) for trial in plan.trials] for name in _COLUMNS})
    table = table.replace_schema_metadata(
        {"suite": plan.suite, "text": plan.text, "modules": json.dumps(plan.modules)}
    )
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
    found = []
    for path in sorted((store.directory / "plans").glob("*.parquet")):
        try:
            _read(read_whole(path) or b"", str(path))
        except StoreError:
            found.append(path)
    return found


def _read(data: bytes, path: str) -> Plan:
    pa, pq = arrow()
    try:
        table = pq.read_table(pa.BufferReader(data), use_threads=False)
        metadata = table.schema.metadata
        # Plans that were written before delays have no such column.
        present = [name for name in _COLUMNS if name != "delay" or name in table.column_names]
        columns = [table.column(name).to_pylist() for name in present]
        trials = tuple(Planned(*values) for values in zip(*columns, strict=True))
        modules = tuple(json.loads(metadata.get(b"modules", b"[]")))
        return Plan(metadata[b"suite"].decode(), metadata[b"text"].decode(), trials, modules)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        raise StoreError(
            f"the plan {path} is damaged; run the suite's sweep again to write it anew"
        ) from None
