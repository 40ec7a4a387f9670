"""The dictionary of the Open Bandit Pipeline: in memory, or as an .npz file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.errors import DataError
from tidepull.logs.build import Batch


def from_file(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file; nothing is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: cannot be read as a dictionary of arrays ({error})") from None


def batch(given: Mapping[str, Any], source: str) -> tuple[Batch, list[str]]:
    """All rounds as one batch, and the arms."""
    for name in ("action", "reward"):
        if given.get(name) is None:
            raise DataError(f"{source}: an OBP dictionary must have '{name}'")
    action = np.asarray(given["action"])
    rounds = len(action)
    n_arms = (
        int(given["n_actions"]) if given.get("n_actions") is not None else int(action.max(initial=-1)) + 1
    )
    context: dict[str, Any] = {}
    if given.get("position") is not None:
        context["position"] = np.asarray(given["position"])
    if given.get("context") is not None:
        matrix = np.atleast_2d(np.asarray(given["context"], float))
        context.update({f"context_{n}": matrix[:, n] for n in range(matrix.shape[1])})
    made = Batch(
        lines=range(1, rounds + 1),
        arm=action.tolist(),
        reward=np.asarray(given["reward"], float),
        time=given.get("time"),
        propensity=given.get("pscore"),
        context=context,
    )
    for name in ("reward", "time", "propensity"):
        cells = getattr(made, name)
        if cells is not None and len(cells) != rounds:
            raise DataError(f"{source}: '{name}' has {len(cells)} entries, 'action' has {rounds}")
    return made, [str(arm) for arm in range(n_arms)]
