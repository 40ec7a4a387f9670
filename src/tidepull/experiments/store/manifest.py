"""The manifest of one trial: what was run, by which versions, where, how long, and how it ended.

A manifest is sealed: its last field is a checksum of all others, and it holds the checksum of the data file.
In the file, the names of a trial are called `labels`, and the problem's remark `label`.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import tidepull
from tidepull.experiments.attempt import Result
from tidepull.experiments.suites.spec import TrialSpec, canonical
from tidepull.experiments.trial import Trial

FORMAT = 1
CIRCUMSTANCES = ("finished", "seconds", "cpu_seconds", "machine")
"""The fields in which two runs of one spec may differ."""


def manifest_of(result: Result, trial: Trial, data: bytes) -> bytes:
    """The manifest of a finished trial, whose rounds are stored as `data`."""
    spec = result.spec
    content: dict[str, Any] = {
        "format": FORMAT,
        "hash": spec.hash,
        "labels": names_of(spec),
        "spec": spec.content,
        "totals": {
            "reward": float(np.sum(trial.rewards)),
            "regret": float(trial.regret[-1]),
            "optimal": float(np.sum(trial.optimal)),
        },
        "label": trial.remark,
        "diagnostics": {key: _plain(value) for key, value in trial.diagnostics.items()},
        "data": {"bytes": len(data), "sha256": sha256(data).hexdigest()},
        "versions": versions(),
        "machine": result.machine,
        "seconds": trial.seconds,
        "cpu_seconds": result.cpu_seconds,
        "finished": now(),
    }
    return sealed(content)


def failure_of(result: Result) -> bytes:
    """The record of a trial that raised."""
    return sealed(
        {
            "format": FORMAT,
            "hash": result.spec.hash,
            "labels": names_of(result.spec),
            "spec": result.spec.content,
            "error": result.error,
            "versions": versions(),
            "machine": result.machine,
            "finished": now(),
        }
    )


def names_of(spec: TrialSpec) -> dict[str, str]:
    """How people call it: problem, name and setting."""
    return {
        "id": spec.id,
        "problem": spec.problem_name or spec.problem,
        "name": spec.name or spec.policy,
        "setting": spec.setting,
    }


def sealed(content: dict[str, Any]) -> bytes:
    """JSON text that ends in a checksum of itself."""
    seal = sha256(canonical(content).encode()).hexdigest()
    return (json.dumps({**content, "seal": seal}, indent=1, allow_nan=False) + "\n").encode()


def unsealed(text: bytes) -> dict[str, Any] | None:
    """The content, or None when it is not JSON, was edited or was cut off."""
    try:
        content = json.loads(text)
        seal = content.pop("seal")
        return content if seal == sha256(canonical(content).encode()).hexdigest() else None
    except (ValueError, KeyError, AttributeError, TypeError):
        return None


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of tidepull and of everything whose version could change a number."""
    found = {"tidepull": tidepull.__version__, "python": platform.python_version(), "cpu": platform.machine()}
    for package in ("numpy", "scipy", "numba", "pyarrow"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    # JSON has no such numbers; as text they stay visible.
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
