"""The data files behind a problem: found once, known by checksum."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from tidepull.errors import DataError
from tidepull.problems import problems


@lru_cache(maxsize=4096)
def data_files(problem: str, parameters: str) -> tuple[Path, ...]:
    """Files that a problem (id, and parameters as JSON) reads on this machine."""
    entry, resolved = problems.resolve((problem, json.loads(parameters)))
    return tuple(entry.data(resolved)) if entry.data is not None else ()


def checksum(path: Path) -> str:
    """Of a file's content; read again only when its size or time of change differs."""
    try:
        stat = path.stat()
        return _checksum(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from None


@lru_cache(maxsize=256)
def _checksum(path: Path, size: int, changed: int) -> str:  # noqa: ARG001
    return sha256(path.read_bytes()).hexdigest()
