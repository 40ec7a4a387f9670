"""Recalibration of predictions by the outcomes of earlier ones.

Where contexts decide, rewards are seldom linear in them: an arm is right or wrong, and a linear model
that predicts 0.7 for its best arm is nearly always right. By its plain prediction it has a lower
likelihood than a model that ignores the context and predicts that the arm chosen by *others* will
pay. So each model keeps, for ten bins of what it predicted, the errors e = (r - phi.mu) /
sqrt(1 + phi' Lam^-1 phi) that followed: their number n, sum s and sum of squares q,

    e ~ N(delta, s2), delta ~ N(0, s2), s2 ~ inverse gamma with the mean noise b / a of the model:
    Student-t, 2 + n degrees of freedom, centre s / (n + 1), squared scale (b_n / a_n)(1 + 1 / (n +
    1)), a_n = 1 + n / 2,  b_n = b / a + (q - s^2 / (n + 1)) / 2

or, for rewards of 0 and 1, n and the number of successes s: (2 p + s) / (2 + n) where the model
predicts p. The score is that of a mixture of the plain and the recalibrated prediction, weighed by
Bayes' rule: a calibrated model loses little.
"""

from __future__ import annotations

import math

from tidepull.tide.models.algebra import inlined, log_student
from tidepull.types import FloatArray

BINS, KEPT = 10, 3
_LOWEST, _WIDTH = -2.0, 0.4
"""Lower end and width of the bins, in units of standardised reward; predictions beyond are in the
first or the last bin."""
_SURE = 5.0
"""Largest log odds between both predictions, so that they can change."""
_LEAST, _LARGE = 0.02, 40.0


@inlined
def _softplus(x: float) -> float:
    """log(1 + exp(x))."""
    return x if x > _LARGE else math.log1p(math.exp(x))


@inlined
def recalibrate(
    bins: FloatArray, odds: FloatArray, mean: float, leverage: float, y: float, plain: float, noise: float,
    binary: bool, memory: float,
) -> float:  # fmt: skip
    """Recalibrated log likelihood of a reward with the plain one `plain`; then its bin is updated.
    `odds` are the log odds of the recalibrated prediction (one number), `noise` is b / a."""
    row = bins[min(max(math.floor((mean - _LOWEST) / _WIDTH), 0), BINS - 1)]
    calibrated: float
    if binary:
        chance = min(max(0.5 * (1 + mean), _LEAST), 1 - _LEAST)
        chance = (2 * chance + row[1]) / (2 + row[0])
        calibrated = math.log(chance if y > 0 else 1 - chance)
        error = 1.0 if y > 0 else 0.0
    else:
        root = math.sqrt(1 + leverage)
        error = (y - mean) / root
        centre = row[1] / (row[0] + 1)
        a = 1 + 0.5 * row[0]
        b = noise + 0.5 * max(row[2] - row[1] * centre, 0.0)
        calibrated = log_student(
            root * (error - centre), a, b / a * (1 + 1 / (row[0] + 1)) * (1 + leverage)
        )
    row[0], row[1], row[2] = (
        memory * row[0] + 1,
        memory * row[1] + error,
        memory * row[2] + error * error,
    )
    # log((1 - w) p + w q) with w = 1 / (1 + exp(-odds)) is log p + log(1 + exp(odds) q / p) - log(1
    # + exp(odds))
    turned = odds[0] + calibrated - plain
    score: float = plain + _softplus(turned) - _softplus(odds[0])
    odds[0] = min(max(turned, -_SURE), _SURE)
    return score
