"""What the policy gained over the control group, with intervals that traffic which moves with time
cannot fake: a confidence sequence, which may be looked at every day, and one for a single look.

Time is cut into blocks with enough decisions of both groups. The gain is the mean over blocks of
the difference between the groups, every block weighing as many decisions as it has; so a group that
had more of the good hours gains nothing by it. Decisions of one subject are taken as one draw:

    gain = sum_b w_b (mean policy_b - mean control_b) = sum_i a_i r_i
    variance = sum over subjects of (sum_i a_i e_i)^2,
    e_i = (r_i - mean of its cell) sqrt(n / (n - 1))

Before that, what was known before the decision is taken off each reward (CUPED: Deng, Xu, Kohavi and
Walker, Improving the Sensitivity of Online Controlled Experiments by Utilizing Pre-Experiment Data,
WSDM 2013). A ridge regression on the hour, the weekday and the context predicts each reward from
earlier blocks of decisions alone. What it predicts is the same for both groups, so that taking it off
changes no expected difference between them.

The width of a confidence sequence is that of the asymptotic confidence sequences of Waudby-Smith,
Arbour, Sinha, Kennedy and Ramdas (Time-uniform central limit theory and asymptotic confidence
sequences, Annals of Statistics, 2024; Robbins' normal mixture), with Student's tail instead of the
normal one. Decisions of a subject that come back are correlated with their earlier ones, so that the
estimate moves less between looks than one of independent decisions: the sequence covers it all the
more. The sample-ratio test is the sequential test of multinomial counts of Lindon and Malek
(Anytime-Valid Inference for Multinomial Count Data, NeurIPS 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tidepull.agent.log import DecisionLog
from tidepull.agent.records import DecisionGroup
from tidepull.types import BoolArray, FloatArray, IntArray

IN_A_BLOCK = 10
"""Decisions of each group that a block must have, or as many times more as a subject has of
them. Fewer say nothing of a gain."""

BORROWED = 100
"""Decisions that each group borrows from the other to estimate the spread of its rewards."""


class HasSequence:
    """A gain with a confidence sequence, `low` to `high`."""

    __slots__ = ()
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether the gain can be estimated."""
        return math.isfinite(self.low)

    @property
    def significant(self) -> bool:
        """Whether the confidence sequence tells the gain from 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Lift(HasSequence):
    """Gain for each decision in the reward or another outcome (`of`), and relative to the control's;
    NaN where it cannot be told yet.

    `low` to `high` is a confidence sequence: it covers the mean gain so far at all looks together
    with the chance `level`. `fixed_low` to `fixed_high` does so at a single look that was planned
    beforehand. `against` says what the control is: "random arms", "your rule", "arm 'a' alone"
    (None: there is no control).
    """

    gain: float
    low: float
    high: float
    relative: float
    relative_low: float
    relative_high: float
    policy: float
    control: float
    n_policy: int
    n_control: int
    blocks: int
    fixed_low: float
    fixed_high: float
    fixed_relative_low: float
    fixed_relative_high: float
    level: float = 0.95
    against: str | None = "random arms"
    of: str = "reward"

    def __str__(self) -> str:
        if self.against is None:
            return "The gain cannot be measured: control=0, so there is no control group."
        if not self.known:
            return (
                f"Nothing can be said yet about the gain over {self.against} ({self.n_policy} "
                f"decision{'s' * (self.n_policy != 1)} with rewards, and {self.n_control} in the "
                "control)."
            )
        relative = math.isfinite(self.relative)
        gain = self.relative if relative else self.gain
        more = "more" if gain >= 0 else "less"
        size = f"{abs(gain):.1%}" if relative else f"{abs(gain):.3g}"
        each = "" if relative else " a decision"
        words = f"{size} {more} {self.of}{each} than {self.against} ({self._intervals(relative)})."
        return words if self.significant else f"Not significant: {words}"

    def _intervals(self, relative: bool) -> str:
        ends = (self.low, self.high, self.fixed_low, self.fixed_high)
        if relative:
            percents = (
                self.relative_low,
                self.relative_high,
                self.fixed_relative_low,
                self.fixed_relative_high,
            )
            ends = tuple(100 * end for end in percents)  # type: ignore[assignment]
        low, high, fixed_low, fixed_high = (
            f"{end:.1f}" if relative else f"{end:.3g}" for end in ends
        )
        return (
            f"{self.level:.0%} sure at every look: {low} to {high}; at a single planned look: "
            f"{fixed_low} to {fixed_high}"
        )


def comparison(
    log: DecisionLog, share: float, control: str | None
) -> tuple[DecisionLog, str | None]:
    """The decisions to compare, and what the control is, which has that share of decisions now;
    `control` is the label of its arm.

    Where callers name what their rule takes, decisions without it are left out, in both groups: it
    was known before the group.
    """
    if not share and not (log.group == DecisionGroup.CONTROL).any():
        return log, None
    if (log.baseline >= 0).any():
        return log.where(log.baseline >= 0), "your rule"
    return log, "random arms" if control is None else f"arm '{control}' alone"


def lift_of(
    log: DecisionLog, level: float = 0.95, against: str | None = "random arms", of: str = "reward"
) -> Lift:
    """The gain of the policy's decisions over the control's, of all that have a reward."""
    log = log.where(~np.isnan(log.reward) & (log.group <= DecisionGroup.CONTROL))
    log = log.where(np.argsort(log.at, kind="stable"))
    control: BoolArray = log.group == DecisionGroup.CONTROL
    n_policy, n_control = int((~control).sum()), int(control.sum())
    clusters = len(np.unique(log.subject[control]))
    if min(n_policy, clusters) < IN_A_BLOCK:
        unknown = (math.nan,) * 8
        nothing = (math.nan,) * 4
        return Lift(*unknown, n_policy, n_control, 0, *nothing, level, against, of)
    block = _blocks(control, IN_A_BLOCK * -(-n_control // clusters))
    policy, rest, variances = _estimates(log, block, control)
    gain, blocks = policy - rest, int(block[-1]) + 1
    freedom = max(1, min(n_control - blocks, clusters - 1))
    fixed = student_quantile(freedom, (1 - level) / 2)
    always = sequence_width(clusters, freedom, level)
    error = math.sqrt(sum(variances))
    relative = _relative(policy, rest, variances, always)
    if math.isfinite(relative[0]):
        _, fixed_low, fixed_high = _relative(policy, rest, variances, fixed)
    else:
        fixed_low = fixed_high = math.nan
    return Lift(
        gain, gain - always * error, gain + always * error, *relative, policy, rest,
        n_policy, n_control, blocks, gain - fixed * error, gain + fixed * error, fixed_low,
        fixed_high, level, against, of,
    )  # fmt: skip


def _estimates(
    log: DecisionLog, block: IntArray, control: BoolArray
) -> tuple[float, float, list[float]]:
    """Mean reward of policy and control, and the variances of both."""
    predicted = predicted_rewards(log, block)
    weights = np.bincount(block) / len(block)
    usual = float(predicted.mean())  # what was taken off both groups
    means, errors = _cells(log.reward - predicted, block, control)
    sizes = np.array(
        [np.bincount(block, weights=side.astype(float)) for side in (~control, control)]
    )
    a: FloatArray = weights[block] / sizes[control.astype(int), block]
    sides = (~control, control)
    variances = [_variance((a * errors)[side], log.subject[side]) for side in sides]
    squares = [float((a[side] ** 2).sum()) for side in sides]
    variances = _steadied(variances, squares, [int(side.sum()) for side in sides])
    policy, rest = (float(weights @ side) + usual for side in means)
    return policy, rest, variances


def _steadied(variances: list[float], squares: list[float], sizes: list[int]) -> list[float]:
    """Variances with `BORROWED` further decisions of each group that spread as the other's do: the
    few rewards of a small group say little of their own spread, least when they are low by luck."""
    spread = [variance / square for variance, square in zip(variances, squares, strict=True)]
    return [
        square * (n * own + BORROWED * other) / (n + BORROWED)
        for own, other, n, square in zip(spread, spread[::-1], sizes, squares, strict=True)
    ]


def _blocks(control: BoolArray, least: int) -> IntArray:
    """The block of each decision, in time: a block ends as soon as it has `least` decisions of both
    groups, and what is left over at the end belongs to the last one."""
    ends: list[int] = []
    sides = [np.flatnonzero(~control), np.flatnonzero(control)]
    used = [0, 0]
    while all(start + least <= len(side) for start, side in zip(used, sides, strict=True)):
        end = max(int(side[start + least - 1]) for start, side in zip(used, sides, strict=True)) + 1
        used = [int(np.searchsorted(side, end)) for side in sides]
        ends.append(end)
    block: IntArray = np.searchsorted(ends[:-1], np.arange(len(control)), side="right")
    return block


def _cells(
    reward: FloatArray, block: IntArray, control: BoolArray
) -> tuple[list[FloatArray], FloatArray]:
    """Mean reward of both groups in every block, and each reward's distance from it."""
    errors: FloatArray = np.zeros(len(reward))
    means: list[FloatArray] = []
    for side in (~control, control):
        n = np.bincount(block, weights=side.astype(float))
        mean = np.bincount(block, weights=np.where(side, reward, 0.0)) / n
        means.append(mean)
        inflated = np.sqrt(n / (n - 1))[block]
        errors = np.where(side, (reward - mean[block]) * inflated, errors)
    return means, errors


def _variance(parts: FloatArray, subject: IntArray) -> float:
    _, who = np.unique(subject, return_inverse=True)
    return float(np.sum(np.bincount(who, weights=parts) ** 2))


def _relative(
    policy: float, control: float, variances: list[float], wide: float
) -> tuple[float, float, float]:
    """policy / control - 1 and its interval; NaN where the control may be worth next to nothing.

    Fieller's: all x for which policy - (1 + x) control is not told from 0, so that it has 0 inside
    as often as the interval of the gain.
    """
    square = control**2 - wide**2 * variances[1]
    if control <= 0 or square <= _WORTH * control**2:
        return math.nan, math.nan, math.nan
    product = policy * control
    root = math.sqrt(max(product**2 - square * (policy**2 - wide**2 * variances[0]), 0.0))
    return policy / control - 1, (product - root) / square - 1, (product + root) / square - 1


_WORTH = 0.1
"""Share of the control's squared reward that must be left beside its error, for a ratio."""

DAY = 86_400.0
PENALTY = 10.0
"""Of squared coefficients: about what ten decisions say."""

GROWTH = 1.2
"""The regression is computed again when there are so many times more decisions."""


def predicted_rewards(log: DecisionLog, block: IntArray) -> FloatArray:
    """The reward of every decision as earlier blocks predict it; 0 in the first block. The rows of
    the log are in the order of their blocks, and have rewards."""
    features, weights = _features(log), _weights(log)
    starts = np.searchsorted(block, np.arange(int(block[-1]) + 2))
    predicted: FloatArray = np.zeros(len(log))
    gram = PENALTY * np.eye(features.shape[1])
    gram[0, 0] = 1e-6
    moment, done = np.zeros(features.shape[1]), 0
    coefficients: FloatArray = np.zeros(features.shape[1])
    for start, end in zip(starts[1:-1].tolist(), starts[2:].tolist(), strict=True):
        if start >= GROWTH * done:
            rows = slice(done, start)
            weighted = features[rows] * weights[rows, None]
            gram += weighted.T @ features[rows]
            moment += weighted.T @ log.reward[rows]
            coefficients, done = np.linalg.solve(gram, moment), start
        predicted[start:end] = features[start:end] @ coefficients
    return predicted


def _features(log: DecisionLog) -> FloatArray:
    """One, the hour and the weekday as waves, and the context as policies see it."""
    day, week = 2 * np.pi * log.at / DAY, 2 * np.pi * log.at / (7 * DAY)
    angles = [day, 2 * day, 3 * day, week, 2 * week]
    waves = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
    varying = log.x[:, log.x.any(axis=0)]
    return np.column_stack([np.ones(len(log)), *waves, varying])


def _weights(log: DecisionLog) -> FloatArray:
    """Both groups weigh the same in all: the smaller one has most of the variance."""
    control = log.group == DecisionGroup.CONTROL
    share = np.clip(log.control_share, 0.01, 0.99)
    weights: FloatArray = np.where(control, 0.5 / share, 0.5 / (1 - share))
    return weights / max(1.0, float(weights.max()))


NARROWEST = 100
"""Units of the control group at which a confidence sequence is narrowest beside the fixed-time
interval."""

PRIOR = 100.0
"""Observations that the prior of the sample-ratio test is worth."""

UNLIKELY = 1e-4
"""Chance below which a group's size, or a silence, is no accident."""


def sequence_width(units: int, freedom: float, level: float) -> float:
    """Standard errors on both sides of an estimate that cover its target at every look, not only at
    one, with the chance `level`; `units` of the smaller group were seen, the standard error has so
    many degrees of freedom.

    >>> round(sequence_width(100, 1e9, 0.95), 2), round(sequence_width(10_000, 1e9, 0.95), 2)
    (3.04, 3.56)
    """
    alpha = 1 - level
    best = -2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)
    progress = best * units / NARROWEST
    wide = math.sqrt((1 + 1 / progress) * math.log((1 + progress) / alpha**2))
    return student_quantile(freedom, math.erfc(wide / math.sqrt(2)) / 2)


def student_quantile(freedom: float, tail: float) -> float:
    """The t that Student's distribution exceeds with the chance `tail`, below a half.

    With f(x) = (1 + x^2 / freedom)^(-(freedom + 1) / 2) this is the root of

        integral of f from t on = tail * integral of f everywhere

    by Newton's method for the logarithms of both t and the integral, whose steps end on one side
    of the root and approach it. An integral is a sum over x = t + scale * exp(u - exp(-u)), whose
    terms fade quickly on both ends (Takahasi and Mori, 1974).

    >>> round(student_quantile(4, 0.025), 12)
    2.776445105198
    """
    step = 1 / 16
    u = np.arange(-4.0, 41.0, step)
    x = np.exp(u - np.exp(-u))
    dx = step * x * (1 + np.exp(-u))

    def density(x: FloatArray | float) -> FloatArray:
        return np.exp(-(freedom + 1) / 2 * np.log1p(np.square(x) / freedom))

    def beyond(t: float) -> float:
        scale = max(1.0, t)
        return scale * float((density(t + scale * x) * dx).sum())

    wanted = 2 * tail * beyond(0.0)
    t = -NormalDist().inv_cdf(tail)
    for _ in range(8):
        rest = beyond(t)
        t *= math.exp(rest * math.log(rest / wanted) / (float(density(t)) * t))
    return t


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
    alarms = {
        "group-sizes": _sample_ratio(log, "decisions", cause),
        "group-rewards": _sample_ratio(rewarded, "decisions with a reward", lost),
    }
    return {name: words for name, words in alarms.items() if words}


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
