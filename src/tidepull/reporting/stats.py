"""Statistics over trials: summaries, bootstrap intervals, paired comparisons, scores over problems,
sensitivity.

Two policies are compared in pairs on common seeds where there are any, else as independent samples.

One score over many problems is in the style of rliable (Agarwal et al., 2021). Regret is normalised
by that of random arms: 0 is the oracle, 1 is random. The interquartile mean of all trials of all
problems is robust to single lost trials; its interval comes from a bootstrap that resamples trials
within each problem (stratified). rliable's own ignores its seed; this one does not. Blocks of a
log's neighbouring rows are resampled by `tidepull.logs.intervals`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tidepull._internal.extras import needs

with needs("tidepull.reporting", "experiments"):
    from scipy import special, stats

from tidepull.reporting.frames import Group, Study
from tidepull.types import FloatArray

RESAMPLES = 2000


def mean_interval(samples: FloatArray) -> tuple[FloatArray, FloatArray]:
    """95% bootstrap interval of the mean over axis 0 (trials), for every column.

    With ten trials the plain percentile interval is about a tenth too narrow; its tails are
    therefore moved outwards to Phi(-sqrt(n / (n - 1)) t_{n-1}) (the "expanded percentile" interval
    of Hesterberg, 2015), which covers like Student's on symmetric data and follows the skew of the
    sample otherwise. Fewer than six trials have too few distinct resamples for that: Student's
    interval is used.
    """
    samples = np.asarray(samples, dtype=float)
    n = len(samples)
    if n < 2:
        unknown = np.full(samples.shape[1:], np.nan)
        return unknown, unknown
    t = float(special.stdtrit(n - 1, 0.975))
    if n < 6:
        half = t * samples.std(axis=0, ddof=1) / np.sqrt(n)
        return samples.mean(axis=0) - half, samples.mean(axis=0) + half
    tail = float(special.ndtr(-np.sqrt(n / (n - 1)) * t))
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    means = counts @ samples.reshape(n, -1) / n
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low.reshape(samples.shape[1:]), high.reshape(samples.shape[1:])


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, sample standard deviation (ddof = 1) and the half width of Student's 95% interval."""

    mean: float
    std: float
    half_width: float
    trials: int


def summarise(values: FloatArray) -> Summary:
    """Summary of one figure per trial; with a single trial the spread is unknown (nan)."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    if n < 2:
        return Summary(float(values.mean()), float("nan"), float("nan"), n)
    mean, std = float(values.mean()), float(values.std(ddof=1))
    return Summary(mean, std, float(special.stdtrit(n - 1, 0.975)) * std / n**0.5, n)


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean regret of `a` minus that of `b`, with its 95% interval; below zero, `a` is better.

    `wins` is the share of common seeds on which `a` has less regret (ties count half): the
    probability of improvement, with Wilson's 95% interval. It is nan where the samples are not
    paired.
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


def paired(a: Group, b: Group) -> Difference:
    """Compare on the worlds that both have played; nan where there are fewer than two."""
    return paired_values(a.name, b.name, *common_regrets(a, b))


def common_regrets(a: Group, b: Group) -> tuple[FloatArray, FloatArray]:
    """The regrets of two groups on the worlds that both have played."""
    theirs = dict(zip(b.worlds, b.regrets, strict=True))
    ours = dict(zip(a.worlds, a.regrets, strict=True))
    common = [world for world in ours if world in theirs]
    first, second = (np.array([own[world] for world in common]) for own in (ours, theirs))
    return first, second


def paired_values(a: str, b: str, first: FloatArray, second: FloatArray) -> Difference:
    """The same for two arrays whose entries belong together."""
    n = len(first)
    if n == 0:
        unknown = float("nan")
        return Difference(a, b, unknown, unknown, unknown, 0)
    gaps = first - second
    low, high = mean_interval(gaps)
    wins = float(np.mean((gaps < 0) + 0.5 * (gaps == 0)))
    return Difference(a, b, float(gaps.mean()), float(low), float(high), n, wins, *wilson(wins, n))


def independent(
    a: str, b: str, first: tuple[float, float, int], second: tuple[float, float, int]
) -> Difference:
    """Welch's interval from two (mean, standard deviation, trials); all that a printed table
    allows."""
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
    first, second = ((s.mean, s.std, s.trials) for s in map(summarise, (a.regrets, b.regrets)))
    return independent(a.name, b.name, first, second)


def all_pairs(groups: list[Group]) -> list[Difference]:
    """Every pair once, the better of the two first when `groups` come in order of regret."""
    return [paired(a, b) for a, b in combinations(groups, 2)]


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share of n."""
    z = 1.959963984540054
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True, slots=True)
class Score:
    """Interquartile mean of normalised regret with its 95% interval, and the plain mean."""

    policy: str
    iqm: float
    low: float
    high: float
    mean: float
    trials: int


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Share of trials with a normalised regret of at most each threshold, with its 95% band."""

    policy: str
    share: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """All policies that played one set of problems."""

    problems: tuple[str, ...]
    scores: tuple[Score, ...]
    thresholds: FloatArray
    profiles: tuple[Profile, ...]


def panels(normalised: Mapping[str, Mapping[str, FloatArray]]) -> list[Panel]:
    """Policy to problem to trials; one panel for each set of at least two problems that a policy
    played.

    Policies are only ever compared on the same problems; a policy that is alone on its set gets no
    panel.
    """
    sets = {frozenset(by_problem) for by_problem in normalised.values() if len(by_problem) > 1}
    largest_first = sorted(sets, key=lambda s: (-len(s), sorted(s)))
    every = [panel(problems, normalised) for problems in largest_first]
    return [panel for panel in every if len(panel.scores) > 1]


def panel(problems: frozenset[str], normalised: Mapping[str, Mapping[str, FloatArray]]) -> Panel:
    """The policies that played all these problems, lowest interquartile mean first."""
    order = sorted(problems)
    able = {
        policy: [np.asarray(by_problem[problem], dtype=float) for problem in order]
        for policy, by_problem in normalised.items()
        if problems <= set(by_problem)
    }
    top = max(1.0, *(float(np.max(strata)) for trials in able.values() for strata in trials))
    thresholds = np.linspace(0, min(top, 2.0), 101)
    scores = sorted((score(policy, strata) for policy, strata in able.items()), key=lambda s: s.iqm)
    profiles = tuple(profile(s.policy, able[s.policy], thresholds) for s in scores)
    return Panel(tuple(order), tuple(scores), thresholds, profiles)


def interquartile_mean(values: FloatArray) -> FloatArray:
    """Mean of the middle half along the last axis; a quarter is cut off each end (rounded down)."""
    return np.asarray(stats.trim_mean(values, 0.25, axis=-1))


def score(policy: str, strata: Sequence[FloatArray]) -> Score:
    """Interquartile mean over all trials of all problems, with its stratified bootstrap
    interval."""
    values = np.concatenate(strata)
    low, high = np.quantile(interquartile_mean(resampled(strata)), [0.025, 0.975])
    mean = float(np.mean([stratum.mean() for stratum in strata]))
    iqm = float(interquartile_mean(values))
    return Score(policy, iqm, float(low), float(high), mean, len(values))


def profile(policy: str, strata: Sequence[FloatArray], thresholds: FloatArray) -> Profile:
    """The performance profile; lower regret lies further up and left."""
    draws = np.sort(resampled(strata), axis=1)
    shares = np.stack([_share(draw, thresholds) for draw in draws])
    low, high = np.quantile(shares, [0.025, 0.975], axis=0)
    return Profile(policy, _share(np.sort(np.concatenate(strata)), thresholds), low, high)


def resampled(strata: Sequence[FloatArray]) -> FloatArray:
    """Bootstrap samples (resamples x all trials): trials are drawn anew within each problem."""
    rng = np.random.default_rng(0)
    places = (rng.integers(len(s), size=(RESAMPLES, len(s))) for s in strata)
    return np.concatenate([s[at] for s, at in zip(strata, places, strict=True)], axis=1)


def _share(values: FloatArray, thresholds: FloatArray) -> FloatArray:
    return np.asarray(np.searchsorted(values, thresholds, side="right") / len(values))


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """One policy on one problem: means in falling order, and the settings they belong to.

    `scores` are normalised as in the paper, (m - m_random) / (m_best - m_random) with the policy's
    own best setting; None when `random` was not run on the problem.
    """

    name: str
    means: FloatArray
    settings: tuple[str, ...]
    trials: tuple[int, ...]
    scores: FloatArray | None

    @property
    def median_score(self) -> float:
        """The normalised score that half of the settings reach; near 1 where the choice hardly
        matters."""
        return float("nan") if self.scores is None else float(np.median(self.scores))

    @property
    def share_below_random(self) -> float:
        """Share of settings that earn less than random arms."""
        return float("nan") if self.scores is None else float(np.mean(self.scores < 0))


def sensitivities(study: Study) -> list[Sensitivity]:
    """One for each policy with a grid, in the order of the suite."""
    random = next((g for g in study.groups if g.rows[0].policy == "random"), None)
    floor = None if random is None else float(random.rewards.mean())
    results = []
    for name, groups in study.grids.items():
        ordered = sorted(groups, key=lambda group: -float(group.rewards.mean()))
        means = np.array([float(group.rewards.mean()) for group in ordered])
        scores = None
        if floor is not None and means[0] > floor:
            scores = (means - floor) / (means[0] - floor)
        settings = tuple(group.setting for group in ordered)
        trials = tuple(len(group.rows) for group in ordered)
        results.append(Sensitivity(name, means, settings, trials, scores))
    return results
