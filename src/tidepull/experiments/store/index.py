"""All sound manifests of a store, quickly: one compacted file, checked against the files it was made from.

An entry of the index counts only while size and time of change of its two files are as they were when their
checksums were verified; every other trial is verified anew. The index can be deleted at any time.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from tidepull._internal.files import read_whole, replacing
from tidepull.experiments.store.store import Store
from tidepull.experiments.store.trial_file import arrow

_COLUMNS = ("hash", "stamp", "manifest")
_BATCH = 2048

Indexed: TypeAlias = tuple[str, str, str]


@dataclass(slots=True)
class Census:
    """Which trials of a store can be used, and what is wrong with the others (hash to reason)."""

    sound: set[str] = field(default_factory=set)
    damaged: dict[str, str] = field(default_factory=dict)


def take_census(store: Store, wanted: Container[str] | None = None, *, trust_index: bool = True) -> Census:
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
    for hash, stamp, manifest in _indexed(store, _COLUMNS):
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
    schema = pa.schema([pa.field(name, pa.string(), nullable=False) for name in _COLUMNS])
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
