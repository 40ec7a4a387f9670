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
from tidepull.agent.sequences import log_ratio_evidence
from tidepull.types import BoolArray, FloatArray, IntArray

IN_A_BLOCK = 10
"""Decisions of each group that a block must have, or as many times more as a subject has of
them."""

UNLIKELY = 1e-4
"""Chance below which a group's size is no accident."""


@dataclass(frozen=True, slots=True)
class Lift:
    """Gain in reward for each decision, and relative to the control's; NaN where it cannot be told
    yet. `against` says what the control is: "random arms", "your rule", "arm 'a' alone" (None:
    there is no control)."""

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
    against: str | None = "random arms"

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return math.isfinite(self.low)

    def __str__(self) -> str:
        if self.against is None:
            return "There is no control group (control=0), so the gain cannot be measured."
        if not self.known:
            return (
                f"Nothing can be said yet about the gain over {self.against} ({self.n_policy} "
                f"decisions with rewards, and {self.n_control} in the control)."
            )
        percent = f"{self.level:.0%} interval"
        if math.isfinite(self.relative):
            more = "more" if self.relative >= 0 else "less"
            return (
                f"{abs(self.relative):.1%} {more} reward than {self.against} "
                f"({percent} {100 * self.relative_low:.1f} to {100 * self.relative_high:.1f})."
            )
        more = "more" if self.gain >= 0 else "less"
        return (
            f"{abs(self.gain):.3g} {more} reward a decision than {self.against} "
            f"({percent} {self.low:.3g} to {self.high:.3g})."
        )


def comparison(log: DecisionLog, control: str | None) -> tuple[DecisionLog, str | None]:
    """The decisions to compare, and what the control is; `control` is the label of its arm.

    Where callers name what their rule takes, decisions without it are left out, in both groups: it
    was known before the group.
    """
    if (log.baseline >= 0).any():
        return log.where(log.baseline >= 0), "your rule"
    if not log.control_share.any():
        return log, None
    return log, "random arms" if control is None else f"arm '{control}' alone"


def sample_ratio_alarms(log: DecisionLog) -> list[str]:
    """A sentence where a group has not the size that it should have; subjects count once."""
    log = log.where(log.group <= DecisionGroup.CONTROL)
    rewarded = log.where(~np.isnan(log.reward))
    return [
        *_sample_ratio(log, "decisions", "the groups cannot be compared until the cause is found"),
        *_sample_ratio(
            rewarded, "decisions with a reward", "rewards of one group do not come, report all"
        ),
    ]


def _sample_ratio(log: DecisionLog, what: str, so: str) -> list[str]:
    log = log.where(np.unique(log.subject, return_index=True)[1])
    control: BoolArray = log.group == DecisionGroup.CONTROL
    evidence, expected = 0.0, 0.0
    for share in np.unique(log.control_share[(log.control_share > 0) & (log.control_share < 1)]):
        rows = log.control_share == share
        n, count = int(rows.sum()), int(control[rows].sum())
        evidence += log_ratio_evidence(count, n, float(share))
        expected += share * n
    if evidence < -math.log(UNLIKELY):
        return []
    return [
        f"{int(control.sum()):,} of {len(log):,} {what} (subjects once) are in the control, "
        f"{expected:,.0f} are expected: {so}."
    ]


def lift_of(log: DecisionLog, level: float = 0.95, against: str | None = "random arms") -> Lift:
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
        return Lift(nan, nan, nan, nan, nan, nan, nan, nan, n_policy, n_control, 0, level, against)
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
        gain, gain - half, gain + half, *relative, policy, rest, n_policy, n_control, len(weights), level, against,
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
