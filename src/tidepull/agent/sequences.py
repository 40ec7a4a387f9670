"""Inference that stays valid when it is looked at every day.

The width of a confidence sequence is that of the asymptotic confidence sequences of Waudby-Smith,
Arbour, Sinha, Kennedy and Ramdas (Time-uniform central limit theory and asymptotic confidence
sequences, Annals of Statistics, 2024; Robbins' normal mixture), with Student's tail instead of the
normal one. The sample-ratio test is the sequential test of multinomial counts of Lindon and Malek
(Anytime-Valid Inference for Multinomial Count Data, NeurIPS 2022).
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.agent.log import DecisionLog
from tidepull.agent.records import DecisionGroup
from tidepull.types import BoolArray

NARROWEST = 100
"""Units of the control group at which a confidence sequence is narrowest beside the fixed-time
interval."""

PRIOR = 100.0
"""Observations that the prior of the sample-ratio test is worth."""

UNLIKELY = 1e-4
"""Chance below which a group's size is no accident."""


def sequence_width(units: int, freedom: float, level: float) -> float:
    """Standard errors on both sides of an estimate that cover its target at every look, not only at
    one, with the chance `level`; `units` of the smaller group were seen, the standard error has so
    many degrees of freedom.

    >>> round(sequence_width(100, 1e9, 0.95), 2), round(sequence_width(10_000, 1e9, 0.95), 2)
    (3.04, 3.56)
    """
    from scipy.special import ndtr, stdtrit  # an agent starts sooner without it

    alpha = 1 - level
    best = -2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)
    progress = best * units / NARROWEST
    wide = math.sqrt((1 + 1 / progress) * math.log((1 + progress) / alpha**2))
    return -float(stdtrit(freedom, float(ndtr(-wide))))


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


def sample_ratio_alarms(log: DecisionLog) -> dict[str, str]:
    """A sentence, by its name, where a group has not the size that it should have; subjects count
    once."""
    log = log.where(log.group <= DecisionGroup.CONTROL)
    rewarded = log.where(~np.isnan(log.reward))
    cause = "the groups cannot be compared until the cause is found"
    lost = "rewards of one group do not come, report all"
    found = {
        "group-sizes": _sample_ratio(log, "decisions", cause),
        "group-rewards": _sample_ratio(rewarded, "decisions with a reward", lost),
    }
    return {name: words for name, words in found.items() if words}


def _sample_ratio(log: DecisionLog, what: str, so: str) -> str:
    log = log.where(np.unique(log.subject, return_index=True)[1])
    control: BoolArray = log.group == DecisionGroup.CONTROL
    evidence, expected = 0.0, 0.0
    for share in np.unique(log.control_share[(log.control_share > 0) & (log.control_share < 1)]):
        rows = log.control_share == share
        n, count = int(rows.sum()), int(control[rows].sum())
        evidence += log_ratio_evidence(count, n, float(share))
        expected += share * n
    if evidence < -math.log(UNLIKELY):
        return ""
    return (
        f"{int(control.sum()):,} of {len(log):,} {what} (subjects once) are in the control, "
        f"{expected:,.0f} are expected: {so}."
    )
