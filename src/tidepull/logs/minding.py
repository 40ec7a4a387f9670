"""What to mind about an estimate: why its interval may contain the truth less often than it says."""

from __future__ import annotations

import numpy as np

from tidepull.logs.estimators import Rows, Scores
from tidepull.logs.intervals import interval
from tidepull.logs.weights import FEW, weights_of
from tidepull.types import FloatArray

_PART = 0.01
"""A share of the weight that matters."""


def mind_weights(estimator: str, weight: FloatArray, clip: float, uncovered: float) -> str:
    """Of an estimate with these weights; empty where the interval is claimed to hold."""
    found = weights_of(weight, uncovered)
    if uncovered > 1e-6:
        return f"{uncovered:.1%} of choices unknown"
    if estimator == "dm":
        return "rests on the model"
    if found.effective < FEW:
        return f"{found.effective:.0f} effective rows"
    if found.off:
        return "propensities look wrong"
    total = float(weight.sum())
    if estimator == "clipped" and np.maximum(weight - clip, 0).sum() > _PART * total:
        return f"{np.maximum(weight - clip, 0).sum() / total:.0%} of the weight clipped"
    if estimator == "switch-dr" and weight[weight > clip].sum() > _PART * total:
        return f"{weight[weight > clip].sum() / total:.0%} rests on the model"
    return ""


def mind_rows(rows: int) -> str:
    """Of a plain mean over so many rows."""
    return f"{rows:,} row{'' if rows == 1 else 's'}" if rows < FEW else ""


def mind_model(rows: Rows, block: int | None, seed: int) -> list[str]:
    """Whether the model of rewards is seen to be wrong where the policy goes, in a sentence: 1% false alarms."""
    missed = rows.weight * (rows.reward - rows.chosen)
    low, high = interval(Scores(missed, np.ones(len(missed))), block=block, level=0.99, seed=seed)
    if not (low > 0 or high < 0):
        return []
    by = sorted((abs(low), abs(high)))
    return [
        f"the model of rewards is too {'low' if low > 0 else 'high'} where this policy goes (by {by[0]:.2g} to "
        f"{by[1]:.2g}): do not believe dm"
    ]
