"""Outliers among rewards: rejected, unless the next reward of the same arm confirms them.

Let m be the median of recent rewards and q the distance from m that all but a share of rewards keep.
By exchangeability a new reward is farther away with at most the probability of that share, whatever
the distribution. A reward more than 3 q from m is rejected: no model learns it (30 q with
observations, where a good policy sees few failures, which are also that far out). If the next
reward of the arm is outside the bounds, too, there was a change: it is accepted, and so are all that
follow until one is inside. So an outlier costs one round, and a change beyond all recent rewards
costs one round for each arm.

`confirm_by_value` (without contexts): a window may by chance contain more outliers than their
expected number n, so two standard deviations 2 sqrt(n) are added to n. A reward outside the bounds
is accepted only if it is close to the latest such reward of any arm: within q, or within a fifth of
that reward's distance from m. Two unrelated outliers in a row are no change, and a rare but constant
reward (a sale, a success) is learnt.

The same rule is applied to residuals (`Patterns._is_residual_inlier`): a reward may be usual among
all rewards, but not for its arm and round.

Where all but that share of rewards are equal (mostly 0, rarely something else) there is no such
distance, and all rewards are accepted. Before 16 rewards there are no bounds; the first rewards are
then clipped to the bounds.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.state import Stateful
from tidepull.types import FloatArray

TRUSTED = 16
_WINDOW = 1024
_EVERY = 16
_NEAR = 0.2
"""Largest distance between a reward and the one that confirms it, relative to its distance from the
median."""
_BY_CHANCE = 2.0
"""Standard deviations of the number of outliers in a window."""


class OutlierFilter(Stateful):
    """Bounds for rewards: `threshold` times the distance that all but a `share` of them keep, and at
    least `min_bound`. With the share 0 all are accepted."""

    state = (
        "recent",
        "was_outside",
        "count",
        "n_rejected",
        "is_clipped",
        "low",
        "high",
        "latest",
        "varied",
    )

    def __init__(
        self,
        share: float,
        n_arms: int,
        *,
        threshold: float = 3.0,
        confirm_by_value: bool = False,
        window: int = _WINDOW,
        min_bound: float = 0.0,
    ) -> None:
        self.share, self._min_bound = share, min_bound
        self._threshold, self._confirm_by_value = threshold, confirm_by_value
        self.low, self.high = -math.inf, math.inf
        self.count = 0
        self.n_rejected = 0
        self._is_clipped = not share  # whether the first rewards have been clipped
        self._recent = np.zeros(window if share else 0)
        # whether the latest reward of an arm was outside the bounds
        self._was_outside = np.zeros(n_arms, bool)
        self._latest = math.nan  # `confirm_by_value`: the latest reward outside the bounds
        self._varied = False

    @property
    def varied(self) -> bool:
        """Whether there are bounds, and the interquartile range of recent rewards is positive."""
        return math.isfinite(self.low) and self._varied

    def accepts(self, arm: int, reward: float) -> bool:
        """Whether to learn a reward."""
        if not self.share:
            return True
        inside = self.low <= reward <= self.high
        self._recent[self.count % len(self._recent)] = reward
        self.count += 1
        if self.count >= TRUSTED and (self.count % _EVERY == 0 or not inside):
            self._update_bounds()
            inside = self.low <= reward <= self.high
        if self._confirm_by_value:
            taken = inside or self._is_confirmed(reward)
            self._latest = self._latest if inside else reward
        else:
            taken = inside or bool(self._was_outside[arm])
            self._was_outside[arm] = not inside
        self.n_rejected += not taken
        return taken

    def _update_bounds(self) -> None:
        """Compute the bounds from recent rewards."""
        recent = self._recent[: min(self.count, len(self._recent))]
        by_chance = _BY_CHANCE if self._confirm_by_value else 0.0
        low, high = bounds(recent, self.share, self._threshold, by_chance)
        self.low, self.high = (
            (min(low, -self._min_bound), max(high, self._min_bound))
            if self._min_bound
            else (low, high)
        )
        self._varied = (
            bool(np.ptp(np.quantile(recent, (0.25, 0.75)))) if self._confirm_by_value else False
        )

    def _is_confirmed(self, reward: float) -> bool:
        """Whether a reward outside the bounds is close to the latest one outside (NaN: there was
        none)."""
        middle, usual = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low) / self._threshold
        return abs(reward - self._latest) <= max(usual, _NEAR * abs(self._latest - middle))

    def must_clip_first(self) -> bool:
        """True once: as soon as there are bounds, to which the first rewards are clipped."""
        if self._is_clipped or self.count < TRUSTED:
            return False
        self._is_clipped = True
        return True


def bounds(
    rewards: FloatArray, share: float, threshold: float = 3.0, by_chance: float = 0.0
) -> tuple[float, float]:
    """The median, minus and plus `threshold` times the distance that all rewards but the farthest
    one, and a share of the others, keep from it.

    >>> bounds(np.array([0.0, 1.0, 2.0, 3.0, 1e14]), 0.01)
    (-4.0, 8.0)
    """
    # Sorted throughout: where most rewards are equal, finding one place alone takes many times as
    # long.
    ordered, n = np.sort(rewards), len(rewards)
    middle = float((ordered[(n - 1) // 2] + ordered[n // 2]) / 2)
    others = int(share * n + by_chance * math.sqrt(share * n))
    farthest = float(np.sort(np.abs(rewards - middle))[max(n - 2 - others, 0)])
    if farthest == 0.0:
        return -math.inf, math.inf
    return middle - threshold * farthest, middle + threshold * farthest
