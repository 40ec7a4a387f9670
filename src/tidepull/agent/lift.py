"""What the policy gained over the control group, with an interval that traffic which moves with
time cannot fake.

Time is cut into blocks with enough decisions of both groups. The gain is the mean over blocks of
the difference between the groups, every block weighing as many decisions as it has; so a group that
had more of the good hours gains nothing by it. Decisions of one subject are taken as one draw:

    gain = sum_b w_b (mean policy_b - mean control_b) = sum_i a_i r_i variance = sum over subjects
    of (sum_i a_i e_i)^2,    e_i = (r_i - mean of its cell) sqrt(n / (n - 1))
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull.agent.log import DecisionLog
from tidepull.agent.records import DecisionGroup
from tidepull.types import BoolArray, FloatArray, IntArray

IN_A_BLOCK = 10
"""Decisions of each group that a block must have, or as many times more as a subject has of
them."""


@dataclass(frozen=True, slots=True)
class Lift:
    """Gain in reward for each decision, and relative to the control's; NaN where it cannot be told
    yet."""

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
    level: float = 0.95
    has_control: bool = True  # False: the agent was made with control=0

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return math.isfinite(self.low)

    def __str__(self) -> str:
        if not self.has_control:
            return (
                "The gain cannot be measured: the agent was made with control=0, so there is no "
                "control group."
            )
        if not self.known:
            return (
                f"Nothing can be said yet about the gain over the control ({self.n_policy} and "
                f"{self.n_control} "
                "decisions with rewards)."
            )
        percent = f"{self.level:.0%} interval"
        if math.isfinite(self.relative):
            more = "more" if self.relative >= 0 else "less"
            return (
                f"{abs(self.relative):.1%} {more} reward than the control "
                f"({percent} {100 * self.relative_low:.1f} to {100 * self.relative_high:.1f})."
            )
        more = "more" if self.gain >= 0 else "less"
        return (
            f"{abs(self.gain):.3g} {more} reward a decision than the control "
            f"({percent} {self.low:.3g} to {self.high:.3g})."
        )


def lift_of(log: DecisionLog, level: float = 0.95) -> Lift:
    """The gain of the policy's decisions over the control's, of all that have a reward."""
    from scipy.special import stdtrit  # an agent starts sooner without it

    log = log.where(
        ~np.isnan(log.reward)
        & ((log.group == DecisionGroup.POLICY) | (log.group == DecisionGroup.CONTROL))
    )
    log = log.where(np.argsort(log.at, kind="stable"))
    control: BoolArray = log.group == DecisionGroup.CONTROL
    n_policy, n_control = int((~control).sum()), int(control.sum())
    if min(n_policy, n_control) < 2:
        nan = math.nan
        return Lift(nan, nan, nan, nan, nan, nan, nan, nan, n_policy, n_control, 0, level)
    clusters = len(np.unique(log.subject[control]))
    block = _blocks(control, IN_A_BLOCK * -(-n_control // clusters))
    means, errors = _cells(log.reward, block, control)
    weights = np.bincount(block) / len(block)
    sizes = np.array(
        [np.bincount(block, weights=side.astype(float)) for side in (~control, control)]
    )
    a: FloatArray = (
        np.where(control, -1.0, 1.0) * weights[block] / sizes[control.astype(int), block]
    )
    variances = [_variance((a * errors)[side], log.subject[side]) for side in (~control, control)]
    policy, rest = (float(weights @ side) for side in means)
    freedom = max(1, min(n_control - len(weights), clusters - 1))
    wide = float(stdtrit(freedom, 0.5 + level / 2))
    half = wide * math.sqrt(sum(variances))
    relative = _relative(policy, rest, variances, wide)
    gain = policy - rest
    return Lift(
        gain, gain - half, gain + half, *relative, policy, rest, n_policy, n_control, len(weights), level,
    )  # fmt: skip


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
    """policy / control - 1 and its interval; NaN where the control may be worth nothing.

    Fieller's: all x for which policy - (1 + x) control is not told from 0, so that it has 0 inside
    as often as the interval of the gain.
    """
    square = control**2 - wide**2 * variances[1]
    if control <= 0 or square <= 0:
        return math.nan, math.nan, math.nan
    product = policy * control
    root = math.sqrt(max(product**2 - square * (policy**2 - wide**2 * variances[0]), 0.0))
    return policy / control - 1, (product - root) / square - 1, (product + root) / square - 1
