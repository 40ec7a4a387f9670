"""Means with intervals across trials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from tidepull.types import FloatArray


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, sample standard deviation (ddof = 1) and the half width of Student's 95% interval."""

    mean: float
    std: float
    half_width: float
    trials: int


def summarise(values: FloatArray) -> Summary:
    """Summary of one figure per trial; with a single trial the spread is unknown (nan)."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    if n < 2:
        return Summary(float(values.mean()), float("nan"), float("nan"), n)
    std = float(values.std(ddof=1))
    return Summary(float(values.mean()), std, float(special.stdtrit(n - 1, 0.975)) * std / n**0.5, n)
