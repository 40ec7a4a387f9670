"""Predictions put right by what came of earlier ones: what a linear rule means by 0.7.

Where contexts decide, rewards are seldom linear in them: an arm is right or wrong, and a rule that
says 0.7 of the arm that it would choose is nearly always right. Judged by its plain prediction it
looks bad beside a model that ignores the context and foresees only that what *others* chose
will pay. So each model keeps, for ten bins of what it predicted, the errors e = (r - phi.mu) /
sqrt(1 + phi' Lam^-1 phi) that followed: their number n, sum s and sum of squares q,

    e ~ N(delta, s2), delta ~ N(0, s2), s2 ~ inverse gamma with the mean noise b / a of the model:
    Student-t, 2 + n degrees of freedom, centre s / (n + 1), squared scale (b_n / a_n)(1 + 1 / (n +
    1)), a_n = 1 + n / 2,  b_n = b / a + (q - s^2 / (n + 1)) / 2

or, for rewards of 0 and 1, n and the number of successes s: (2 p + s) / (2 + n) where the model
says p. What counts is a mixture of the two predictions, plain and put right, weighed by Bayes'
rule: where the model is right it loses little.
"""

from __future__ import annotations

import math

from tidepull.tide.models.algebra import inlined, log_student
from tidepull.types import FloatArray

BINS, KEPT = 10, 3
_LOWEST, _WIDTH = -2.0, 0.4
"""Of the bins, in units of standardised reward; who predicts more or less is in the first or the
last one."""
_SURE = 5.0
"""Most of the log odds between both predictions, so that they can turn."""
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
    """The log likelihood of a reward of which the model's own is `plain`; then its bin learns.
    `odds` are those of the prediction put right (one number), `noise` is b / a."""
    row = bins[min(max(math.floor((mean - _LOWEST) / _WIDTH), 0), BINS - 1)]
    told: float
    if binary:
        chance = min(max(0.5 * (1 + mean), _LEAST), 1 - _LEAST)
        chance = (2 * chance + row[1]) / (2 + row[0])
        told = math.log(chance if y > 0 else 1 - chance)
        error = 1.0 if y > 0 else 0.0
    else:
        root = math.sqrt(1 + leverage)
        error = (y - mean) / root
        centre = row[1] / (row[0] + 1)
        a = 1 + 0.5 * row[0]
        b = noise + 0.5 * max(row[2] - row[1] * centre, 0.0)
        told = log_student(
            root * (error - centre), a, b / a * (1 + 1 / (row[0] + 1)) * (1 + leverage)
        )
    row[0], row[1], row[2] = (
        memory * row[0] + 1,
        memory * row[1] + error,
        memory * row[2] + error * error,
    )
    # log((1 - w) p + w q) with w = 1 / (1 + exp(-odds)) is log p + log(1 + exp(odds) q / p) - log(1
    # + exp(odds))
    turned = odds[0] + told - plain
    score: float = plain + _softplus(turned) - _softplus(odds[0])
    odds[0] = min(max(turned, -_SURE), _SURE)
    return score
