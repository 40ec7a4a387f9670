"""Results on disk: one directory, two files for each trial, every write whole or not at all.

    DIR/trials/ab/abcd....parquet   the rounds          (trial_file.py)
    DIR/trials/ab/abcd....json      the manifest        (manifest.py); written last, it makes the trial exist
    DIR/failed/abcd....json         a trial that raised: its spec and traceback
    DIR/plans/SUITE.parquet         what a suite asked for, under which names   (plan.py)
    DIR/index.parquet               all manifests in one file; can always be rebuilt   (index.py)

Files are named by the spec's content hash, so any number of processes may write to one store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from tidepull._internal.files import explained, read_whole, write_whole
from tidepull.errors import StoreError, WrongStoreError
from tidepull.experiments.attempt import Result
from tidepull.experiments.store.manifest import failure_of, manifest_of, unsealed
from tidepull.experiments.store.trial_file import arrow, decode, encode
from tidepull.experiments.trial import Trial


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
                f"{directory} is no store: it has neither trials nor plans; `tidepull sweep` makes one"
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
        """Records of the trials that raised, in the order of their ids; unreadable ones are left out."""
        records = [record for file in self._failed() if (record := unsealed(read_whole(file) or b""))]
        return sorted(records, key=lambda record: str(record["labels"]["id"]))

    def unreadable_failures(self) -> list[Path]:
        """Records that were cut off or edited."""
        return [file for file in self._failed() if unsealed(read_whole(file) or b"") is None]

    def manifest(self, hash: str) -> dict[str, Any]:
        """A trial's manifest, its seal checked."""
        content = unsealed(read_whole(self.manifest_path(hash)) or b"")
        if content is None or content.get("hash") != hash:
            raise StoreError(
                f"the manifest {self.manifest_path(hash)} is missing or damaged; sweep again to mend it"
            )
        return content

    def read(self, hash: str) -> Trial:
        """A trial round by round; its checksum is verified first."""
        manifest, data = self.manifest(hash), read_whole(self.data_path(hash))
        if data is None or sha256(data).hexdigest() != manifest["data"]["sha256"]:
            raise StoreError(
                f"the data file {self.data_path(hash)} is missing or damaged; sweep again to mend it"
            )
        return decode(
            data, seconds=manifest["seconds"], remark=manifest["label"], diagnostics=manifest["diagnostics"]
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
