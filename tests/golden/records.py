"""What golden tests share: when bits must be equal, how records are kept and compared, the one look
inside `tide`."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401  its BLAS counts, whatever was imported before
from llvmlite import binding
from threadpoolctl import threadpool_info

from tidepull.types import FloatArray

FOLDER = Path(__file__).parent


def log_weights(policy: Any) -> FloatArray:
    """The log weight of every hypothesis of `tide`; all that golden tests know of its inside."""
    weights: FloatArray = policy.inner._patterns._mixture.log_weights
    return weights


@lru_cache(maxsize=1)
def arithmetic() -> dict[str, str]:
    """What the last bits of a number hang on."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    ours = [
        pool for pool in pools if "numpy" in pool["filepath"] or "scipy" in pool["filepath"]
    ] or pools
    blas = sorted(
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture')}" for pool in ours
    )
    return {
        "machine": platform.machine(),
        "cpu": binding.get_host_cpu_name(),
        "blas": "; ".join(dict.fromkeys(blas)),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite")},
    }


def command(name: str) -> str:
    """What records a file anew."""
    return f"python -m tests.golden.test_{name}"


def advice(name: str) -> str:
    """The end of every message of a failing test."""
    return f"If this change is wanted, record it anew: {command(name)}"


@lru_cache
def read(name: str) -> dict[str, Any]:
    """The record of that name."""
    record: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return record


def write(name: str, content: Mapping[str, Any]) -> None:
    """Keep a record, with the command that makes it at its head."""
    head = {"recorded by": command(name), "arithmetic": arithmetic()}
    text = json.dumps({**head, **content}, indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(text + "\n")


def is_exact(name: str) -> bool:
    """Whether this machine computes as the one of the record did, to the last bit."""
    return bool(read(name)["arithmetic"] == arithmetic())


def digest(*parts: Any) -> str:
    """A short hash of arrays, bytes and texts."""
    made = sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            data = f"{part.dtype.str}{part.shape}".encode() + np.ascontiguousarray(part).tobytes()
        else:
            data = part if isinstance(part, bytes) else str(part).encode()
        made.update(len(data).to_bytes(8, "little") + data)
    return made.hexdigest()[:16]


def differences(found: Any, expected: Any, relative: float, where: str = "") -> Iterator[str]:
    """Where two JSON values differ; numbers may, by a small part of themselves (0: by nothing)."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in {**expected, **found}:
            if key not in found or key not in expected:
                yield f"{where}/{key} is only in {'the record' if key in expected else 'what was found'}"
            else:
                yield from differences(found[key], expected[key], relative, f"{where}/{key}")
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for n, pair in enumerate(zip(found, expected, strict=True)):
            yield from differences(*pair, relative, f"{where}/{n}")
    elif not _equal(found, expected, relative):
        yield f"{where} is {found!r}, and was {expected!r}"


def _equal(found: Any, expected: Any, relative: float) -> bool:
    if relative and isinstance(found, int | float) and isinstance(expected, int | float):
        return math.isclose(found, expected, rel_tol=relative, abs_tol=relative)
    return type(found) is type(expected) and bool(found == expected)
