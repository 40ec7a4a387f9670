"""Rewards that are nothing like all others: set aside, unless the next one of the same arm is like
them.

Let m be the median of recent rewards and q the distance from it that all but a share of them keep.
By exchangeability a new reward lies farther out with no more chance than that share, whatever the
distribution. One that lies more than 3 q from m is set aside, as if it had never come (30 q with
observations: there the mistakes of who chooses well are rare, too, and lie that far out). If the
next one of its arm lies beyond the bounds, too, that is no accident but a change: it is taken, and
all that follow until one lies within. So an absurd reward costs one round, and a change that goes
beyond all that was seen lately costs one round an arm.

`careful` (without contexts): by chance there may be more of them than their share n in a window, so
two standard deviations 2 sqrt(n) are added to it; and one that lies beyond is taken only if it is
*like* the latest of any arm that did, whenever that came: no farther from it than q, or a fifth of
how far that lies out. Two absurd rewards in a row are no change, and what is rare but always the
same (a sale, a success) is learnt.

The same rule serves what was expected (`Tide._is_expected`): a reward may be like others and still
nothing like those of its arm and moment.

Where all but that share of rewards are equal (nothing, and rarely something) there is no such
distance, and all are taken. Before 16 rewards there are no bounds; of the first ones, those that
turn out to lie beyond are then put onto the bounds.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.state import Stateful
from tidepull.types import FloatArray

TRUSTED = 16
_RECENT = 1024
_EVERY = 16
_NEAR = 0.2
"""How far from it, beside how far it lies out, a reward may lie that is like another."""
_BY_CHANCE = 2.0
"""Standard deviations of the number of wild rewards in a window."""


class OutlierFilter(Stateful):
    """Bounds for rewards; `share` of them may be wild (0: all are taken): those `beyond` times as
    far out as others, and never those from -`usual` to `usual`."""

    state = ("recent", "beyond", "count", "aside", "judged", "low", "high", "latest", "varied")

    def __init__(
        self,
        share: float,
        n_arms: int,
        *,
        beyond: float = 3.0,
        careful: bool = False,
        recent: int = _RECENT,
        usual: float = 0.0,
    ) -> None:
        self.share, self._usual = share, usual
        self._times, self._careful = beyond, careful
        self.low, self.high = -math.inf, math.inf
        self.count = 0
        self.aside = 0
        self._judged = not share  # whether the first rewards have been put onto the bounds
        self._recent = np.zeros(recent if share else 0)
        self._beyond = np.zeros(
            n_arms, bool
        )  # whether the latest reward of an arm lay beyond the bounds
        self._latest = math.nan  # `careful`: the latest of any arm that lay beyond
        self._varied = False

    @property
    def varied(self) -> bool:
        """Whether there are bounds, and half of the recent rewards do not lie on one number."""
        return math.isfinite(self.low) and self._varied

    def takes(self, arm: int, reward: float) -> bool:
        """Whether to learn a reward that has come."""
        if not self.share:
            return True
        inside = self.low <= reward <= self.high
        self._recent[self.count % len(self._recent)] = reward
        self.count += 1
        if self.count >= TRUSTED and (self.count % _EVERY == 0 or not inside):
            self._look()
            inside = self.low <= reward <= self.high
        if self._careful:
            taken = inside or self._alike(reward)
            self._latest = self._latest if inside else reward
        else:
            taken = inside or bool(self._beyond[arm])
            self._beyond[arm] = not inside
        self.aside += not taken
        return taken

    def _look(self) -> None:
        """Bounds anew."""
        recent = self._recent[: min(self.count, len(self._recent))]
        by_chance = _BY_CHANCE if self._careful else 0.0
        low, high = bounds(recent, self.share, self._times, by_chance)
        self.low, self.high = (
            (min(low, -self._usual), max(high, self._usual)) if self._usual else (low, high)
        )
        self._varied = bool(np.ptp(np.quantile(recent, (0.25, 0.75)))) if self._careful else False

    def _alike(self, reward: float) -> bool:
        """Whether a reward beyond the bounds is like the latest that lay beyond (not a number:
        there was none)."""
        middle, usual = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low) / self._times
        return abs(reward - self._latest) <= max(usual, _NEAR * abs(self._latest - middle))

    def judges_the_first(self) -> bool:
        """True once, as soon as there are bounds for the rewards that came before there were
        any."""
        if self._judged or self.count < TRUSTED:
            return False
        self._judged = True
        return True


def bounds(
    rewards: FloatArray, share: float, times: float = 3.0, by_chance: float = 0.0
) -> tuple[float, float]:
    """So many times as far from the median as all rewards but the farthest one, and a share of the
    others, lie.

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
    return middle - times * farthest, middle + times * farthest
