"""Results on disk: one directory, two files for each trial, every write whole or not at all.

    DIR/trials/ab/abcd....parquet   the rounds
    DIR/trials/ab/abcd....json      the manifest; written last, it makes the trial exist
    DIR/failed/abcd....json         a trial that raised: its spec and traceback
    DIR/plans/SUITE.parquet         what a suite asked for, under which names   (rows.py)
    DIR/index.parquet               all manifests in one file; can always be rebuilt   (rows.py)

Files are named by the spec's content hash, so any number of processes may write to one store.

The rounds are arm, reward, gap (the round's regret) and optimal. Rewards, gaps and optima keep 18
significant bits: a relative error of at most 4e-6, far below the noise of a reward; 0, 1 and whole
numbers up to 262,144 stay exact. So 4,096 rounds take less than 40 KB even where nothing repeats.
The exact totals are in the manifest. One trial gives one sequence of bytes under one version of
pyarrow.

A manifest says what was run, by which versions, where, how long, and how it ended. It is sealed:
its last field is a checksum of all others, and it holds the checksum of the data file. In the file,
the names of a trial are called `labels`, and the problem's remark `label`.
"""

from __future__ import annotations

import io
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import tidepull
from tidepull._internal.extras import needs
from tidepull._internal.files import explained, read_whole, write_whole
from tidepull.errors import StoreError, WrongStoreError
from tidepull.experiments.loop import Trial
from tidepull.experiments.spec import Result, TrialSpec, canonical
from tidepull.types import Diagnostics, FloatArray

_DROPPED_BITS = 24 - 18
_FLOATS = ("reward", "gap", "optimal")


def encode(trial: Trial) -> bytes:
    """The file's content."""
    pa, pq = arrow()
    arms = np.asarray(trial.arms)
    arms = arms.astype(np.int16 if arms.max(initial=0) <= np.iinfo(np.int16).max else np.int32)
    gaps = np.diff(trial.regret, prepend=0.0)
    floats = map(_rounded, (trial.rewards, gaps, trial.optimal))
    columns = {"arm": arms, **dict(zip(_FLOATS, floats, strict=True))}
    kinds = {name: pa.from_numpy_dtype(column.dtype) for name, column in columns.items()}
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])
    buffer = io.BytesIO()
    pq.write_table(
        pa.table(columns, schema=schema),
        buffer,
        compression="zstd",
        compression_level=3,
        use_dictionary=["arm"],
        column_encoding=dict.fromkeys(_FLOATS, "BYTE_STREAM_SPLIT"),
        write_statistics=False,
        store_schema=False,
    )
    return buffer.getvalue()


def decode(data: bytes, *, seconds: float, remark: str, diagnostics: Diagnostics) -> Trial:
    """The trial again; what is not per round comes from the manifest."""
    pa, pq = arrow()
    try:
        table = pq.read_table(pa.BufferReader(data), use_threads=False)
        columns: Any = {name: table.column(name).to_numpy() for name in ("arm", *_FLOATS)}
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise StoreError(f"the trial's data cannot be decoded ({error})") from None
    return Trial(
        arms=columns["arm"].astype(np.int64),
        rewards=columns["reward"].astype(float),
        regret=np.cumsum(columns["gap"].astype(float)),
        optimal=columns["optimal"].astype(float),
        seconds=seconds,
        remark=remark,
        diagnostics=diagnostics,
    )


def _rounded(values: FloatArray) -> FloatArray:
    """float32 rounded half up to 18 significant bits: the low bits become zeros, which compress
    away."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    half = np.uint32(1 << (_DROPPED_BITS - 1))
    return ((bits + half) >> _DROPPED_BITS << _DROPPED_BITS).view(np.float32)


def arrow() -> tuple[Any, Any]:
    """pyarrow and its parquet module, loaded when first needed."""
    with needs("storing trials", "experiments"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


FORMAT = 1
CIRCUMSTANCES = ("finished", "seconds", "cpu_seconds", "machine")
"""The fields in which two runs of one spec may differ."""


def manifest_of(result: Result, trial: Trial, data: bytes) -> bytes:
    """The manifest of a finished trial, whose rounds are stored as `data`."""
    content: dict[str, Any] = {
        **_head(result.spec),
        "totals": {
            "reward": float(np.sum(trial.rewards)),
            "regret": float(trial.regret[-1]),
            "optimal": float(np.sum(trial.optimal)),
        },
        "label": trial.remark,
        "diagnostics": {key: _plain(value) for key, value in trial.diagnostics.items()},
        "data": {"bytes": len(data), "sha256": sha256(data).hexdigest()},
        "versions": versions(),
        "machine": result.machine,
        "seconds": trial.seconds,
        "cpu_seconds": result.cpu_seconds,
        "finished": now(),
    }
    return sealed(content)


def failure_of(result: Result) -> bytes:
    """The record of a trial that raised."""
    here = {"versions": versions(), "machine": result.machine, "finished": now()}
    return sealed({**_head(result.spec), "error": result.error, **here})


def _head(spec: TrialSpec) -> dict[str, Any]:
    names = {"hash": spec.hash, "labels": names_of(spec)}
    return {"format": FORMAT, **names, "spec": spec.content}


def names_of(spec: TrialSpec) -> dict[str, str]:
    """How people call it: problem, name and setting."""
    return {
        "id": spec.id,
        "problem": spec.problem_name or spec.problem,
        "name": spec.name or spec.policy,
        "setting": spec.setting,
    }


def sealed(content: dict[str, Any]) -> bytes:
    """JSON text that ends in a checksum of itself."""
    seal = sha256(canonical(content).encode()).hexdigest()
    return (json.dumps({**content, "seal": seal}, indent=1, allow_nan=False) + "\n").encode()


def unsealed(text: bytes) -> dict[str, Any] | None:
    """The content, or None when it is not JSON, was edited or was cut off."""
    try:
        content = json.loads(text)
        seal = content.pop("seal")
        return content if seal == sha256(canonical(content).encode()).hexdigest() else None
    except (ValueError, KeyError, AttributeError, TypeError):
        return None


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of tidepull and of everything whose version could change a number."""
    numbers = {"tidepull": tidepull.__version__, "python": platform.python_version()}
    numbers["cpu"] = platform.machine()
    for package in ("numpy", "scipy", "numba", "pyarrow"):
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            numbers[package] = "absent"
    return numbers


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    # JSON has no such numbers; as text they stay visible.
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


class Store:
    """One directory of results."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)

    @classmethod
    def create(cls, directory: Path | str) -> Store:
        """Open for writing; made when absent, and tried out before any work is spent."""
        arrow()
        store = cls(directory)
        with explained("write", store.directory):
            store.directory.mkdir(parents=True, exist_ok=True)
        probe = store.directory / f"probe-{os.getpid()}"
        write_whole(probe, b"x" * 4096)
        probe.unlink()
        return store

    @classmethod
    def open(cls, directory: Path | str) -> Store:
        """Open for reading; it must be there, with a trial, a failed one or a plan."""
        store = cls(directory)
        if not store.directory.is_dir():
            raise WrongStoreError(f"there is no store at {directory}; `tidepull sweep` makes one")
        if not any((store.directory / part).is_dir() for part in ("trials", "failed", "plans")):
            raise WrongStoreError(
                f"{directory} is no store: it has neither trials nor plans; `tidepull sweep` makes "
                "one"
            )
        return store

    def write(self, result: Result) -> None:
        """Keep a finished trial, or the record of a failed one."""
        hash = result.spec.hash
        if result.trial is None:
            write_whole(self.failure_path(hash), failure_of(result))
            return
        data = encode(result.trial)
        write_whole(self.data_path(hash), data)
        write_whole(self.manifest_path(hash), manifest_of(result, result.trial, data))
        with suppress(FileNotFoundError):
            self.failure_path(hash).unlink()

    def hashes(self) -> set[str]:
        """Every trial with a manifest in its place, sound or not."""
        return {
            name[:-5]
            for entry in self._folders()
            for name in os.listdir(entry)
            if name.endswith(".json") and name[:2] == entry.name
        }

    def failures(self) -> list[dict[str, Any]]:
        """Records of the trials that raised, in the order of their ids; unreadable ones are left
        out."""
        contents = (unsealed(read_whole(file) or b"") for file in self._failed())
        records = [record for record in contents if record]
        return sorted(records, key=lambda record: str(record["labels"]["id"]))

    def unreadable_failures(self) -> list[Path]:
        """Records that were cut off or edited."""
        return [file for file in self._failed() if unsealed(read_whole(file) or b"") is None]

    def manifest(self, hash: str) -> dict[str, Any]:
        """A trial's manifest, its seal checked."""
        content = unsealed(read_whole(self.manifest_path(hash)) or b"")
        if content is None or content.get("hash") != hash:
            raise StoreError(
                f"the manifest {self.manifest_path(hash)} is missing or damaged; sweep again to "
                "mend it"
            )
        return content

    def read(self, hash: str) -> Trial:
        """A trial round by round; its checksum is verified first."""
        manifest, data = self.manifest(hash), read_whole(self.data_path(hash))
        if data is None or sha256(data).hexdigest() != manifest["data"]["sha256"]:
            raise StoreError(
                f"the data file {self.data_path(hash)} is missing or damaged; sweep again to mend "
                "it"
            )
        return decode(
            data,
            seconds=manifest["seconds"],
            remark=manifest["label"],
            diagnostics=manifest["diagnostics"],
        )

    def fault(self, hash: str) -> str:
        """Why a trial cannot be used; empty when it is sound. Reads both files."""
        try:
            manifest = self.manifest(hash)
        except StoreError:
            return "the manifest is missing, unreadable or was edited"
        data = read_whole(self.data_path(hash))
        if data is None:
            return "the data file is missing"
        if len(data) != manifest["data"]["bytes"]:
            return f"the data file has {len(data)} bytes instead of {manifest['data']['bytes']}"
        if sha256(data).hexdigest() != manifest["data"]["sha256"]:
            return "the data file was edited"
        return ""

    def data_path(self, hash: str) -> Path:
        """Where a trial's rounds are."""
        return self.directory / "trials" / hash[:2] / f"{hash}.parquet"

    def manifest_path(self, hash: str) -> Path:
        """Where a trial's manifest is."""
        return self.directory / "trials" / hash[:2] / f"{hash}.json"

    def failure_path(self, hash: str) -> Path:
        """Where a failed trial's record is."""
        return self.directory / "failed" / f"{hash}.json"

    def _failed(self) -> list[Path]:
        with explained("read", self.directory / "failed"):
            return sorted((self.directory / "failed").glob("*.json"))

    def _folders(self) -> Iterator[Path]:
        trials = self.directory / "trials"
        with explained("read", trials):
            if trials.is_dir():
                yield from sorted(folder for folder in trials.iterdir() if folder.is_dir())
