"""Inference that stays valid when it is looked at every day.

The sample-ratio test is the sequential test of multinomial counts of Lindon and Malek (Anytime-Valid
Inference for Multinomial Count Data, NeurIPS 2022).
"""

from __future__ import annotations

import math

PRIOR = 100.0
"""Observations that the prior of the sample-ratio test is worth."""


def log_ratio_evidence(count: int, total: int, share: float) -> float:
    """Log of the evidence that `count` of `total` units is not a share of `share`.

    Under that share the evidence ever exceeds 1 / p with chance p at most, however often it is
    looked at.

    >>> log_ratio_evidence(50, 1000, 0.05) < 0 < log_ratio_evidence(20, 1000, 0.05)
    True
    """
    first, second = PRIOR * share, PRIOR * (1 - share)
    rest = total - count
    mixture = _log_beta(first + count, second + rest) - _log_beta(first, second)
    return mixture - count * math.log(share) - rest * math.log(1 - share)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
