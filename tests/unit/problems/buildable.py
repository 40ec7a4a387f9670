"""Every registered problem, with what it needs to be built."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from tidepull.logs.world import FittedWorld
from tidepull.registry import Named

MONDAY = 1_767_571_200.0


def buildable(id: str) -> Named:
    """The id itself, or with the file that it reads."""
    return ("from-log", {"path": str(_world_file())}) if id == "from-log" else id


def small_world(rows: int = 40) -> FittedWorld:
    """Three arms whose means depend on an observation and on the hour."""
    rng = np.random.default_rng(3)
    time = MONDAY + 3600.0 * np.arange(rows)
    x = rng.normal(size=rows)
    features = np.column_stack([np.ones(rows), x, np.sin(2 * np.pi * time / 86_400)])
    mean = np.array([[0.3, 0.1, 0.0], [0.4, 0.0, 0.2], [0.5, -0.1, -0.1]])
    factor = np.tile(np.diag([0.05, 0.02, 0.02]), (3, 1, 1))
    return FittedWorld(
        ("a", "b", "c"),
        features,
        x[:, None],
        time,
        True,
        None,
        mean,
        factor,
        0.3,
        False,
        {"source": "made"},
    )


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()  # removed when the tests end


@cache
def _world_file() -> Path:
    path = Path(_folder().name) / "world.tide"
    small_world().save(path)
    return path
