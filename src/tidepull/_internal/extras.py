"""Packages that tidepull can do without: is one here, in which version, and which extra installs
it."""

from __future__ import annotations

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
