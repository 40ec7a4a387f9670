"""Packages that tidepull can do without, and the extras that install them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from tidepull.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class Package:
    """An optional package by the name that it is imported by, and the extra that installs it.

    >>> Package("numpy", "tables").installed, Package("no_such_package", "tables").installed
    (True, False)
    """

    name: str
    extra: str

    @property
    def installed(self) -> bool:
        """Whether it can be imported; it is not imported for that."""
        return find_spec(self.name) is not None

    @property
    def version(self) -> str:
        """Its version; empty where it is not installed."""
        return _version(self.name)

    def require(self, feature: str) -> None:
        """Say what `feature` needs, where it is not installed."""
        if not self.installed:
            raise MissingExtraError(feature, self.extra)


@lru_cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@contextmanager
def needs(feature: str, extra: str) -> Iterator[None]:
    """Imports of what an extra installs: where it is missing, a `MissingExtraError` says so.

    Parameters
    ----------
    feature : str
        What needs the imports.
    extra : str
        The extra that installs them.

    Raises
    ------
    MissingExtraError
        If a package is not installed.

    Examples
    --------
    >>> with needs("drawing", "experiments"):
    ...     import json
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").startswith("tidepull"):
            raise
        raise MissingExtraError(feature, extra) from None
