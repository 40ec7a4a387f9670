"""Which release of tidepull wrote an agent: one that is newer than this is refused by its name."""

from __future__ import annotations

import re

from tidepull import __version__
from tidepull.errors import NewerStoreError

KEY = "release"
"""The text of a ledger that names the newest release that has written to it."""


def is_newer(release: str) -> bool:
    """Whether a release may have written what this one cannot read; a patch release changes no format.

    >>> is_newer(__version__), is_newer("999.0.1")
    (False, True)
    """
    return _numbers(release) > _numbers(__version__)


def newer_store(where: str, release: str | None, detail: str = "") -> NewerStoreError:
    """The refusal of what a newer release wrote (None: it left no name)."""
    named = "a newer tidepull" if release is None else f"tidepull {release}"
    wanted = "that one" if release is None else f"tidepull {release} or newer"
    return NewerStoreError(
        f"{where} was written by {named}{detail}, and this is {__version__}: install {wanted}"
    )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release)[:2])
