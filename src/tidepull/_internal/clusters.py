"""Connecting to a Ray cluster, whatever is to run there (extra `cluster`)."""

from __future__ import annotations

import socket
from typing import Any

from tidepull.errors import InputError, MissingExtraError

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
