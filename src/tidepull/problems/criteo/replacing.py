"""Write a file under a temporary name and rename it once it is whole."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tidepull.errors import StoreError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A handle whose content becomes `path` at the end; after an error `path` is as it was before."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as handle:
            try:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink()
                raise
    except OSError as error:
        raise StoreError(f"{path} could not be written ({error.strerror or error})") from None
