"""The expected maximum of values drawn without replacement, exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidepull.types import FloatArray


def expected_maximum(draws: Sequence[tuple[FloatArray, int]]) -> float:
    """E[max] over `count` of the `values`, without replacement, for each (values, count) independently.

    P(max <= v) is the product of C(n(v), count) / C(N, count), where n(v) of the N values are at most v.
    """
    support = np.sort(np.concatenate([values for values, _ in draws]))
    below = np.ones(len(support))
    for values, count in draws:
        at_most = np.searchsorted(np.sort(values), support, side="right")
        for drawn in range(count):
            below *= np.maximum(at_most - drawn, 0) / (len(values) - drawn)
    return float(support @ np.diff(below, prepend=0.0))
