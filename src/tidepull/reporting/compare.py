"""Two policies side by side: paired on common seeds where there are any, else as independent samples."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import special

from tidepull.reporting.bootstrap import mean_interval
from tidepull.reporting.frame import Group
from tidepull.reporting.summary import summarise
from tidepull.types import FloatArray


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean regret of `a` minus that of `b`, with its 95% interval; below zero, `a` is better.

    `wins` is the share of common seeds on which `a` has less regret (ties count half): the probability of
    improvement, with Wilson's 95% interval. It is nan where the samples are not paired.
    """

    a: str
    b: str
    mean: float
    low: float
    high: float
    pairs: int
    wins: float = float("nan")
    wins_low: float = float("nan")
    wins_high: float = float("nan")

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def paired(a: Group, b: Group, *, seed: int = 0) -> Difference:
    """Compare on the worlds that both have played; nan where there are fewer than two."""
    theirs = dict(zip(b.worlds, b.regrets, strict=True))
    ours = dict(zip(a.worlds, a.regrets, strict=True))
    common = [world for world in ours if world in theirs]
    return paired_values(
        a.name,
        b.name,
        np.array([ours[world] for world in common]),
        np.array([theirs[world] for world in common]),
        seed=seed,
    )


def paired_values(a: str, b: str, first: FloatArray, second: FloatArray, *, seed: int = 0) -> Difference:
    """The same for two arrays whose entries belong together."""
    n = len(first)
    if n == 0:
        unknown = float("nan")
        return Difference(a, b, unknown, unknown, unknown, 0)
    gaps = first - second
    low, high = mean_interval(gaps, seed=seed)
    wins = float(np.mean((gaps < 0) + 0.5 * (gaps == 0)))
    return Difference(a, b, float(gaps.mean()), float(low), float(high), n, wins, *wilson(wins, n))


def independent(
    a: str, b: str, first: tuple[float, float, int], second: tuple[float, float, int]
) -> Difference:
    """Welch's interval from two (mean, standard deviation, trials); all that a printed table allows."""
    (m1, s1, n1), (m2, s2, n2) = first, second
    if min(n1, n2) < 2:
        unknown = float("nan")
        return Difference(a, b, m1 - m2, unknown, unknown, 0)
    v1, v2 = s1**2 / n1, s2**2 / n2
    half = 0.0
    if v1 + v2 > 0:
        freedom = (v1 + v2) ** 2 / (v1**2 / (n1 - 1) + v2**2 / (n2 - 1))
        half = float(special.stdtrit(freedom, 0.975)) * (v1 + v2) ** 0.5
    return Difference(a, b, m1 - m2, m1 - m2 - half, m1 - m2 + half, 0)


def compared(a: Group, b: Group) -> Difference:
    """Paired where both played at least two common worlds, else Welch's."""
    difference = paired(a, b)
    if difference.pairs >= 2:
        return difference
    first, second = summarise(a.regrets), summarise(b.regrets)
    return independent(
        a.name, b.name, (first.mean, first.std, first.trials), (second.mean, second.std, second.trials)
    )


def all_pairs(groups: list[Group]) -> list[Difference]:
    """Every pair once, the better of the two first when `groups` come in order of regret."""
    return [paired(a, b) for a, b in combinations(groups, 2)]


def wilson(share: float, n: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's 95% interval of a share of n."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)
