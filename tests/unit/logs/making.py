"""Logs made in memory, with known truth."""

from __future__ import annotations

import numpy as np

from tidepull.logs.log import ContextColumn, Log, ReadSummary
from tidepull.types import FloatArray, IntArray


def make_log(
    arm: IntArray,
    reward: FloatArray,
    propensity: FloatArray | None,
    *,
    n_arms: int = 3,
    time: FloatArray | None = None,
    paid_at: FloatArray | None = None,
    context: dict[str, FloatArray] | None = None,
) -> Log:
    """A log of these columns."""
    columns = {name: ContextColumn(values) for name, values in (context or {}).items()}
    arms = tuple(str(n) for n in range(n_arms))
    reading = ReadSummary("made", "made", {})
    return Log(
        arms,
        arm,
        reward,
        time,
        propensity,
        paid_at,
        None,
        columns,
        time is not None,
        "UTC",
        reading,
    )


def drawn(
    seed: int, rows: int, means: FloatArray, shares: FloatArray, *, context: bool = False
) -> Log:
    """Arms drawn by `shares`, rewards of 0 and 1 with these means; a context that moves rewards a
    little."""
    rng = np.random.default_rng(seed)
    arm = rng.choice(len(means), size=rows, p=shares)
    x = rng.normal(size=rows)
    chance = np.clip(means[arm] + (0.1 * x if context else 0.0), 0, 1)
    reward = (rng.random(rows) < chance).astype(float)
    time = 1.7e9 + 600.0 * np.arange(rows)
    fields: dict[str, FloatArray] | None = {"x": x} if context else None
    return make_log(arm, reward, shares[arm], n_arms=len(means), time=time, context=fields)
