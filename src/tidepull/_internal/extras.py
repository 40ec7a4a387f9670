"""Packages that tidepull can do without: is one here, in which version, and which extra installs it;
and connecting to a cluster of Ray, which is one of them."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from tidepull.errors import InputError, MissingExtraError


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


ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def connected(
    address: str, what: str, environment: dict[str, Any] | None = None, **given: Any
) -> Any:
    """Ray, connected to the cluster at an address; `what` is to be done there, in the
    environment."""
    try:
        import ray
    except ImportError:
        raise MissingExtraError(what, "cluster") from None
    _knock(address)
    try:
        ray.init(
            address=address,
            runtime_env={**(environment or {}), "env_vars": ONE_THREAD},
            log_to_driver=False,
            logging_level="error",
            **given,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_answer(address, str(error).strip().splitlines()[0]) from None
    return ray


def _knock(address: str) -> None:
    """Is anybody there? Ray itself would try for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError as error:
            raise _no_answer(address, str(error)) from None


def _no_answer(address: str, reason: str) -> InputError:
    return InputError(
        f"no Ray cluster answers at '{address}' ({reason}); start one: ray start --head"
    )
