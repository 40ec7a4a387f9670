"""Snapshots: what an object saves of itself (`Stateful`), and its form as bytes.

Bytes are JSON for the structure, raw arrays behind it, a checksum in front, nothing executable:

    magic, format (one byte), checksum (32 bytes), then what the checksum covers:
    length of the JSON text (8 bytes), the JSON text, the arrays one after another

Bytes whose checksum does not fit are refused before anything in them is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

from tidepull.errors import SnapshotError
from tidepull.types import Snapshot

FORMAT = 2
"""Raised whenever snapshots of one version of tidepull cannot be read by another; 0.1 had none."""

_MAGIC = b"tidepull snapshot "
_DIGEST = 32
HEAD = len(_MAGIC) + 1 + _DIGEST
"""Bytes before the content."""

_KINDS = "biuf"
_ARRAY = "__array__"


class Stateful:
    """Saves and restores the attributes that `state` names.

    The part `name` of a snapshot is the attribute `_name`, or `name`; `generator` is the position
    of `_rng`. Arrays keep their shape and dtype, whole numbers are at least -1, and objects with a
    snapshot of their own are saved by it, one by one in a list. All plain parts are checked before
    the first of them is restored. A `kind`, where there is one, is saved and compared.

    >>> class Counter(Stateful):
    ...     state = ("count",)
    ...     count = 0
    >>> counter = Counter()
    >>> counter.restore({"count": 3})
    >>> counter.snapshot()
    {'count': 3}
    """

    state: ClassVar[tuple[str, ...]] = ()
    kind: str = ""

    def snapshot(self) -> Snapshot:
        """Return the parts that `state` names; they share nothing with this object."""
        snapshot: Snapshot = {"kind": self.kind} if self.kind else {}
        return snapshot | {
            name: _saved(getattr(self, self._attribute(name))) for name in self.state
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of an object with the same settings.

        Parameters
        ----------
        snapshot : Snapshot
            What `snapshot` returned.

        Raises
        ------
        SnapshotError
            If the snapshot belongs to something else, or is damaged.
        """
        if self.kind:
            check_kind(snapshot, self.kind)
        plain, nested = {}, []
        for name in self.state:
            attribute, value = self._attribute(name), read(snapshot, name)
            current = getattr(self, attribute)
            if _is_nested(current):
                nested.append((name, current, value))
            else:
                plain[attribute] = _checked(name, current, snapshot)
        for name, current, value in nested:
            _restore_nested(name, current, value)
        for attribute, value in plain.items():
            setattr(self, attribute, value)

    def _attribute(self, name: str) -> str:
        if name == "generator":
            return "_rng"
        return f"_{name}" if hasattr(self, f"_{name}") else name


def _is_nested(value: Any) -> bool:
    one = value[0] if isinstance(value, list) and value else value
    return isinstance(one, np.random.Generator) or hasattr(one, "restore")


def _saved(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, np.random.Generator):
        return generator_state(value)
    if isinstance(value, list):
        return [_saved(item) for item in value]
    if isinstance(value, dict):
        return {name: _saved(item) for name, item in value.items()}
    return value.snapshot() if hasattr(value, "snapshot") else value


def _checked(name: str, current: Any, snapshot: Snapshot) -> Any:
    """One plain part of a snapshot, which must be like the present value."""
    if isinstance(current, np.ndarray):
        return read_array(snapshot, name, current.shape).astype(current.dtype)
    if type(current) is int:
        return read_whole(snapshot, name, -1)
    value = read(snapshot, name)
    if isinstance(current, bool | float) and type(value) is not type(current):
        raise SnapshotError(
            f"the snapshot's '{name}' must be a {type(current).__name__}, got {value!r}"
        )
    return _saved(value)


def _restore_nested(name: str, current: Any, value: Any) -> None:
    if isinstance(current, np.random.Generator):
        restore_generator(current, value)
    elif not isinstance(current, list):
        current.restore(value)
    elif not isinstance(value, list) or len(value) != len(current):
        count = len(value) if isinstance(value, list) else "no"
        raise SnapshotError(f"the snapshot has {count} {name}, expected {len(current)}")
    else:
        for item, part in zip(current, value, strict=True):
            item.restore(part)


def generator_state(rng: np.random.Generator) -> Snapshot:
    """Return the position of a generator in its stream, as JSON values.

    Parameters
    ----------
    rng : numpy.random.Generator
        The generator; it is not moved.

    Returns
    -------
    Snapshot
        The state of its bit generator.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> position, first = generator_state(rng), rng.random()
    >>> restore_generator(rng, position)
    >>> bool(rng.random() == first)
    True
    """
    return dict(rng.bit_generator.state)


def restore_generator(rng: np.random.Generator, state: Snapshot) -> None:
    """Move a generator to a recorded position.

    Parameters
    ----------
    rng : numpy.random.Generator
        The generator, of the kind that was recorded.
    state : Snapshot
        What `generator_state` returned.

    Raises
    ------
    SnapshotError
        If the state belongs to another kind of generator, or is damaged.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> position, first = generator_state(rng), rng.random()
    >>> restore_generator(rng, position)
    >>> bool(rng.random() == first)
    True
    """
    try:
        rng.bit_generator.state = state
    except (TypeError, ValueError, KeyError) as error:
        raise SnapshotError(
            f"the snapshot's generator state cannot be restored ({error})"
        ) from None


def check_kind(snapshot: Snapshot, kind: str) -> None:
    """Refuse a snapshot that was taken of something else."""
    saved = snapshot.get("kind")
    if saved != kind:
        raise SnapshotError(f"the snapshot is of kind {saved!r}, not {kind!r}")


def read(snapshot: Snapshot, name: str) -> Any:
    """One part of a snapshot."""
    if name not in snapshot:
        raise SnapshotError(f"the snapshot has no '{name}'")
    return snapshot[name]


def read_array(
    snapshot: Snapshot, name: str, shape: tuple[int | None, ...]
) -> np.ndarray[Any, Any]:
    """A copy of one array of floats; its shape must fit (None: any length)."""
    array = np.array(read(snapshot, name), dtype=np.float64, order="C")
    if len(array.shape) != len(shape) or any(
        want not in (None, got) for want, got in zip(shape, array.shape, strict=True)
    ):
        raise SnapshotError(
            f"the snapshot's '{name}' has the shape {array.shape}, expected {shape}"
        )
    return array


def read_whole(snapshot: Snapshot, name: str, least: int) -> int:
    """One whole number of at least `least`."""
    value = read(snapshot, name)
    if type(value) is not int or value < least:
        raise SnapshotError(
            f"the snapshot's '{name}' must be a whole number of at least {least}, got {value!r}"
        )
    return value


def read_indices(
    snapshot: Snapshot, name: str, *, length: int | None = None, below: int | None = None
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A copy of a list of whole numbers from 0; None: any length, any size."""
    array = np.array(read(snapshot, name))
    if array.dtype != np.int64 or array.ndim != 1 or length not in (None, len(array)):
        raise SnapshotError(f"the snapshot's '{name}' must be {length or 'some'} whole numbers")
    if len(array) and (array.min() < 0 or (below is not None and array.max() >= below)):
        raise SnapshotError(f"the snapshot's '{name}' has numbers that are out of range")
    return array


def dump(snapshot: Snapshot) -> bytes:
    """A snapshot as one block of bytes; equal snapshots give equal bytes."""
    return wrap(*_content(snapshot))


def _content(snapshot: Snapshot) -> list[bytes]:
    """The parts of a snapshot's bytes, behind the checksum."""
    arrays: list[np.ndarray[Any, Any]] = []
    try:
        structure = json.dumps(_detach(snapshot, arrays)).encode()
    except RecursionError:
        raise SnapshotError("a snapshot must not contain itself") from None
    return [len(structure).to_bytes(8, "little"), structure, *map(_raw, arrays)]


def wrap(*content: bytes) -> bytes:
    """Content, in one part or many, behind magic, format and checksum."""
    return b"".join([_MAGIC, bytes([FORMAT]), _digest(*content), *content])


def load(data: bytes) -> Snapshot:
    """The inverse of `dump`; whatever is not exactly what `dump` gave is a `SnapshotError`."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SnapshotError(f"a snapshot is loaded from bytes, got a {type(data).__name__}")
    data = bytes(data)
    if data.startswith(b"PK"):
        raise SnapshotError(
            "the snapshot is of tidepull 0.1, which this version cannot read; start the policy "
            "afresh"
        )
    if len(data) < HEAD or not data.startswith(_MAGIC):
        raise SnapshotError(
            "the bytes are no snapshot of tidepull, or the beginning is damaged; use an older one"
        )
    if (version := data[len(_MAGIC)]) != FORMAT:
        raise SnapshotError(
            f"the snapshot has the format {version}, this version of tidepull reads {FORMAT}"
        )
    content = data[HEAD:]
    if _digest(content) != data[HEAD - _DIGEST : HEAD]:
        raise SnapshotError("the snapshot is damaged: its checksum does not fit; use an older one")
    try:
        return _parse(content)
    except Exception as error:  # a checksum that fits, around something that `dump` never wrote
        raise SnapshotError(
            f"the snapshot cannot be read ({type(error).__name__}: {error})"
        ) from None


def checksum(snapshot: Snapshot) -> str:
    """A short text that changes with any bit of a snapshot."""
    return _digest(*_content(snapshot)).hex()


def difference(left: Any, right: Any, name: str = "state") -> str | None:
    """Where two snapshots differ first in structure, kind, shape or value; None where they do not.
    NaN equals NaN."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return None if _same_array(left, right) else name
    if isinstance(left, dict) and isinstance(right, dict):
        if set(left) != set(right):
            return f"{name}.{min(map(str, set(left) ^ set(right)))}"
        parts = [(f"{name}.{key}", left[key], right[key]) for key in left]
    elif (
        isinstance(left, list | tuple)
        and isinstance(right, list | tuple)
        and len(left) == len(right)
    ):
        parts = [(f"{name}.{i}", a, b) for i, (a, b) in enumerate(zip(left, right, strict=True))]
    else:
        return None if _same_value(left, right) else name
    return next(
        (place for key, a, b in parts if (place := difference(a, b, key)) is not None), None
    )


def first_not_finite(state: Any, allowed: frozenset[str]) -> str | None:
    """The first part of a state with NaN or infinity in it; `allowed` are dotted names that may
    have them."""
    return next(
        (name for name, value in _numbers(state, "") if name not in allowed and not _finite(value)),
        None,
    )


def _numbers(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every array and float with the dotted names of the dictionaries above it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _numbers(item, name)
    elif isinstance(value, np.ndarray | float):
        yield name, value


def _finite(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    return math.isfinite(value)


def _same_array(left: Any, right: Any) -> bool:
    if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
        return False
    same = left.dtype == right.dtype and left.shape == right.shape
    return same and np.array_equal(left, right, equal_nan=left.dtype.kind == "f")


def _same_value(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and bool(left == right)


def _digest(*content: bytes) -> bytes:
    digest = blake2b(digest_size=_DIGEST)
    for part in content:
        digest.update(part)
    return digest.digest()


def _raw(array: np.ndarray[Any, Any]) -> bytes:
    return array.tobytes("A")


def _detach(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _KINDS:
            raise SnapshotError(f"a snapshot holds arrays of numbers only, not of {value.dtype}")
        arrays.append(value)
        by_columns = value.flags.f_contiguous and not value.flags.c_contiguous
        return {_ARRAY: [value.dtype.str, list(value.shape), by_columns]}
    if isinstance(value, dict):
        if _ARRAY in value:
            raise SnapshotError(f"a snapshot must not use the name '{_ARRAY}'")
        return {str(key): _detach(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_detach(item, arrays) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise SnapshotError(f"a snapshot holds JSON values and arrays only, not {type(value).__name__}")


def _parse(content: bytes) -> Snapshot:
    start = 8 + int.from_bytes(content[:8], "little")
    structure = json.loads(content[8:start])
    reader = _ArrayReader(content, start)
    restored = reader.attach(structure)
    if not isinstance(restored, dict) or reader.position != len(content):
        raise ValueError("there is more or less in it than it says")
    return restored


class _ArrayReader:
    """Puts arrays back into their places, in the order in which they were written."""

    def __init__(self, content: bytes, position: int) -> None:
        self.position = position
        self._content = content

    def attach(self, value: Any) -> Any:
        if isinstance(value, dict):
            if set(value) == {_ARRAY}:
                return self._array(*value[_ARRAY])
            return {key: self.attach(item) for key, item in value.items()}
        return [self.attach(item) for item in value] if isinstance(value, list) else value

    def _array(self, kind: str, shape: list[int], by_columns: bool) -> np.ndarray[Any, Any]:
        dtype = np.dtype(kind)
        if dtype.kind not in _KINDS or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError(f"an array of {kind} and the shape {shape}")
        size = math.prod(shape)
        end = self.position + size * dtype.itemsize
        if end > len(self._content):
            raise ValueError("an array is longer than the snapshot")
        flat = np.frombuffer(self._content, dtype, size, self.position).copy()
        self.position = end
        return flat.reshape(shape, order="F" if by_columns else "C")
