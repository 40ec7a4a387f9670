"""The compact file between the dataset and the problems: two pools of vectors, a parameter, and facts.

It is an npz archive with a JSON member. A checksum of all its content is verified on loading, and it is
written under a temporary name and renamed, so a reader never meets half a file or an altered one.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidepull._internal.files import replacing
from tidepull.errors import DataError

FORMAT = 1
_ARRAYS = ("clicked", "not_clicked", "theta")


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Vectors of clicked and of not-clicked banners, the linear parameter, and where they come from."""

    clicked: NDArray[np.float32]
    not_clicked: NDArray[np.float32]
    theta: NDArray[np.float64]
    about: dict[str, Any]

    @property
    def dim(self) -> int:
        """Length of each vector."""
        return len(self.theta)

    @property
    def synthetic(self) -> bool:
        """Whether any of the impressions were made up."""
        return bool(self.about["synthetic"])


def save(prepared: Prepared, path: Path) -> None:
    """Write the file, whole or not at all."""
    about = json.dumps(prepared.about, sort_keys=True).encode()
    arrays = {name: getattr(prepared, name) for name in _ARRAYS}
    members = {**arrays, "about": np.frombuffer(about, np.uint8)}
    digest = np.frombuffer(_digest(members), np.uint8)
    with replacing(path) as handle:
        np.savez(handle, allow_pickle=False, **members, sha256=digest)


def load(path: Path) -> Prepared:
    """Read and verify the file."""
    try:
        content = io.BytesIO(path.read_bytes())
    except FileNotFoundError:
        raise DataError(
            f"there is no prepared Criteo file {path}; make it with 'tidepull data prepare-criteo'"
        ) from None
    except OSError as error:
        raise DataError(f"the prepared Criteo file {path} cannot be read ({error.strerror})") from None
    try:
        with np.load(content, allow_pickle=False) as archive:
            members = {name: archive[name] for name in (*_ARRAYS, "about")}
            recorded = archive["sha256"].tobytes()
    except Exception:  # zipfile, zlib, struct and numpy each complain of damage in their own way
        raise DataError(_damaged(path, "it cannot be unpacked")) from None
    if _digest(members) != recorded:
        raise DataError(_damaged(path, "its checksum does not match its content"))
    about = json.loads(members["about"].tobytes())
    if about.get("format") != FORMAT:
        raise DataError(
            f"{path} has format {about.get('format')}, this tidepull reads {FORMAT}; prepare it again"
        )
    return Prepared(members["clicked"], members["not_clicked"], members["theta"], about)


def _digest(members: dict[str, NDArray[Any]]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(members):
        array = np.ascontiguousarray(members[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.digest()


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} is not a prepared Criteo file, or damaged ({reason}); "
        "delete it and prepare it again (a synthetic one is made anew by itself)"
    )
