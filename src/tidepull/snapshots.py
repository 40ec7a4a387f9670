"""Snapshots as bytes: JSON for the structure, raw arrays beside it, nothing executable."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np

from tidepull.errors import SnapshotError
from tidepull.types import Snapshot

_STRUCTURE = "structure"


def generator_state(rng: np.random.Generator) -> Snapshot:
    """The position of a generator in its stream, as JSON values."""
    return dict(rng.bit_generator.state)


def restore_generator(rng: np.random.Generator, state: Snapshot) -> None:
    """Put a generator back at a recorded position."""
    try:
        rng.bit_generator.state = state
    except (TypeError, ValueError, KeyError) as error:
        raise SnapshotError(f"the snapshot's generator state cannot be restored ({error})") from None


def check_kind(snapshot: Snapshot, kind: str) -> None:
    """Refuse a snapshot that was taken of something else."""
    found = snapshot.get("kind")
    if found != kind:
        raise SnapshotError(f"the snapshot is of kind {found!r}, not {kind!r}")


def read(snapshot: Snapshot, name: str) -> Any:
    """One part of a snapshot."""
    if name not in snapshot:
        raise SnapshotError(f"the snapshot has no '{name}'")
    return snapshot[name]


def read_array(snapshot: Snapshot, name: str, shape: tuple[int | None, ...]) -> np.ndarray[Any, Any]:
    """A copy of one array of floats; its shape must fit (None: any length)."""
    array = np.array(read(snapshot, name), dtype=np.float64, order="C")
    if len(array.shape) != len(shape) or any(
        want not in (None, got) for want, got in zip(shape, array.shape, strict=True)
    ):
        raise SnapshotError(f"the snapshot's '{name}' has the shape {array.shape}, expected {shape}")
    return array


def dump(snapshot: Snapshot) -> bytes:
    """A snapshot as one block of bytes (an uncompressed npz archive with a JSON member)."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    structure = json.dumps(_detach(snapshot, arrays))
    buffer = io.BytesIO()
    np.savez(
        buffer, allow_pickle=False, **{_STRUCTURE: np.frombuffer(structure.encode(), np.uint8)}, **arrays
    )
    return buffer.getvalue()


def load(data: bytes) -> Snapshot:
    """The inverse of `dump`."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            structure = json.loads(archive[_STRUCTURE].tobytes())
            arrays = {name: archive[name] for name in archive.files if name != _STRUCTURE}
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise SnapshotError(f"the snapshot is damaged ({error}); use an older one") from None
    restored: Snapshot = _attach(structure, arrays)
    return restored


def _detach(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"__array__": name}
    if isinstance(value, dict):
        return {str(key): _detach(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_detach(item, arrays) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise SnapshotError(f"a snapshot holds JSON values and arrays only, not {type(value).__name__}")


def _attach(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"__array__"}:
            return arrays[value["__array__"]]
        return {key: _attach(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_attach(item, arrays) for item in value]
    return value
